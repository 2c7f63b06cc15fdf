"""The measured rows with what is looked up in them: floors, ratios, the fastest other library."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.measure.costs import Player
from benchmarks.measure.floors import Floor, cell_of, floor
from benchmarks.measure.machine import Rates
from benchmarks.measure.one_player import ROUNDS, STREAM_BYTES, Row
from benchmarks.measure.players import OURS, PEERS
from benchmarks.page.growth import Point

TARGETS = {"first": 15.0, "second": 10.0}
JOBS = {"first": "first order", "second": "a second-order model per class"}
LIMITS = {"folklore": 2.0, "fastcb": 2.5}
ANY_LIMIT = 3.0
"""How many times its floor a player may take at K = 10, d = 64, by id or whichever it is; sketches are not made for it."""

Place = tuple[str, int, int]


class Cell(NamedTuple):
    """A measured row of our own beside its floor."""

    player: Player
    row: Row
    floor: Floor

    @property
    def ratio(self) -> float:
        """Measured over floor."""
        return (self.row.nanoseconds or 0.0) / self.floor.nanoseconds


class Results:
    """Rows and rates with what is looked up in them."""

    def __init__(self, rows: list[Row], rates: Rates) -> None:
        self.rows, self.rates = rows, rates
        self.places = list(dict.fromkeys((row.stream, row.K, row.d) for row in rows))
        self.by_key = {(row.player, row.stream, row.K, row.d): row for row in rows}

    def row(self, player: Player, place: Place) -> Row | None:
        """Return a player's row at (stream, K, d)."""
        return self.by_key.get((player.label, *place))

    def measured(self, player: Player, place: Place) -> Row | None:
        """Return a player's row where it was measured."""
        row = self.row(player, place)
        return row if row is not None and row.nanoseconds else None

    def cell(self, player: Player, place: Place) -> Cell | None:
        """Return a player's measured row beside its floor."""
        row, loop = self.measured(player, place), self.measured(OURS[0], place)
        if row is None:
            return None
        d = row.d
        stream_bytes = 8.0 * d * min(ROUNDS, STREAM_BYTES // (8 * d), row.rounds or 1)
        nanoseconds = loop.nanoseconds if loop is not None and loop.nanoseconds else 0.0
        return Cell(player, row, floor(player, row, self.rates, nanoseconds, stream_bytes))

    def fastest_peer(self, job: str, place: Place, stepped: bool = False) -> Row | None:
        """Return the fastest other library's row for a job at a place; `stepped`: of those called once a round."""
        peers = [peer for peer in PEERS if peer.job == job and not (stepped and peer.kind == "driver")]
        rows = [row for peer in peers if (row := self.measured(peer, place)) is not None]
        return min(rows, key=lambda row: row.nanoseconds or 0.0, default=None)

    def against(self, player: Player, place: Place, stepped: bool = False) -> float | None:
        """Return how many times faster than the fastest peer of its job a player is."""
        row, peer = self.measured(player, place), self.fastest_peer(player.job, place, stepped)
        if not player.job or row is None or peer is None:
            return None
        return (peer.nanoseconds or 0.0) / (row.nanoseconds or 1.0)


def limit(player: Player) -> float:
    """Return how many times its floor a player may take at K = 10, d = 64 without a word on the rest."""
    return ANY_LIMIT if "second_order" in player.settings else LIMITS.get(player.id, ANY_LIMIT)


def points(results: Results, player: Player) -> list[Point]:
    """Return a player's Logistic cells for the fit of its growth."""
    cells = [results.cell(player, place) for place in results.places if place[0] == "logistic"]
    return [
        Point(c.row.K, c.row.d, c.row.nanoseconds or 0.0, c.floor.nanoseconds, player.cost(cell_of(c.row)).operations())
        for c in cells
        if c is not None
    ]


def us(nanoseconds: float | None) -> str:
    """Return microseconds, three digits."""
    value = (nanoseconds or 0.0) / 1e3
    return f"{value:,.3f}" if value < 1 else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def place_name(place: Place) -> str:
    """Return a cell's short name."""
    stream, K, d = place
    return f"{'digits ' if stream == 'digits' else ''}{K} x {d}"
