"""Learning with expert advice (Jung, Goetz and Tewari, NIPS 2017, Algorithm 3): a weak learner from a pool of hypotheses."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError
from banditlab.validation import at_least

Floats = NDArray[np.float64]


class ExpertAdvice:
    r"""Follow expert i with probability proportional to :math:`\exp(-\eta C_i)`, where :math:`C_i` is its cost so far.

    Problem (Algorithm 3): N experts each predict a class. After the label y is observed, an expert that predicted l has
    the cost :math:`w_t C_t(y, l)` in [0, 1], with the booster's weight :math:`w_t` and cost matrix :math:`C_t`.

    Guarantee (`banditlab.bounds` "expert_advice"): with probability :math:`1 - \delta`, the cost after T rounds exceeds
    that of the best expert by at most :math:`\sqrt{T \ln(N)/2} + \sqrt{T \ln(1/\delta)/2}`. If an expert has the edge
    :math:`2 \gamma`, this is a weak learner of edge :math:`\gamma` (Theorem 8, "link_excess").

    Parameters
    ----------
    rounds
        T, which determines :math:`\eta = \sqrt{8 (\ln N)/T}`; at least 1.
    n_experts
        N, at least 1.

    Raises
    ------
    UsageError
        A setting is below 1, or costs are not (N,), finite and at least 0.

    References
    ----------
    Y. H. Jung, J. Goetz, A. Tewari. Online multiclass boosting. NIPS 2017, Appendix A.
    N. Cesa-Bianchi, G. Lugosi. Prediction, learning, and games. 2006, Section 4.2.
    """

    def __init__(self, rounds: int, n_experts: int) -> None:
        self.costs = np.zeros(at_least("n_experts", n_experts, 1))
        self.rate = math.sqrt(8.0 * math.log(n_experts) / at_least("rounds", rounds, 1))

    def weights(self) -> Floats:
        """Return the probabilities (N,) with which the experts are followed in this round."""
        v = np.exp(-self.rate * (self.costs - self.costs.min()))
        return v / v.sum()

    def update(self, costs: Floats) -> None:
        """Add the round's weighted costs (N,) of the experts' predictions; the guarantee needs them in [0, 1]."""
        costs = np.asarray(costs, dtype=np.float64)
        if costs.shape != self.costs.shape or not ((costs >= 0.0) & (costs < np.inf)).all():
            raise UsageError(f"costs must be of shape {self.costs.shape}, finite and at least 0, got {costs}")
        self.costs += costs
