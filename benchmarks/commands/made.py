"""stackcb beside linear agents on streams that are made, of kinds that tables come in: docs/results/made-streams.csv.

    python -m benchmarks made --streams 10 --keep

plays every kind of `benchmarks.measure.made_streams` once through: `fastcb` at its default, at lambda 3e-4 and on standardised
columns, `linucb` on standardised columns at its default and at a ridge of R^2, and `stackcb`. --keep writes the csv file and
the table of default-agent.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.result_pages.default_agent import MADE, MADE_PLAYERS, made_table, parts
from banditlab.analysis.pages import fill_page
from banditlab.errors import UsageError
from banditlab.numerics.contexts import as_contexts
from banditlab.results.files import write_bytes
from banditlab.validation import at_least
from benchmarks.measure.made_streams import KINDS, Kind, scaled
from benchmarks.measure.names import picked
from benchmarks.measure.one_pass import one_pass

PLACE = Path(__file__).parents[2] / "docs" / "results"
PLAYED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "fastcb": ("norm", "fastcb", {}),
    "fastcb 3e-4": ("norm", "fastcb", {"regularization": 3e-4}),
    "standardised": ("standard", "fastcb", {}),
    "linucb": ("standard", "linucb", {}),
    "linucb 1": ("standard", "linucb", {"regularization": 1.0}),
    "stackcb": ("norm", "stackcb", {}),
}
"""Scaling, id and settings of a player."""


def main(*, streams: int = 10, only: str = "", keep: bool = False) -> None:
    """Play and print the table; `only`: names of kinds with commas. `keep` writes all kinds."""
    at_least("streams", streams, 2)
    wanted = picked("only", only, [kind.name for kind in KINDS])
    if keep and only:
        raise UsageError("--keep writes all kinds of streams: leave --only out")
    lines: list[tuple[Any, ...]] = []
    for kind in KINDS:
        if kind.name in wanted:
            lines += [mistakes(kind, player, streams) for player in MADE_PLAYERS]
            print(made_table(lines).splitlines()[-1], flush=True)
    print(made_table(lines))
    if keep:
        write_bytes(
            PLACE / MADE, pd.DataFrame(lines, columns=COLUMNS).to_csv(index=False, lineterminator="\n").encode()
        )
        fill_page(PLACE / "default-agent.md", parts(PLACE))


COLUMNS = ("stream", "rounds", "n_classes", "n_features", "player", "mistakes")


def mistakes(kind: Kind, player: str, streams: int) -> tuple[Any, ...]:
    """Return a line of the table: mistakes in % of every stream, as one text."""
    scaling, id_, settings = PLAYED[player]
    found, d = [], 0
    for seed in range(streams):
        X, y = kind.draw(np.random.default_rng([seed, kind.rounds]), kind.rounds)
        d = X.shape[1]
        _, trace = one_pass(
            id_, as_contexts(scaled(X, scaling)), y.astype(np.int64), kind.n_classes, 1.0, seed, settings
        )
        found.append(100.0 * float(1.0 - trace.correct.mean()))
    return kind.name, kind.rounds, kind.n_classes, d, player, " ".join(f"{share:.2f}" for share in found)
