"""Apple tasting (only accepted items reveal their label) by inverse gap weighting."""

from __future__ import annotations

from banditlab.bounds._theorem import theorem


@theorem(
    source="Foster and Rakhlin, Beyond UCB, ICML 2020 (inverse gap weighting); for one informative action: derived here",
    unit="mistakes",
    adversary="oblivious: the U from which labels are drawn is fixed in advance; contexts may depend on the past",
    assumes=r"two classes, $y_t \sim \mathrm{softmax}(U x_t)$ for a U of the forecaster's ball, drawn after the action and "
    r"independently of it; the forecaster is updated in accepted rounds only; `regret` bounds its regret after T updates and "
    r"does not decrease",
    printed="not there",
)
def apple_tasting(rounds: float, sharpness: float, regret: float) -> float:
    r"""Return :math:`T/\gamma + \gamma\, \mathrm{Reg}(T)/2`, a bound on the expected mistakes in excess of the best
    action's.

    :math:`\gamma` is the sharpness. Let :math:`f` be the forecast that an item is good, :math:`f^*` the true
    probability, p the probability of accepting and :math:`g = 1 - 2 f`, with :math:`p = 1` for :math:`g \le 0`, else
    :math:`1/(1 + \gamma g)`. Let e be the expected mistakes of a round in excess of :math:`\min(f^*, 1 - f^*)`. Then
    :math:`e \le 1/\gamma + \gamma p (f - f^*)^2`:

    * :math:`g > 0, f^* \le 1/2`:
      :math:`e = p (1 - 2 f^*) \le p (g + 2 |f - f^*|) \le p (g + 1/\gamma) + \gamma p (f - f^*)^2`, and
      :math:`p (g + 1/\gamma) = 1/\gamma`;
    * :math:`g > 0, f^* > 1/2`:
      :math:`e = (1 - p)(2 (f^* - f) - g) \le \gamma p (f - f^*)^2 + (1 - p)^2/(\gamma p) - (1 - p) g`, and the last two
      terms cancel;
    * :math:`g \le 0`: e is 0 or :math:`1 - 2 f^* \le 2 |f - f^*| \le 1/\gamma + \gamma (f - f^*)^2`.

    Accepted rounds reveal the label, so
    :math:`\mathbb{E} \sum_t p_t\, \mathrm{KL}(f^*_t, f_t) \le \mathrm{Reg}(T)`, and
    :math:`2 (f - f^*)^2 \le \mathrm{KL}`. At :math:`\gamma = \sqrt{2 T/\mathrm{Reg}(T)}` the bound is
    :math:`\sqrt{2 T\, \mathrm{Reg}(T)}`.
    """
    return rounds / sharpness + sharpness * regret / 2.0
