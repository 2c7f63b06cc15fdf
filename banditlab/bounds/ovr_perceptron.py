"""Mistake bound of K binary perceptrons with one bit of feedback (Beygelzimer et al., ICML 2019)."""

from __future__ import annotations

import math

from banditlab.bounds._theorem import theorem


@theorem(
    source="Beygelzimer, Pal, Szorenyi, Thiruvenkatachari, Wei, Zhang, Bandit multiclass linear classification: "
    "efficient algorithms for the separable case, ICML 2019, strongly separable case; the term in L is derived here",
    unit="mistakes",
    assumes=r"$\|x_t\| \le R$; any U of Frobenius norm F, L its one-vs-rest hinge loss at margin 1 summed over rounds and "
    r"classes (0 where $\langle U_y, x \rangle \ge 1$ and $\langle U_i, x \rangle \le -1$ for $i \ne y$: strong separability)",
    adversary=r"adaptive: $N \le L + R F \sqrt{N}$ for any sequence; a uniform action is right with "
    "probability $1/K$ given the past",
    printed=r"a rate, $O(K/\gamma^2)$, with $F = 2/\gamma$ and $L = 0$",
)
def ovr_perceptron_mistakes(n_classes: int, radius: float, frobenius_norm: float, hinge_loss: float = 0.0) -> float:
    r"""Return a bound on :math:`\mathbb{E}[M]`:
    :math:`(K-1)\, \mathrm{floor}(L + R^2 F^2/2 + R F \sqrt{L + R^2 F^2/4})`. It is
    :math:`(K-1)\, \mathrm{floor}(R^2 F^2)` at :math:`L = 0`.

    Let :math:`n_i` be the number of corrections of perceptron i and N their sum. A correction occurs only if the sign
    was wrong, so :math:`\|w_i\|^2 \le n_i R^2` and
    :math:`n_i - L_i \le \langle U_i, w_i \rangle \le \|U_i\| R \sqrt{n_i}`. Summing with Cauchy-Schwarz,
    :math:`N \le L + R F \sqrt{N}`, hence N is at most the argument of the floor. A mistake on a class that its
    perceptron accepted leads to a correction. If all perceptrons reject, the action is uniform. Given the past, this
    action is right with probability :math:`1/K`, and then a correction follows. In these rounds the expected number of
    mistakes is therefore :math:`K-1` times that of corrections. With :math:`K \ge 2`,
    :math:`\mathbb{E}[M] \le (K-1) \mathbb{E}[N]`.
    """
    rf = radius * frobenius_norm
    corrections = hinge_loss + rf**2 / 2.0 + rf * math.sqrt(hinge_loss + rf**2 / 4.0)
    return (n_classes - 1) * float(
        math.floor(corrections * (1.0 + 1e-12))
    )  # guards against an integer that rounding makes smaller
