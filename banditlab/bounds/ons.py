"""Online Newton Step on the multiclass logistic loss, and the exp-concavity of that loss."""

from __future__ import annotations

import math

from banditlab.bounds._theorem import theorem, within


@within()
def exp_concavity(n_classes: int, norm_bound: float, radius: float) -> float:
    r"""Return the largest :math:`\alpha` for which the loss is exp-concave on the ball: :math:`e^{-2 B R} / (K - 1)`.

    :math:`\mathrm{diag}(s) - s s' \ge a (s - e_y)(s - e_y)'` holds if and only if
    :math:`a \le s_y / (1 - s_y) = 1 / \sum_{j \ne y} e^{z_j - z_y}`, which is smallest where :math:`z_y = -B R` and the
    other logits are :math:`B R`.
    """
    return math.exp(-2.0 * norm_bound * radius) / (n_classes - 1)


@theorem(
    source="Hazan, Agarwal and Kale, Machine Learning 2007, Theorem 2; Hazan, Introduction to OCO, Theorem 4.5",
    unit="nats",
    assumes=r"$\|W_k\| \le B$, $\|x\| \le R$, $\text{step} \ge 2 e^{2 B R} (K - 1)$, projection in the norm of $A_t$ "
    "every round",
    adversary="adaptive: Theorem 2 of 2007, which holds for every sequence of exp-concave losses; no forecast is random",
    printed=r"2007: $5 (1/\alpha + G D) K d \ln T$ at step $2/\min(1/(4 G D), \alpha)$; 2016: $2 (1/\alpha + G D) K d \ln T$",
)
def ons(
    rounds: float,
    n_features: int,
    n_classes: int,
    norm_bound: float,
    radius: float,
    regularization: float | None = None,
    step: float | None = None,
) -> float:
    r"""Return the regret bound of ONS with step s and :math:`A_0 = \epsilon I`. It is
    :math:`K B^2 \epsilon / (2 s) + (s/2) (K-1) d \ln(1 + 2 R^2 T / ((K-1) d \epsilon))`.

    The default of `step` is :math:`2 / \alpha`, and that of `regularization` is :math:`(s / D)^2` with
    :math:`D = 2 \sqrt{K} B`. The argument: with :math:`\beta = 1/s` at most :math:`\alpha/2`,

    .. math::

        \mathrm{loss}(W_t) - \mathrm{loss}(W) \le \langle g_t, W_t - W \rangle - (\beta/2) \langle g_t, W_t - W
        \rangle^2

    because :math:`2 \beta |\langle g_t, W_t - W \rangle| \le 1`. This follows from :math:`\alpha < 1/(4 B R)` and
    :math:`|\langle g_t, W_t - W \rangle| \le 4 B R`. The sum telescopes to
    :math:`(\epsilon/(2 s)) \|W\|^2 + (s/2) \sum_t g_t'A_t^{-1} g_t`, and the gradients lie in a space of dimension
    :math:`(K-1) d`. The result is NaN for a step below :math:`2 / \alpha`.
    """
    K, d, B, R = n_classes, n_features, norm_bound, radius
    alpha = exp_concavity(K, B, R)
    s = 2.0 / alpha if step is None else step
    if s * alpha < 2.0 * (1.0 - 1e-12):
        return math.nan
    eps = (s / (2.0 * math.sqrt(K) * B)) ** 2 if regularization is None else regularization
    n = (K - 1) * d
    return K * B**2 * eps / (2.0 * s) + 0.5 * s * n * math.log1p(2.0 * R**2 * rounds / (n * eps))
