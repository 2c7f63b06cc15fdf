"""Label-efficient prediction: labels are observed in queried rounds only (Cesa-Bianchi, Lugosi and Stoltz 2005)."""

from __future__ import annotations

import math
from functools import partial

from banditlab.bounds._theorem import theorem

_SOURCE = "Cesa-Bianchi, Lugosi, Stoltz, Minimizing regret with label efficient prediction, IEEE Trans. IT 51(6), 2005"
_ADVERSARY = (
    r"oblivious: $\mathbb{E}[\mathbf{1}(\text{queried})\, \mathrm{loss}_t(U)] = \epsilon\, \mathrm{loss}_t(U)$: "
    "the comparator and the labels are fixed in advance, independently of the coin flips"
)
_theorem = partial(theorem, adversary=_ADVERSARY)


@_theorem(
    source=_SOURCE + " (any forecaster, without weights; derived here)",
    unit="nats",
    assumes=r"each round is queried with probability $\epsilon$, independently; the forecaster is updated in queried rounds "
    r"only; `regret` bounds its regret after $\epsilon T$ updates, and that bound is concave in their number",
    printed=r"for experts: see `label_efficient_experts`",
)
def label_efficient(regret: float, query_rate: float) -> float:
    r"""Return :math:`\mathrm{Reg}(\epsilon T)/\epsilon`, a bound on the expected regret over all T rounds.

    Whether a round is queried is independent of its forecast, so the expected regret over queried rounds is
    :math:`\epsilon` times that over all rounds. The regret over the N queried rounds is at most
    :math:`\mathrm{Reg}(N)`, and :math:`\mathbb{E}\, \mathrm{Reg}(N) \le \mathrm{Reg}(\epsilon T)` by concavity.
    """
    return regret / query_rate


@_theorem(
    source=_SOURCE + ", the expected regret at a mean number of queries",
    unit="cost",
    assumes=r"N experts, costs in [0, 1]; rounds are queried with probability $\epsilon = m/T$; exponential weights over costs "
    r"that are divided by $\epsilon$ in queried rounds and 0 in others, $\eta = \sqrt{2 m \ln N}/T$",
    printed="not compared with the paper, whose text was not available; the constant is that of the argument here",
)
def label_efficient_experts(rounds: float, size: float, queries: float) -> float:
    r"""Return :math:`T \sqrt{2 \ln N/m}`, a bound on the expected cost in excess of the best expert's.

    m is the mean number of queries, at most T.

    The argument: :math:`\sum_t \langle p_t, \tilde{c}_t \rangle - \tilde{c}_{t,i} \le \ln(N)/\eta + (\eta/2) \sum_t
    \sum_j p_{t,j} \tilde{c}_{t,j}^2` for the importance-weighted costs :math:`\tilde{c}`, and the last sum has a mean
    of at most :math:`T/\epsilon`.
    """
    return rounds * math.sqrt(2.0 * math.log(size) / queries) if queries <= rounds else math.nan
