"""Sparse streams in the engine: one truth on both paths, no dense block anywhere, and what is refused."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from banditlab.agents.banditron import Banditron
from banditlab.agents.gaptron import Gaptron
from banditlab.engine import Sweep, make_spec, play
from banditlab.engine.memory import memory
from banditlab.engine.plan import make_plan
from banditlab.engine.runner import checked_blocks, cut_at
from banditlab.envs import Sparse
from banditlab.errors import IncompatibleError, UsageError
from banditlab.numerics.sparse_rows import SparseRows
from banditlab.players.agent import Agent
from banditlab.problem import Decision, Problem

LONG = {"n_features": 347_000, "n_classes": 4, "nonzeros": 80}


def agent(env, cls=Banditron, **settings):
    return cls(env.problem, np.random.default_rng(1), **({"gamma": 0.1} | settings))


def steps_and_blocks(env, cls, **settings):
    stops = [1, 7, 100, 1024, 1025]
    return [
        play(env, agent(env, cls, **settings), seed=3, checkpoints=stops, path=path, keep_trace=True)
        for path in ("blocks", "steps")
    ]


def test_both_paths_give_the_same_run():
    env = Sparse(horizon=1300)
    fast, slow = steps_and_blocks(env, Banditron)
    for a, b in zip(fast.trace, slow.trace, strict=True):
        np.testing.assert_array_equal(a, b)
    assert fast.rounds == slow.rounds == [1, 7, 100, 1024, 1025, 1300]
    assert fast.mistakes == slow.mistakes


def test_both_paths_give_the_same_run_to_rounding_where_a_ball_binds():
    env = Sparse(horizon=1300)
    fast, slow = steps_and_blocks(env, Gaptron, norm_bound=0.2, step=1.0)
    np.testing.assert_array_equal(fast.trace.action, slow.trace.action)
    np.testing.assert_allclose(fast.trace.p_true, slow.trace.p_true, rtol=1e-12)


def test_a_long_stream_is_played_in_the_memory_of_the_weights():
    env = Sparse(**LONG, horizon=3000)
    play(env, agent(env), seed=0, rounds=1)  # compiled
    one = agent(env)
    tracemalloc.start()
    played = play(env, one, seed=0, checkpoints=[1000, 2500])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert one.weights.nbytes == 4 * 347_000 * 8
    assert peak < 40 * 2**20  # a dense block has 2.6 GiB; blocks, words and their draws take some 20 MiB
    assert played.mistakes[-1] < 0.75 * 3000


def test_pieces_of_sparse_blocks_end_at_the_checkpoints():
    env = Sparse(horizon=1300)
    env.reset(seed=0)
    [(X, y)] = env.blocks(1300, 1300)
    pieces = list(cut_at(checked_blocks(env.blocks(1300, 512), env.problem, 1300), [5, 700, 1300]))
    assert [(len(rows), stop) for rows, _, stop in pieces] == [
        (5, True),
        (507, False),
        (188, True),
        (324, False),
        (276, True),
    ]
    assert all(isinstance(rows, SparseRows) for rows, _, _ in pieces)
    assert np.array_equal(np.concatenate([rows.toarray() for rows, _, _ in pieces]), X.toarray())
    assert np.array_equal(np.concatenate([labels for _, labels, _ in pieces]), y)


def bad(change):
    X = scipy.sparse.csr_array(np.eye(3))
    change(X)
    return [(X, np.zeros(3, np.int64))]


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (bad(lambda X: X.indices.__setitem__(0, 3)), "contexts have entries outside their shape"),
        (bad(lambda X: X.indices.__setitem__(0, -1)), "contexts have entries outside their shape"),
        (bad(lambda X: X.data.__setitem__(1, np.nan)), "contexts are not finite"),
        (
            [(scipy.sparse.csr_array((3, 4)), np.zeros(3, np.int64))],
            r"block of the environment: the contexts must be of shape \(n, 3\), got \(3, 4\)",
        ),
        (
            [(scipy.sparse.csr_array((3, 3)), np.zeros(2, np.int64))],
            r"block of the environment: the labels must be of shape \(3,\)",
        ),
        ([(scipy.sparse.csr_array((3, 3)), np.full(3, 2))], r"the labels must lie in 0 \.\.\. 1, got 2"),
    ],
)
def test_sparse_blocks_are_checked(blocks, message):
    with pytest.raises(UsageError, match=message):
        list(checked_blocks(blocks, Problem(3, 2, 1.0), 3))


class Slow(Agent):
    """A player without kernels."""

    explores = False

    def act(self, context):
        assert context.shape == (self.problem.n_features,)
        return Decision(0, np.eye(self.problem.n_classes)[0])

    def learn(self, context, decision, correct):
        pass


def test_long_rows_reach_players_without_sparse_kernels_one_at_a_time_or_not_at_all():
    env = Sparse(**LONG, horizon=20)
    assert play(env, Slow(env.problem, np.random.default_rng(0)), seed=0).rounds == [20]
    dense_only = agent(env)
    dense_only.sparse = False
    with pytest.raises(
        IncompatibleError, match="no kernels for sparse contexts, and d = 347,000 is too large for dense ones"
    ):
        play(env, dense_only, seed=0)
    short = Sparse(horizon=300)
    dense_only = agent(short)
    dense_only.sparse = False
    assert play(short, dense_only, seed=0).mistakes == play(short, agent(short), seed=0).mistakes


def spec(**changes):
    written = {
        "name": "sparse",
        "rounds": 200,
        "repetitions": 1,
        "base_seed": 0,
        "norm_bounds": [],
        "environment": [{"id": "banditlab/Sparse-v0", "n_features": 20_000}],
        "agent": [{"id": "banditron"}, {"id": "epsilon-greedy-direct"}],
    }
    return make_spec(written | changes, "spec")


def test_a_sweep_over_a_sparse_stream_without_comparators(tmp_path):
    Sweep(spec()).run(tmp_path, jobs=1)
    assert (tmp_path / "results.parquet").is_file()


def test_comparators_of_long_sparse_rows_are_refused_at_once(tmp_path):
    message = r"norm_bounds: no comparator on .*Sparse-v0.* d = 20,000 is too large .*; set norm_bounds = \[\]"
    with pytest.raises(UsageError, match=message):
        Sweep(spec(norm_bounds=[1.0])).run(tmp_path, jobs=1)


def test_a_pair_that_cannot_be_is_a_skip_with_its_reason():

    plan = make_plan(spec(agent=[{"id": "banditron"}, {"id": "randomized-decoding"}]))
    assert [run.label for run in plan.runs] == ["banditron"]
    assert "no kernels for sparse contexts" in plan.skipped[0]["reason"]


def planned(monkeypatch, agents, **environment):
    """Return the plan of one environment's sweep, and the players that were built for it."""
    from banditlab.engine import plan as module

    built = []

    def build(description, *rest):
        built.append(description["id"])
        return build_player(description, *rest)

    build_player = module.build_player
    monkeypatch.setattr(module, "build_player", build)
    made = module.make_plan(spec(environment=[environment], agent=[{"id": id_} | rest for id_, rest in agents.items()]))
    return made, built


def test_nothing_is_built_for_a_skip(monkeypatch):
    """At d = 347,000 a state of K d^2 numbers would be 10^12 bytes and more."""
    dual, primal = {"forecaster": "folklore", "gamma": 0.1}, {"forecaster": "ons"}
    agents = {"banditron": {}, "linucb": {}, "soba": {"gamma": 0.1}, "exploration": dual, "sampled": primal}
    plan, built = planned(monkeypatch, agents, id="banditlab/Sparse-v0", n_features=347_000, nonzeros=80)
    assert [run.label for run in plan.runs] == ["banditron", "exploration(folklore)"]
    assert built == ["banditron", "exploration"]
    assert [pair["reason"].split(",")[0] for pair in plan.skipped] == ["no kernels for sparse contexts"] * 3


def test_a_player_whose_state_fits_in_no_memory_is_a_skip(monkeypatch):
    agents = {"banditron": {}, "soba": {"gamma": 0.1}}
    wide = {"id": "banditlab/Logistic-v0", "n_features": 20_000, "n_classes": 10}
    plan, built = planned(monkeypatch, agents, **wide)
    assert built == [run.label for run in plan.runs] == ["banditron"]
    reason = plan.skipped[0]["reason"]
    assert reason.startswith("its state does not fit in memory: 149 GiB at least, ")
    assert reason.endswith(" GiB available")


def test_where_memory_is_not_known_a_state_that_cannot_be_built_is_a_skip(monkeypatch):
    def out_of_memory(**arrays):
        raise MemoryError("Unable to allocate 149 GiB")

    monkeypatch.setattr("banditlab.engine.plan.memory", lambda: None)
    monkeypatch.setattr("banditlab.agents.soba.State", out_of_memory)
    plan, built = planned(monkeypatch, {"banditron": {}, "soba": {"gamma": 0.1}}, id="banditlab/Logistic-v0")
    assert built == ["banditron", "soba"]
    assert plan.skipped[0]["reason"] == "its state does not fit in memory: Unable to allocate 149 GiB"


def test_a_stream_is_kept_by_the_bytes_of_its_rows():
    env = Sparse(**LONG, horizon=1000)
    env.reset(seed=0)
    [(X, _)] = env.blocks(1000, 1000)
    assert env.row_bytes * 1000 == pytest.approx(X.data.nbytes + X.indices.nbytes + 8000)


def test_memory_is_the_machines_or_what_a_container_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}.__getitem__)
    found = []
    for limit in ("max", "4095999", "9999999", "0", "1"):
        monkeypatch.setattr("pathlib.Path.read_text", lambda *_, limit=limit: limit)
        found.append(memory())
    assert found == [4096000, 4095999, 4096000, 4096000, 1]
    monkeypatch.setattr("os.sysconf", lambda name: {"SC_PAGE_SIZE": 4096}.get(name, -1))  # it does not know
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_: "max")
    assert memory() is None
