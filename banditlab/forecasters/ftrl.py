"""Follow the regularised leader with L2 regularisation, as a baseline for proper learners."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.ftrl import ftrl as ftrl_bound
from banditlab.bounds.ftrl import ftrl_regularization
from banditlab.numerics.dense import overwrite
from banditlab.numerics.distinct_rows import Distinct
from banditlab.numerics.jit import njit
from banditlab.numerics.joint_inverse import EPSILON
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.row_ball_projection import backward, cholesky, forward
from banditlab.numerics.softmax import softmax_into
from banditlab.numerics.symmetric import dot
from banditlab.players.forecaster import Floats, Forecaster
from banditlab.players.inputs import as_class, as_context
from banditlab.problem import Problem
from banditlab.validation import positive, resolve

TOLERANCE = 1e-11
r"""The largest final Newton step, relative to :math:`1 + \max |W|`."""
STEPS = 200
RIDGES = np.int64(12)
"""The largest number of attempts to factor a Hessian, each with a larger multiple of I added."""
LEAP = 30.0
"""The largest change of a logit in one step, in nats, far from the minimum."""
SHORTEST = 1e-10
UPHILL = 1e-9
"""The largest increase of F, relative to :math:`1 + |F|`, that counts as rounding."""


class State(NamedTuple):
    """The state: W (K, d), the leader; total (1,), the loss so far.

    L (Kd, Kd) is the Cholesky factor of the Hessian at an earlier leader. It is reused until a Newton step is more than
    a tenth of the step before. `factored` (1,) counts factorisations, and `unsolved` (1,) counts leaders that Newton's
    method did not reach. g, `trial` (Kd,), z and s (K,) are work arrays.
    """

    W: NDArray[np.float64]
    total: NDArray[np.float64]
    L: NDArray[np.float64]
    factored: NDArray[np.int64]
    unsolved: NDArray[np.int64]
    g: NDArray[np.float64]
    trial: NDArray[np.float64]
    z: NDArray[np.float64]
    s: NDArray[np.float64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        return {"factored": COUNT, "unsolved": COUNT}


@njit
def logits(W, x, z):
    """Write W x into z (K,)."""
    for k in range(z.shape[0]):
        z[k] = dot(W[k], x)


@njit(arrays="new")
def loss_of(z, s, k):
    r"""Return :math:`-\ln \mathrm{softmax}(z)_k` from z and :math:`s = \mathrm{softmax}(z)`."""
    top = z.max()
    total = 0.0
    for j in range(z.shape[0]):
        total += math.exp(z[j] - top)
    return math.log(total) - (z[k] - top)


@njit(arrays="new")
def objective(state, X, C, lam):
    r"""Return :math:`F(W)`, the sum of losses plus :math:`\lambda \|W\|_F^2`, and write its gradient into g.

    The losses are those at X (m, d) with counts C (m, K).
    """
    W, g, z, s = state.W, state.g, state.z, state.s
    K, d = W.shape
    value = 0.0
    for k in range(K):
        for j in range(d):
            value += lam * W[k, j] * W[k, j]
            g[k * d + j] = 2.0 * lam * W[k, j]
    for i in range(X.shape[0]):
        logits(W, X[i], z)
        softmax_into(z, s)
        n = 0.0
        for k in range(K):
            n += C[i, k]
            if C[i, k] > 0.0:
                value += C[i, k] * loss_of(z, s, k)
        for k in range(K):
            r = n * s[k] - C[i, k]
            for j in range(d):
                g[k * d + j] += r * X[i, j]
    return value


@njit
def factor_hessian(state, X, C, lam):
    r"""Write the Cholesky factor of F's Hessian at W into `state.L`.

    The Hessian is :math:`\sum_i n_i S_i \otimes x_i x_i' + 2 \lambda I`. If rounding makes it indefinite, a multiple of
    I is added, which shortens Newton steps: 1e-15 times the trace, then 100 times as much in each further attempt.
    """
    n, added = state.g.shape[0], 0.0
    for _ in range(RIDGES):
        write_hessian(state, X, C, 2.0 * lam + added)
        trace = 0.0
        for a in range(n):
            trace += state.L[a, a]
        cholesky(state.L, n)
        state.factored[0] += 1
        if has_factor(state.L):
            return
        added = max(100.0 * added, 1e-15 * trace)


@njit
def has_factor(L):
    """Return whether all pivots of the factor are positive."""
    good = True
    for a in range(L.shape[0]):
        good &= 0.0 < L[a, a] < math.inf
    return good


@njit
def write_hessian(state, X, C, ridge):
    r"""Write the lower half of :math:`\sum_i n_i S_i \otimes x_i x_i' + \text{ridge}\, I` into `state.L`."""
    W, L, z, s = state.W, state.L, state.z, state.s
    K, d = W.shape
    for a in range(K * d):
        for b in range(a + 1):
            L[a, b] = ridge if a == b else 0.0
    for i in range(X.shape[0]):
        logits(W, X[i], z)
        softmax_into(z, s)
        n = C[i].sum()
        for k in range(K):
            for l in range(k + 1):
                weight = n * s[k] * ((1.0 if k == l else 0.0) - s[l])
                for j in range(d):
                    f = weight * X[i, j]
                    for h in range(j + 1 if k == l else d):
                        L[k * d + j, l * d + h] += f * X[i, h]


@njit
def largest(v):
    r"""Return :math:`\max_i |v_i|`."""
    top = 0.0
    for i in range(v.shape[0]):
        top = max(top, abs(v[i]))
    return top


@njit
def farthest(step, X, d):
    """Return the largest change of a logit of X (m, d) along `step` (Kd,)."""
    top = 0.0
    for k in range(0, step.shape[0], d):
        for i in range(X.shape[0]):
            top = max(top, abs(dot(step[k : k + d], X[i])))
    return top


@njit
def damped_step(state, X, C, lam, value):
    """Take a damped Newton step with the gradient in `state.g`; return F and the largest entry of the full step."""
    W, step = state.W, state.trial
    K, d = W.shape
    slope = 0.0
    overwrite(step, state.g)
    forward(state.L, K * d, step)
    for i in range(K * d):
        slope += step[i] * step[i]  # g'H^{-1} g, from L^{-1} g
    backward(state.L, K * d, step)  # step = H^{-1} g
    size, length = largest(step), 1.0
    if slope > 1.0:  # far from the minimum, where losses are almost linear, Newton steps may be arbitrarily long
        reach = farthest(step, X, d)
        length = LEAP / reach if reach > LEAP else 1.0
    for i in range(K * d):
        W[i // d, i % d] -= length * step[i]
    now = objective(state, X, C, lam)
    # Halve a until F(W - a step) <= F(W) - (a/4) g'H^{-1} g (Armijo's rule). Near the minimum, rounding errors exceed
    # the decrease of F, but a full Newton step is safe. A small slope is no proof that the minimum is near, because the
    # Hessian may be almost singular, so a step must not increase F.
    tiny = not slope > 1e-10 * (1.0 + abs(value))
    while (
        not now <= value - 0.25 * length * slope
        and not (tiny and now <= value + UPHILL * (1.0 + abs(value)))
        and length > SHORTEST
    ):
        for i in range(K * d):
            W[i // d, i % d] += 0.5 * length * step[i]
        length *= 0.5
        now = objective(state, X, C, lam)
    if not now <= value + UPHILL * (1.0 + abs(value)):  # no decrease is possible with this factor
        for i in range(K * d):
            W[i // d, i % d] += length * step[i]
        now = objective(state, X, C, lam)
    return now, size


@njit(arrays="new")
def lead(state, X, C, lam):
    """Move W to the minimiser of F by damped Newton steps; recompute the factor if steps do not shrink by a factor of ten."""
    goal = TOLERANCE * (1.0 + largest(state.W.reshape(state.g.shape[0])))
    value = objective(state, X, C, lam)
    last = math.inf
    for _ in range(STEPS):
        value, size = damped_step(state, X, C, lam, value)
        if size <= goal:
            return
        if size > 0.1 * last:
            factor_hessian(state, X, C, lam)
            last = math.inf
        else:
            last = size
    state.unsolved[0] += 1


@njit(arrays="new")
def learn(state, X, C, row, y, lam):
    """Add the loss at X[row] with label y, whose count is already in C, and find the next leader."""
    logits(state.W, X[row], state.z)
    state.total[0] += loss_of(state.z, state.s, y)
    lead(state, X, C, lam)


class FTRL(Forecaster):
    r"""Follow the regularised leader: in every round minimise the sum of past losses plus :math:`\lambda \|W\|_F^2`.

    Problem: full-information multiclass prediction, logistic loss, adversarial stream.

    Update rule: :math:`W_t = \arg\min \sum_{s<t}\, \mathrm{loss}(W x_s, y_s) + \lambda \|W\|_F^2`. Newton's
    method starts at the previous leader and stops when a step is at most 1e-11, relative to :math:`1 + \max |W|`. It
    uses the last Cholesky factor as long as steps shrink by a factor of ten. (The binary form with
    :math:`\lambda \|\theta\|^2`, :math:`\theta = W_0 - W_1`, corresponds to :math:`2 \lambda` here, because the
    minimiser has :math:`W_0 = -W_1 = \theta / 2`.)

    Guarantee: the regret is at most :math:`\lambda K B^2 + R^2 T/(2 \lambda)`, which is :math:`B R \sqrt{2 K T}` at
    :math:`\lambda = (R/B) \sqrt{T/(2K)}` ("theory"). With :math:`F_t` the objective after t rounds, the running
    certificate is :math:`\lambda K B^2 + \sum_t [F_t(W_t) - \min F_t]`, and the sum is the loss so far minus
    :math:`\min F_T`. FTRL is a proper learner: on the data of Hazan, Koren and Levy its regret is polynomial in T for
    every :math:`\lambda`.

    Cost: :math:`O(m K d)` for each of 2 to 4 steps per round, with m the number of distinct contexts so far, and
    :math:`O(K^2 d^2)` to solve for the step. A new factor costs :math:`O(m K^2 d^2 + K^3 d^3)`; factorisations become
    rarer over time. Memory: :math:`m (K + d) + K^2 d^2` numbers; repeated contexts only increase counts.

    Parameters
    ----------
    norm_bound
        B, the largest row norm of the comparators in the bound and the certificate; the leader is not constrained.
    regularization
        :math:`\lambda`; "theory" is :math:`(R/B) \sqrt{T/(2K)}`, which needs the horizon.

    Raises
    ------
    UsageError
        A setting is outside its range.
    HorizonRequiredError
        `regularization = "theory"`, and the horizon is unknown.

    References
    ----------
    S. Shalev-Shwartz. Online learning and online convex optimization. 2012.
    E. Hazan, T. Koren, K. Levy. Logistic regression: tight bounds for stochastic and online optimization. COLT 2014.
    """

    id = "ftrl"
    group = "baseline"
    summary = "the exact L2-regularised leader in every round: proper, one counter per distinct context"
    reference = "Shalev-Shwartz 2012, Section 2.3; the baseline of Jézéquel, Gaillard and Rudi, COLT 2020"
    state_order = (2, 2)
    bound_unit = "nats"
    bound_adversary = "adaptive"
    excluded_checks = {"bounded_memory": "the leader depends on all distinct contexts so far"}

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        regularization: float | Literal["theory"] = 1.0,
    ) -> None:
        super().__init__(problem, rng)
        K, d = problem.n_classes, problem.n_features
        self.norm_bound = positive("norm_bound", norm_bound)
        words = {}
        if regularization == "theory":
            T = problem.known_horizon("regularization = 'theory'", "give regularization as a number")
            words["theory"] = ftrl_regularization(T, K, self.norm_bound, problem.radius)
        self.regularization = resolve("regularization", regularization, words)
        self._past = Distinct(d, K)
        n = K * d
        L = np.eye(n) / math.sqrt(2.0 * self.regularization)  # as `cholesky` returns it, with inverted diagonal entries
        scratch = (np.zeros(n), np.zeros(n), np.zeros(K), np.zeros(K))
        counts = (np.zeros(1, np.int64), np.zeros(1, np.int64))
        self.state = State(np.zeros((K, d)), np.zeros(1), L, *counts, *scratch)

    def predict(self, context: Floats) -> Floats:
        """Return the leader's logits (K,) for `context` (d,)."""
        z = np.empty(self.problem.n_classes)
        logits(self.state.W, as_context(context, self.problem), z)
        return z

    def update(self, context: Floats, label: int) -> None:
        """Update with the class `label` of `context` (d,)."""
        y = as_class("the label", label, self.problem.n_classes)
        row = self._past.count(as_context(context, self.problem), y)
        learn(self.state, self._past.X, self._past.C, row, y, self.regularization)

    def _forecast_block(self, X: Floats, y: NDArray[np.int64], Z: Floats) -> None:
        for x, label, z in zip(X, y, Z, strict=True):
            logits(self.state.W, x, z)
            self.update(x, int(label))

    def get_state(self) -> dict[str, Any]:
        """Return the state, including the distinct contexts and their counts."""
        return {"rng": self.rng, "state": self.state, "past": self._past.arrays()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state that `get_state` of a player with the same settings returned."""
        super().set_state({name: state[name] for name in ("rng", "state")})
        self._past = Distinct(self.problem.n_features, self.problem.n_classes)
        self._past.restore(state["past"])

    def bound(self, rounds: float) -> float:
        """Return the regret bound after `rounds` rounds, in nats."""
        problem = self.problem
        return ftrl_bound(rounds, problem.n_classes, self.norm_bound, problem.radius, self.regularization)

    def certificate(self) -> float:
        r"""Return :math:`\lambda K B^2` plus the loss so far minus a lower bound on :math:`\min F_T`.

        It is a bound on the regret so far against models with rows of norm at most B. :math:`F_T` is
        :math:`2 \lambda`-strongly convex and positive, hence
        :math:`\min F_T \ge \max(0, F_T(W) - \|\nabla F_T(W)\|^2 / (4 \lambda))` for any W. A bound on the rounding
        error of :math:`F_T(W)` is also subtracted. The certificate is NaN if the loss so far is NaN.
        """
        state, lam = self.state, self.regularization
        value = objective(state, self._past.X, self._past.C, lam)
        X, counts = self._past.X, self._past.C.sum(axis=1)
        lengths, terms = np.abs(X).sum(axis=1), EPSILON * (len(X) + len(state.g))
        wrong = (
            terms * counts * (1.0 + (np.abs(X) @ np.abs(state.W).T).max(axis=1, initial=0.0))
        )  # for each context's loss
        slope = math.sqrt(float(state.g @ state.g)) + float(wrong @ lengths)
        least = value * (1.0 - terms) - float(wrong.sum()) - slope**2 / (4.0 * lam)
        suffered = float(state.total[0])
        price = lam * self.problem.n_classes * self.norm_bound**2
        return price + suffered - (max(0.0, least) if math.isfinite(least) else 0.0)

    def diagnostics(self) -> dict[str, Any]:
        """Return the number of leaders that 200 Newton steps did not reach."""
        return {"unsolved_leaders": int(self.state.unsolved[0])}
