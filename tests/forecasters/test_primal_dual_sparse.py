"""The dual form on sparse contexts: CSR blocks, their rows made dense, the primal form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from banditlab.agents.exploration import Exploration
from banditlab.errors import UsageError
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.forecasters.primal_dual import FIRST
from banditlab.players.agent import Trace
from banditlab.problem import Problem


def sparse_stream(n: int, d: int, nonzeros: int = 6) -> tuple[csr_array, np.ndarray]:
    """Return rows of up to `nonzeros` entries among 30 places of d, some rows twice, one of them empty."""
    rng = np.random.default_rng(8)
    X = np.zeros((n, d))
    places = rng.choice(d, 30, replace=False)
    for x in X[1:]:
        chosen = rng.choice(places, rng.integers(1, nonzeros + 1), replace=False)
        x[chosen] = rng.standard_normal(len(chosen))
    X[n // 2 : n // 2 + 5] = X[5:10]
    return csr_array(X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]), rng.integers(0, 3, n)


@pytest.mark.slow
def test_sparse_contexts() -> None:
    """Forecasts of CSR blocks, of their rows made dense and of the primal form; the steps' state bit for bit."""
    n, d = 90, 2000
    X, y = sparse_stream(n, d)
    block, steps = (FOLKLORE(Problem(d, 3, 1.0), None, norm_bound=5.0) for _ in range(2))
    used = np.flatnonzero(abs(X).sum(axis=0))
    few = X.toarray()[:, used]
    primal = FOLKLORE(
        Problem(len(used), 3, 1.0),
        np.random.default_rng(1),
        norm_bound=5.0,
        regularization=block.regularization,
        form="primal",
    )
    logits = np.empty((n, 3))
    for part in (slice(0, 40), slice(40, n)):
        block.forecast_block(X[part], y[part], logits[part])
    assert block.state.span.rank[0] <= len(used)
    steps.predict_many(X[:1])  # sparse contexts are known to come
    for t in range(n):
        x = X[[t]].toarray()[0]
        np.testing.assert_allclose(steps.predict(x), logits[t], atol=1e-12)
        np.testing.assert_allclose(primal.predict(few[t]), logits[t], atol=1e-9)
        steps.update(x, int(y[t]))
        primal.update(few[t], int(y[t]))
    np.testing.assert_array_equal(steps.state.learner.h, block.state.learner.h)
    np.testing.assert_allclose(block.predict_many(X), primal.predict_many(few), atol=1e-9)
    assert block.certificate() == pytest.approx(primal.certificate(), rel=1e-9)


@pytest.mark.slow
def test_the_reduction_on_sparse_contexts(tmp_path) -> None:
    """d = 347,000: CSR blocks, rows made dense on the step path, a dense beginning; saved and gone on."""
    n, d = 120, 347_000
    X, y = sparse_stream(n, d)
    whole, steps, mixed = (
        Exploration(Problem(d, 3, 1.0, n), np.random.default_rng(7), gamma=0.9, norm_bound=5.0) for _ in range(3)
    )
    traces = [Trace.empty(n), Trace.empty(n)]
    whole.play_block(X, y, traces[0])
    for part, contexts_ in ((slice(0, 30), X[:30].toarray()), (slice(30, n), X[30:])):
        trace = Trace.empty(part.stop - part.start)
        mixed.play_block(contexts_, y[part], trace)
        traces[1].action[part] = trace.action
        mixed.save(tmp_path / "player.npz")
        mixed = Exploration.load(tmp_path / "player.npz")
    for t in range(n):
        x = X[[t]].toarray()[0]
        decision = steps.act(x)
        assert decision.action == traces[0].action[t] == traces[1].action[t]
        assert decision.probabilities[y[t]] == pytest.approx(traces[0].p_true[t], abs=1e-12)
        steps.learn(x, decision, decision.action == y[t])
    rank = whole.inner.state.span.rank[0]
    assert FIRST < rank <= 30
    for other in (steps, mixed):
        assert other.inner.state.span.rank[0] == rank
        np.testing.assert_allclose(other.inner.predict_many(X), whole.inner.predict_many(X), atol=1e-12)


def test_sparse_contexts_after_the_change_to_primal() -> None:
    """Forecasts make them dense; blocks, whose loop was chosen before, refuse them by one line."""
    d = 40
    folklore = FOLKLORE(Problem(d, 3, 1.0), None, form="dual")
    folklore.form = "auto"
    X = np.random.default_rng(0).uniform(-0.1, 0.1, (60, d))
    y = np.arange(60) % 3
    reduction = Exploration(Problem(d, 3, 1.0, 60), np.random.default_rng(0), gamma=0.5)
    reduction._inner, reduction.sparse = folklore, folklore.sparse
    folklore.forecast_block(X, y, np.empty((60, 3)))
    assert not folklore.dual
    np.testing.assert_array_equal(folklore.predict_many(csr_array(X)), folklore.predict_many(X))
    with pytest.raises(UsageError, match="sparse contexts require form = 'dual', but the form is now primal"):
        reduction.play_block(csr_array(X), y, Trace.empty(60))
