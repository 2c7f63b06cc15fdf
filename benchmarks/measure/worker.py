"""Cells measured with the package of a checkout, in a process of its own: `python -m benchmarks.measure.worker CHECKOUT`.

A line of its input is a request, [label, cell, effort] as JSON; a line of its output is the row that answers it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def serve(checkout: str) -> None:
    """Answer requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what other libraries print is no answer
    sys.path.insert(0, checkout)
    import banditlab

    del sys.path[0]  # the benchmarks are those of this file's checkout
    if not Path(banditlab.__file__).is_relative_to(checkout):
        raise SystemExit(f"there is no package banditlab in {checkout}")
    from benchmarks.measure import one_player, vw_driver
    from benchmarks.measure.players import OURS, PEERS

    players, warm = {player.label: player for player in OURS + PEERS}, set()
    for line in sys.stdin:
        label, cell, effort = json.loads(line)
        player, stream = players[label], one_player.stream_of(cell)
        if label not in warm and player.kind != "driver":
            one_player.warm(player)
            warm.add(label)
        measure = vw_driver.measure if player.kind == "driver" else one_player.measure
        print(json.dumps(measure(player, stream, one_player.Effort(*effort))), file=answers, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
