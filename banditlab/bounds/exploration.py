"""The exploration reduction (Agarwal, Kale and Zimmert, ALT 2022, Algorithm 2)."""

from __future__ import annotations

import math
from functools import partial

from banditlab.bounds._theorem import LARGEST, theorem

_SOURCE = "Agarwal, Kale and Zimmert, ALT 2022, Theorem 9"
_ADVERSARY = (
    r"oblivious: the last equality of its proof, "
    r"$\mathbb{E}[\mathbf{1}(\text{explored, right})\, \mathrm{loss}_t(W)] = (\gamma/K)\, \mathrm{loss}_t(W)$: W and $y_t$ "
    "are fixed in advance, independently of the coin flips (docs/results/adaptive.md has a stream where they are not)"
)
_theorem = partial(theorem, source=_SOURCE, unit="nats", adversary=_ADVERSARY)


@_theorem(
    assumes="regret(n) bounds the forecaster's regret after n updates in nats and is concave in n",
    printed=r"Theorem 9 omits the factor 2; $\gamma T + (K/\gamma)\, \mathrm{Reg}(T)$ in the proof, "
    r"both terms larger than here",
)
def exploration(rounds: float, n_classes: int, gamma: float, regret: float) -> float:
    r"""Return a bound on the expected mistakes of the reduction minus the comparator's loss. It is
    :math:`\gamma (1 - 1/K) T + (1 - \gamma) (K/\gamma)\, \mathrm{Reg}`.

    `regret` is the forecaster's bound after :math:`\gamma T / K` updates, their expected number. The argument: an
    explored action is wrong with probability :math:`1 - 1/K`; in other rounds the probability of a mistake is
    :math:`1 - p_y \le -\ln p_y`. The coin flip and the uniform action are independent of the forecast. The forecaster's
    expected loss over all rounds is therefore :math:`K/\gamma` times its expected loss over its updates, and the same
    holds for the comparator. The number N of updates is Binomial(T, :math:`\gamma/K`), so
    :math:`E\, \mathrm{Reg}(N) \le \mathrm{Reg}(\gamma T / K)` if Reg is concave.
    """
    if gamma == 1.0:  # uniform exploration only, whatever the forecaster
        return (1.0 - 1.0 / n_classes) * rounds
    return gamma * (1.0 - 1.0 / n_classes) * rounds + (1.0 - gamma) * n_classes / gamma * regret


@_theorem(
    assumes=r"$\gamma = \min(1, \sqrt{K\, \mathrm{Reg}(T)/T})$",
    printed=r"$\sqrt{K T\, \mathrm{Reg}(T)}$, which its proof does not give",
)
def exploration_theorem_9(rounds: float, n_classes: int, regret: float) -> float:
    r"""Return the bound of `exploration` at Theorem 9's :math:`\gamma`. It is :math:`2 \sqrt{K T\, \mathrm{Reg}(T)}`,
    or T if that is less.
    """
    return min(rounds, 2.0 * math.sqrt(n_classes * rounds * regret))


@_theorem(
    source=_SOURCE + " (rates that decrease: derived here)",
    assumes=r"$y_t \sim \mathrm{softmax}(U x_t)$ for a U of the ball, any contexts; $\gamma_t$ does not increase; "
    r"`regret` is concave",
    printed="not there",
)
def exploration_well_specified(n_classes: int, total_gamma: float, last_gamma: float, regret: float) -> float:
    r"""Return a bound on the expected mistakes minus U's loss, for labels drawn from the model U and decreasing rates.
    It is :math:`(1 - 1/K) \sum \gamma_t + (1 - \gamma_T)(K/\gamma_T)\, \mathrm{Reg}`.

    `regret` is the forecaster's bound after :math:`\sum \gamma_t / K` updates. The argument: :math:`\delta_t`, the
    expected loss of the forecast minus U's, is a relative entropy and so never negative. Its expected sum over the
    updates, :math:`\sum (\gamma_t/K) \delta_t`, is at most Reg, and

    .. math::

        (1 - \gamma_t) \delta_t \le (1 - \gamma_T)(K/\gamma_T) (\gamma_t/K) \delta_t.

    At :math:`\gamma_t = \min(1, \sqrt{K\, \mathrm{Reg}(t)/t})` it is at most :math:`3 \sqrt{K T\, \mathrm{Reg}(T)}`.
    """
    explored = (1.0 - 1.0 / n_classes) * total_gamma
    return explored if last_gamma == 1.0 else explored + (1.0 - last_gamma) * n_classes / last_gamma * regret


def theorem_9_gamma(rounds: float, n_classes: int, regret: float) -> float:
    r"""Return the exploration rate of Theorem 9, :math:`\min(1, \sqrt{K\, \mathrm{Reg}(T) / T})`, or NaN if Reg(T) is
    NaN or negative.

    `regret` is :math:`\mathrm{Reg}(T)`.
    """
    # without `within`, which would take longer than the rest; the anytime rate calls this in every round
    if not (0.0 < rounds <= LARGEST and 2 <= n_classes <= LARGEST and regret >= 0.0):
        return math.nan
    return min(1.0, math.sqrt(n_classes * min(regret, rounds) / rounds))
