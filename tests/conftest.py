"""One thread and fixed examples for every test: the same numbers on every machine, loaded or not."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Hold BLAS to one thread, as the engine does."""
    with threadpool_limits(limits=1):
        yield


def pytest_collection_finish() -> None:
    """Take what was imported out of the garbage collector's rounds: a tenth of the tests' time, numba makes many objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.fixture(scope="session")
def dense_step() -> Any:
    """Return `step(M, C, x, y, w)`: a Gaussian posterior's implicit step in Kd dimensions, slowly, by scipy.

    The mean by a proximal step on the objective, then the covariance by inverting the precision.
    """
    import numpy as np
    from scipy.optimize import minimize

    from banditlab.losses import logistic_gradient, logistic_loss, softmax

    def step(M: Any, C: Any, x: Any, y: int, w: float) -> Any:
        K, d = M.shape
        precision = np.linalg.inv(C)

        def objective(v: Any) -> Any:
            W, e = v.reshape(K, d), v - M.ravel()
            return e @ precision @ e / 2 + w * logistic_loss(W @ x, y)

        def gradient(v: Any) -> Any:
            return precision @ (v - M.ravel()) + w * logistic_gradient(v.reshape(K, d), x, y).ravel()

        def hessian(v: Any) -> Any:
            s = softmax(v.reshape(K, d) @ x)
            return precision + w * np.kron(np.diag(s) - np.outer(s, s), np.outer(x, x))

        found = minimize(objective, M.ravel(), jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-9})
        v = found.x - np.linalg.solve(hessian(found.x), gradient(found.x))  # scipy stops at rounding of the objective
        return v.reshape(K, d), np.linalg.inv(hessian(v))

    return step


FAMILIES = {
    "obama": "obama|gaussian_posterior",
    "newtron": "newtron|frobenius_programme",
    "inverse gap": "fastcb|squarecb",
    "stack": "stackcb",
    "ridge": "confidit|linucb|lints|ridge",
    "gaf": "gaf|gaussian_softmax",
    "grid": "b-grid|test_grid",
    "ons": "[^a-z]ons[^a-z]",
    "folklore": "folklore",
}
"""Players whose kernels take long to compile, as their tests are called."""


def group_of(nodeid: str) -> str:
    """Return which tests share a worker: a slow family's of all files of players, else a file's.

    Workers share what they compiled, but what two of them need at the same moment both compile. Files stay whole because
    their fixtures, some of which play sweeps, are made once.
    """
    file = nodeid.partition("::")[0]
    of_players = PurePosixPath(file).parent.name in ("agents", "forecasters", "checks", "numerics", "record")
    return next((family for family, names in FAMILIES.items() if of_players and re.search(names, nodeid)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out tests by `group_of` where `--dist loadgroup` is asked for.

    The marks that option reads have no effect under pytest 9.2 and pytest-xdist 3.8: every test then goes to any worker.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return ByGroup(config, log)
