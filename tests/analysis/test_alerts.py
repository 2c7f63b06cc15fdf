"""What keeps numbers from being complete or trusted, on both sides of every limit."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pandas as pd

from banditlab.analysis.alerts import _off_expectation, alerts, incomplete


def results(**keys: Any) -> Any:
    runs = pd.DataFrame({"round": [10, 1000], "kind": "bit", "label": "a", "environment": "e", "ranked": 0.1,
                         "mistakes": 0.0, "expected_mistakes": 0.0, "mistakes_variance": 0.0})  # fmt: skip
    there = {"missing": 0, "planned": 12, "failures": [], "unreadable": [], "runs": runs}
    there |= keys
    return SimpleNamespace(**there, final=there["runs"][there["runs"]["round"] == 1000])


def test_what_is_missing_failed_or_unreadable() -> None:
    assert alerts(results()) == []
    assert incomplete(results(missing=3)) == ["Unfinished: 3 of 12 runs missing; the same command runs the rest."]
    run, stream = (SimpleNamespace(is_comparator=each) for each in (False, True))
    assert incomplete(results(failures=[run, run])) == [
        "Failed: 2 runs and the comparators of 0 streams, listed below."
    ]
    assert incomplete(results(failures=[run, stream])) == [
        "Failed: 1 run and the comparators of 1 stream, listed below."
    ]
    assert incomplete(results(unreadable=list("abcde"))) == ["Unreadable: 5 files (a, b, c, d, e)."]
    assert incomplete(results(unreadable=list("abcdef"))) == ["Unreadable: 6 files (a, b, c, d, e, ...)."]


def test_runs_without_a_number_have_no_rank() -> None:
    runs = pd.DataFrame({"round": 1000, "label": list("aba"), "ranked": math.nan})
    assert incomplete(results(runs=runs)) == ["Not ranked: 3 runs with an undefined number of mistakes (a, b)."]
    assert incomplete(results(runs=runs.assign(round=10))) == []


def test_mistakes_far_from_their_expectation() -> None:
    """Beyond 6 + 6 sqrt(1 + V): 18 where V = 3, 12 where V = 0."""

    def lines(off: float, variance: float, kind: str = "bit", at: int = 1000) -> list[str]:
        runs = pd.DataFrame({"round": [at], "kind": [kind], "mistakes_variance": [variance], "mistakes": [100.0 + off],
                             "expected_mistakes": [100.0], "environment": ["e"], "label": ["a"]})  # fmt: skip
        return _off_expectation(results(runs=runs))

    assert [len(lines(off, 3.0)) for off in (18.0, 18.1, -18.1, -18.0)] == [0, 1, 1, 0]
    assert [len(lines(off, 0.0)) for off in (12.0, 12.1)] == [0, 1]
    assert [len(lines(99.0, 3.0, kind)) for kind in ("reference", "label")] == [1, 0]
    assert (lines(99.0, math.nan), lines(99.0, 3.0, at=10)) == ([], [])
    [line] = lines(99.0, 3.0)
    assert line.startswith(
        "Do not trust a on e: in 1 run its mistakes (mean 199.0) differ by more than 6 standard deviations from the "
    )
    assert line.endswith("probabilities it reports (mean 100.0).")
