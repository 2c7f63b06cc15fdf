"""Where a player misses the line that other libraries draw: whether its floor does, too, and what the floor is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from benchmarks.measure.costs import Player
from benchmarks.measure.floors import Floor
from benchmarks.measure.players import OURS
from benchmarks.page.results import TARGETS, Place, Results, place_name, us


class Miss(NamedTuple):
    """A cell in which a player is slower than its line, the fastest peer's time over the target; nanoseconds a round."""

    player: Player
    place: Place
    line: float
    taken: float
    floor: Floor

    @property
    def out_of_reach(self) -> bool:
        """Whether the floor itself lies above the line: arithmetic and memory of this core, for the player's numbers."""
        return self.floor.nanoseconds > self.line


def misses(results: Results) -> list[Miss]:
    """Return every cell in which a player does not meet its target, in the order of the tables."""
    found = []
    for player in OURS:
        for place in results.places:
            ratio, cell = results.against(player, place), results.cell(player, place)
            if ratio is None or cell is None or ratio >= TARGETS[player.job]:
                continue
            taken = cell.row.nanoseconds or 0.0
            found.append(Miss(player, place, taken * ratio / TARGETS[player.job], taken, cell.floor))
    return found


def lines(results: Results) -> Iterable[str]:
    """Yield the section, or nothing where every player that was measured meets its target."""
    missed = misses(results)
    if not missed:
        return
    beyond = sum(miss.out_of_reach for miss in missed)
    yield "## Below the target, and what stands in the way\n"
    yield "The line is the fastest library's time over the target, 15 or 10. Where the floor of a player's round lies above"
    yield "it, this core cannot do the arithmetic that is counted, or move its numbers, in that time; elsewhere the rest is"
    yield f"ours. {beyond} of {len(missed)} cells are of the first kind. Another form of an algorithm may have a lower"
    yield "floor: those of large matrices fell when they began as rows."
    yield "A floor above the time measured shows how far off floors may be: they are made of rates at other sizes.\n"
    yield "| player | cell | line, us | floor, us | the floor is | measured, us | times the line | the floor's |"
    yield "|---|---|---:|---:|---|---:|---:|---:|"
    for miss in missed:
        floor = miss.floor
        parts = sorted(floor.parts.items(), key=lambda part: -part[1])
        yield (
            f"| {miss.player.label} | {place_name(miss.place)} | {us(miss.line)} | {us(floor.nanoseconds)} | {floor.bound}: "
            f"{parts[0][0]} {parts[0][1] / floor.nanoseconds:.0%} | {us(miss.taken)} | {miss.taken / miss.line:.1f} | "
            f"{floor.nanoseconds / miss.line:.1f} |"
        )
    yield ""
