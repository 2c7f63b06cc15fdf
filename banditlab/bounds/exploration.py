"""The exploration reduction (Agarwal, Kale and Zimmert, ALT 2022, Algorithm 2)."""

from __future__ import annotations

import math

from banditlab.bounds._theorem import LARGEST, theorem

_SOURCE = "Agarwal, Kale and Zimmert, ALT 2022, Theorem 9"


@theorem(
    source=_SOURCE,
    unit="nats",
    assumes="regret(n) bounds the forecaster's regret after n updates in nats and is concave in n",
    printed="2 is missing from 2 sqrt(K T Reg(T)); gamma T + (K/gamma) Reg(T) in the proof, both larger than here",
)
def exploration(rounds: float, n_classes: int, gamma: float, regret: float) -> float:
    """Expected mistakes beyond the comparator's loss: gamma (1 - 1/K) T + (1 - gamma) (K/gamma) Reg.

    `regret` is the forecaster's bound after gamma T / K updates, their expected number. The argument: an explored round
    errs with probability 1 - 1/K; on the others 1 - p_y <= -ln p_y, and the coin and the uniform action are independent
    of the forecast, so the forecaster's expected loss over all rounds is K/gamma times that over its updates, and the
    same holds for the comparator. The number of updates is Binomial(T, gamma/K), so E Reg(N) <= Reg(gamma T / K).
    Infinite at gamma = 0.
    """
    if gamma == 1.0:  # nothing but exploration, whatever the forecaster
        return (1.0 - 1.0 / n_classes) * rounds
    return gamma * (1.0 - 1.0 / n_classes) * rounds + (1.0 - gamma) * n_classes / gamma * regret


@theorem(
    source=_SOURCE,
    unit="nats",
    assumes="gamma = min(1, sqrt(K Reg(T) / T))",
    printed="sqrt(K T Reg(T)), which its own proof does not give",
)
def exploration_theorem_9(rounds: float, n_classes: int, regret: float) -> float:
    """Expected mistakes beyond the comparator's loss at Theorem 9's gamma: 2 sqrt(K T Reg(T)), or T if that is less."""
    return min(rounds, 2.0 * math.sqrt(n_classes * rounds * regret))


@theorem(
    source=_SOURCE + " (rates that decrease: derived here)",
    unit="nats",
    assumes="y_t ~ softmax(U x_t) for a U of the ball, contexts of any kind; gamma_t does not increase; regret concave",
    printed="not there",
)
def exploration_well_specified(n_classes: int, total_gamma: float, last_gamma: float, regret: float) -> float:
    """Expected mistakes beyond U's loss at decreasing rates: (1 - 1/K) sum gamma_t + (1 - gamma_T)(K/gamma_T) Reg.

    `regret` is the forecaster's bound after sum gamma_t / K updates. The argument: delta_t, the expected loss of the
    forecast less U's, is a relative entropy and so never negative; the updates' share of it, sum (gamma_t/K) delta_t,
    is at most Reg, and (1 - gamma_t) delta_t <= (1 - gamma_T)(K/gamma_T) (gamma_t/K) delta_t. At gamma_t =
    min(1, sqrt(K Reg(t)/t)) it is at most 3 sqrt(K T Reg(T)). Infinite at gamma_T = 0.
    """
    explored = (1.0 - 1.0 / n_classes) * total_gamma
    return explored if last_gamma == 1.0 else explored + (1.0 - last_gamma) * n_classes / last_gamma * regret


def theorem_9_gamma(rounds: float, n_classes: int, regret: float) -> float:
    """Return the exploration rate of Theorem 9, min(1, sqrt(K Reg(T) / T)), regret = Reg(T); NaN where there is none."""
    # not `within`, which takes longer than the rest: the anytime rate asks for this every round
    if not (0.0 < rounds <= LARGEST and 2 <= n_classes <= LARGEST and regret >= 0.0):
        return math.nan
    return min(1.0, math.sqrt(n_classes * min(regret, rounds) / rounds))
