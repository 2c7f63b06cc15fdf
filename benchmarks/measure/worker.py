"""Cells measured with the package of a checkout, in a separate process: `python -m benchmarks.measure.worker CHECKOUT`.

A line of its input is a request, [label, cell, effort] as JSON; a line of its output is the row that answers it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.measure.one_player import Row
    from benchmarks.measure.players import Player


def serve(checkout: str) -> None:
    """Answer requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what other libraries print is no answer
    sys.path.insert(0, checkout)
    import banditlab

    del sys.path[0]  # the benchmarks are those of this file's checkout
    if not Path(banditlab.__file__).is_relative_to(checkout):
        raise SystemExit(f"there is no package banditlab in {checkout}")
    from benchmarks.measure.players import OURS, PEERS

    players, warm = {player.label: player for player in OURS + PEERS}, set[str]()
    for line in sys.stdin:
        label, cell, effort = json.loads(line)
        print(json.dumps(row_of(players[label], cell, effort, warm)), file=answers, flush=True)


def row_of(player: Player, cell: str, effort: list[float], warm: set[str]) -> Row:
    """Return the row of a player and a cell; kernels of a player that is not in `warm` are compiled first."""
    from banditlab.errors import BanditlabError
    from benchmarks.measure import one_player, vw_driver

    stream, limits = one_player.stream_of(cell), one_player.Effort(*effort)
    if player.kind == "driver":
        return vw_driver.measure(player, stream, limits)
    try:
        if player.label not in warm:
            one_player.warm(player)
    except (BanditlabError, TypeError) as error:  # another checkout may not know the player, or one of its settings
        return one_player.Row(player.label, player.kind, *one_player.place_of(cell), why=str(error))
    warm.add(player.label)
    return one_player.measure(player, stream, limits)


if __name__ == "__main__":
    serve(sys.argv[1])
