"""Sentences of the report: who came first, and what is missing, failed or cannot be trusted."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from banditlab.analysis import sentences
from banditlab.analysis.statistics import Interval

NONE = Interval(math.nan, math.nan, math.nan, 0, "none")


def row(name: str, share: float, position: int, *, n: int = 4, behind: Interval = NONE, **more: Any) -> Any:
    mistakes = (
        Interval(share, share - 0.01, share + 0.01, n, "t") if n > 1 else Interval(share, math.nan, math.nan, n, "none")
    )
    there = {"among": 1, "held_out": True, "agree": True, "label": name}
    return SimpleNamespace(name=name, position=position, mistakes=mistakes, behind_group=behind, **there | more)


BEHIND = Interval(0.05, 0.03, 0.07, 4, "t")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row("a", 0.4, 1)], "a made 40.0 % mistakes (95 % interval 39.0 to 41.0); nobody else was run here."),
        ([row("a", 0.4, 1, n=1)], "a made 40.0 % mistakes (one repetition, so no interval); nobody else was run here."),
        ([row("a", 0.4, 1), row("b", 0.45, 2, behind=BEHIND)],
         "a made 40.0 % mistakes (95 % interval 39.0 to 41.0), ahead of b by 5.0 points (3.0 to 7.0) on the same streams."),
        ([row("a", 0.4, 1), row("b", 0.41, 1)],
         "a and b are tied first with 40.0 % and 41.0 % mistakes: every interval of a difference to the first of them "
         "contains 0."),
        ([row("a", 0.4, 1), row("b", 0.45, 2, behind=BEHIND), row("c", 0.46, 2), row("d", 0.5, 4)],
         "a made 40.0 % mistakes (95 % interval 39.0 to 41.0), ahead of b by 5.0 points (3.0 to 7.0) on the same streams; "
         "b and c are tied second."),
        ([*(row(name, 0.4, 1) for name in "abc"), row("d", 0.45, 4, behind=BEHIND), row("e", 0.45, 4)],
         "a, b and c are tied first with 40.0 %, 40.0 % and 40.0 % mistakes: every interval of a difference to the first of "
         "them contains 0, ahead of d by 5.0 points (3.0 to 7.0) on the same streams; d and e are tied 4th."),
        ([row(name, 0.4 + i / 100, i + 1, n=1) for i, name in enumerate("abc")],
         "One repetition: an order only, no intervals and no evidence for ranks. Mistakes: a 40.0 %, b 41.0 % and c 42.0 %."),
        ([row(name, 0.4 + i / 100, i + 1, n=1) for i, name in enumerate("abcde")],
         "One repetition: an order only, no intervals and no evidence for ranks. Mistakes: a 40.0 %, b 41.0 % and c 42.0 %, "
         "then 2 others."),
        ([row("a", 0.4, 1, n=1), row("b", 0.45, 2, behind=BEHIND)],
         "a made 40.0 % mistakes (one repetition, so no interval), ahead of b by 5.0 points (3.0 to 7.0) on the same streams."),
    ],
)  # fmt: skip
def test_who_came_first(rows: list[Any], said: str) -> None:
    assert sentences.headline(rows, True) == said


# ------------------------------------------------------------------------------------------------------------- what is amiss


def results(**keys: Any) -> Any:
    runs = pd.DataFrame({"round": [10, 1000], "label": ["a", "a"], "environment": ["e", "e"], "ranked": [0.1, 0.1]})
    there = {
        "missing": 0,
        "planned": 12,
        "failures": [],
        "unreadable": [],
        "runs": runs,
        "last_round": 1000,
        "data": {},
    }
    return SimpleNamespace(**there | keys)


def test_what_is_missing_failed_or_unreadable() -> None:
    assert sentences.state(results()) == []
    [one] = sentences.state(results(missing=1))
    assert one == "Unfinished: 1 run of 12 is missing; the same command continues."
    assert sentences.state(results(missing=3))[0].startswith("Unfinished: 3 runs of 12 are missing")
    run, stream = (SimpleNamespace(is_comparator=each) for each in (False, True))
    assert sentences.state(results(failures=[run, run])) == ["Failed: 2 runs, listed below."]
    assert sentences.state(results(failures=[stream])) == ["Failed: the comparators of 1 stream, listed below."]
    assert sentences.state(results(failures=[run, stream, stream])) == [
        "Failed: 1 run and the comparators of 2 streams, listed below."
    ]
    for files, names in ((list("abcde"), "a, b, c, d and e"), (list("abcdef"), "a, b, c, d, e and others")):
        [said] = sentences.state(results(unreadable=files))
        assert said == f"{len(files)} files could not be read, and what stood there alone counts as missing: {names}."


def test_runs_without_a_number_have_no_rank() -> None:
    def lost(labels: str, at: int = 1000) -> list[str]:
        runs = pd.DataFrame({"round": at, "label": list(labels), "ranked": math.nan})
        return sentences._without_a_number(results(runs=runs))

    assert lost("a") == ["1 run of a has no number of mistakes (NaN), and no rank."]
    assert lost("abcdea") == ["6 runs of a, b, c, d and e have no number of mistakes (NaN), and no rank."]
    assert lost("abcdef") == ["6 runs of a, b, c, d, e and others have no number of mistakes (NaN), and no rank."]
    assert lost("a", 10) == []


def test_mistakes_far_from_what_probabilities_promise() -> None:
    """Beyond 6 + 6 sqrt(1 + V): 18 where V = 3, 12 where V = 0."""

    def told(off: float, variance: float, kind: str = "bit", at: int = 1000) -> int:
        runs = pd.DataFrame({"round": [at], "kind": [kind], "mistakes_variance": [variance], "mistakes": [100.0 + off],
                             "expected_mistakes": [100.0], "environment": ["e"], "label": ["a"]})  # fmt: skip
        return len(sentences._off_expectation(results(runs=runs)))

    assert [told(off, 3.0) for off in (18.0, 18.1, -18.1, -18.0)] == [0, 1, 1, 0]
    assert [told(off, 0.0) for off in (12.0, 12.1)] == [0, 1]
    assert [told(99.0, 3.0, kind) for kind in ("reference", "label")] == [1, 0]
    assert (told(99.0, math.nan), told(99.0, 3.0, at=10)) == (0, 0)


# ---------------------------------------------------------------------------------------------------------------- statistics
