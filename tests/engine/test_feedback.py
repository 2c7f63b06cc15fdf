"""Late, lost and wrong feedback: each kind against a slow queue, in blocks and in steps, and what a sweep says of it."""

from __future__ import annotations

import csv
import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm

from banditlab.cli.console import announced
from banditlab.engine import Sweep, make_agent, make_env, make_spec, play
from banditlab.engine.blocks import late_loop
from banditlab.engine.feedback import Schedule, as_feedback, window_of
from banditlab.engine.seeding import generator_for
from banditlab.envs._dataset import DataSetEnv
from banditlab.envs._recipe import Rows
from banditlab.errors import IncompatibleError, UsageError
from banditlab.numerics.pending import WAITING
from banditlab.results.schema import LATE

T, K, D, SEED = 300, 3, 4, 11
AGENTS: dict[str, dict[str, Any]] = {
    "banditron": {},
    "beta-ts": {},
    "linucb": {},
    "fastcb": {},
    "exploration": {"forecaster": "ogd", "gamma": 0.3},
}
QUICK = ("banditron",)


class Given(DataSetEnv):
    """A table in memory: rows with a label, or with the bit of every action; dense, or sparse."""

    id = "tests/Given-v0"

    def __init__(self, form: str) -> None:
        self.form = form
        super().__init__(T)

    def _load(self) -> Rows:
        rng = np.random.default_rng(5)
        X = rng.standard_normal((80, D)) * (rng.random((80, D)) < 0.6)
        X /= 1.001 * np.linalg.norm(X, axis=1).max()
        y = np.argmax(X[:, :K], axis=1)
        right = X[:, :K] > np.median(X[:, :K], axis=0)
        contexts = csr_array(X) if self.form == "sparse" else X
        return Rows(contexts, right if self.form == "several" else y, list(range(K)), 1.0, "none")

    def column(self, name: str) -> np.ndarray:
        return np.where(np.arange(80) % 7, np.arange(80.0) / 2, np.nan)


Draw = Callable[[float, int], float]
GEOMETRIC: Draw = lambda u, row: math.floor(math.log1p(-u) / math.log(7 / 8))  # noqa: E731  # mean 7: q = 7/8
LOGNORMAL: Draw = lambda u, row: np.rint(9 * math.exp(0.5 * norm.ppf(u) - 0.125))  # noqa: E731
KINDS: dict[str, tuple[dict[str, Any], Callable[[bool, int, float, float, int], float]]] = {
    "late": ({"delay": 5}, lambda hit, a, u, v, row: 5),
    "beyond the run": ({"delay": 1000}, lambda hit, a, u, v, row: 1000),
    "two delays": ({"delay": {"right": 2, "wrong": 60}}, lambda hit, a, u, v, row: 2 if hit else 60),
    "geometric": ({"delay": {"geometric": 7}}, lambda hit, a, u, v, row: GEOMETRIC(u, row)),
    "lognormal": ({"delay": {"lognormal": 9.0, "sigma": 0.5}}, lambda hit, a, u, v, row: LOGNORMAL(u, row)),
    "column": (
        {"delay": {"column": "days"}},
        lambda hit, a, u, v, row: np.rint(row / 2) if row % 7 else math.inf,
    ),
    "by outcome": (
        {"delay": {"right": 2, "wrong": {"geometric": 7}}},
        lambda hit, a, u, v, row: 2 if hit else GEOMETRIC(u, row),
    ),
    "answered": ({"answered": 0.3}, lambda hit, a, u, v, row: 0 if v < 0.3 else math.inf),
    "answered by outcome": (
        {"answered": {"right": 0.9, "wrong": 0.2}, "delay": 3},
        lambda hit, a, u, v, row: 3 if v < (0.9 if hit else 0.2) else math.inf,
    ),
    "answered by action": (
        {"answered": [0.2, 0.5, 1.0]},
        lambda hit, a, u, v, row: 0 if v < (0.2, 0.5, 1.0)[a] else math.inf,
    ),
}
RULES: dict[str, dict[str, Any]] = {
    "": {},
    "batch": {"batch": 8},
    "timeout": {"timeout": 4},
    "flip": {"flip": 0.2},
    "all": {"batch": 8, "timeout": 6, "flip": 0.2},
}


def slow(env: Any, agent: Any, delay_of: Any, batch: int = 1, timeout: float = math.inf, flip: float = 0.0) -> Any:
    """Play with a queue in plain Python; return actions, bits of the actions, and the number of answers after the timeout."""
    streams = {name: generator_for(SEED, "feedback", name) for name in ("delay", "answered", "flip")}
    env.reset(seed=SEED)
    rows, queue, actions, hits, too_late = env.row_order(T), [], [], [], 0
    X, y = next(iter(env.blocks(T, T)))
    X = X.toarray() if env.sparse else X
    for t in range(T):
        decision = agent.act(X[t])
        a = decision.action
        hit = bool(y[t, a] if y.ndim == 2 else y[t] == a)
        u, v, w = (stream.random() for stream in streams.values())
        delay, bit = delay_of(hit, a, u, v, int(rows[t])), hit ^ (w < flip)
        if delay > timeout:
            too_late += delay < math.inf
            delay, bit = timeout, False
        arrives = math.inf if delay == math.inf else batch * math.ceil((t + 1 + delay) / batch)  # rounds from 1
        queue.append((arrives, t, X[t], decision, bit))
        for _, _, x, decided, correct in sorted((q for q in queue if q[0] == t + 1), key=lambda q: q[1]):
            agent.learn(x, decided, correct)
        actions.append(a)
        hits.append(hit)
    return actions, hits, too_late


def agent_for(id_: str, env: Any, rounds: int = T) -> Any:
    return make_agent(id_, env.problem, seed=3, **AGENTS[id_])


def agree(id_: str, form: str, feedback: dict[str, Any], delay_of: Any) -> None:
    env = Given(form)
    mirror = agent_for(id_, env)
    rules = {name: value for name, value in feedback.items() if name in ("batch", "timeout", "flip")}
    actions, hits, too_late = slow(env, mirror, delay_of, **rules)
    for path in ("blocks", "steps"):
        agent = agent_for(id_, env)
        compiled = id_ != "exploration"
        if path == "blocks" and not compiled:
            with pytest.raises(UsageError, match="path='blocks'"):
                play(env, agent, seed=SEED, path="blocks", feedback=feedback)
            continue
        cuts = [1, 37, 64, 200]
        played = play(
            env,
            agent,
            seed=SEED,
            path=path,
            feedback=feedback,
            checkpoints=cuts,
            keep_trace=True,  # type: ignore[arg-type]
        )
        np.testing.assert_array_equal(played.trace.action, actions)
        np.testing.assert_array_equal(played.trace.correct, hits)
        assert played.mistakes[-1] == T - sum(hits)
        assert agent.to_bytes() == mirror.to_bytes(), path
        if "timeout" in feedback:
            assert played.diagnostics["feedback_too_late"][-1] == too_late


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.few(20)
def test_every_kind_is_a_slow_queue(kind, rules):
    feedback, delay_of = KINDS[kind]
    agree("banditron", "dense", feedback | RULES[rules], delay_of)


@pytest.mark.parametrize("form", ["dense", "sparse", "several"])
@pytest.mark.parametrize("id_", [pytest.param(id_, marks=[] if id_ in QUICK else [pytest.mark.slow]) for id_ in AGENTS])
def test_every_agent_on_every_form_of_contexts_and_bits(id_, form):
    feedback, delay_of = KINDS["by outcome"]
    agree(id_, form, feedback | RULES["all"], delay_of)


def test_a_compiled_agent_is_played_in_blocks_and_the_pending_rounds_go_from_block_to_block():
    played = [
        play(env := Given("dense"), agent_for("banditron", env), seed=SEED, feedback={"delay": 90}, checkpoints=cuts)
        for cuts in ([], list(range(1, T)))
    ]
    assert [each.path for each in played] == ["blocks", "blocks"]
    assert played[0].mistakes[-1] == played[1].mistakes[-1]
    assert played[0].expected_mistakes[-1] == pytest.approx(played[1].expected_mistakes[-1], rel=1e-12)


def test_feedback_at_once_is_the_plain_run():
    plain, *others = (
        play(env := Given("dense"), agent_for("banditron", env), seed=SEED, keep_trace=True, feedback=feedback)
        for feedback in (
            None,
            {},
            {"batch": 1, "delay": 0, "answered": 1, "flip": 0},
            {"delay": {"right": 0, "wrong": 0}},
        )
    )
    for other in others:
        assert (other.mistakes, other.no_bound) == (plain.mistakes, plain.no_bound)
        np.testing.assert_array_equal(other.trace.action, plain.trace.action)
    # the loop for late feedback with a timeout that changes nothing plays the same run, too
    late = play(env := Given("dense"), agent_for("banditron", env), seed=SEED, keep_trace=True, feedback={"timeout": 0})
    np.testing.assert_array_equal(late.trace.action, plain.trace.action)


def test_each_part_has_its_own_stream():
    env = Given("dense")
    parts = {"delay": {"geometric": 20}, "answered": 0.5, "flip": 0.3}
    whole = Schedule(as_feedback(parts), env, SEED, T).draws(T)
    env.reset(seed=SEED)
    for left_out in parts:
        rest = {name: value for name, value in parts.items() if name != left_out}
        schedule = Schedule(as_feedback(rest), env, SEED, T)
        pieces = [schedule.draws(n) for n in (1, 99, 200)]
        drawn = {"delay": whole.delay, "answered": whole.answer, "flip": whole.flip}
        for name, column in zip(drawn, zip(*pieces, strict=True), strict=True):
            if name in rest:
                np.testing.assert_array_equal(np.concatenate(column), drawn[name])


def test_the_ring_has_slots_for_what_waits_not_for_what_may():
    env = Given("dense")
    env.reset(seed=SEED)
    agent = agent_for("banditron", env, 50_000)
    schedule = Schedule(as_feedback({"delay": {"geometric": 3}}), env, SEED, 50_000)
    loop = late_loop(agent, schedule)
    X, y = (np.tile(part, (250, *[1] * (part.ndim - 1))) for part in next(env.blocks(80, 80)))
    X.flags.writeable = False
    for start in range(0, len(X), 100):
        loop(X[start : start + 100], y[start : start + 100])
    assert len(loop.ring.notes) <= 2 * schedule.window
    assert {len(array) for array in loop.ring[:4]} == {len(loop.ring.notes)}
    waiting = int(loop.ring.counts[WAITING])
    assert waiting <= schedule.window < 200


@pytest.mark.parametrize(
    ("feedback", "rounds", "window"),
    [
        ({"delay": 100}, 10_000, 101),
        ({"delay": 100}, 50, 50),
        ({"delay": 100, "batch": 20}, 10_000, 120),
        ({"delay": 100, "timeout": 10}, 10_000, 11),
        ({"answered": 0.5, "timeout": 10}, 10_000, 11),
        ({"answered": 0.5}, 10_000, 1),
        ({"delay": {"right": 3, "wrong": 8}}, 10_000, 9),
    ],
)
def test_the_window_is_known_before_the_run(feedback, rounds, window):
    assert window_of(as_feedback(feedback), rounds, {}) == window


def test_random_delays_have_their_means():
    for kind in ("geometric", "lognormal"):
        schedule = Schedule(as_feedback({"delay": {kind: 40.0}}), Given("dense"), 0, 10**6)
        assert schedule.draws(200_000).delay.mean() == pytest.approx(40.0, rel=0.02)


@pytest.mark.parametrize(
    ("feedback", "message"),
    [
        ({"dealy": 5}, "feedback: unknown key 'dealy'; did you mean 'delay'"),
        ({"delay": -1}, "feedback.delay must be at least 0, got -1"),
        ({"delay": 1.5}, "feedback.delay must be a whole number of rounds, .* got 1.5"),
        ({"delay": True}, "feedback.delay must be a whole number"),
        ({"delay": {"gaussian": 3}}, "feedback.delay must be a whole number"),
        ({"delay": {"geometric": 0}}, "feedback.delay.geometric must be a number above 0"),
        ({"delay": {"lognormal": 3, "sigma": "x"}}, "feedback.delay.sigma must be a number above 0"),
        ({"delay": {"right": 3}}, "feedback.delay by outcome must have the keys right and wrong"),
        ({"delay": {"right": 3, "wrong": -3}}, "feedback.delay.wrong must be at least 0"),
        ({"delay": {"column": "days"}}, "a column of delays requires a table environment"),
        ({"batch": 0}, "feedback.batch must be at least 1, got 0"),
        ({"answered": 1.2}, r"feedback.answered must lie in \[0, 1\]"),
        ({"answered": [0.5, 2]}, r"feedback.answered\[1\] must lie in \[0, 1\]"),
        ({"answered": [0.5, 1]}, "feedback.answered must have 10 shares, one per action, got 2"),
        ({"timeout": -2}, "feedback.timeout must be at least 0"),
        ({"flip": float("nan")}, r"feedback.flip must lie in \[0, 1\]"),
    ],
)
def test_what_is_not_allowed_is_one_line(feedback, message):
    with pytest.raises(UsageError, match=message) as caught:
        play(
            env := make_env("banditlab/Digits-v0", rounds=20),
            make_agent("uniform", env.unwrapped.problem, seed=0),
            seed=0,
            feedback=feedback,
        )
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match=message):
        Sweep(rounds=20, environment=[{"id": "banditlab/Digits-v0"}], agent=[{"id": "uniform"}], feedback=feedback)


def spec(**keys: Any) -> dict[str, Any]:
    return {
        "rounds": 40,
        "environment": [{"id": "banditlab/Logistic-v0", "n_classes": 3, "n_features": 3}],
        "agent": [{"id": "banditron"}],
    } | keys


def test_players_that_observe_the_label_are_left_out_with_the_reason():
    sweep = Sweep(**spec(forecaster=[{"id": "ogd"}], feedback={"grid": {"delay": [0, 7]}}))
    assert len(sweep.plan.runs) == 3  # the forecaster at delay 0
    (skipped,) = sweep.plan.skipped
    assert "the learner observes the label" in skipped["reason"]
    assert "x 2 learner settings x" in next(announced(sweep))
    env = make_env("banditlab/Logistic-v0", n_classes=3, n_features=3, rounds=9)
    label_agent = make_agent("perceptron", env.unwrapped.problem, seed=0)
    with pytest.raises(IncompatibleError, match="the learner observes the label"):
        play(env, label_agent, seed=0, feedback={"delay": 7})


def test_feedback_is_part_of_a_run_and_of_its_environments_label(tmp_path: Path):
    plain = Sweep(**spec())
    sweep = Sweep(**spec(feedback={"flip": 0.1, "grid": {"delay": [0, {"geometric": 2}]}}))
    at_once = Sweep(**spec(feedback={"delay": 0, "batch": 1, "answered": 1, "flip": 0}))
    ids = [run.run_id for run in sweep.plan.runs]
    assert len({*ids, plain.plan.runs[0].run_id}) == 3
    assert at_once.plan.runs[0].run_id == plain.plan.runs[0].run_id
    assert {run.stream_id for run in sweep.plan.runs} == {plain.plan.runs[0].stream_id}
    labels = [run.environment_label for run in sweep.plan.runs]
    assert [label.rpartition("feedback.")[2] for label in labels] == ["delay=0)", "delay={'geometric': 2})"]
    assert (plain.plan.pending, list(announced(plain))[1:]) == ({}, ["without comparators (norm_bounds = [])"])
    assert [*Sweep(**spec(feedback={"delay": 1})).plan.pending.values()] == [(2, 2 * (3 + 3) * 8)]  # of d + K numbers
    said = " ".join(announced(sweep))
    assert "wait for feedback at the same time" in said
    assert "MiB" in said
    sweep.run(tmp_path)
    rows = pd.read_parquet(tmp_path / "results.parquet")
    assert set(rows["feedback.flip"]) == {"0.1"}
    assert set(rows["feedback.delay"].dropna()) == {"{'geometric': 2.0}"}
    again = make_spec(tomllib.loads((tmp_path / "spec.toml").read_text().split("[store]")[0]), "again")
    assert [run.run_id for run in Sweep(again).plan.runs] == ids


def test_the_same_point_twice_is_refused():
    with pytest.raises(UsageError, match="requested twice"):
        Sweep(**spec(feedback={"grid": {"delay": [3, 3]}}))
    with pytest.raises(UsageError, match="'delay' is given twice"):
        Sweep(**spec(feedback={"delay": 1, "grid": {"delay": [3]}}))


def test_a_column_of_a_table_is_the_delay_and_no_feature(tmp_path: Path):
    path = tmp_path / "t.csv"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(30), "b": rng.random(30), "days": np.arange(30) % 5, "y": list("uv") * 15})
    frame["days"] = frame["days"].astype(object)
    frame.loc[3, "days"] = ""
    frame.to_csv(path, index=False)
    table = {"id": "banditlab/Table-v0", "path": str(path), "label": "y", "drop_columns": ["days"]}
    made = spec(environment=[table], feedback={"delay": {"column": "days"}})
    assert next(iter(Sweep(**made).plan.pending.values()))[0] == 5
    env = make_env("banditlab/Table-v0", rounds=60, **{k: v for k, v in table.items() if k != "id"})
    env.reset(seed=1)
    schedule = Schedule(as_feedback(made["feedback"]), env.unwrapped, 1, 60)
    days = pd.to_numeric(pd.read_csv(path)["days"]).to_numpy()[env.unwrapped.row_order(60)]
    drawn = schedule.draws(60).delay[:, 1].astype(float)
    np.testing.assert_array_equal(np.where(np.isnan(days), -1, days), np.where(drawn > 60, -1, drawn))
    with pytest.raises(UsageError, match="'days' must be among drop_columns"):
        Sweep(**spec(environment=[table | {"drop_columns": [], "missing": "mean"}], feedback=made["feedback"]))


def test_a_bound_is_shown_where_the_theorem_covers_delays_only(monkeypatch: pytest.MonkeyPatch):
    env = make_env("banditlab/Logistic-v0", n_classes=3, n_features=3, rounds=30)

    def reason(feedback: Any) -> tuple[str, bool]:
        agent = make_agent("exploration", env.unwrapped.problem, seed=0, forecaster="ogd", norm_bound=1.0)
        played = play(env, agent, seed=0, feedback=feedback)
        return played.no_bound, math.isnan(played.bound[-1])

    assert reason(None) == ("", False)
    assert reason({"delay": 1}) == reason({"answered": 0.9}) == reason({"flip": 0.1}) == (LATE, True)
    monkeypatch.setattr(type(make_agent("exploration", env.unwrapped.problem, seed=0)), "bound_late", 1)
    assert reason({"delay": 1}) == ("", False)
    assert reason({"flip": 0.1}) == reason({"delay": 2}) == (LATE, True)


def test_an_adaptive_environment_is_played_step_by_step():
    env = make_env("banditlab/Adversary-v0", rounds=30)
    played = play(env, make_agent("banditron", env.unwrapped.problem, seed=0), seed=0, feedback={"delay": 3})
    assert (played.path, played.rounds) == ("steps", [30])


@pytest.mark.slow
@pytest.mark.parametrize("id_", ["fastcb", "stackcb", "linucb"])
def test_one_sided_answers_are_those_of_the_page_on_late_answers(id_: str):
    """A policy learns bits that arrive in one round in another order: with the timeout, means are at most .6 pp apart."""
    with (Path(__file__).parents[2] / "docs/results/late-answers-one-sided.csv").open(encoding="utf-8") as file:
        page = {(row["agent"], row["answers"]): row["mistakes"] for row in csv.DictReader(file)}
    hits = {"answered": {"right": 1, "wrong": 0}}
    modes: dict[str, tuple[dict[str, Any] | None, float]] = {
        "all answered": (None, 0.006),
        "only hits answered, silence ignored": (hits, 0.006),
        'only hits answered, silence "wrong"': (hits | {"timeout": 300}, math.inf),
    }
    for mode, (feedback, apart) in modes.items():
        shares = [float(share) for share in page[id_, mode].split()]
        found = []
        for seed, share in enumerate(shares):
            env = make_env("banditlab/Logistic-v0", n_features=10, n_classes=4, norm_bound=20.0, rounds=4000)
            agent = make_agent(id_, env.unwrapped.problem, seed=seed)
            played = play(env, agent, seed=seed, feedback=feedback)
            found.append(played.mistakes[-1] / 40)
            assert abs(found[-1] - share) < apart, (mode, seed)
        assert abs(np.mean(found) - np.mean(shares)) < 0.6, mode
