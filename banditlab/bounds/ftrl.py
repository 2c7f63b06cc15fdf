"""Follow the regularised leader (FTRL) with l2 regularisation."""

from __future__ import annotations

import math

from banditlab.bounds._theorem import theorem, within


@theorem(
    source="Shalev-Shwartz, Online Learning and Online Convex Optimization, Lemma 2.3; exact minimisers",
    unit="nats",
    assumes=r"$\|W_k\| \le B$ for the comparator only, $\|x\| \le R$",
    adversary="adaptive: Lemma 2.3, which holds for every sequence of convex losses; no forecast is random",
)
def ftrl(rounds: float, n_classes: int, norm_bound: float, radius: float, regularization: float) -> float:
    r"""Return the regret bound of FTRL with exact minimisers: :math:`\lambda K B^2 + R^2 T / (2 \lambda)`.

    The argument: with :math:`F_t` the objective after t rounds, the regret is at most
    :math:`\lambda \|W\|^2 + \sum_t [F_t(W_t) - \min F_t]`. :math:`F_t` is :math:`2 \lambda`-strongly convex, and its
    gradient at :math:`W_t` is the gradient of round t, whose squared norm is at most :math:`2 R^2`.
    """
    return regularization * n_classes * norm_bound**2 + radius**2 * rounds / (2.0 * regularization)


@within()
def ftrl_regularization(rounds: float, n_classes: int, norm_bound: float, radius: float) -> float:
    r"""Return :math:`\lambda = (R / B) \sqrt{T / (2 K)}`, at which the bound is :math:`B R \sqrt{2 K T}`."""
    return radius / norm_bound * math.sqrt(rounds / (2.0 * n_classes))
