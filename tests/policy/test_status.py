"""What a log says: intervals that hold at all times, drift, honest probabilities; text and picture."""

from __future__ import annotations

import math
import sqlite3
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from banditlab import Policy
from banditlab.errors import LogError, UsageError
from banditlab.policy import status_of_log
from banditlab.policy.confidence import ZETA, rise, sequence, variances
from banditlab.policy.picture import draw_evaluation, draw_status
from banditlab.policy.status import Bin
from tests.policy.customers import new_rows


def test_the_sequence_covers_the_mean_of_a_changing_probability_at_all_times_at_once() -> None:
    rng, missed, T = np.random.default_rng(0), 0, 600
    for mu in (np.full(T, 0.02), np.linspace(0.7, 0.1, T), np.where(np.arange(T) < 300, 0.1, 0.9)):
        mean = np.cumsum(mu) / np.arange(1, T + 1)
        for _ in range(100):
            _, low, high = sequence((rng.random(T) < mu).astype(float))
            missed += bool(((mean < low) | (mean > high)).any())
    assert missed <= 15  # of 300, at 5 % each
    _, low, high = sequence((rng.random(20_000) < 0.1).astype(float))
    assert high[-1] - low[-1] < 0.03  # a fixed-time interval has 0.008


def test_the_constants_are_those_of_the_paper() -> None:
    assert sum(1.0 / k**1.4 for k in range(1, 200_000)) < ZETA < 3.1056
    assert variances(np.array([1.0, 1.0])).tolist() == [0.0, 0.25, 0.25 + 0.0625]


def test_a_rise_is_found_where_it_is_and_not_where_there_is_none() -> None:
    rng, T, alarms, found = np.random.default_rng(1), 1500, 0, []
    falling = np.linspace(0.6, 0.1, T)
    for _ in range(40):
        x = (rng.random(T) < falling).astype(float)
        alarms += any(rise(x[:n]) is not None for n in range(50, T + 1, 50))
        found.append(rise((rng.random(T) < np.where(np.arange(T) < 800, 0.1, 0.4)).astype(float)))
    assert alarms <= 2
    there = [at for at in found if at is not None]
    assert len(there) >= 36
    assert abs(np.median(there) - 800) < 100
    for x in ([], [1.0], [0.0] * 32, [1.0] * 500, [0.0] * 500):
        assert rise(x) is None


@pytest.fixture
def log(policy_file: Path, tmp_path: Path) -> Path:
    with Policy.open(policy_file, tmp_path / "events.db") as policy, policy.together():
        for i, row in enumerate(new_rows(60)):
            choice = policy.decide(row)
            if i < 30:
                policy.feedback(choice.id, i % 2 == 1)
        policy.add_class("gift")
        policy.decide(row)
    return tmp_path / "events.db"


def test_the_status_counts_what_is_in_the_log(log: Path, policy_file: Path) -> None:
    status = status_of_log(log)
    assert (status.decisions, status.feedback, status.waiting, status.share) == (61, 30, 31, 0.5)
    assert [status.share, status.low, status.high] == [end[-1] for end in sequence(status.mistakes)]
    assert sum(p.plays for p in status.plays) == 61
    assert sum(p.expected for p in status.plays) == pytest.approx(61.0)
    assert [p.name for p in status.plays] == ["call", "none", "upgrade", "gift"]
    assert not any(p.far for p in status.plays)
    assert sum(b.n for b in status.bins) == 30
    with Policy.open(policy_file, log) as policy:  # its writer is at work
        policy.decide(new_rows(1)[0])
        assert status_of_log(log).decisions == 62


def test_dishonest_probabilities_are_a_warning(log: Path) -> None:
    db = sqlite3.connect(log)
    db.execute("UPDATE events SET action = 0 WHERE action IS NOT NULL")
    db.commit()
    db.close()
    lines = status_of_log(log).lines()
    assert any("class 'call' was chosen 61 times, but its probabilities add up to" in line for line in lines)


def test_a_log_without_answers(policy_file: Path, tmp_path: Path) -> None:
    Policy.open(policy_file, tmp_path / "events.db").close()
    status = status_of_log(tmp_path / "events.db")
    assert status.lines()[-1] == "feedback: none yet"
    assert status.to_dict()["share"] is None
    draw_status(status, tmp_path / "none.svg")
    with pytest.raises(UsageError, match="cannot be written"):
        draw_status(status, tmp_path / "no" / "a.svg")


def test_pictures_show_the_numbers_of_a_status_and_of_an_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, dpi: drawn.append(figure))
    x = np.resize([1.0, 0.0, 0.0], 5000)
    status = SimpleNamespace(
        mistakes=x, trained={"rows": 50, "mistakes": 20}, drift=300, decisions=8, delays=np.array([0.0, 4.0, 1.0]),
        bins=[Bin(0.0, 0.2, 3, 0.25), Bin(0.2, 0.4, 0, math.nan)],
    )  # fmt: skip
    draw_status(status, "a.svg")  # type: ignore[arg-type]
    left, middle, right = drawn[0].axes
    assert [*left.get_ylim(), *middle.get_ylim(), *right.get_ylim(), *right.get_xlim()] == [0.0, 1.0] * 4
    (curve, training, rises), (mean, low, high) = left.lines, sequence(x)
    at = curve.get_xdata()
    assert (at[0], at[-1], len(at), training.get_ydata(), rises.get_xdata()) == (1, 5000, 2000, [0.4] * 2, [300] * 2)
    assert curve.get_ydata().tolist() == mean[at - 1].tolist()
    band = set(map(tuple, left.collections[0].get_paths()[0].vertices))
    assert band == {*zip(at, low[at - 1], strict=True), *zip(at, high[at - 1], strict=True)}
    assert middle.lines[0].get_xydata().tolist() == [[0.001, 0.125], [1.0, 0.25], [4.0, 0.375]]
    assert middle.get_xticks() == pytest.approx([0.001, 0.004**0.5, 4.0])
    [bar], [text] = right.patches, right.texts
    assert (bar.get_x(), bar.get_width(), bar.get_height()) == (0.0, 0.2, 0.25)
    assert (text.get_text(), text.get_position()) == ("3", (0.1, 0.25))
    found = {"ips": 0.1, "snips": 0.2, "direct": 0.3, "doubly_robust": 0.4, "value": 0.5, "low": 0.35, "high": 0.6}
    made = SimpleNamespace(logged=0.45, evaluation=SimpleNamespace(**found, standard_error=0.1, rounds=1000))
    draw_evaluation(made, "uniform", "b.svg")  # type: ignore[arg-type]
    [ax] = drawn[1].axes
    assert ax.lines[1].get_xydata().tolist() == [[0.45, 0], [0.1, 1], [0.2, 2], [0.3, 3], [0.4, 4], [0.5, 5]]
    interval, error = (lines.get_segments()[0] for lines in ax.collections)
    assert interval == pytest.approx(np.array([[0.35, 5], [0.6, 5]]))
    assert error == pytest.approx(np.array([[0.4 - 0.196, 4], [0.4 + 0.196, 4]]))
    assert ax.get_xlim() == (0.0, 1.0)


@pytest.mark.parametrize("ends", [(1, 2), (0.5, 5e6), (30, 90), (0, 0), (3600, 9e4), (1e-3, 1e7), (5, 5), (20, 21)])
def test_labels_of_delays_do_not_overlap(ends: tuple[float, float], tmp_path: Path, monkeypatch: Any) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, dpi: drawn.append(figure))
    status = SimpleNamespace(
        mistakes=np.zeros(0), trained={}, drift=None, bins=[], decisions=9, delays=np.linspace(*ends, 7)
    )
    draw_status(status, tmp_path / "a.svg")  # type: ignore[arg-type]
    FigureCanvasAgg(drawn[0]).draw()
    labels = [label for kind in ("major", "minor") for label in drawn[0].axes[1].get_xticklabels(which=kind)]
    boxes = [label.get_window_extent() for label in labels if label.get_visible() and label.get_text()]
    assert boxes
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


def test_what_is_no_log_is_one_line(tmp_path: Path, policy_file: Path) -> None:
    for path in (tmp_path / "none.db", policy_file):
        with pytest.raises(LogError) as error:
            status_of_log(path)
        assert "\n" not in str(error.value)
