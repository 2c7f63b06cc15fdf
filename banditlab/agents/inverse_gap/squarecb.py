"""SquareCB over a per-class probabilistic oracle (Foster and Rakhlin, ICML 2020)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from banditlab.agents.inverse_gap.class_models import sigmoid
from banditlab.agents.inverse_gap.inverse_gap_agent import InverseGapAgent, with_defaults
from banditlab.numerics.argmax import argmax
from banditlab.numerics.jit import njit


@njit
def inverse_gap(z, g, p):
    r"""Write the distribution of inverse-gap weighting for the logits z (K,) into p (K,).

    A class k other than the best gets
    :math:`p_k = 1 / (K + g (\mathrm{sigmoid}(z_{\text{best}}) - \mathrm{sigmoid}(z_k)))`. The best class gets the
    remaining probability.
    """
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
    r"""Choose actions by inverse-gap weighting of the probabilities of being right; update in every round.

    Problem: bandit multiclass. The oracle forecasts :math:`\mathrm{sigmoid}(z_k)`, the probability that k would be
    correct.

    Update rule: :math:`\text{best} = \arg\max_k z_k`. For :math:`k \ne \text{best}`,

    .. math::

        p_k = 1 / (K + g_t (\mathrm{sigmoid}(z_{\text{best}}) - \mathrm{sigmoid}(z_k))).

    The best class gets the remaining probability. :math:`g_t = \text{sharpness}\, K t^{\text{growth}}`, where
    :math:`t - 1` is the number of updates so far, so no horizon is needed.

    Guarantee: assume that :math:`P(y = k \mid x) = \mathrm{sigmoid}(\theta_k'x)` and :math:`\|\theta_k\| \le B` for all
    k. Let Reg be the regret of the oracle in squared loss, which is at most its log-loss regret up to a constant
    factor. With :math:`g \sim \sqrt{K T / \mathrm{Reg}}` the expected number of mistakes exceeds that of always
    choosing the most probable class by :math:`O(\sqrt{K T\, \mathrm{Reg}})`. Exactly one class is correct, so the
    assumption needs :math:`\sum_k\, \mathrm{sigmoid}(\theta_k'x) = 1`. That is possible for :math:`K = 2` or one-hot
    contexts. In other cases the models are misspecified and nothing is guaranteed. No theorem covers adversarial labels
    or this anytime :math:`g_t`, whose scale was chosen by measurement. `bound` returns None.
    """

    id = "squarecb"
    summary = "inverse-gap weighting of probabilities; an oracle per class"
    reference = "Foster and Rakhlin, ICML 2020, with AIOLI (COLT 2020) as oracle"
    weights_kernel = inverse_gap
    if not TYPE_CHECKING:  # mypy treats a class whose constructor is assigned as Any
        __init__ = with_defaults(InverseGapAgent.__init__, sharpness=200.0)
