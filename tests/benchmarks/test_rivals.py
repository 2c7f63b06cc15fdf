"""The study of stackcb's rivals: what is counted, chosen and kept; and that its own players learn from the bit alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.result_pages import rivals as told
from benchmarks.commands import rivals
from benchmarks.commands.rivals import Choice, Rival
from benchmarks.measure.rivals import neighbours, offline, vowpal
from benchmarks.measure.rivals.agents import Chosen, contexts
from benchmarks.measure.rivals.tables import Source, Stream, of_file, parity, written


def line(table: str, player: str, mistakes: tuple[float, ...], *, rounds: int = 2000, held: bool = False) -> told.Line:
    return told.Line(table, held, rounds, 3, 2, player, "--nn 16 --bag 4", "norm", mistakes, 1.0)


def rows_of(*lines: told.Line) -> told.Table:
    return told.by_table(lines)[lines[0].table]


ONE = [
    line("one", "fastcb", (20.0, 24.0, 20.0, 26.0)),
    line("one", "vw", (12.0, 30.0, 14.0, 30.0)),  # the best by one half, not by the other
    line("one", "vw tuned", (30.0, 2.0, 30.0, 2.0)),
    line("one", "boosted trees 0.01", (1.0,)),  # few streams: takes no part
    line("one", "stackcb", (10.0, 29.0, 10.0, 33.0)),
]
TWO = [
    line("two", "fastcb", (10.0, 10.0, 10.0, 10.0), rounds=300, held=True),
    line("two", "vw", (30.0, 30.0, 30.0, 30.0), rounds=300, held=True),
    line("two", "stackcb", (9.0, 10.2, 9.0, 11.4), rounds=300, held=True),
]


def test_the_best_other_is_chosen_on_one_half_of_the_streams_and_compared_on_the_other() -> None:
    found = told.lead(rows_of(*ONE), [*told.OURS, *told.PEERS])
    assert (found.player, found.points, found.error) == ("vw", pytest.approx(1.0), pytest.approx(2.0))
    assert not found.level
    longer = rows_of(*ONE[:4], ONE[4]._replace(mistakes=(*ONE[4].mistakes, 1.0, 99.0)))  # others have four streams
    assert told.lead(longer, [*told.OURS, *told.PEERS]) == found
    assert told.lead(rows_of(*ONE), told.LINEAR).points == pytest.approx(31.0 - 25.0)


def test_a_short_table_has_a_margin_wider_by_one_standard_error() -> None:
    found = told.lead(rows_of(*TWO), told.LINEAR)
    assert (found.points, found.error) == (pytest.approx(0.8), pytest.approx(0.6))
    assert found.level
    assert not found._replace(rounds=1000).level


def test_summary_counts_what_the_tables_say() -> None:
    ratio = np.sqrt(20.5 / 22.5 * 9.9 / 10.0)
    rows = told.summary(told.by_table([*ONE, *TWO])).splitlines()[2:]
    assert rows[0] == f"| all 2 | 1 | 0 | 2 | 1 | 0 | 1 | {ratio:.3f} | {(20.5 / 22.5 + 0.99) / 2:.3f} |"
    names = ["| held 1", "| not held 1", "| of independent rows 2", "| held, of independent rows 1"]
    assert [row.partition(" | ")[0] for row in rows[1:]] == names


def test_tables_of_related_rows_are_left_out_of_a_row() -> None:
    skin = [found._replace(table="skin") for found in TWO]
    rows = told.summary(told.by_table([*ONE, *skin])).splitlines()[2:]
    assert [row.partition(" | ")[0] for row in rows] == [
        "| all 2",
        "| held 1",
        "| not held 1",
        "| of independent rows 1",
    ]
    assert rows[3].endswith(f"| {20.5 / 22.5:.3f} | {20.5 / 22.5:.3f} |")


def test_players_are_compared_on_the_streams_that_both_played() -> None:
    assert told.ratios(told.by_table(ONE), "boosted trees 0.01", "stackcb") == [pytest.approx(0.1)]
    assert told.ratios(told.by_table(TWO), "boosted trees 0.01", "stackcb") == []
    sure = [line("t", "vw", (30.0, 30.1, 30.2, 30.1)), line("t", "stackcb", (10.0, 10.2, 10.1, 10.1))]
    assert told.players(told.by_table(sure)).splitlines()[-1] == "| `vw` | 1 | 4 | 2.980 | 2.980 | 0 | 1 |"
    noise = [line("t", "vw", (30.0, 10.0, 30.0, 10.0)), line("t", "stackcb", (10.0, 31.0, 10.0, 30.0))]
    assert told.players(told.by_table(noise)).splitlines()[-1].endswith("| 0 | 0 |")


def test_lines_come_back_from_the_file_and_replace_older_ones(tmp_path: Path) -> None:
    path = tmp_path / "results" / "rivals.csv"
    assert told.read(path) == []
    told.write(path, [*ONE, *TWO])
    assert told.read(path) == [*ONE, *TWO]
    newer = line("one", "vw", (1.0, 1.0))
    assert rivals.put(told.read(path), newer) == [*ONE[:1], *ONE[2:], *TWO, newer]
    assert [file.name for file in path.parent.iterdir()] == ["rivals.csv"]


def test_every_marker_of_the_page_is_filled(tmp_path: Path) -> None:
    told.write(tmp_path / "rivals.csv", [*ONE, *TWO, line("noise", "vw", (89.0, 91.0, 90.0, 90.0))])
    parts = told.parts(tmp_path)
    assert all(parts.values())
    assert "noise" not in parts["tables"]
    assert parts["control"] == "from 90.0 % (`vw`) to 90.0 % (`vw`)"
    assert parts["chosen"] == "of 1 tables: `--nn` 1; `--bag` 1; costs 0/1 1."
    page = Path(rivals.PLACE / "rivals.md").read_text("utf-8")
    assert all(f": {name} -->" in page for name in parts)


def test_a_table_in_its_order_stands_below_the_shuffled_one_and_counts_nowhere_else(tmp_path: Path) -> None:
    ordered = [
        found._replace(table="one-in-order", mistakes=(1.0, 1.0, 1.0, 1.0)) for found in ONE if found.player != "vw"
    ]
    told.write(tmp_path / "rivals.csv", [*ONE, *ordered])
    parts = told.parts(tmp_path)
    assert [row.split(" | ")[:3] for row in parts["order"].splitlines()[2:]] == [
        ["| one", "20.5", "22.5"],
        ["| one-in-order", "1.0", "1.0"],
    ]
    assert parts["summary"].splitlines()[2].startswith("| all 1 |")
    assert "in-order" not in parts["tables"] + parts["players"] + parts["leads"]


def test_settings_chosen_as_often_stand_in_the_order_of_their_names(tmp_path: Path) -> None:
    ways = ("--squarecb", "--cover 4", "--epsilon 0.1", "--bag 4", "--squarecb")
    lines = [line(f"t{i}", "vw tuned", (1.0, 1.0))._replace(setting=way) for i, way in enumerate(ways)]
    chosen = told.chosen(told.by_table(lines))
    assert "; `--squarecb` 2, `--bag` 1, `--cover` 1, `--epsilon` 1; " in chosen


# ------------------------------------------------------------------------------------------------------------- the choice


class Asked:
    """A player whose share of mistakes a table gives by scaling and setting, and which keeps what it was asked."""

    def __init__(self, shares: dict[tuple[str, Any], float]) -> None:
        self.shares, self.asked = shares, []  # type: ignore[var-annotated]

    def __call__(self, stream: Stream, setting: Any, seed: int) -> float:
        self.asked.append((stream.scaling, setting, stream.seed))
        assert seed == stream.seed
        return self.shares[stream.scaling, setting]


@pytest.fixture
def source(tmp_path: Path) -> Source:
    rng = np.random.default_rng(0)
    return Source("small", of_file(written(tmp_path / "small.csv.gz", rng.random((30, 3)), rng.integers(0, 3, 30))))


def test_settings_and_scaling_are_chosen_on_other_streams_than_are_reported(source: Source) -> None:
    shares = {("norm", 1): 0.5, ("standard", 1): 0.4, ("norm", 2): 0.2, ("standard", 2): 0.3}
    play = Asked(shares)
    rival = Rival("some", play, Choice("norm", 1), str, (lambda _: [1, 2],))
    assert rivals.tuned(source, rival, 100) == (Choice("standard", 1), Choice("norm", 2))
    assert sorted(play.asked) == sorted((s, k, seed) for s, k in shares for seed in range(1000, 1010))  # each once
    play.asked.clear()
    default, best = rivals.measured(source, rival, 2, 100, False)
    assert (default.player, default.scaling, default.setting, default.mistakes) == (
        "some",
        "standard",
        "1",
        (40.0, 40.0),
    )
    assert (best.player, best.scaling, best.setting, best.rounds) == ("some tuned", "norm", "2", 30)
    assert {seed for _, _, seed in play.asked} == {*range(1000, 1010), 100, 101}


@pytest.mark.parametrize(("rounds", "tuning"), [(999, 10), (1000, 2)])
def test_short_streams_are_more(rounds: int, tuning: int, tmp_path: Path) -> None:
    """A player of two streams of 5,000 rounds plays ten of up to 1,000, and of the four asked for, four."""
    rng = np.random.default_rng(1)
    table = written(tmp_path / "t.csv.gz", rng.random((1100, 1)), rng.integers(0, 2, 1100))
    play = Asked({("norm", 1): 0.5, ("standard", 1): 0.25})
    rival = Rival("some", play, Choice("norm", 1), tuned=False, streams=2)
    shown = Source("t", of_file(table))
    for asked, played in ((4, 4), (20, 2 * (5000 // rounds))):
        [line] = rivals.measured(shown, rival, asked, rounds, False)
        assert line.mistakes == (50.0,) * played
    play.asked.clear()
    rivals.tuned(shown, rival, rounds)
    assert sorted({seed for _, _, seed in play.asked}) == list(range(1000, 1000 + tuning))


def test_stages_go_on_from_the_best_so_far_and_keep_its_scaling(source: Source) -> None:
    shares = {("norm", 1): 0.5, ("standard", 1): 0.4, ("standard", 2): 0.3, ("standard", 12): 0.35}
    rival = Rival("some", Asked(shares), Choice("norm", 1), str, (lambda k: [k + 1], lambda k: [k + 10]), crossed=False)
    assert rivals.tuned(source, rival, 100) == (Choice("standard", 1), Choice("standard", 2))


def test_what_is_finished_is_not_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play, into = Asked({("norm", 1): 0.5}), tmp_path / "kept.csv"
    monkeypatch.setattr(rivals, "rivals", lambda: [Rival("some", play, Choice("norm", 1), tuned=False)])
    for _ in range(2):
        rivals.main(only="parity", streams=2, rounds=40, into=str(into))
    assert len(play.asked) == 2
    assert [(found.table, found.player, found.mistakes) for found in told.read(into)] == [
        ("parity", "some", (50.0, 50.0))
    ]


def test_every_player_has_a_place_on_the_page() -> None:
    there = {name for rival in rivals.rivals() for name in (rival.name, f"{rival.name} tuned")[: 1 + rival.tuned]}
    assert there == {*told.OURS, told.OWN, *told.PEERS, *told.LABELS}


# ------------------------------------------------------------------------------------------------------------ tables, players


def test_both_scalings_show_the_same_rows_once_each(source: Source) -> None:
    norm, standard, short = (source.stream(s, 5, n) for s, n in (("norm", 99), ("standard", 99), ("norm", 7)))
    np.testing.assert_array_equal(norm.y, standard.y)
    np.testing.assert_array_equal(norm.X[:7], short.X)
    assert norm.X.shape == (30, 4)
    assert len(np.unique(norm.X, axis=0)) == 30
    assert np.linalg.norm(norm.X, axis=1).max() <= norm.radius
    np.testing.assert_allclose(np.delete(standard.X, 3, axis=1).std(axis=0), 1.0)


def test_linear_columns_stand_behind_the_fourier_features() -> None:
    rng = np.random.default_rng(0)
    stream = Stream(rng.standard_normal((40, 3)), np.zeros(40, np.int64), 2, 9.0, "t", "standard", 0)
    (Z, R), (both, wide) = (contexts(stream, features, 5) for features in ("Fourier", "Fourier and linear"))
    assert (R, wide) == (1.0, np.sqrt(2.0))
    np.testing.assert_array_equal(both[:, :600], Z)
    assert np.linalg.norm(both, axis=1).max() <= wide
    np.testing.assert_allclose(np.corrcoef(both[:, 600], np.clip(stream.X[:, 0], -3.0, 3.0))[0, 1], 1.0)
    assert contexts(stream, Chosen("fastcb").features, 5)[0] is stream.X


def random_stream(labels: np.ndarray | None = None, *, T: int = 300, K: int = 3) -> Stream:
    rng = np.random.default_rng(0)
    X, y = rng.random((T, 4)), rng.integers(0, K, T)
    return Stream(X, y if labels is None else labels, K, 2.0, "noise", "norm", 0)


def play_directly(stream: Stream, k: int, epsilon: float, U: np.ndarray) -> list[int]:
    """The nearest neighbours as their docstring says, by sorting."""
    played: list[int] = []
    for t, (x, u) in enumerate(zip(stream.X, U, strict=True)):
        far = np.square(stream.X[:t] - x).sum(axis=1)
        values = []
        for a in range(stream.n_classes):
            near = [s for s in np.argsort(far, kind="stable") if played[s] == a][:k]
            values.append((1.0 + sum(stream.y[s] == a for s in near)) / (2.0 + len(near)))
        equals = np.flatnonzero(np.array(values) == max(values))
        action = int(equals[int(u[1] * len(equals))])
        played.append(min(int(u[0] / epsilon * stream.n_classes), stream.n_classes - 1) if u[0] < epsilon else action)
    return played


@pytest.mark.slow
def test_neighbours_are_those_of_the_direct_form() -> None:
    stream = random_stream(T=120)
    U = np.random.default_rng(1).random((120, 2))
    D = neighbours.distances(stream.X)
    actions = neighbours.play_kernel(D, stream.y, 3, 5, 0.2, U)
    assert actions.tolist() == play_directly(stream, 5, 0.2, U)


@pytest.mark.slow
def test_neighbours_learn_from_the_bit_alone() -> None:
    stream, U = random_stream(), np.random.default_rng(1).random((300, 2))
    D = neighbours.distances(stream.X)
    actions = neighbours.play_kernel(D, stream.y, 3, 15, 0.05, U)
    other = np.where(actions == stream.y, stream.y, 3 - actions - stream.y)  # another wrong label where it was wrong
    assert np.any(other != stream.y)
    np.testing.assert_array_equal(neighbours.play_kernel(D, other, 3, 15, 0.05, U), actions)
    assert abs(np.mean(actions != stream.y) - 2 / 3) < 0.1


@pytest.mark.slow
def test_neighbours_find_what_can_be_found() -> None:
    labels = (random_stream().X[:, 0] > 0.5).astype(np.int64)
    found = neighbours.Neighbours().play(random_stream(labels, K=2), (15, 0.01), 0)
    assert found < 0.25


def test_vowpal_wabbit_learns_from_the_bit_alone_and_is_counted_by_its_actions() -> None:
    pytest.importorskip("vowpalwabbit", reason="needs the extra peers")
    driver, stream = vowpal.Driver(), random_stream()
    for i, options in enumerate((vowpal.Options(), vowpal.Options("-q ::", 2.0, "--cover 4", "--loss0 -1 --loss1 0"))):
        actions = driver.actions(stream, options, 0)
        assert set(np.unique(actions)) <= {0, 1, 2}
        assert abs(driver.play(stream, options, 0) - 2 / 3) < 0.1
        other = np.where(actions == stream.y, stream.y, 3 - actions - stream.y)
        again = driver.actions(stream._replace(y=other, seed=1 + i), options, 0)
        np.testing.assert_array_equal(again, actions)


def test_regcb_gets_the_range_of_its_costs() -> None:
    form, costs = vowpal.EXPLORATIONS[5], vowpal.COSTS[1]
    assert vowpal.RANGE in vowpal.Options(exploration=form, costs=costs).line()
    for other in (vowpal.Options(exploration=form), vowpal.Options(costs=costs)):
        assert "--cb_min_cost" not in other.line()


def test_vowpal_wabbit_needs_pairs_of_columns_for_a_product() -> None:
    pytest.importorskip("vowpalwabbit", reason="needs the extra peers")
    X = np.where(np.random.default_rng(0).random((1500, 3)) < 0.5, -1.0, 1.0)
    stream = Stream(X, (X[:, 0] * X[:, 1] > 0).astype(np.int64), 2, 2.0, "product", "norm", 0)
    driver = vowpal.Driver()
    assert driver.play(stream, vowpal.Options(), 0) > 0.4
    assert driver.play(stream, vowpal.Options("-q ::"), 0) < 0.1


def test_parity_is_beyond_one_column_and_all_labels_tell_it(tmp_path: Path) -> None:
    stream = Source("parity", of_file(parity(tmp_path))).stream("standard", 0, 400)
    assert offline.cross_validated(stream, "logistic") > 0.4
    guessed = stream._replace(X=np.hstack([stream.X, 2.0 * stream.y[:, None] - 1.0]))
    assert offline.one_pass(guessed, "logistic") == pytest.approx(0.5 * offline.FIRST_FIT / 400)


def test_one_class_alone_is_said_always() -> None:
    X = np.zeros((6, 2))
    assert offline.forecast("logistic", X, np.full(6, 2), X[:3]).tolist() == [2, 2, 2]
