"""AdaBoost.OLM (Jung, Goetz and Tewari, NIPS 2017)."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.boosting._compiled import Loops, change_costs, loops
from banditlab.boosting._experts import ExpertBooster
from banditlab.boosting._losses import CODES, EXPONENTIAL, LOGISTIC, SQUARE_HINGE, cost_matrix, gradient
from banditlab.boosting._weak import Floats
from banditlab.bounds.boosting import olm_best_expert, olm_square_hinge_best_expert
from banditlab.kernels import inline, njit
from banditlab.problem import Problem
from banditlab.validation import one_of

DERIVATIVES = ("exact", "printed", "coded")
EXACT, PRINTED, CODED = range(3)


@njit
def step_kernel(loss, alpha, i, l, S, C):  # type: ignore[no-untyped-def]
    """Write s^{i+1} = s^i + alpha_i e_l into S[i] and the costs at it into C."""
    for k in range(S.shape[1]):
        S[i, k] = S[i - 1, k] if i > 0 else 0.0
    S[i, l] += alpha[i]
    cost_matrix(loss, S[i], C)


@njit
def derivative(loss, how, s, step, l, y, g):  # type: ignore[no-untyped-def]
    """Return f'(alpha) of f(alpha) = L^y(s^{i-1} + alpha e_l), s = s^{i-1} + step e_l being the votes at alpha = step."""
    if how == EXACT or l != y:  # (10), (38), (41): the gradient's entry l, at the votes after the step
        gradient(loss, s, y, g)
        return g[l]
    total = 0.0
    for j in range(s.shape[0]):
        if j != y:  # s^{i-1}(y) = s(y) - step
            lead = s[j] - (s[y] - step)
            total += 1.0 / (1.0 + math.exp(lead + step if how == PRINTED else lead - step))
    return -total


@njit
def descend(loss, how, rate, decay, limit, alpha, S, votes, y, g):  # type: ignore[no-untyped-def]
    """Line 13: alpha_i becomes its projection after a gradient step; the rate is `rate` e^(-decay i), i from 1."""
    for i in range(alpha.shape[0]):
        l = int(votes[i])
        step = S[i, l] - (S[i - 1, l] if i > 0 else 0.0)
        slope = derivative(loss, how, S[i], step, l, y, g)
        moved = alpha[i] - rate * math.exp(-decay * (i + 1)) * slope
        alpha[i] = max(-limit, min(limit, moved))


class Rule(NamedTuple):
    """codes (2,) = loss, derivative; alpha (N,); falls (N,), how steps decrease with i; limits (2,) = rate, largest alpha."""

    codes: NDArray[np.int64]
    alpha: Floats
    falls: Floats
    limits: Floats


@inline
def hand_kernel(costs, room):  # type: ignore[no-untyped-def]
    return costs


@inline
def vote_kernel(rule, i, l, S, costs):  # type: ignore[no-untyped-def]
    for k in range(S.shape[1]):
        S[i, k] = S[i - 1, k] if i > 0 else 0.0
    S[i, l] += rule.alpha[i]
    change_costs(rule.codes[0], S[i], l, costs[i], costs[i + 1])


@inline
def descend_kernel(rule, i, l, y, root, S, costs):  # type: ignore[no-untyped-def]
    """Line 13 for learner i, as `descend` does; the exact derivative is an entry of the next learner's costs."""
    slope, how, (rate, limit) = costs[i + 1, y, l], rule.codes[1], rule.limits
    if how != EXACT and l == y:
        step = S[i, l] - (S[i - 1, l] if i > 0 else 0.0)
        slope = derivative(rule.codes[0], how, S[i], step, l, y, S[i])
    moved = rule.alpha[i] - rate / root * rule.falls[i] * slope
    rule.alpha[i] = max(-limit, min(limit, moved))


@njit
def recall_kernel(rule, i, l, s):  # type: ignore[no-untyped-def]
    pass


class AdaBoostOLM(ExpertBooster):
    """Adaptive online multiclass boosting: votes weighted by gradient descent, an expert for each number of learners.

    Problem: online multiclass classification with weak learners, adversarial stream, the label is revealed.

    Update rule (Algorithm 2): learner i is asked at the costs C^i, whose row r is the gradient of a surrogate L^r at the
    votes s^{i-1} of those before it (9), and answers l; s^i = s^{i-1} + alpha^i e_l; expert i predicts argmax s^i.
    Expert i is followed with probability proportional to exp(-M_i), M_i its mistakes. Then alpha^i takes a projected
    gradient step on L^y(s^{i-1} + alpha e_l) (10), and (x, y) goes to learner i with the weight -C^i(y, y)/(k-1).

    Errata. Line 14 prints the weight with C^i(y, l), which is negative where l != y. The second case of (10) prints
    exp(s(j) + alpha - s(y)) where the derivative has exp(s(y) + alpha - s(j)); the authors' code has
    exp(s(j) - alpha - s(y)). All three are available (`derivative`); only the exact one is a gradient step. Appendix D.2
    bounds |f'| by (k-1) + c N, but it reaches (k-1)(1 + c N): the step here is made for that (the same at k = 2).

    Guarantee (Theorem 5, proof with its constants, logistic loss, exact derivative), gamma_i the empirical edges:
    min_i M_i <= [4 (k-1) ln 2 T + 16 sqrt(2) (k-1) N sqrt(T)] / sum_i gamma_i^2, and the expected mistakes of the
    booster are at most e/(e-1) (min_i M_i + ln N), for the draws of the expert. `diagnostics` has both sides of the first;
    there is no comparator, so `bound` answers None. Square hinge: Theorem 13, corrected as above. Exponential: Theorem
    12's remainder rests on |f'| <= (k-1) e^i, which alpha = -2 breaks, so no bound is given.

    With k = 2 it is AdaBoost.OL (Beygelzimer, Kale and Luo, ICML 2015) with its votes halved and another step.

    Cost: the weak learners', and O(N K^2), over compiled trees 2 N (K - 1) logistic functions; 4 N numbers beside the learners.

    Parameters
    ----------
    n_learners
        N, the number of weak learners.
    weak_learner
        Id of the weak learners.
    loss
        The surrogate L: "logistic" (8), "exponential" (36) or "square-hinge" (39).
    derivative
        f' at right predictions under the logistic loss: "exact", "printed" as (10), or "coded" as the authors' code.
    weight_scale
        Factor of the weights, which are in [0, 1] (those of the exponential loss cut at 1, the square hinge's divided by
        what they can reach); "random" as in the paper's experiments: a factor in [5, 200] of its own for each learner.
    weak_settings
        Settings of the weak learners, by name.

    Raises
    ------
    UsageError
        A setting out of its range, a weak learner or a setting of it that does not exist.

    References
    ----------
    Y. H. Jung, J. Goetz, A. Tewari. Online multiclass boosting. NIPS 2017.
    """

    id = "adaboost-olm"
    summary = "adaptive boosting: votes by gradient descent on the logistic loss, hedge over the numbers of learners"
    reference = "Jung, Goetz and Tewari, NIPS 2017, Algorithm 2 (corrected)"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        n_learners: int = 100,
        weak_learner: str = "hoeffding-tree",
        loss: Literal["logistic", "exponential", "square-hinge"] = "logistic",
        derivative: Literal["exact", "printed", "coded"] = "exact",
        weight_scale: float | Literal["random"] = 1.0,
        **weak_settings: Any,
    ) -> None:
        super().__init__(problem, rng, n_learners, weak_learner, weak_settings, weight_scale)
        N, K = self.n_learners, problem.n_classes
        self.loss = one_of("loss", loss, tuple(CODES))
        self.derivative = one_of("derivative", derivative, DERIVATIVES)
        self.loss_code = CODES[loss]
        self.alpha = np.zeros(N)
        # F = [-limit, limit] and the step's factor of 1/sqrt(t): the diameter over sqrt(2) times the largest derivative
        self._limit, self._rate, self._decay = 2.0, 2.0 * math.sqrt(2.0) / (K - 1), 0.0
        if self.loss_code == EXPONENTIAL:
            self._decay = 1.0
        if self.loss_code == SQUARE_HINGE:
            self._limit = c = 1.0 / math.sqrt(N)
            self._rate = math.sqrt(2.0) * c / ((K - 1) * (1.0 + c * N))
            self._tops = (K - 1) * (1.0 + c * np.arange(N))

    def _start(self, C: Floats) -> None:
        cost_matrix(self.loss_code, self._zero, C)

    def _step(self, i: int, l: int, S: Floats, C: Floats) -> None:
        step_kernel(self.loss_code, self.alpha, i, l, S, C)

    def _adapt(self, S: Floats, votes: Floats, y: int) -> None:
        how, rate = self._derivative_code(), self._rate / math.sqrt(self.rounds)
        descend(self.loss_code, how, rate, self._decay, self._limit, self.alpha, S, votes, y, self._g)

    def _rule(self) -> tuple[Loops, Rule]:
        codes = [self.loss_code, self._derivative_code()]
        falls = [math.exp(-self._decay * (i + 1)) for i in range(self.n_learners)]
        rule = Rule(np.array(codes), self.alpha, np.array(falls), np.array([self._rate, self._limit]))
        return loops(__name__, hand_kernel, vote_kernel, descend_kernel, recall_kernel), rule

    def _derivative_code(self) -> int:
        return DERIVATIVES.index(self.derivative) if self.loss_code == LOGISTIC else EXACT

    def diagnostics(self) -> dict[str, Any]:
        """Return edges, experts' weights and the best expert beside its bound, and the learners' votes alpha."""
        return super().diagnostics() | {f"alpha.{i}": a for i, a in enumerate(self.alpha.tolist(), 1)}

    def _best_expert_bound(self) -> float:
        if self.loss_code == EXPONENTIAL or self.derivative != "exact":
            return math.nan
        edges, K, N = self.edges.measured(), self.problem.n_classes, self.n_learners
        if self.loss_code == SQUARE_HINGE:
            return olm_square_hinge_best_expert(self.rounds, K, N, float(np.abs(edges).sum()))
        return olm_best_expert(self.rounds, K, N, float((edges**2).sum()))
