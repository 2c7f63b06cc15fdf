"""The dual form of FOLKLORE and GAF against the primal one, full matrices and the kernel form of AIOLI."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array

from banditlab.agents.exploration import Exploration
from banditlab.errors import UsageError
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.forecasters.gaf import GAF
from banditlab.forecasters.kernel_aioli import KernelAIOLI
from banditlab.forecasters.primal_dual import FIRST, SMALL, certified
from banditlab.losses import softmax
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.gram_coordinates import Span, Spanned, extend, locate
from banditlab.numerics.joint_inverse import Blocks, dense
from banditlab.players.agent import Trace
from banditlab.problem import Problem


def contexts(kind: str, n: int, d: int) -> np.ndarray:
    """Return n contexts of norm up to 1: dense, few different ones, in a subspace, or a hair's breadth from one."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, d))
    if kind == "repeated":
        X = X[rng.integers(0, 7, n)]
    elif kind != "dense":
        X = rng.standard_normal((n, 5)) @ X[:5] + {"subspace": 0.0, "nearly": 1e-5}[kind] * X
    X /= np.linalg.norm(X, axis=1)[:, None] * rng.uniform(1.0, 3.0, n)[:, None]
    return as_contexts(X)


RANKS = {"dense": 50, "repeated": 7, "subspace": 5, "nearly": 50}


@pytest.mark.parametrize("cls", [FOLKLORE, pytest.param(GAF, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", RANKS)
@pytest.mark.parametrize("lam", [0.4, 1e-3])
@pytest.mark.few(4)
def test_dual_equals_primal(cls: type, kind: str, lam: float) -> None:
    """Through three enlargements and, in "dense", a span that ends as the whole space."""
    K, d, n = 4, 50, 70
    X, rng = contexts(kind, n, d), np.random.default_rng(0)
    settings = {"norm_bound": 5.0, "regularization": lam}
    primal, dual = (cls(Problem(d, K, 1.0), np.random.default_rng(1), form=f, **settings) for f in ("primal", "dual"))
    for t, label in enumerate(rng.integers(0, K, n)):
        np.testing.assert_allclose(dual.predict(X[t]), primal.predict(X[t]), atol=1e-9)
        if t % 5 == 0:
            np.testing.assert_allclose(dual.predict_many(X), primal.predict_many(X), atol=1e-9)
        primal.update(X[t], label)
        dual.update(X[t], label)
    assert dual.dual
    assert dual.state.span.rank[0] == RANKS[kind]
    assert dual.certificate() == pytest.approx(primal.certificate(), rel=1e-9)
    assert dual.diagnostics() == primal.diagnostics()


@pytest.mark.parametrize("width", [None, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("apart", [1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9])
def test_inner_products_of_near_repetitions(apart: float, width: int | None) -> None:
    """A factor of the Gram matrix alone is wrong by orders of magnitude from 1e-5 on: it squares the condition."""
    d, n, rng = 40, 90, np.random.default_rng(2)
    base = rng.standard_normal((5, d)) / np.sqrt(d)
    X = as_contexts(base[rng.integers(0, 5, n)] + apart / np.sqrt(d) * rng.standard_normal((n, d)))
    span = Span.empty(d, d, width)

    def coordinates(x: np.ndarray, write) -> np.ndarray:
        write(span, x)
        return span.xi.copy()

    learnt = np.array([coordinates(x, extend) for x in X])
    forecast = np.array([coordinates(x, locate) for x in X])
    assert not span.v.any() or width is None
    tolerance = 1e-10 if apart > 1e-7 else 2e-8  # what stands out by less than 1e-8 is left out
    np.testing.assert_allclose(learnt @ learnt.T, X @ X.T, rtol=0, atol=tolerance)
    np.testing.assert_allclose(forecast @ learnt.T, X @ X.T, rtol=0, atol=tolerance)


def test_the_inverse_is_that_of_the_summed_matrix() -> None:
    K, d, n = 3, 24, 20
    X, rng = contexts("dense", n, d), np.random.default_rng(0)
    folklore = FOLKLORE(Problem(d, K, 1.0), None, norm_bound=3.0, form="dual")
    A, G = folklore.regularization * np.eye(K * d), np.zeros(K * d)
    for x, label in zip(X, rng.integers(0, K, n), strict=True):
        z = folklore.predict(x)
        s = softmax(z)
        S = np.diag(s) - np.outer(s, s)
        A += folklore.curvature * np.kron(S, np.outer(x, x))
        G += np.kron(s - np.eye(K)[label] - 2 * folklore.curvature * S @ z, x)
        folklore.update(x, label)
    primal = folklore._primal()
    np.testing.assert_allclose(dense(primal.blocks), np.linalg.inv(A), atol=1e-11)
    np.testing.assert_allclose(primal.h.ravel(), np.linalg.solve(A, G), atol=1e-11)


def test_two_classes_are_matched_kernel_aioli() -> None:
    """Another dual: AIOLI with the linear kernel, by the Cholesky factor of its weighted Gram matrix."""
    d, n = 200, 60
    X, rng = contexts("dense", n, d), np.random.default_rng(2)
    folklore = FOLKLORE(Problem(d, 2, 1.0), None, norm_bound=5.0, form="dual")
    matched = {"regularization": folklore.regularization / 2, "curvature": folklore.curvature, "virtual_weight": 0.5}
    aioli = KernelAIOLI(Problem(d, 2, 1.0), None, norm_bound=5.0, kernel="linear", **matched)
    for x, label in zip(X, rng.integers(0, 2, n), strict=True):
        z = folklore.predict(x)
        assert z[0] - z[1] == pytest.approx(aioli.predict(x)[0], abs=1e-9)
        folklore.update(x, label)
        aioli.update(x, label)


def large(form: str = "auto", **settings: float) -> FOLKLORE:
    """A FOLKLORE that begins in the dual form, d = 1,200 (primal: 84 MB)."""
    return FOLKLORE(Problem(1200, 3, 1.0), None, norm_bound=5.0, form=form, **settings)


def test_auto() -> None:
    assert not FOLKLORE(Problem(64, 10, 1.0), None).dual
    assert not FOLKLORE(Problem(379, 10, 1.0), None).dual
    assert FOLKLORE(Problem(380, 10, 1.0), None).dual
    assert Blocks.size(3, 1200) > SMALL
    assert large().dual
    assert not large("primal").dual
    assert FOLKLORE(Problem(1_000_000, 10, 1.0), None).dual


def test_auto_goes_over_to_the_primal_form() -> None:
    """Before the contexts span the whole space; forecasts go on as they were."""
    K, d, n = 3, 40, 40
    X, rng = contexts("dense", n, d), np.random.default_rng(5)
    dual, auto, primal = (FOLKLORE(Problem(d, K, 1.0), None, form=f) for f in ("dual", "dual", "primal"))
    auto.form = "auto"  # from d = 1,089 on it would begin so
    forms = []
    for x, label in zip(X, rng.integers(0, K, n), strict=True):
        for folklore in (dual, auto, primal):
            folklore.update(x, label)
        forms.append(auto.dual)
        np.testing.assert_allclose(auto.predict_many(X), primal.predict_many(X), atol=1e-9)
    assert forms == sorted(forms, reverse=True)
    assert forms[FIRST // 2]
    assert not forms[-1]
    assert dual.dual


def stream(n: int, d: int = 1200) -> tuple[np.ndarray, np.ndarray]:
    return contexts("dense", n, d), np.random.default_rng(6).integers(0, 3, n)


@pytest.mark.slow
def test_blocks_are_steps_while_it_grows() -> None:
    """The reduction and the full-information block, whole, cut and one round at a time: same actions, same state."""
    n = 120
    X, y = stream(n)
    settings = {"gamma": 0.9, "norm_bound": 5.0}
    whole, cut, steps = (Exploration(Problem(1200, 3, 1.0, n), np.random.default_rng(7), **settings) for _ in range(3))
    traces = [Trace.empty(n), Trace.empty(n)]
    whole.play_block(X, y, traces[0])
    for part in (slice(0, 50), slice(50, 51), slice(51, n)):
        trace = Trace.empty(part.stop - part.start)
        cut.play_block(X[part], y[part], trace)
        for name in ("action", "p_true", "explored"):
            getattr(traces[1], name)[part] = getattr(trace, name)
    for t in range(n):
        decision = steps.act(X[t])
        assert decision.action == traces[0].action[t] == traces[1].action[t]
        assert decision.probabilities[y[t]] == pytest.approx(traces[0].p_true[t], abs=1e-12)
        assert traces[0].p_true[t] == pytest.approx(traces[1].p_true[t], abs=1e-12)
        steps.learn(X[t], decision, decision.action == y[t])
    inner = [player.inner.state for player in (whole, cut, steps)]
    assert inner[0].span.capacity > 2 * FIRST
    for other in inner[1:]:
        np.testing.assert_array_equal(other.span.L, inner[0].span.L)
        np.testing.assert_array_equal(other.learner.h, inner[0].learner.h)

    block, single = large(), large()
    logits = np.empty((n, 3))
    block.forecast_block(X, y, logits)
    for t in range(n):
        np.testing.assert_allclose(single.predict(X[t]), logits[t], atol=1e-12)
        single.update(X[t], int(y[t]))
    np.testing.assert_array_equal(single.state.learner.h, block.state.learner.h)


@pytest.mark.parametrize("learnt", [0, 10, 40])
def test_saved_copied_and_restored_in_either_form(tmp_path, learnt: int) -> None:
    """At 40 of d = 40 dimensions the form has changed: the file brings the form along."""
    d = 40
    X, y = stream(60, d)
    folklore = FOLKLORE(Problem(d, 3, 1.0), None, form="dual")
    folklore.form = "auto"
    for t in range(learnt):
        folklore.update(X[t], int(y[t]))
    assert folklore.dual == (learnt < 40)
    folklore.save(tmp_path / "player.npz")
    loaded = FOLKLORE.load(tmp_path / "player.npz")
    for other in (loaded, pickle.loads(pickle.dumps(folklore))):
        assert other.dual == folklore.dual
        for t in range(learnt, 60):
            np.testing.assert_array_equal(other.predict(X[t]), folklore.predict(X[t]))
    before = folklore.predict(X[59])
    for t in range(learnt, 60):
        loaded.update(X[t], int(y[t]))
    np.testing.assert_array_equal(folklore.predict(X[59]), before)
    for t in range(learnt, 60):
        folklore.update(X[t], int(y[t]))
    np.testing.assert_array_equal(folklore.predict_many(X), loaded.predict_many(X))


def test_memory_is_capped_by_one_line() -> None:
    """It stops before the update it has no room for, not in the middle of one, and still forecasts."""
    X, y = stream(60)
    folklore = large("dual", max_memory=1e-3)
    with pytest.raises(UsageError, match=r"stored \d+ independent contexts .* above max_memory = 0\.001") as refusal:
        folklore.forecast_block(X, y, np.empty((60, 3)))
    assert "\n" not in str(refusal.value)
    rank, before = int(folklore.state.span.rank[0]), folklore.predict_many(X)
    assert rank == folklore.state.span.capacity - 1 < 60
    with pytest.raises(UsageError, match="max_memory"):
        folklore.update(X[-1], 0)
    np.testing.assert_array_equal(folklore.predict_many(X), before)
    other = large("dual")
    for t in range(rank):
        other.update(X[t], int(y[t]))
    np.testing.assert_allclose(other.predict_many(X), before, atol=1e-12)
    with pytest.raises(UsageError, match=r"form = 'primal' needs 41\.8 GiB at K = 10, d = 10,000"):
        FOLKLORE(Problem(10_000, 10, 1.0), None, form="primal")


@pytest.mark.parametrize(
    ("cls", "width"),
    [
        (FOLKLORE, None),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((FOLKLORE, 40), (GAF, None), (GAF, 40))),
    ],
)
def test_at_the_memory_limit_contexts_in_the_span_are_still_learnt(cls: type, width: int | None) -> None:
    """They need no new room: only the first that stands out is refused, and the rounds before it are learnt."""
    X, y = stream(60)
    capped, free = (
        cls(Problem(1200, 3, 1.0), np.random.default_rng(0), norm_bound=5.0, form="dual", max_memory=most)
        for most in (1e-3, 4.0)
    )
    if width is not None:
        X = csr_array(X)
    with pytest.raises(UsageError, match="max_memory"):
        capped.forecast_block(X, y, np.empty((60, 3)))
    rank = int(capped.state.span.rank[0])
    free.forecast_block(X[:rank], y[:rank], np.empty((rank, 3)))
    again = [5, 0, rank - 1, 5, 5]
    old, labels = X[again], y[again]
    for player in (capped, free):
        player.forecast_block(old, labels, np.empty((5, 3)))
        player.update(old.toarray()[0] if width is not None else old[0], 2)
    assert capped.state.span.rank[0] == rank == capped.state.span.capacity - 1
    np.testing.assert_allclose(capped.predict_many(X), free.predict_many(X), atol=1e-12)
    mixed, labels = X[[3, 1, rank, 2]], y[[3, 1, rank, 2]]
    with pytest.raises(UsageError, match="max_memory"):
        capped.forecast_block(mixed, labels, np.empty((4, 3)))
    free.forecast_block(mixed[:2], labels[:2], np.empty((2, 3)))
    np.testing.assert_allclose(capped.predict_many(X), free.predict_many(X), atol=1e-12)


@pytest.mark.parametrize("cls", [FOLKLORE, GAF])
def test_settings(cls: type) -> None:
    for wrong in ({"form": "both"}, {"max_memory": 0.0}):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            cls(Problem(2, 3, 1.0), np.random.default_rng(0), **wrong)
    player = cls(Problem(2, 3, 1.0), np.random.default_rng(0))
    assert (player.form, player.max_memory) == ("auto", 4.0)


@pytest.mark.parametrize("missing", [0, 1])
def test_the_dual_form_grows_to_the_last_byte_that_it_may_take(missing):
    K, d = 3, 40
    capacity = 32
    size = Blocks.size(K, capacity) + Span.size(capacity, d, None)
    player = FOLKLORE(Problem(d, K, 1.0), None, form="dual", max_memory=(size - missing) / 2**30)
    X = as_contexts(np.eye(d))
    for t in range(16 if missing else 31):
        if missing and t == 15:
            with pytest.raises(UsageError, match="the dual form has stored 15 independent contexts and needs"):
                player.update(X[t], t % K)
            break
        player.update(X[t], t % K)
    assert player.state.span.capacity == (16 if missing else capacity)


@pytest.mark.parametrize("cls", [FOLKLORE, GAF])
def test_a_regularization_that_leaves_too_few_digits_is_refused(cls):
    """At R = 7 from R^2 / lambda = 20,000 on."""
    cls(Problem(2, 3, 7.0), np.random.default_rng(0), regularization=49.0 / 20000.0)
    with pytest.raises(UsageError) as caught:
        cls(Problem(2, 3, 7.0), np.random.default_rng(0), regularization=0.00244)
    assert str(caught.value) == (
        f"{cls.id}: regularization must be at least R^2 / 20,000 = 0.00245 at R = 7, got 0.00244: "
        "below that, rounding errors of a forecast are too large"
    )


def test_certificates_in_doubt():
    assert certified(5.0, 1e-10) == 5.0
    assert certified(5.0, 1e-4) == 5.0001
    assert math.isnan(certified(5.0, 0.1))
    assert math.isnan(certified(5.0, math.nan))
    assert certified(1e6, 100.0) == 1e6 + 100.0


def test_what_the_span_leaves_out_is_in_the_certificate() -> None:
    """2 B times its length: B = 1.5."""
    player = FOLKLORE(Problem(20, 2, 1.0), None, form="dual", norm_bound=1.5)
    price = player.regularization * 2 * 1.5**2
    assert player.certificate() == pytest.approx(price)
    player.state.span.lost[0] = 1e-6
    assert player.certificate() - price == pytest.approx(3e-6, rel=1e-6)
    assert float(player._primal().doubt[0]) == pytest.approx(3e-6, rel=1e-6)


def test_a_dual_state_is_taken_over_where_its_arrays_belong_together() -> None:
    player = FOLKLORE(Problem(20, 2, 1.0), None, form="dual")
    given = player.get_state()
    span, learner = given["state"]
    blocks = learner.blocks
    with pytest.raises(UsageError, match=r"the sizes of M and L in state\.state must agree and lie in 1 \.\.\. 10"):
        FOLKLORE(Problem(10, 2, 1.0), None, form="dual").set_state(given)
    for wrong in (
        Spanned(span._replace(L=np.zeros((16, 17))), learner),
        Spanned(span, learner._replace(blocks=blocks._replace(M=np.zeros((3, 16, 17))))),
        Spanned(span, learner._replace(blocks=blocks._replace(M=np.zeros((2, 16, 16))))),
    ):
        with pytest.raises(UsageError, match=r"the sizes of M and L in state\.state must agree and lie in 1 \.\.\. 20"):
            player.set_state(given | {"state": wrong})
    with pytest.raises(UsageError, match=r"state\.state is in the dual form, but form = 'primal'"):
        FOLKLORE(Problem(20, 2, 1.0), None, form="primal").set_state(given)
