"""What drawing a stream takes: how it is told, and what tasks make of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from banditlab.engine import warming
from banditlab.engine.tasks import Tasks
from banditlab.engine.warming import drawing_of, kind_of_run


def test_a_stream_is_drawn_once_for_a_task_and_that_takes_time(small: Any) -> None:
    """Tasks of many streams take as long as meant with the drawing of each; a stream's own runs are not split for it."""
    runs = small(repetitions=400, agent=[{"id": "uniform"}, {"id": "banditron"}]).plan.runs
    costs = dict.fromkeys(map(kind_of_run, runs), 0.0489)
    for drawing, size in ((0.0, 40), (0.1, 20), (0.9, 4), (1.0, 2), (30.0, 2)):
        made = Tasks("out", (), None, 1).made(runs, [], costs | {drawing_of(run): drawing for run in runs})
        assert {len(task.runs) for task in made} == {size}, drawing
        assert {run.run_id for task in made for run in task.runs} == {run.run_id for run in runs}


def test_drawing_is_told_by_its_slope(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shuffle of all rows in front of the first is no part of what a round takes; runs that are short are drawn whole."""
    clock, asked = SimpleNamespace(now=0.0), []
    monkeypatch.setattr(warming, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    monkeypatch.setattr(warming, "_drawn", {})

    class Slow:
        def __init__(self, beside: float, each: float) -> None:
            self.beside, self.each, self.unwrapped = beside, each, self

        def reset(self, *, seed: Any) -> None:
            clock.now += self.beside

        def blocks(self, rounds: int, block: int) -> Any:
            asked.append(rounds)
            clock.now += self.each * rounds
            yield None

    def run(rounds: int, beside: float, each: float, adaptive: bool = False) -> Any:
        asked.clear()
        names = {"rounds": rounds, "adaptive": adaptive, "environment_seed": lambda: 1}
        names["stream_id"] = f"{rounds} {beside} {each}"
        return SimpleNamespace(**names, build_environment=lambda: Slow(beside, each))

    assert warming.drawing_seconds(first := run(10_000, 0.05, 1e-5)) == pytest.approx(0.1)
    assert asked == [64, 256]
    assert warming.drawing_seconds(first) == pytest.approx(0.1)  # a process asks once
    assert asked == [64, 256]
    assert warming.drawing_seconds(run(10_000, 0.0, 1e-6)) == pytest.approx(0.01)
    assert asked == [64, 256, 1024, 4096]
    assert warming.drawing_seconds(run(300, 0.001, 1e-6)) == pytest.approx(0.0013)
    assert asked == [64, 256, 300]
    assert warming.drawing_seconds(run(64, 0.2, 1e-3)) == pytest.approx(0.264)
    assert warming.drawing_seconds(run(640, 0.0, 0.01)) == pytest.approx(6.4)  # that slow, it is not asked twice
    assert asked == [64]
    assert warming.drawing_seconds(run(640, 1.0, 0.01, adaptive=True)) == 0.0
    assert asked == []
