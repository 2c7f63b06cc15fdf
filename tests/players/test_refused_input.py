"""Every player of the registry refuses what it must not learn from, and is afterwards what it was before, to the byte."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from banditlab.errors import IncompatibleError, UsageError
from banditlab.players.agent import Trace
from banditlab.players.forecaster import Forecaster
from banditlab.players.inputs import TOLERANCE
from banditlab.players.label_agent import LabelAgent
from banditlab.players.player import Player
from banditlab.problem import Problem
from banditlab.registry import registry

R, D = 2.0, 3
ROUNDS = 12
SETTINGS: dict[str, dict[str, Any]] = {
    "boosters": {"n_learners": 3},
    "boosted-exploration": {"n_learners": 3, "gamma": 0.5},
    "exploration": {"gamma": 0.5},
}
LONG = (
    *("obama-lite", "b-grid", "ons"),
    *("adaboost-ol-ova", "adaboost-olm", "adaboost-olm++", "boosted-exploration", "online-mbbm"),
)
"""Players whose single rounds and blocks compile longest."""
PLAYERS = [
    pytest.param((kind, entry.id), id=f"{kind}-{entry.id}", marks=[pytest.mark.slow] if entry.id in LONG else [])
    for kind in ("agents", "boosters", "forecasters")
    for entry in registry().entries(kind)
]
CONTEXTS = {
    "nan": ([0.0, np.nan, 0.0], "must be finite, got nan at 1"),
    "inf": ([np.inf, 0.0, 0.0], "must be finite, got inf at 0"),
    "minus inf": ([0.0, 0.0, -np.inf], "must be finite, got -inf at 2"),
    "too long": ([2.0, 0.1, 0.0], "must have a norm of at most R = 2, got 2.0024"),
    "far too long": ([1e200, 1e200, 0.0], r"must have a norm of at most R = 2, got 1.414213562e\+200"),
}


def make(kind: str, id_: str) -> Any:
    cls = registry().load(kind, id_)
    for module in cls.requires:
        pytest.importorskip(module)
    for K in (3, 2):  # some are binary
        try:
            return cls(Problem(D, K, R, 100), np.random.default_rng(4), **SETTINGS.get(id_, SETTINGS.get(kind, {})))
        except IncompatibleError:
            continue
    raise AssertionError(f"{id_} takes neither three classes nor two")


@pytest.fixture(params=PLAYERS)
def build(request: pytest.FixtureRequest) -> Any:
    return lambda: make(*request.param)


def stream(K: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    X = rng.standard_normal((ROUNDS, D))
    X *= R / np.linalg.norm(X, axis=1, keepdims=True)  # on the sphere, up to rounding
    X[3], X[4] = 0.0, 1e-200
    return X, np.argmax(X[:, :K], axis=1)


def written(value: Any) -> Any:
    """Return a state as nested tuples of text and bytes."""
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if isinstance(value, Player):
        return written(value.get_state())
    if isinstance(value, dict):
        return tuple((name, written(item)) for name, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(written(item) for item in value)
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return repr(value)
    return pickle.dumps(value)


def refused(player: Any, call: Any, *arguments: Any, match: str) -> None:
    """Check that a call is a UsageError of one line and leaves no trace."""
    before = written(player.get_state()), written(player.rng), repr(player.diagnostics())
    with pytest.raises(UsageError, match=match) as error:
        call(*arguments)
    assert "\n" not in str(error.value)
    assert (written(player.get_state()), written(player.rng), repr(player.diagnostics())) == before


def one_round(player: Any, x: np.ndarray, y: int) -> tuple[Any, ...]:
    """Play a round and return what the player said."""
    if isinstance(player, Forecaster):
        z = player.predict(x)
        player.update(x, y)
        return tuple(z)
    if hasattr(player, "peek"):
        player.peek(y)
    decision = player.act(x)
    player.learn(x, decision, y if isinstance(player, LabelAgent) else decision.action == y)
    return (decision.action, *decision.probabilities)


def bad_contexts(player: Any, call: Any, *arguments: Any) -> None:
    for context, message in CONTEXTS.values():
        refused(player, call, np.array(context), *arguments, match=message)
    refused(player, call, np.zeros(D + 1), *arguments, match=r"the context must be of shape \(3,\), got \(4,\)")


def bad_calls(player: Any, x: np.ndarray) -> None:
    """Try everything that must be refused in single rounds."""
    if isinstance(player, Forecaster):
        bad_contexts(player, player.predict)
        bad_contexts(player, player.update, 1)
        for label in ("no", 7, -1, None, 0.5, np.nan, True):
            refused(player, player.update, x, label, match="the label must be an integer in 0 ...")
        return
    bad_contexts(player, player.act)
    twin = pickle.loads(pickle.dumps(player))  # its decision: an act of the player's own would move it
    if hasattr(twin, "peek"):
        twin.peek(0)
    decision = twin.act(x)
    told = isinstance(player, LabelAgent)
    bad_contexts(player, player.learn, decision, 1)
    for outcome in ("no", 7, -1, None, 0.5, np.nan, np.array([True]), *([True] if told else [2])):
        message = "the label must be an integer in 0 ..." if told else "correct must be True, False, 1 or 0, got"
        refused(player, player.learn, x, decision, outcome, match=message)


@pytest.mark.few(16)
def test_single_rounds(build: Any) -> None:
    player, twin = build(), build()
    X, y = stream(player.problem.n_classes)
    for t in range(ROUNDS):
        if t in (0, 7):
            bad_calls(player, X[5])
        assert one_round(player, X[t], int(y[t])) == one_round(twin, X[t], int(y[t]))
    assert written(player.get_state()) == written(twin.get_state())


@pytest.mark.few(16)
def test_blocks(build: Any) -> None:
    player, twin = build(), build()
    name = "forecast_block" if isinstance(player, Forecaster) else "play_block"
    X, y = stream(player.problem.n_classes)
    if not player.plays_blocks:
        if name == "forecast_block":
            with pytest.raises(UsageError, match="does not forecast blocks: use predict and update"):
                player.forecast_block(X, y, np.empty((len(y), player.problem.n_classes)))
        else:
            assert not hasattr(player, name)
        return

    def play(who: Any, X: np.ndarray, y: np.ndarray) -> Any:
        n, K = len(y), who.problem.n_classes
        out: Any = np.empty((n, K)) if name == "forecast_block" else Trace.empty(n)
        getattr(who, name)(X, y, out)
        return out

    first, other = play(player, X[:6], y[:6]), play(twin, X[:6], y[:6])
    assert written(first) == written(other)
    for context, message in CONTEXTS.values():
        worse = X[6:].copy()
        worse[4] = context
        refused(player, play, player, worse, y[6:], match=f"context 4 of the block {message}")
    assert written(play(player, X[6:], y[6:])) == written(play(twin, X[6:], y[6:]))
    assert written(player.get_state()) == written(twin.get_state())


def test_bits_of_other_types_and_norms_up_to_the_tolerance() -> None:
    X = np.array([[R * (1.0 + 0.9 * TOLERANCE), 0.0, 0.0]])
    for bit in (True, np.True_, 1, np.int64(1), np.uint8(1), 1.0):
        agents = [make("agents", "banditron") for _ in range(2)]
        decisions = [agent.act(X[0]) for agent in agents]
        agents[0].learn(X[0], decisions[0], True)
        agents[1].learn(X[0], decisions[1], bit)
        assert written(agents[0].get_state()) == written(agents[1].get_state())
    with pytest.raises(UsageError, match="at most R = 2"):
        agents[0].act(X[0] * (1.0 + TOLERANCE))


def test_sparse_blocks() -> None:
    from scipy.sparse import csr_array

    rows = np.zeros((4, D))
    rows[0, 1], rows[2] = R, [1.0, 0.0, 1e-200]  # the second and the last are empty
    agent, y = make("agents", "banditron"), np.zeros(4, np.int64)
    assert agent.sparse
    agent.play_block(csr_array(rows), y, Trace.empty(4))
    for value, message in ((R, "at most R = 2, got 2.8284"), (1e200, r"got 1.414213562e\+200")):
        worse = rows.copy()
        worse[2, [0, 2]] = value
        call = (csr_array(worse), y, Trace.empty(4))
        refused(agent, agent.play_block, *call, match=f"context 2 of the block must have a norm of {message}"
                if value == R else message)  # fmt: skip
    agent.play_block(csr_array((4, D)), y, Trace.empty(4))  # no entry at all


@pytest.mark.parametrize("id_", ["fastcb", "lints", "uniform", "exploration", "sampled", "perceptron"])
def test_decisions_stay_as_they_are(id_: str) -> None:
    """Arrays of a decision are read-only, and neither acting nor learning changes them."""
    agent = make("agents", id_)
    X, y = stream(3)
    kept, copies = [], []
    for t in range(ROUNDS):
        decision = agent.act(X[t])
        assert not decision.probabilities.flags.writeable
        assert decision.payload is None or not decision.payload.flags.writeable
        kept.append(decision)
        copies.append(written(tuple(decision)))
        agent.learn(X[t], decision, int(y[t]) if isinstance(agent, LabelAgent) else decision.action == y[t])
    assert [written(tuple(decision)) for decision in kept] == copies


def test_a_live_array_in_a_decision_is_copied() -> None:
    from banditlab.players.agent import RoundAgent
    from banditlab.problem import Decision

    class Live(RoundAgent):
        explores = False

        def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
            super().__init__(problem, rng)
            self.p = np.full(problem.n_classes, 1.0 / problem.n_classes)

        def _decide(self, view: Any, u: np.ndarray) -> Decision:
            return Decision(0, self.p, None, None)

        def _receive(self, view: Any, decision: Decision, outcome: Any) -> None:
            self.p[:] = 1.0
            decision.probabilities[:] = 1.0

    agent = Live(Problem(D, 2, R), np.random.default_rng(0))
    decision = agent.act(np.zeros(D))
    agent.learn(np.zeros(D), decision, True)
    assert decision.probabilities.tolist() == [0.5, 0.5]


def test_environments_stay_within_their_own_radius() -> None:
    """What environments show passes: on the sphere, of other radii, prepared from tables, sparse ones."""
    from banditlab.engine import play
    from banditlab.envs import Adversary, Logistic, Sparse

    environments = [
        Logistic(n_features=7, n_classes=3, radius=radius, contexts=contexts, horizon=300)
        for radius in (1e-3, 1.0, 1e5)
        for contexts in ("sphere", "gaussian")
    ]
    environments += [Adversary(n_features=2, n_cells=4, radius=3.0, horizon=300), Sparse(horizon=300, n_classes=3)]
    for env in environments:
        for path in ("steps", "auto"):
            uniform = registry().load("agents", "uniform")(env.problem, np.random.default_rng(0))
            assert play(env, uniform, seed=1, path=path).rounds == [300]
