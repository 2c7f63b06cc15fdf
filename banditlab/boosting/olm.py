"""AdaBoost.OLM (Jung, Goetz and Tewari, NIPS 2017)."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np

from banditlab.boosting.compiled_rounds import Loops, Steps, loops
from banditlab.boosting.expert_booster import ExpertBooster
from banditlab.boosting.losses import (
    CODES,
    EXPONENTIAL,
    FARTHEST,
    LOGISTIC,
    SQUARE_HINGE,
    gradient,
    odds,
    slope,
)
from banditlab.boosting.weak.weak_learner import Floats
from banditlab.bounds.boosting import olm_best_expert, olm_square_hinge_best_expert
from banditlab.numerics.jit import inline, njit
from banditlab.problem import Problem
from banditlab.validation import one_of

DERIVATIVES = ("exact", "printed", "coded")
EXACT, PRINTED, CODED = range(3)


@njit
def derivative(loss, how, s, step, l, y, g):
    r"""Return :math:`f'(\alpha)` of :math:`f(\alpha) = L^y(s^{i-1} + \alpha e_l)`.

    The votes at :math:`\alpha = \text{step}` are :math:`s = s^{i-1} + \text{step}\, e_l`.
    """
    if how == EXACT or l != y:  # (10), (38), (41): the gradient's entry l, at the votes after the step
        gradient(loss, s, y, g)
        return g[l]
    total = 0.0
    for j in range(s.shape[0]):
        if j != y:  # s^{i-1}(y) = s(y) - step
            lead = s[j] - (s[y] - step)
            total += 1.0 / (1.0 + math.exp(lead + step if how == PRINTED else lead - step))
    return -total


class Rule(NamedTuple):
    r"""The state of AdaBoost.OLM between rounds, :math:`\alpha` (N,), and its constants.

    `falls` (N,) contains the factors by which steps decrease with i. `loss` and `how` are the codes of the surrogate
    and of its derivative. `in_odds` is 1 if costs are stored as odds (see `RuleScratch`). A step is
    :math:`(\text{rate} / \sqrt{\text{rounds}})\, \text{falls}_i`, and :math:`\alpha` lies within
    :math:`\pm \text{limit}`.
    """

    alpha: Floats
    falls: Floats
    loss: int
    how: int
    in_odds: bool
    rate: float
    limit: float


class RuleScratch(NamedTuple):
    """Work arrays for :math:`s^i` in a round: the votes (K,), and their costs in one of two forms.

    The first form is odds (K,), :math:`e^{s_l}`, and pairs (K, K), :math:`1 / (e^{s_r} + e^{s_l})`, or 0 for
    :math:`r = l`. The second form is costs (K, K), including their diagonal.
    """

    votes: Floats
    odds: Floats
    pairs: Floats
    costs: Floats

    @classmethod
    def of(cls, N: int, K: int) -> RuleScratch:
        """Return arrays for N learners and K classes."""
        return cls(votes=np.zeros(K), odds=np.zeros(K), pairs=np.zeros((K, K)), costs=np.zeros((K, K)))


@cache
def falls_of(N: int, decay: float) -> Floats:
    r"""Return :math:`e^{-\text{decay}\, i}` for the learners :math:`i = 1, \dots, N`, as one shared array."""
    return np.array([math.exp(-decay * (i + 1)) for i in range(N)])


# ------------------------------------------------------------ the logistic loss (8), (9): costs as odds and reciprocals


@inline
def begin_with_odds(scratch):
    """Write :math:`s^0 = 0`, the odds :math:`e^0`, and :math:`1/(e^0 + e^0)` for every pair of classes."""
    own = scratch.own
    K = own.odds.shape[0]
    for r in range(K):
        own.votes[r], own.odds[r], scratch.mass[0, r] = 0.0, 1.0, 0.5 * (K - 1)
        for l in range(K):
            own.pairs[r, l] = 0.5 if l != r else 0.0


@inline
def costs_with_odds(scratch, i, C):
    """Write the costs :math:`C^i` (K, K)."""
    K = C.shape[0]
    for r in range(K):
        for l in range(K):
            C[r, l] = scratch.own.odds[l] * scratch.own.pairs[r, l]  # (9): e^{s_l} / (e^{s_r} + e^{s_l})
        C[r, r] = -scratch.mass[i, r]  # a row sums to 0


@inline
def step_with_odds(alpha, scratch, i, l, S):
    r"""Update odds and pairs from :math:`s^i` to :math:`s^i + \alpha e_l` (line 7).

    Only the odds :math:`e^{s_l}` and the pairs :math:`1 / (e^{s_r} + e^{s_l})` that contain l change. The cost
    :math:`C(r, l)` is their product.
    """
    votes, e, pairs, mass = scratch.own.votes, scratch.own.odds, scratch.own.pairs, scratch.mass[i + 1]
    K, old = e.shape[0], e[l]
    votes[l] += alpha
    e[l] = odds(votes[l])
    for r in range(K):
        S[i, r], mass[r] = votes[r], 0.0
        scratch.before[i, r] = pairs[r, l] * old
        pairs[r, l] = pairs[l, r] = 1.0 / (e[r] + e[l]) if r != l else 0.0
        scratch.after[i, r] = pairs[r, l] * e[l]
    for k in range(K):  # -C^{i+1}(r, r) is the sum of a row's costs
        for r in range(K):
            mass[r] += pairs[k, r] * e[k]


# -------------------------------------------- the other losses, and votes too far apart for odds: the costs themselves


@njit
def begin_with_costs(loss, scratch):
    """Write :math:`s^0 = 0` and its costs."""
    K, C = scratch.p.shape[0], scratch.own.costs
    scratch.own.votes[:] = 0.0
    for r in range(K):
        gradient(loss, scratch.own.votes, r, C[r])
        scratch.mass[0, r] = -C[r, r]


@njit
def step_with_costs(loss, alpha, scratch, i, l, S):
    r"""Update the costs from :math:`s^i` to :math:`s^i + \alpha e_l` (line 7): one row, one column, then the
    diagonal.
    """
    K, C, s = scratch.p.shape[0], scratch.own.costs, scratch.own.votes
    for r in range(K):
        scratch.before[i, r] = C[r, l]
    s[l] += alpha
    for k in range(K):
        S[i, k] = s[k]
        if k != l:
            C[l, k], C[k, l] = slope(loss, s[k], s[l]), slope(loss, s[l], s[k])
    for r in range(K):
        scratch.after[i, r] = C[r, l]
        total = 0.0
        for k in range(K):
            if k != r:
                total += C[r, k]
        C[r, r], scratch.mass[i + 1, r] = -total, total


# --------------------------------------------------------------------------------------------------- the rule's kernels


@inline
def begin_kernel(rule, scratch):
    """Write :math:`s^0 = 0` and its costs (line 4)."""
    if rule.in_odds:
        begin_with_odds(scratch)
    else:
        begin_with_costs(rule.loss, scratch)


@inline
def costs_kernel(rule, scratch, i, C):
    """Write :math:`C^i`, the gradients (9) at :math:`s^{i-1}`, into C (K, K) (line 6)."""
    if rule.in_odds:
        costs_with_odds(scratch, i, C)
    else:
        for r in range(C.shape[0]):
            for l in range(C.shape[0]):
                C[r, l] = scratch.own.costs[r, l]


@inline
def vote_kernel(rule, scratch, i, l, S):
    r"""Write :math:`s^i = s^{i-1} + \alpha^i e_l` for the prediction l (line 7)."""
    if rule.in_odds:
        step_with_odds(rule.alpha[i], scratch, i, l, S)
    else:
        step_with_costs(rule.loss, rule.alpha[i], scratch, i, l, S)


@inline
def descend_kernel(rule, scratch, i, l, y, root, S):
    r"""Replace :math:`\alpha_i` by its projection after a gradient step (line 13).

    The exact derivative at :math:`\alpha_i` is an entry of the next learner's costs, :math:`C^{i+1}(y, l)`.
    """
    f = -scratch.mass[i + 1, y] if l == y else scratch.after[i, y]
    if rule.how != EXACT and l == y:
        step = S[i, l] - (S[i - 1, l] if i > 0 else 0.0)
        f = derivative(rule.loss, rule.how, S[i], step, l, y, S[i])
    moved = rule.alpha[i] - rule.rate / root * rule.falls[i] * f
    rule.alpha[i] = max(-rule.limit, min(rule.limit, moved))


@njit
def recall_kernel(rule, scratch, i, l, s):
    """Do nothing, because `descend_kernel` does not read these arrays."""


STEPS = Steps(RuleScratch, begin_kernel, costs_kernel, vote_kernel, descend_kernel, recall_kernel)


class AdaBoostOLM(ExpertBooster):
    r"""Adaptive online multiclass boosting: gradient descent weights the votes, and expert i combines the first i
    learners.

    Problem: online multiclass classification with weak learners, adversarial stream; the label is revealed.

    Update rule (Algorithm 2): learner i receives the costs :math:`C^i` and predicts l. Row r of :math:`C^i` is the
    gradient of the surrogate loss :math:`L^r` for label r at the votes :math:`s^{i-1}` of learners 1 to i - 1 (9). Then
    :math:`s^i = s^{i-1} + \alpha^i e_l`, and expert i predicts :math:`\arg\max s^i`. Expert i is followed with
    probability proportional to :math:`\exp(-M_i)`, where :math:`M_i` is its number of mistakes. Then :math:`\alpha^i`
    takes a projected gradient step on :math:`L^y(s^{i-1} + \alpha e_l)` of (10), and learner i is updated with
    :math:`(x, y)` and the weight :math:`-C^i(y, y)/(k-1)`.

    Errata. Line 14 prints the weight with :math:`C^i(y, l)`, which is negative for :math:`l \ne y`. The second case of
    (10) prints :math:`\exp(s(j) + \alpha - s(y))`, whereas the derivative has :math:`\exp(s(y) + \alpha - s(j))`; the
    authors' code has :math:`\exp(s(j) - \alpha - s(y))`. All three are available (`derivative`); only the exact one is
    a gradient step. Appendix D.2 bounds :math:`|f'|` by :math:`(k-1) + c N`, but :math:`|f'|` can be as large as
    :math:`(k-1)(1 + c N)`. The step is chosen for the second value (both are equal at :math:`k = 2`).

    Guarantee (Theorem 5 with the constants of its proof, for the logistic loss and the exact derivative): with the
    empirical edges :math:`\gamma_i`,

    .. math::

        \min_i M_i \le [4 (k-1) (\ln 2) T + 16 \sqrt{2} (k-1) N \sqrt{T}] / \sum_i \gamma_i^2,

    and the expected mistakes of the booster over the draws of the expert are at most
    :math:`(e/(e-1)) (\min_i M_i + \ln N)`. `diagnostics` returns both sides of the first bound. There is no comparator,
    so `bound` returns None. For the square hinge, Theorem 13 holds with the correction above. For the exponential loss
    there is no bound, because the remainder in Theorem 12 uses :math:`|f'| \le (k-1) e^i`, which is false at
    :math:`\alpha = -2`.

    With :math:`k = 2` the booster is AdaBoost.OL (Beygelzimer, Kale and Luo, ICML 2015) with votes of half the size and
    another step size.

    Cost: that of the weak learners, and :math:`O(N K^2)`. With learners that estimate probabilities, the second part
    takes N exponentials and :math:`N K` divisions. (With more than 300 learners, exponentials of votes may overflow,
    and each pair takes a logistic function instead.) Memory: :math:`4 N` numbers besides the learners.

    Parameters
    ----------
    n_learners
        N, the number of weak learners.
    weak_learner
        Id of the weak learners.
    loss
        The surrogate L: "logistic" (8), "exponential" (36) or "square-hinge" (39).
    derivative
        :math:`f'` at right predictions under the logistic loss: "exact", "printed" as in (10), or "coded" as in the
        authors' code.
    weight_scale
        Factor of the weights, which are in [0, 1] (those of the exponential loss are cut at 1, those of the square
        hinge are divided by their largest value). "random" draws a factor in [5, 200] for each learner, as in the
        paper's experiments.
    tuning_seed
        Seed of the draws of the trees' settings and of "random" weights. The seed 1 gives the values in the code of
        Jung, Goetz and Tewari. Without a seed, every run draws new values.
    weak_settings
        Settings of the weak learners, by name.

    Raises
    ------
    UsageError
        A setting is outside its range, or a weak learner or one of its settings is unknown.

    References
    ----------
    Y. H. Jung, J. Goetz, A. Tewari. Online multiclass boosting. NIPS 2017.
    """

    id = "adaboost-olm"
    summary = "adaptive boosting: votes weighted by gradient descent, Hedge over the numbers of learners"
    reference = "Jung, Goetz and Tewari, NIPS 2017, Algorithm 2 (corrected)"

    state_constants = ("loss_code", "_limit", "_rate", "_decay")

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
        tuning_seed: int | None = None,
        **weak_settings: Any,
    ) -> None:
        super().__init__(problem, rng, n_learners, weak_learner, weak_settings, weight_scale, tuning_seed)
        N, K = self.n_learners, problem.n_classes
        self.loss = one_of("loss", loss, tuple(CODES))
        self.derivative = one_of("derivative", derivative, DERIVATIVES)
        self.loss_code = CODES[loss]
        self.alpha = np.zeros(N)
        # F = [-limit, limit]; the step's factor of 1/sqrt(t) is the diameter / (sqrt(2) * the largest derivative)
        self._limit, self._rate, self._decay = 2.0, 2.0 * math.sqrt(2.0) / (K - 1), 0.0
        if self.loss_code == EXPONENTIAL:
            self._decay = 1.0
        if self.loss_code == SQUARE_HINGE:
            self._limit = c = 1.0 / math.sqrt(N)
            self._rate = math.sqrt(2.0) * c / ((K - 1) * (1.0 + c * N))
            self._tops = (K - 1) * (1.0 + c * np.arange(N))

    def _rule(self) -> tuple[Loops, Rule]:
        near = self.loss_code == LOGISTIC and self.n_learners * self._limit <= FARTHEST
        falls = falls_of(self.n_learners, self._decay)
        rule = Rule(self.alpha, falls, self.loss_code, self._derivative_code(), near, self._rate, self._limit)
        return loops(__name__, STEPS), rule

    def _derivative_code(self) -> int:
        return DERIVATIVES.index(self.derivative) if self.loss_code == LOGISTIC else EXACT

    def diagnostics(self) -> dict[str, Any]:
        r"""Return edges, experts' weights, the best expert with its bound, and the weights :math:`\alpha` of the
        votes."""
        return super().diagnostics() | {f"alpha.{i}": a for i, a in enumerate(self.alpha.tolist(), 1)}

    def _best_expert_bound(self) -> float:
        if self.loss_code == EXPONENTIAL or self.derivative != "exact":
            return math.nan
        edges, K, N = self.edges.measured(), self.problem.n_classes, self.n_learners
        if self.loss_code == SQUARE_HINGE:
            return olm_square_hinge_best_expert(self.rounds, K, N, float(np.abs(edges).sum()))
        return olm_best_expert(self.rounds, K, N, float((edges**2).sum()))
