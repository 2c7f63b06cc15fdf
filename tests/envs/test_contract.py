"""What holds for every environment: Gymnasium's contract, one stream on both paths, labels kept aside."""

from __future__ import annotations

import inspect
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from sklearn.datasets import load_wine

from banditlab import envs
from banditlab.envs import BUILT_IN, AdaptiveEnv, StreamEnv, Streams
from banditlab.envs._stream import CHUNK
from banditlab.errors import EnvironmentContractError, UsageError
from banditlab.problem import Problem

SETTINGS = {
    "banditlab/Logistic-v0": {"contexts": "gaussian", "noise": 0.1},
    "banditlab/LowerBound-v0": {"n": 500, "chi": -1},
    "banditlab/SynNonSep-v0": {"noise": "any", "noise_rate": 0.2},
}
ENVIRONMENTS = [getattr(envs, name) for name in BUILT_IN["envs"]]
ELSEWHERE = {"banditlab/OpenML-v0", "banditlab/Gymnasium-v0"}  # test_openml.py, the same base class; test_foreign.py
ALL = [cls for cls in ENVIRONMENTS if cls.id not in ELSEWHERE]
STREAMS = [cls for cls in ALL if cls.oblivious]


@pytest.fixture(scope="module")
def wine(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "wine.csv"
    load_wine(as_frame=True).frame.to_csv(path, index=False)
    return str(path)


@pytest.fixture
def build(wine):
    def make(cls, **settings):
        if cls.id == "banditlab/Table-v0":
            settings = {"path": wine, "label": "target"} | settings
        return cls(**SETTINGS.get(cls.id, {}), **settings)

    return make


def dense(X):
    return X.toarray() if hasattr(X, "toarray") else X


def whole(env, rounds):
    [(X, y)] = env.blocks(rounds, rounds)
    return dense(X), y


def test_every_class_is_listed_and_registered():
    found = {value for value in vars(envs).values() if isinstance(value, type) and vars(value).get("id")}
    assert found == set(ENVIRONMENTS)
    for cls in ENVIRONMENTS:
        assert cls.id in gymnasium.registry
        assert cls.id.startswith("banditlab/")
        assert cls.summary
        assert "\n" not in cls.summary
        assert cls.reference
        assert issubclass(cls, StreamEnv if cls.oblivious else AdaptiveEnv)
    assert not all(cls.oblivious for cls in ENVIRONMENTS)


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.id)
def test_gymnasium_check_without_warning(cls, wine):
    settings = dict(SETTINGS.get(cls.id, {}))
    if cls.id == "banditlab/Table-v0":
        settings = {"path": wine, "label": "target"}
    env = gymnasium.make(cls.id, horizon=50, **settings).unwrapped
    assert type(env) is cls
    check_env(env)  # pytest turns its warnings into errors
    assert env.observation_space.dtype == np.float64
    assert np.isfinite(env.observation_space.low).all()


@pytest.mark.parametrize("cls", STREAMS, ids=lambda cls: cls.id)
def test_stream_is_the_same_for_any_block_size_and_horizon(cls, build):
    rounds = 2 * CHUNK + 300
    env = build(cls, horizon=50)
    env.reset(seed=5)
    X, y = whole(env, rounds)
    assert X.shape == (rounds, env.problem.n_features)
    for size in (1, 7, 256, CHUNK, rounds - 1):
        blocks = list(env.blocks(rounds, size))
        assert {len(b[1]) for b in blocks[:-1]} <= {size}
        assert all(b[0].dtype == np.float64 and b[1].dtype == np.int64 for b in blocks)
        assert all(b[0].format == "csr" if cls.sparse else b[0].flags.c_contiguous for b in blocks)
        assert np.array_equal(np.concatenate([dense(b[0]) for b in blocks]), X)
        assert np.array_equal(np.concatenate([b[1] for b in blocks]), y)
    shorter = build(cls, horizon=rounds)
    shorter.reset(seed=5)
    for rounds_ in (1, CHUNK - 1, CHUNK + 1):
        X_, y_ = whole(shorter, rounds_)
        assert np.array_equal(X_, X[:rounds_])
        assert np.array_equal(y_, y[:rounds_])


@pytest.mark.parametrize("cls", STREAMS, ids=lambda cls: cls.id)
def test_step_reads_the_blocks(cls, build):
    T = CHUNK + 40
    env = build(cls, horizon=T)
    context, info = env.reset(seed=9)
    X, y = whole(env, T)
    rng = np.random.default_rng(0)
    seen, right = [], []
    for t in range(T):
        assert info == {}
        seen.append(context)
        action = int(rng.integers(env.problem.n_classes))
        context, reward, terminated, truncated, info = env.step(action)
        if t == 30:
            next(env.blocks(200, 50))  # reading blocks leaves the episode alone
        assert env.label() == y[t] == np.flatnonzero(env.right())
        assert terminated == (t == T - 1)
        assert not truncated
        right.append(reward == float(action == y[t]))
    assert np.array_equal(np.array(seen), X)
    assert all(right)
    assert np.array_equal(env.labels(), y)
    assert not context.any()  # the observation after the last round belongs to no round


@pytest.mark.parametrize("cls", STREAMS, ids=lambda cls: cls.id)
def test_seeds(cls, build):
    env, twin = build(cls), build(cls)
    env.reset(seed=1)
    twin.reset(seed=1)
    X, y = whole(env, 300)
    X_twin, y_twin = whole(twin, 300)
    assert np.array_equal(X, X_twin)
    assert np.array_equal(y, y_twin)
    env.reset()  # the next episode of the same seed: another stream, again the same for both
    twin.reset()
    y_next = whole(env, 300)[1]
    assert not np.array_equal(y_next, y)
    assert np.array_equal(y_next, whole(twin, 300)[1])
    env.reset(seed=2)
    assert not np.array_equal(whole(env, 300)[1], y)


@pytest.mark.parametrize("cls", STREAMS, ids=lambda cls: cls.id)
def test_norms_within_the_radius_and_all_classes_occur(cls, build):
    env = build(cls)
    env.reset(seed=0)
    X, y = whole(env, 4000)
    assert np.isfinite(X).all()
    assert max(np.linalg.norm(X, axis=1).max(), np.sqrt((X * X).sum(axis=1)).max()) <= env.problem.radius
    assert set(np.unique(y)) == set(range(env.problem.n_classes))


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.id)
def test_labels_are_guarded(cls, build):
    env = build(cls, horizon=3)
    with pytest.raises(UsageError, match="call reset first"):
        env.step(0)
    with pytest.raises(UsageError, match="no round of this episode is finished"):
        env.label()
    with pytest.raises(UsageError, match="has not ended"):
        env.labels()
    env.reset(seed=0)
    with pytest.raises(UsageError, match="no round of this episode is finished"):
        env.label()
    env.step(0)
    assert env.label() in range(env.problem.n_classes)
    with pytest.raises(UsageError, match=r"has not ended \(1 of 3 rounds\)"):
        env.labels()
    with pytest.raises(UsageError, match=r"action must lie in 0 \.\.\. "):
        env.step(env.problem.n_classes)
    with pytest.raises(UsageError, match=r"action must lie in 0 \.\.\. "):
        env.step(-1)
    env.step(0)
    env.step(0)
    assert len(env.labels()) == 3
    with pytest.raises(UsageError, match="the episode has ended"):
        env.step(0)
    env.reset()
    with pytest.raises(UsageError, match="has not ended"):
        env.labels()


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.id)
def test_params_rebuild_the_environment(cls, build):
    env = build(cls, horizon=7)
    assert set(env.params()) == set(cls.own_settings())
    again = cls(horizon=7, **env.params())
    assert again.params() == env.params()
    assert again.problem == env.problem
    first, second = env.reset(seed=3)[0], again.reset(seed=3)[0]
    assert np.array_equal(first, second)


def test_observations_may_be_kept_and_changed():
    env = envs.Digits(horizon=3)
    context, _ = env.reset(seed=0)
    context[:] = 7.0
    X, _ = whole(env, 3)
    assert X.max() < 1.0
    assert not env._table.X.flags.writeable


def test_blocks_guards():
    env = envs.Digits()
    with pytest.raises(UsageError, match="call reset first"):
        env.blocks(10, 5)
    env.reset(seed=0)
    with pytest.raises(UsageError, match="at least 1, got 0 and 5"):
        env.blocks(0, 5)
    with pytest.raises(UsageError, match="at least 1, got 5 and 0"):
        env.blocks(5, 0)
    with pytest.raises(UsageError, match="horizon must be at least 1"):
        envs.Digits(horizon=0)


class Broken(StreamEnv):
    """Yields whatever it is given."""

    def __init__(self, X, y, end=False):
        super().__init__(Problem(2, 3, 1.0, 10))
        self.X, self.y, self.end = X, y, end

    def _draw(self, streams: Streams, size: int):
        yield self.X, self.y
        while not self.end:
            yield self.X, self.y


GOOD_X, GOOD_Y = np.zeros((CHUNK, 2)), np.zeros(CHUNK, dtype=np.int64)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((CHUNK, 3)), GOOD_Y, "must yield contexts"),
        (GOOD_X.astype(np.float32), GOOD_Y, "must yield contexts"),
        (np.asfortranarray(GOOD_X), GOOD_Y, "must yield contexts"),
        (GOOD_X, GOOD_Y[:-1], "must yield labels"),
        (GOOD_X, GOOD_Y.astype(float), "must yield labels"),
        (GOOD_X, GOOD_Y + 3, r"Broken returned the label 3: labels must lie in 0 \.\.\. 2"),
        (GOOD_X, GOOD_Y - 1, r"Broken returned the label -1: labels must lie in 0 \.\.\. 2"),
    ],
)
def test_a_broken_stream_is_refused(X, y, message):
    with pytest.raises(EnvironmentContractError, match=message):
        Broken(X, y).reset(seed=0)


def test_a_stream_that_ends_is_refused():
    env = Broken(GOOD_X, GOOD_Y, end=True)
    env.reset(seed=0)
    with pytest.raises(EnvironmentContractError, match="must yield without end"):
        whole(env, CHUNK + 1)


def test_even_a_careless_draw_gives_one_stream():
    """`_draw` is asked for portions of one size, so draws that depend on the size are still one stream."""

    class Careless(StreamEnv):
        def __init__(self):
            super().__init__(Problem(2, 3, 9.0, 10))

        def _draw(self, streams, size):
            while True:  # both kinds of draw from one generator, bounded integers included
                y = streams.labels.integers(0, 3, size, dtype=np.uint8).astype(np.int64)
                yield np.clip(streams.labels.standard_normal((size, 2)), -6, 6), y

    env = Careless()
    env.reset(seed=0)
    X, y = whole(env, 3000)
    for size in (7, 999):
        blocks = list(env.blocks(3000, size))
        assert np.array_equal(np.concatenate([b[0] for b in blocks]), X)
        assert np.array_equal(np.concatenate([b[1] for b in blocks]), y)


def test_an_adaptive_environment_with_a_wrong_label_is_refused():
    class Wrong(AdaptiveEnv):
        def __init__(self):
            super().__init__(Problem(2, 3, 1.0, 5))

        def _begin(self, streams):
            self.round = 0

        def _next(self):
            self.round += 1
            return np.zeros(2), 1 if self.round < 3 else 3

        def _played(self, context, action, label):
            pass

    env = Wrong()
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(EnvironmentContractError, match=r"^Wrong returned the label 3: labels must lie in 0 \.\.\. 2$"):
        env.step(0)


def test_an_episode_read_as_blocks_keeps_nothing_however_long_it_is():
    env = envs.Logistic(horizon=10**15)
    env.reset(seed=0)
    X, y = next(env.blocks(10**15, 1024))
    assert (X.shape, y.shape) == ((1024, 10), (1024,))
    short = envs.Logistic(horizon=5)
    context, _ = short.reset(seed=0)
    np.testing.assert_array_equal(context, X[0])
    for t in range(5):
        short.step(0)
        assert short.label() == y[t]
    np.testing.assert_array_equal(short.labels(), y[:5])


READ: dict[str, Any] = {"scaling": "auto", "missing": "error", "normalize": True, "intercept": True, "horizon": 10_000}


OF_FILES: dict[str, Any] = {"label": "", "drop_columns": None, "max_categories": 100} | READ


DEFAULTS: dict[str, dict[str, Any]] = {
    "Adversary": {
        "n_features": 5, "n_classes": 3, "norm_bound": 10.0, "rho": 0.1, "n_cells": 8, "radius": 1.0, "horizon": 10_000
    },
    "Digits": {"scaling": "none", "normalize": True, "intercept": True, "horizon": 10_000},
    "GymnasiumEnv": {"options": None, "label_key": "", "right_above": None, "horizon": 10_000},
    "Logistic": {
        "n_features": 10, "n_classes": 5, "norm_bound": 10.0, "contexts": "sphere", "radius": 1.0, "noise": 0.0,
        "horizon": 10_000,
    },
    "LowerBound": {"n": 10_000, "chi": 1, "epsilon": 0.01, "horizon": 10_000},
    "OpenML": OF_FILES | {"data_home": ""},
    "Sparse": {
        "n_features": 1000, "n_classes": 4, "nonzeros": 40, "exponent": 1.0, "topical": 0.3, "radius": 1.0, "noise": 0.0,
        "horizon": 10_000,
    },
    "SynNonSep": {"noise_rate": 0.05, "noise": "other", "horizon": 10_000},
    "SynSep": {"horizon": 10_000},
    "Table": OF_FILES | {
        "format": "auto", "encoding": "auto", "separator": "auto", "header": "auto", "decimal": ".", "thousands": "",
        "comments": None, "na_values": None, "drop_rows": None,
        "costs": None, "worth": 0.0, "per": "", "text": None, "text_features": "words:1000",
        "roles": None, "arms": None, "right_above": None, "order": "shuffle", "group": "",
    },
}  # fmt: skip
"""Runs are stored under what is set: a default that moves moves them."""


def defaults(function: Any) -> dict[str, Any]:
    found = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in found if p.default is not p.empty}


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_and_what_a_class_says_of_itself(name: str) -> None:
    cls = getattr(envs, name)
    assert defaults(cls) == DEFAULTS[name]
    assert cls.version == 1
    assert cls.foreign == (name == "GymnasiumEnv")
    assert cls.labelled is True
    assert cls.oblivious == (name not in ("Adversary", "GymnasiumEnv"))
    assert cls.sparse == (name == "Sparse")


class Drawing(StreamEnv):
    """Its `_draw` hands over what it was given."""

    def __init__(self, source: Any) -> None:
        super().__init__(Problem(2, 3, 1.0, 10))
        self.source = source

    def _draw(self, streams: Any, size: int) -> Any:
        return self.source


def test_what_a_draw_must_hand_over() -> None:
    X, y = np.zeros((CHUNK, 2)), np.zeros(CHUNK, dtype=np.int64)
    mixed = y.copy()
    mixed[7] = 3
    for source, message in (
        ([(X, y)], r"_draw returned a list: it must yield"),
        (iter([(X, y, y)]), "got a tuple"),
        (iter([[X, y]]), "got a list"),
        (iter([(X, mixed)]), "Drawing returned the label 3: labels must lie"),
        (iter([(X, -mixed)]), "Drawing returned the label -3"),
    ):
        with pytest.raises(EnvironmentContractError, match=message):
            Drawing(source).reset(seed=0)
