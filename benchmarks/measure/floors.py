"""The floor of a round: what its arithmetic and its memory traffic take at the best rates measured on this core."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.measure.costs import Cell, Player
from benchmarks.measure.machine import Rates, level
from benchmarks.measure.one_player import Row


class Floor(NamedTuple):
    """Nanoseconds of a round: the larger of its operations and its bytes, what the larger one is, and the parts of both."""

    operations: float
    bytes: float
    bound: str
    parts: dict[str, float]

    @property
    def nanoseconds(self) -> float:
        """The floor."""
        return max(self.operations, self.bytes)


def cell_of(row: Row) -> Cell:
    """Return where a measured row stands, with the hits and the zeros that were met."""
    hits = 1.0 - (row.mistakes or 0.0)
    return Cell(row.K, row.d, row.nonzero or float(row.d), hits, row.rounds or 1, row.heavy or 0.0)


def floor(player: Player, row: Row, rates: Rates, loop: float, stream_bytes: float) -> Floor:
    """Return the floor of a measured row.

    Operations, each kind at the best rate for its size, come one after another, but for divisions and roots, which a
    processor does beside what goes element by element: of the two the longer counts. To an agent's the loop is added: two
    uniforms drawn, the answer checked and scored, which is what uniform guessing took on the same stream (`loop`,
    nanoseconds). Bytes are those of the state that a round reads or writes, at the bandwidth of what holds the whole state,
    and those of the context, at that of what holds the stream.
    """
    cost = player.cost(cell_of(row))
    state = max(row.state or 8.0 * player.state(row.K, row.d), 8.0 * cost.size, 1024.0)
    work = {
        "matrix-matrix products": cost.gemm / rates.gemm.at(row.d),
        "matrix-vector products": cost.gemv / rates.gemv.at(cost.size),
        "element by element": cost.stream / rates.stream.at(16.0 * row.d),
        "exponentials": cost.exp / rates.exp.at(1.0),
        "quotients by roots": cost.root / rates.root.at(1.0),
        "divisions": cost.quotient / rates.quotient.at(1.0),
        "the loop": loop if player.kind == "agents" else 0.0,
    }
    moved = {
        "the state's bytes": 8.0 * cost.moved / rates.bytes.at(state),
        "the context's bytes": 8.0 * row.d / rates.bytes.at(stream_bytes),
    }
    divided, stream = work["quotients by roots"] + work["divisions"], work["element by element"]
    operations, bytes_ = sum(work.values()) - min(divided, stream), sum(moved.values())
    if operations >= bytes_:
        return Floor(operations, bytes_, "operations", work)
    return Floor(operations, bytes_, f"bytes, state in {level(state)}", moved)
