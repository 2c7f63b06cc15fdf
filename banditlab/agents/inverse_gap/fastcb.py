"""FastCB with a per-class log-loss oracle (Foster and Krishnamurthy, NeurIPS 2021)."""

from __future__ import annotations

import math

from banditlab.agents.inverse_gap.class_models import sigmoid
from banditlab.agents.inverse_gap.inverse_gap_agent import InverseGapAgent
from banditlab.numerics.argmax import argmax
from banditlab.numerics.jit import njit


@njit
def excess(z_best, z):
    r"""Return :math:`(L - L_{\text{best}}) / L_{\text{best}}` with :math:`L = \mathrm{sigmoid}(-z)`.

    It is computed as :math:`\mathrm{sigmoid}(z)\, \mathrm{expm1}(z_{\text{best}} - z)`, because L and
    :math:`L_{\text{best}}` may both underflow to 0.
    """
    gap = z_best - z
    if z >= 0.0 or gap < 1.0:
        return sigmoid(z) * math.expm1(gap)
    e = math.exp(z)  # the factors above may be 0 and infinite
    return (math.exp(z_best) - e) / (1.0 + e)


@njit
def inverse_gap(z, g, p):
    r"""Write :math:`L_{\text{best}} / (K L_{\text{best}} + g (L_k - L_{\text{best}}))` into p (K,) for all classes but
    the best.

    The best class gets the remaining probability; a class that ties with it gets :math:`1/K`.
    """
    K = p.shape[0]
    best = argmax(z, K)
    rest = 1.0
    for k in range(K):
        if k != best:
            p[k] = 1.0 / (K + g * excess(z[best], z[k]))
            rest -= p[k]
    p[best] = rest


class FastCB(InverseGapAgent):
    r"""Choose actions by inverse-gap weighting of the probabilities of a mistake; update in every round.

    Problem: bandit multiclass. The oracle forecasts :math:`\mathrm{sigmoid}(z_k)`, the probability that k would be
    correct.

    Update rule: :math:`\text{best} = \arg\max_k z_k` and :math:`L_k = \mathrm{sigmoid}(-z_k)`. For
    :math:`k \ne \text{best}`, :math:`p_k = L_{\text{best}} / (K L_{\text{best}} + g_t (L_k - L_{\text{best}}))`, or
    :math:`1/K` if :math:`L_k = L_{\text{best}}`. The best class gets the remaining probability.
    :math:`g_t = \text{sharpness}\, K t^{\text{growth}}`, where :math:`t - 1` is the number of updates so far, so
    no horizon is needed.

    Guarantee: assume that :math:`P(y = k \mid x) = \mathrm{sigmoid}(\theta_k'x)` and :math:`\|\theta_k\| \le B` for all
    k. Let :math:`L^*` be the expected mistakes of the best class, and Reg the sum over the classes of AIOLI's regrets,
    :math:`O(K d B \ln T)`. With a constant :math:`g = \max(\sqrt{K L^* / (3\, \mathrm{Reg})}, 10 K)` the expected
    mistakes are at most :math:`L^* + 40 \sqrt{K L^* \mathrm{Reg}} + 600 K\, \mathrm{Reg}` (constants not checked
    against the paper). Exactly one class is correct, so the assumption needs
    :math:`\sum_k\, \mathrm{sigmoid}(\theta_k'x) = 1`. That is possible for :math:`K = 2` or one-hot contexts; elsewhere
    the models are misspecified and nothing is guaranteed. No theorem covers adversarial labels, w other than 1, or a
    :math:`g_t` that grows with t, which is the default. The theorem's g, which is :math:`10 K` if :math:`L^*` is small,
    was worse than the default on every stream measured. `bound` returns None.
    """

    id = "fastcb"
    summary = "inverse-gap weighting that explores less where mistakes are unlikely; an oracle per class"
    reference = "Foster and Krishnamurthy, NeurIPS 2021, with AIOLI (COLT 2020) as oracle"
    weights_kernel = inverse_gap
