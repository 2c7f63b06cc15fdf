"""SquareCB over a per-class probabilistic oracle (Foster and Rakhlin, ICML 2020)."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from banditlab.agents.inverse_gap.class_models import sigmoid
from banditlab.agents.inverse_gap.inverse_gap_agent import InverseGapAgent
from banditlab.numerics.argmax import argmax
from banditlab.numerics.jit import njit
from banditlab.problem import Problem


@njit
def inverse_gap(z, g, p):
    """Write into p (K,): 1 / (K + g (sigmoid(z_best) - sigmoid(z_k))), the rest on the best."""
    K = p.shape[0]
    best = argmax(z, K)
    top, right = z[best], sigmoid(z[best])
    rest = 1.0
    for k in range(K):
        if k != best:
            # s(a) - s(b) = s(a) s(-b) (1 - e^{b - a}): no cancellation, neither near 0 and 1 nor near a tie
            p[k] = 1.0 / (K - g * right * sigmoid(-z[k]) * math.expm1(z[k] - top))
            rest -= p[k]
    p[best] = rest


class SquareCB(InverseGapAgent):
    """Play by the inverse gap of the probabilities of being right, learning from every round.

    Problem: bandit multiclass. The oracle forecasts sigmoid(z_k), the probability that k would be correct.

    Update rule: best = argmax_k z_k. For k != best p_k = 1 / (K + g_t (sigmoid(z_best) - sigmoid(z_k))); the rest on
    best. g_t = sharpness K t^growth, t - 1 the number of outcomes learnt (anytime: no horizon is needed).
    Update: only the played class learns, y = +1 (right) or -1 (wrong). The oracle sees x with a constant, intercept R,
    behind it. "aioli": z = m - (w/2) q tanh(z/2), m = x'h_i, q = x'P_i x; then A_i += c s(z) s(-z) x x',
    b_i += (c s(z) s(-z) z - g/2) x with g = -y s(-y z), s the logistic function, P_i = A_i^{-1}, h_i = P_i b_i; w weighs
    the two virtual labels and draws untried classes to 1/2, well above the 1/K they deserve: optimism that explores.
    "logistic": w_i -= step g x / sqrt(G_i) entrywise, G_i the sum of (g x)^2 (AdaGrad). "b-grid": grid_size AIOLI per
    class with B_j = norm_bound grid_ratio^(j-1), lambda = 1 / B_j^2, mixed with weights exp(-their log losses).

    "aioli" has two sets of models that duel, the second with challenger times the lambda: both learn, actions are drawn
    from the mean of the two p, and a hit where their best classes differ is a point for the set whose best class it
    was. The first to lead by more than 2.5 sqrt(points + 1) plays on alone, for good. In the second set a hit also
    teaches the j of the largest z_j but the played one y = -1, where q_j <= 1: better between classes that no half-space
    parts, but biased, as j's own hits there go unseen: hence the duel.

    Guarantee: with g ~ sqrt(K T / Reg), Reg the regret of the oracle in squared loss (at most its log-loss regret, up
    to a constant), O(sqrt(K T Reg)) mistakes more than the best class's expected ones, IF labels are drawn given x_t
    and P(y = k | x) = sigmoid(theta_k'x) with ||theta_k|| <= B for ALL k. Exactly one class is correct, so that needs
    sum_k sigmoid(theta_k'x) = 1: possible for K = 2 or one-hot contexts; elsewhere the models are misspecified and
    nothing is guaranteed. No theorem covers adversarial labels or this anytime g_t, whose scale was chosen by
    measurement. `bound` answers None.

    Cost: with "aioli" a round takes K quadratic forms of size d (K d^2 / 2 multiplications, fewer where x has zeros), K
    scalar roots and one rank-one update, twice that while a duel is open (rounds until the first set had won on Digits:
    150; on some sets it stays open), and K d^2 numbers; "b-grid" is grid_size times a single set; "logistic" is O(K d). A set
    of 1.5 MiB or more is read once in 32 or 64 rounds of a block (`numerics.lookahead`): the same play, to rounding.

    Parameters
    ----------
    oracle
        "aioli" (one per class), "logistic" (first-order) or "b-grid" (AIOLI over a grid of norm bounds, mixed).
    sharpness
        g_t / (K t^growth), above 0: larger explores less.
    growth
        The power of t in g_t, 0 or above; 0 keeps g constant.
    intercept
        The constant that the oracle sees behind each context, in units of R; 0 leaves it out.
    norm_bound
        B, with ||theta_k|| <= B for every class: it sets the curvature c. "auto" is 1/R. For "b-grid" the least of the
        grid, "auto" being 4/R. Of "aioli" and "b-grid".
    regularization
        lambda of the models, A_0 = lambda I. "auto" is 0.003 R^2. Of "aioli".
    curvature
        c, how much an outcome adds to A: "simple" is 1 / (2 (1 + B R)), AIOLI's own; "tight" is 1 / (1 + cosh b) with
        b + sinh b = B R; or a number. Of "aioli" and "b-grid".
    virtual_weight
        w; 1 in AIOLI's paper. Of "aioli" and "b-grid".
    challenger
        The second set's lambda in units of the first's; 0 for a single set, no duel. Of "aioli".
    step
        AdaGrad's step in units of weights; "auto" is 1/R. Of "logistic".
    grid_size, grid_ratio
        Number of norm bounds and the ratio of neighbours, above 1. Of "b-grid".

    Raises
    ------
    UsageError
        A setting out of its range, an unknown word, or a setting that the chosen oracle does not read.

    References
    ----------
    D. Foster, A. Rakhlin. Beyond UCB: optimal and efficient contextual bandits with regression oracles. ICML 2020.
    R. Jézéquel, P. Gaillard, A. Rudi. Efficient improper learning for online logistic regression. COLT 2020.
    J. Duchi, E. Hazan, Y. Singer. Adaptive subgradient methods. JMLR 2011.
    """

    id = "squarecb"
    group = "practice"
    summary = "inverse-gap weighting of probabilities; an oracle per class"
    version = 3
    reference = "Foster and Rakhlin, ICML 2020, with AIOLI (COLT 2020) as oracle"
    state_order = (1, 2)
    weights_kernel = inverse_gap

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        oracle: Literal["aioli", "logistic", "b-grid"] = "aioli",
        sharpness: float = 200.0,
        growth: float = 0.5,
        intercept: float = 0.5,
        norm_bound: float | Literal["auto"] = "auto",
        regularization: float | Literal["auto"] = "auto",
        curvature: float | Literal["simple", "tight"] = "simple",
        virtual_weight: float = 2.0,
        challenger: float = 10.0,
        step: float | Literal["auto"] = "auto",
        grid_size: int = 4,
        grid_ratio: float = 4.0,
    ) -> None:
        super().__init__(
            problem,
            rng,
            oracle=oracle,
            sharpness=sharpness,
            growth=growth,
            intercept=intercept,
            norm_bound=norm_bound,
            regularization=regularization,
            curvature=curvature,
            virtual_weight=virtual_weight,
            challenger=challenger,
            step=step,
            grid_size=grid_size,
            grid_ratio=grid_ratio,
        )
