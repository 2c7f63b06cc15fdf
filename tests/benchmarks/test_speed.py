"""Cells are measured in a separate process, and a wrong argument is answered in one line."""

from __future__ import annotations

import contextlib
import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest

from banditlab.errors import IncompatibleError, UsageError
from banditlab.problem import Problem
from banditlab.registry import registry
from benchmarks.__main__ import PARTS
from benchmarks.__main__ import main as command
from benchmarks.commands import speed
from benchmarks.measure import one_player, vw_driver
from benchmarks.measure.one_player import ChildError, Effort, Row
from benchmarks.measure.players import LEFT_OUT, OURS, PEERS, TWO_FORMS, Player
from benchmarks.measure.worker import row_of
from benchmarks.page import speed as page

EFFORT = Effort(seconds=0.01, whole_pass=0.1, limit=60.0)
BANDITRON = next(player for player in OURS if player.id == "banditron")


def test_of_an_error_about_memory_the_page_has_the_size() -> None:
    with pytest.raises(IncompatibleError) as refused:
        registry().load("forecasters", "folklore-direct")(Problem(1024, 50, 1.0), None)
    assert page.briefly(str(refused.value)) == "needs 19.5 GiB"
    assert page.briefly("over 30 s") == "over 30 s"


def test_a_row_counts_rounds_mistakes_and_the_state() -> None:
    one_player.warm(BANDITRON)
    stream = one_player.logistic(4, 16)
    row = one_player.measure(BANDITRON, stream, EFFORT)
    assert row.why == ""
    assert row.rounds is not None
    assert 0 < row.rounds <= len(stream.y)
    assert row.nanoseconds is not None
    assert row.nanoseconds > 0.0
    assert row.mistakes is not None
    assert 0.0 < row.mistakes < 1.0
    assert row.state is not None
    assert row.state >= 8 * 4 * 16


def test_every_pass_has_a_player_of_its_own() -> None:
    """A pass gone through again by the same player would be faster or slower than the mistakes beside it say."""
    one_player.warm(BANDITRON)
    stream, made = one_player.logistic(4, 16), []

    def fresh() -> Any:
        made.append(one_player.build(BANDITRON, stream.problem))
        return made[-1]

    found = one_player.play(fresh, stream, Effort(seconds=0.05, rounds=len(stream.y)))
    [first, *others] = made
    alone = one_player.build(BANDITRON, stream.problem)
    mistakes = one_player.blocks(alone)(stream.X, stream.y)
    assert others
    assert (found.rounds, found.mistakes) == (len(stream.y), mistakes)
    np.testing.assert_array_equal(first.state.W, alone.state.W)


@pytest.mark.skipif(one_player.resident() is None, reason="peak memory is read from /proc")
def test_peak_memory_holds_what_a_player_allocates() -> None:
    def grow() -> dict[str, Any]:
        before = one_player.resident(reset=True)
        # 64 MiB, freed before the peak is read. Above 32 MiB malloc always asks the system, so no resident page is used again.
        numbers = np.ones(2**23)
        total = numbers.sum()
        del numbers
        return {"peak": (one_player.resident() or 0) - (before or 0), "total": total}

    peak = one_player.in_child(grow, 60.0)["peak"]
    assert 64 * 2**20 <= peak < 72 * 2**20


def test_the_child_reports_why_it_failed() -> None:
    def fail() -> dict[str, Any]:
        raise ValueError("no such thing")

    with pytest.raises(ChildError, match="ValueError: no such thing"):
        one_player.in_child(fail, 60.0)


def test_a_child_that_takes_too_long_is_stopped() -> None:
    def hang() -> dict[str, Any]:
        while True:
            pass

    with pytest.raises(ChildError, match=r"over 0\.2 s"):
        one_player.in_child(hang, 0.2)


def test_a_binary_learner_says_why_it_is_not_measured() -> None:
    aioli = Player("aioli", "forecasters", {}, classes=2)
    assert one_player.measure(aioli, one_player.logistic(3, 16), EFFORT).why == "K = 2 only"


def test_what_was_too_slow_at_a_smaller_size_is_not_tried_again() -> None:
    slow = Row(BANDITRON.label, "agents", "logistic", 2, 16, why="over 90 s")
    found = one_player.too_slow(BANDITRON, "3x16", [slow])
    assert found is not None
    assert (found.why, found.K, found.d) == ("over 90 s at 2 x 16", 3, 16)
    again = one_player.too_slow(BANDITRON, "4x16", [found])
    assert again is not None
    assert again.why == "over 90 s at 3 x 16"
    for other in (slow._replace(d=32), slow._replace(why="not enough memory"), slow._replace(player="other")):
        assert one_player.too_slow(BANDITRON, "3x16", [other]) is None


def test_rows_are_read_back(tmp_path: Path) -> None:
    rows = [
        Row("a b=1", "agents", "digits", 10, 65, 100, 1.5, 0.25, 4096, 8, "", "17464aa", 3.0, 0.5),
        Row("c", "agents", "x", 2, 8, why="K"),
    ]
    speed.write_rows(tmp_path / "speed.csv", rows)
    assert speed.read_rows(tmp_path / "speed.csv") == rows
    assert speed.read_rows(tmp_path / "elsewhere.csv") == []


def test_every_player_is_measured_or_left_out_with_a_reason() -> None:
    known = {entry.id for kind in ("agents", "forecasters") for entry in registry().entries(kind)}
    measured = {player.id for player in OURS + PEERS}
    assert measured | set(LEFT_OUT) == known
    assert not measured & set(LEFT_OUT)
    assert all(LEFT_OUT.values())


def test_players_of_two_forms_are_those_that_take_one() -> None:
    """Else the kernels of the other form are compiled while a cell is timed."""
    takes = {p.id for p in OURS if "form" in registry().load(p.kind, p.id).own_settings()}
    wraps = {p.id for p in OURS if registry().load(p.kind, p.id).wraps == "forecaster"}
    assert set(TWO_FORMS) == takes | wraps


def test_labels_tell_lines_apart() -> None:
    labels = [player.label for player in OURS + PEERS]
    assert len(set(labels)) == len(labels)


# ------------------------------------------------------------------------------------------- another checkout and the page


@pytest.mark.slow
def test_a_process_measures_with_the_package_of_its_checkout(tmp_path: Path) -> None:
    (tmp_path / "banditlab").symlink_to(Path(__file__).parents[2] / "banditlab")
    for checkout in (speed.ROOT, tmp_path):
        with contextlib.closing(speed.Worker(checkout)) as worker:
            row = worker.measure(BANDITRON, "4x16", EFFORT)
        assert row[:5] == ("banditron gamma=0.1", "agents", "logistic", 4, 16)
        assert row.why == ""
        assert row.nanoseconds


def test_a_folder_without_the_package_is_refused(tmp_path: Path) -> None:
    with contextlib.closing(speed.Worker(tmp_path)) as worker, pytest.raises(UsageError, match="ended at banditron"):
        worker.measure(BANDITRON, "4x16", EFFORT)


def test_a_player_that_a_checkout_does_not_know_says_so() -> None:
    unknown = Player("banditron", "agents", {"gama": 0.1})
    assert "gama" in row_of(unknown, "4x16", list(EFFORT), set()).why


def row(player: str, d: int, nanoseconds: float | None, why: str = "") -> Row:
    """Return a row at K = 10."""
    return Row(player, "agents", "logistic", 10, d, 100, nanoseconds, 0.5, 2**20, 1000, why, "abc")


def test_pairs_become_medians() -> None:
    pairs = [(row("p", 64, here), row("p", 64, other)) for here, other in ((2.0, 1.0), (3.0, 2.0), (9.0, 3.0))]
    found = speed.paired(pairs)
    assert (found.nanoseconds, found.before, found.times) == (3.0, 2.0, 2.0)
    failed = [*pairs[:2], (pairs[2][0], row("p", 64, None, "over 90 s"))]
    assert speed.paired(failed) == pairs[0][0]


def test_other_libraries_come_as_far_in_the_stream_as_ours() -> None:
    river = next(peer for peer in PEERS if peer.id == "river-linucb")
    rows = [
        row("linucb second_order=full", 64, 1.0)._replace(rounds=500),
        row("banditron gamma=0.1", 64, 1.0)._replace(rounds=900),
    ]
    due = speed.effort_for(river, "10x64", rows, Effort())
    assert (due.rounds, due.limit, due.whole_pass) == (500, speed.PATIENCE, speed.AS_LONG)
    assert speed.effort_for(BANDITRON, "10x64", rows, Effort()) == Effort()


def test_the_page_says_what_follows_from_the_rows() -> None:
    driver, river = "vw cbify=--epsilon 0.1", "river-logistic"
    rows = [
        row("banditron gamma=0.1", 64, 200.0)._replace(before=100.0, times=2.0),
        row("banditron gamma=0.1", 256, 1600.0)._replace(before=500.0, times=3.2),
        *(row(label, d, time) for d in (64, 256) for label, time in ((river, 60_000.0), (driver, 5_000.0))),
        row("linucb second_order=full", 64, None, "over 60 s"),
        row("aioli", 64, None, "K = 2 only"),
    ]
    parts = {name: text.splitlines() for name, text in page.parts(rows).items()}
    assert parts["libraries"][2:] == ["| `banditron gamma=0.1` | | 300 | 37.5 (10 x 256) | | 25.0 | 3.12 (10 x 256) |"]
    assert parts["before"][2:] == ["| `banditron gamma=0.1` | | | | 0.100 | 0.200 | 2.00 | 3.20 (10 x 256) |"]
    assert parts["cells"][2] == "| `banditron gamma=0.1` | | 0.200 | 1.60 |"
    assert parts["missing"][2:] == ["| `linucb second_order=full` | 10 x 64 | over 60 s |"]
    assert parts["commits"] == ["abc"]


def test_vowpal_wabbits_own_driver_plays_the_stream() -> None:
    pytest.importorskip("vowpalwabbit")
    driver, stream = next(peer for peer in PEERS if peer.kind == "driver"), one_player.logistic(3, 8)
    found = vw_driver.measure(driver, stream, Effort())
    assert (found.why, found.rounds) == ("", len(stream.y))
    assert found.mistakes is not None
    assert 0.0 < found.mistakes < 0.6  # two thirds is guessing
    assert found.nanoseconds is not None
    assert 100.0 < found.nanoseconds < 1e6


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[[list[str]], str]:
    """Return a function that runs a command which ends with exit code 2 and returns the one line it says."""

    def run(arguments: list[str]) -> str:
        with pytest.raises(SystemExit) as stopped:
            command(arguments)
        assert stopped.value.code == 2
        [line] = capsys.readouterr().err.splitlines()
        return line

    return run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "python -m benchmarks: no part is called 'nothing' (known: "),
        (["--only", "banditro"], "speed: --only: 'banditro' is not known; did you mean 'banditron'?"),
        (["changes", "--only", "plantd"], "--only: 'plantd' is not known; did you mean 'planted'?"),
        (["rivals", "--players", "fastcb,none"], "--players: 'none' is not known"),
        (["sketch", "--forms", "sketch"], "--forms: 'sketch' is not known; did you mean 'sketch 16'?"),
        *(([part, "--only", "x"], "--only: 'x' is not known") for part in ("defaults", "figures", "lockin", "made")),
        (["changes", "--only", "avila"], "--tables (none): avila.csv.gz is not there"),
        (["changes", "--streams", "0"], "streams must be at least 1, got 0"),
        (["changes", "--rounds", "7"], "rounds must be at least 8, got 7"),
        (["defaults", "--streams", "0"], "streams must be at least 1, got 0"),
        (["made", "--only", "genes", "--keep"], "leave --only out"),
        (["made", "--streams", "1"], "streams must be at least 2, got 1"),
        *(([part, "--tables", "no-such-folder"], "no .csv.gz file") for part in ("stack", "rivals")),
        (["--sizes", "10by64"], "--sizes takes 'digits' and KxD (10x64), separated by commas, got '10by64'"),
        (["--sizes", "1x64"], "--sizes takes"),
        (["--pairs", "0"], "--pairs must be at least 1, got 0"),
        (["stream", "--door", "Swep"], "--door must be one of 'draw', 'play', 'Sweep', 'banditlab run', got 'Swep'"),
        (["peers", "--streams", "0"], "--streams must be at least 1, got 0"),
        (["stream", "--rounds", "0"], "--rounds must be at least 10, got 0"),
    ],
)
def test_a_wrong_argument_is_answered_in_one_line(
    arguments: list[str], said: str, refused: Callable[[list[str]], str]
) -> None:
    assert said in refused(arguments)


def test_a_wrong_part_ends_the_process_with_a_line_and_two() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-m", "benchmarks", "peer"], capture_output=True, text=True, cwd=root)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("python -m benchmarks: no part is called 'peer'; did you mean 'peers'?")


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the other libraries, as where the extra is not installed."""
    found = importlib.util.find_spec
    others = ("vowpalwabbit", "river", "mabwiser", "contextualbandits", "coba")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in others else found(name))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["peers"], "python -m benchmarks peers: no other library is installed (vowpalwabbit, river, mabwiser, "),
        (
            ["--only", "vw"],
            "python -m benchmarks speed: vw needs a library that is not installed: pip install ",
        ),
        (["--sizes", "10by64"], "python -m benchmarks speed: --sizes takes 'digits' and KxD"),
    ],
)
@pytest.mark.usefixtures("nothing_installed")
def test_without_the_extra_a_part_that_needs_it_says_so_in_one_line(
    arguments: list[str], said: str, refused: Callable[[list[str]], str]
) -> None:
    assert refused(arguments).startswith(said)


@pytest.mark.usefixtures("nothing_installed")
def test_without_the_extra_the_other_players_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert speed.chosen(None, no_peers=False) == OURS
    assert speed.chosen("ogd", no_peers=False) == [player for player in OURS if player.id == "ogd"]
    assert "left out, not installed: vowpalwabbit, river" in capsys.readouterr().err


def test_the_vehicle_data_that_cannot_be_had_are_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refused: Callable[[list[str]], str]
) -> None:
    def unreachable(**_: Any) -> Any:
        raise URLError("no network")

    monkeypatch.setenv("BANDITLAB_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("benchmarks.commands.estimator.fetch_openml", unreachable)
    assert refused(["estimator"]).startswith("python -m benchmarks estimator: vehicle (OpenML 54) is not in the cache")


@pytest.mark.slow
def test_every_part_has_a_main_with_settings() -> None:
    code = "import benchmarks.__main__ as m, importlib\nfor name in m.PARTS:\n"
    code += "    m.options(name, importlib.import_module(f'benchmarks.commands.{name}').main).format_help()\n"
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)
    assert "speed" in PARTS
