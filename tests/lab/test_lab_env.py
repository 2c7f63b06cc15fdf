"""The lab's example environment: found by opening the lab, keeps the contract, drifts as it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy.stats import chi2

from banditlab.envs import StreamEnv
from banditlab.errors import UsageError
from banditlab.losses import softmax
from banditlab.registry import Registry, classes_of, load_file, source_hash

LAB = Path(__file__).parents[2]
FILE = LAB / "envs" / "drift.py"


@pytest.fixture(scope="module")
def Drift():
    [(kind, cls)] = classes_of(load_file(FILE))
    assert kind == "envs"
    return cls


def whole(env, rounds):
    [(X, y)] = env.blocks(rounds, rounds)
    return X, y


def test_opening_the_lab_registers_it():
    registry = Registry()
    registry.open_lab(LAB)
    entry = registry.find("envs", "lab/Drift-v0")
    assert entry.origin == str(FILE)
    assert entry.source == source_hash(FILE)
    assert issubclass(entry.load(), StreamEnv)


def test_only_the_public_api_is_used():
    imports = [line for line in FILE.read_text().splitlines() if line.startswith(("import ", "from "))]
    assert all("._" not in line for line in imports)
    assert any("from banditlab.envs import" in line for line in imports)


def test_contract(Drift):
    # Built directly, as the engine does; render modes can be tried only through gymnasium.make.
    check_env(Drift(horizon=50), skip_render_check=True)
    env = Drift(horizon=1200)
    context, _ = env.reset(seed=1)
    X, y = whole(env, 2500)
    for size in (1, 7, 256):
        blocks = list(env.blocks(2500, size))
        assert np.array_equal(np.concatenate([b[0] for b in blocks]), X)
        assert np.array_equal(np.concatenate([b[1] for b in blocks]), y)
    for t in range(1200):
        assert np.array_equal(context, X[t])
        context, reward, *_ = env.step(1)
        assert reward == (y[t] == 1)
    assert np.array_equal(env.labels(), y[:1200])
    assert np.linalg.norm(X, axis=1).max() <= 1.0


def test_labels_follow_the_turning_weights(Drift):
    env = Drift(period=3000, norm_bound=3.0)
    env.reset(seed=2)
    X, y = whole(env, 30_000)
    planes = env.planes(env._streams().model)
    assert np.allclose(planes @ planes.transpose(0, 2, 1), np.eye(2), atol=1e-12)
    t = np.arange(len(y))
    turn = np.stack([np.cos(2 * np.pi * t / 3000), np.sin(2 * np.pi * t / 3000)])
    W = 3.0 * np.einsum("pn,kpd->nkd", turn, planes)
    assert np.allclose(np.linalg.norm(W, axis=2), 3.0)
    P = softmax(np.einsum("nkd,nd->nk", W, X))
    for k in range(3):
        groups = np.array_split(np.argsort(P[:, k]), 20)
        z = [((y[g] == k).sum() - P[g, k].sum()) ** 2 / (P[g, k] * (1 - P[g, k])).sum() for g in groups]
        assert chi2.sf(sum(z), 20) > 1e-3
    # Half a turn later the weights are the opposite ones: who stays loses.
    stale = np.einsum("kd,nd->nk", W[0], X[1400:1600]).argmax(axis=1)
    fresh = np.einsum("nkd,nd->nk", W[1400:1600], X[1400:1600]).argmax(axis=1)
    assert (stale == y[1400:1600]).mean() + 0.2 < (fresh == y[1400:1600]).mean()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_features": 1}, "n_features must be at least 2"),
        ({"n_classes": 1}, "n_classes must be at least 2"),
        ({"norm_bound": -1.0}, "norm_bound must be a number above 0"),
        ({"period": 0}, "period must be at least 1"),
    ],
)
def test_bad_settings(Drift, settings, message):
    with pytest.raises(UsageError, match=message):
        Drift(**settings)
