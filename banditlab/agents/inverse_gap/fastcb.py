"""FastCB over a per-class log-loss oracle (Foster and Krishnamurthy, NeurIPS 2021)."""

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
def excess(z_best, z):
    """Return (L - L_best) / L_best = sigmoid(z) expm1(z_best - z), L = sigmoid(-z), where both L may underflow to 0."""
    gap = z_best - z
    if z >= 0.0 or gap < 1.0:
        return sigmoid(z) * math.expm1(gap)
    e = math.exp(z)  # the factors above may be 0 and infinite
    return (math.exp(z_best) - e) / (1.0 + e)


@njit
def inverse_gap(z, g, p):
    """Write into p (K,): L_best / (K L_best + g (L_k - L_best)), the rest on the best; a tie with it gets 1/K."""
    K = p.shape[0]
    best = argmax(z, K)
    rest = 1.0
    for k in range(K):
        if k != best:
            p[k] = 1.0 / (K + g * excess(z[best], z[k]))
            rest -= p[k]
    p[best] = rest


class FastCB(InverseGapAgent):
    """Play by the inverse gap of the odds of being wrong, learning from every round.

    Problem: bandit multiclass. The oracle forecasts sigmoid(z_k), the probability that k would be correct.

    Update rule: best = argmax_k z_k, L_k = sigmoid(-z_k). For k != best
    p_k = L_best / (K L_best + g_t (L_k - L_best)), 1/K where L_k = L_best; the rest on best.
    g_t = sharpness K t^growth, t - 1 the number of outcomes learnt (anytime: no horizon is needed).
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

    Guarantee: with a constant g = max(sqrt(K L* / (3 Reg)), 10 K) at most 40 sqrt(K L* Reg) + 600 K Reg mistakes more
    than the best class's expected ones, L* = theirs, Reg the sum over the classes of AIOLI's regrets, O(K d B ln T),
    IF labels are drawn given x_t and P(y = k | x) = sigmoid(theta_k'x) with ||theta_k|| <= B for ALL k (constants
    quoted from memory of the paper). Exactly one class is correct, so that needs sum_k sigmoid(theta_k'x) = 1:
    possible for K = 2 or one-hot contexts; elsewhere the models are misspecified and nothing is guaranteed. No
    theorem covers adversarial labels, w other than 1, or a g_t that grows with t, the default here; the theorem's own
    g, 10 K wherever the losses are small, was worse on every stream measured. `bound` answers None.

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
    D. Foster, A. Krishnamurthy. Efficient first-order contextual bandits: prediction, allocation, and triangular
    discrimination. NeurIPS 2021.
    R. Jézéquel, P. Gaillard, A. Rudi. Efficient improper learning for online logistic regression. COLT 2020.
    J. Duchi, E. Hazan, Y. Singer. Adaptive subgradient methods. JMLR 2011.
    """

    id = "fastcb"
    group = "practice"
    summary = "inverse-gap weighting that explores less where it is surely right; an oracle per class"
    version = 3
    reference = "Foster and Krishnamurthy, NeurIPS 2021, with AIOLI (COLT 2020) as oracle"
    state_order = (1, 2)
    weights_kernel = inverse_gap

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        oracle: Literal["aioli", "logistic", "b-grid"] = "aioli",
        sharpness: float = 60.0,
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
