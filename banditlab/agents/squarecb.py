"""SquareCB with one AIOLI per class as its regression oracle (Foster and Rakhlin, ICML 2020)."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from banditlab.agents._class_models import sigmoid
from banditlab.agents._inverse_gap import InverseGapAgent
from banditlab.agents._scores import argmax
from banditlab.kernels import njit
from banditlab.problem import Problem


@njit
def inverse_gap(z, g, p):  # type: ignore[no-untyped-def]
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

    Problem: bandit multiclass. Class k's model forecasts sigmoid(z_k), the probability that k would be correct.

    Update rule: best = argmax_k z_k. For k != best p_k = 1 / (K + g_t (sigmoid(z_best) - sigmoid(z_k))); the rest on
    best. g_t = sharpness K t^growth, t - 1 the number of outcomes learnt (anytime: no horizon is needed).
    Update: only the played class i learns, y = +1 (right) or -1 (wrong), its model being an AIOLI of its own:
    z = m - (1/2) q tanh(z/2), m = x'h_i, q = x'P_i x; then A_i += c s(z) s(-z) x x', b_i += (c s(z) s(-z) z - g/2) x
    with g = -y s(-y z), s the logistic function, P_i = A_i^{-1}, h_i = P_i b_i.

    Guarantee: with g ~ sqrt(K T / Reg), Reg the regret of the oracle in squared loss (at most its log-loss regret, up
    to a constant), O(sqrt(K T Reg)) mistakes more than the best class's expected ones, IF labels are drawn given x_t
    and P(y = k | x) = sigmoid(theta_k'x) with ||theta_k|| <= B for ALL k. Exactly one class is correct, so that needs
    sum_k sigmoid(theta_k'x) = 1: possible for K = 2 or one-hot contexts; elsewhere the models are misspecified and
    nothing is guaranteed. No theorem covers adversarial labels or this anytime g_t, whose scale was chosen by
    measurement. `bound` answers None.

    Cost: a round K quadratic forms of size d (K d^2 / 2 multiplications), K scalar roots, one rank-one update; K d^2
    numbers.

    Parameters
    ----------
    norm_bound
        B, with ||theta_k|| <= B for every class: it sets the curvature c. "auto" is 1/R.
    regularization
        lambda of the models, A_0 = lambda I. "auto" is 0.003 R^2.
    curvature
        c, how much an outcome adds to A: "simple" is 1 / (2 (1 + B R)), AIOLI's own; "tight" is 1 / (1 + cosh b) with
        b + sinh b = B R; or a number.
    sharpness
        g_t / (K t^growth), above 0: larger explores less.
    growth
        The power of t in g_t, 0 or above; 0 keeps g constant.

    Raises
    ------
    UsageError
        norm_bound, regularization, curvature or sharpness not above 0, growth below 0, an unknown word.

    References
    ----------
    D. Foster, A. Rakhlin. Beyond UCB: optimal and efficient contextual bandits with regression oracles. ICML 2020.
    R. Jézéquel, P. Gaillard, A. Rudi. Efficient improper learning for online logistic regression. COLT 2020.
    """

    id = "squarecb"
    group = "practice"
    summary = "inverse-gap weighting of probabilities; one AIOLI per class"
    reference = "Foster and Rakhlin, ICML 2020, with AIOLI (COLT 2020) as oracle"
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
            step=step,
            grid_size=grid_size,
            grid_ratio=grid_ratio,
        )
