"""Cells are measured in a process of their own, and a wrong argument is answered in one line."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest

from banditlab.players.agent import Trace
from benchmarks.__main__ import PARTS
from benchmarks.__main__ import main as command
from benchmarks.commands import speed
from benchmarks.measure import one_player
from benchmarks.measure.costs import Cost, Player
from benchmarks.measure.machine import Curve, Rates
from benchmarks.measure.one_player import ChildError, Effort, Row
from benchmarks.measure.players import OURS

EFFORT = Effort(seconds=0.01, whole_pass=0.1, limit=60.0)
BANDITRON = next(player for player in OURS if player.id == "banditron")


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


def test_heavy_rounds_are_counted() -> None:
    fastcb, soba = (next(p for p in OURS if p.id == id_) for id_ in ("fastcb", "soba-diag"))
    stream = one_player.logistic(4, 16)
    agent, rounds, accepted = one_player.build(soba, stream.problem), 300, 0
    for x, y in zip(stream.X[:rounds], stream.y[:rounds].tolist(), strict=True):
        before = agent.state.theta.copy()
        decision = agent.act(x)
        agent.learn(x, decision, decision.action == y)
        accepted += int((agent.state.theta != before).any())
    assert 0 < accepted < rounds
    assert one_player.heavy(soba, stream, rounds) == accepted / rounds
    agent = one_player.build(fastcb, stream.problem)
    agent.play_block(stream.X[:30], stream.y[:30], Trace.empty(30))
    assert agent.diagnostics()["duel_winner"] == -1
    assert one_player.heavy(fastcb, stream, 30) == 1.0


@pytest.mark.skipif(one_player.resident() is None, reason="peak memory is read from /proc")
def test_peak_memory_holds_what_a_player_allocates() -> None:
    def grow() -> dict[str, Any]:
        before = one_player.resident(reset=True)
        room = np.ones(2**22)  # 32 MiB, given back before the peak is read
        total = room.sum()
        del room
        return {"peak": (one_player.resident() or 0) - (before or 0), "total": total}

    peak = one_player.in_child(grow, 60.0)["peak"]
    assert 32 * 2**20 <= peak < 40 * 2**20


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


def test_cells_that_cannot_be_measured_say_why() -> None:
    stream = one_player.logistic(3, 16)
    huge = Player("folklore", "forecasters", {}, "", lambda c: Cost(), lambda K, d: 21e9 / 8.0)
    binary = Player("aioli", "forecasters", {}, "", lambda c: Cost(), lambda K, d: 1.0, classes=2)
    assert one_player.measure(huge, stream, EFFORT).why == "state 21 GB"
    assert one_player.measure(binary, stream, EFFORT).why == "K = 2 only"


def test_what_was_too_slow_at_a_smaller_size_is_not_tried_again() -> None:
    stream = one_player.logistic(3, 16)
    slow = Row(BANDITRON.label, "agents", "logistic", 2, 16, why="over 90 s")
    found = one_player.too_slow(BANDITRON, stream, [slow])
    assert found is not None
    assert (found.why, found.K, found.d) == ("over 90 s at 2 x 16", 3, 16)
    again = one_player.too_slow(BANDITRON, one_player.logistic(4, 16), [found])
    assert again is not None
    assert again.why == "over 90 s at 3 x 16"
    assert one_player.too_slow(BANDITRON, stream, [slow._replace(d=32)]) is None
    assert one_player.too_slow(BANDITRON, stream, [slow._replace(why="state 21 GB")]) is None
    assert one_player.too_slow(BANDITRON, stream, [slow._replace(player="other")]) is None


def test_rows_and_rates_are_read_back(tmp_path: Path) -> None:
    rows = [
        Row(
            "a b=1", "agents", "digits", 10, 65, 100, 1.5, 0.25, 4096, 8, 33.5, "", None, 0.5, "2026-11-22 00:30:00 UTC"
        ),
        Row("c", "agents", "x", 2, 8, why="K"),
    ]
    rates = Rates(*(Curve((1.0, 2.0**20 + i), (0.5, 3.0)) for i in range(len(Rates._fields))))
    speed.write_rows(tmp_path, rows)
    speed.write_rates(tmp_path, rates)
    assert speed.read_rows(tmp_path) == rows
    assert speed.read_rates(tmp_path) == rates
    assert speed.read_rows(tmp_path / "elsewhere") == []


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
        (
            ["--only", "banditro"],
            "speed: --only: no player that is measured is called 'banditro'; did you mean 'banditron'?",
        ),
        (["--sizes", "10by64"], "--sizes takes 'digits' and KxD (10x64), separated by commas, got '10by64'"),
        (["--sizes", "1x64"], "--sizes takes"),
        (["--resume", "--quick"], "--resume needs the folder to go on from: --out FOLDER"),
        (["--redraw", "--out", "no-such-folder"], "--redraw: there is no speed.csv in no-such-folder/results"),
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
    assert line.startswith("python -m benchmarks: no part is called 'peer'; did you mean 'peers'? (known: ")


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
            ["--only", "vw", "--quick"],
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
    speed.say_left_out()
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
