r"""Losses of a prediction z and a target y in [-Y, Y], with the constants of GAF's assumptions (2021, Section 2).

* (A1) :math:`\alpha`: the loss is :math:`\alpha`-mixable for targets in :math:`[-Y, Y]`; `substitute` returns the
  prediction that proves it for Gaussian margins.
* (A2) :math:`\zeta`: the loss at :math:`\theta_1` is at most its tangent at :math:`\theta_2` plus
  :math:`\exp(\zeta \|v\|^2)\, v'H v`, with :math:`v = \theta_1 - \theta_2` and H the Hessian at :math:`\theta_2`.
* (A3) :math:`\beta`: the loss at a comparator, :math:`|z| \le B R`, is at least the tangent at any other point z' plus
  :math:`\beta/2` times the curvature at z' times :math:`(z - z')^2`.
* (A4) :math:`\gamma`: the second derivative in :math:`\theta` is at most :math:`\gamma`. `curvature` is the second
  derivative in z, so :math:`\gamma` is :math:`R^2` times the largest `curvature`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import log_ndtr, logsumexp

from banditlab.errors import UsageError
from banditlab.validation import positive


class Loss(Protocol):
    """The interface of a loss for `GaussianRegression`."""

    @property
    def name(self) -> str:
        """The name in settings."""

    @property
    def target_bound(self) -> float:
        """The bound Y on the absolute value of the targets."""

    @property
    def mixability(self) -> float:
        r"""The constant :math:`\alpha` of (A1)."""

    @property
    def beta(self) -> float:
        r"""The constant :math:`\beta` of (A3)."""

    def value(self, z: float, y: float) -> float:
        """Return the loss."""

    def slope(self, z: float, y: float) -> float:
        """Return the derivative of the loss in z."""

    def curvature(self, z: float, y: float) -> float:
        """Return the second derivative of the loss in z."""

    def implicit(self, m: float, q: float, y: float) -> float:
        r"""Return the z that minimises :math:`(z - m)^2 / q + \mathrm{loss}(z, y)`, for :math:`q > 0`."""

    def substitute(self, m: float, v: float) -> float:
        r"""Return a prediction whose loss is at most
        :math:`-(1/\alpha) \ln \mathbb{E} \exp(-\alpha\, \mathrm{loss}(Z, y))` for every y, where
        :math:`Z \sim N(m, v)`.
        """

    def check(self, norm_bound: float, radius: float) -> None:
        r"""Raise a UsageError if the assumptions do not hold for comparators :math:`|z| \le B R`."""


@dataclass(frozen=True)
class Squared:
    r"""The squared loss :math:`(z - y)^2`, with :math:`\alpha = 1/(2 Y^2)`, :math:`\beta = 1` and any :math:`\zeta`.

    Its second derivative is 2, so surrogates are exact. Y is `target_bound`. For a margin with distribution N(m, v),
    the prediction is :math:`m/(1 + 2 \alpha v)`. With a density proportional to :math:`\exp(-\alpha L)`, where L is the
    regularised sum of past losses, :math:`v = x'A^{-1}x/(2 \alpha)`, and the prediction is that of Vovk (2001) and
    Azoury and Warmuth (2001), in which :math:`\alpha` cancels.
    """

    target_bound: float
    name = "squared"
    beta = 1.0

    def __post_init__(self) -> None:
        positive("target_bound", self.target_bound)

    @property
    def mixability(self) -> float:
        r"""The constant :math:`1/(2 Y^2)`."""
        return 0.5 / self.target_bound**2

    def value(self, z: float, y: float) -> float:
        """Return :math:`(z - y)^2`."""
        return (z - y) ** 2

    def slope(self, z: float, y: float) -> float:
        """Return 2 (z - y)."""
        return 2.0 * (z - y)

    def curvature(self, z: float, y: float) -> float:
        """Return 2."""
        return 2.0

    def implicit(self, m: float, q: float, y: float) -> float:
        """Return :math:`(m + q y)/(1 + q)`."""
        return m + q / (1.0 + q) * (y - m)

    def substitute(self, m: float, v: float) -> float:
        r"""Return :math:`m/(1 + 2 \alpha v)`."""
        return m / (1.0 + 2.0 * self.mixability * v)

    def check(self, norm_bound: float, radius: float) -> None:
        """Do nothing, because the assumptions hold for every B."""


@dataclass(frozen=True)
class Huber:
    r"""The Huber loss: :math:`u^2/2` for :math:`u = z - y` up to a threshold h, :math:`h |u| - h^2/2` beyond it.

    Here :math:`\alpha = 1/Y^2` and :math:`\beta = 1` for :math:`h \ge \max(2 Y, B R + Y)`, and only such thresholds are
    allowed. Below :math:`B R + Y`, (A3) fails for every :math:`\beta > 0`. At an expansion point :math:`u_2` just
    inside the threshold and a :math:`u_1` beyond it, the loss exceeds the tangent by a multiple of :math:`h - u_2`
    only, whereas (A3) requires a multiple of :math:`(u_1 - u_2)^2`. Below :math:`2 Y` the loss is linear on a part of
    :math:`[-Y, Y]`, where it is not mixable. (A2) fails beyond the threshold, where the loss is linear, so the
    theorem's argument does not hold as printed; `gaf_huber` has a correct argument.

    h is `threshold`, and Y is `target_bound`. Beyond :math:`[-Y, Y]` the loss is larger than at the nearest end for
    every y, and within the interval it is quadratic. With
    :math:`g(y) = -(1/\alpha) \ln \mathbb{E} \exp(-\alpha (\mathrm{clip}(Z) - y)^2/2)`, the prediction is
    :math:`(g(-Y) - g(Y))/(2 Y)` (Vovk 2001).
    """

    target_bound: float
    threshold: float
    name = "huber"
    beta = 1.0

    def __post_init__(self) -> None:
        positive("target_bound", self.target_bound)
        positive("threshold", self.threshold)

    @property
    def mixability(self) -> float:
        r"""The constant :math:`1/Y^2`."""
        return 1.0 / self.target_bound**2

    def value(self, z: float, y: float) -> float:
        """Return the loss."""
        u = abs(z - y)
        return 0.5 * u * u if u <= self.threshold else self.threshold * (u - 0.5 * self.threshold)

    def slope(self, z: float, y: float) -> float:
        """Return z - y, clipped to the threshold."""
        return max(-self.threshold, min(self.threshold, z - y))

    def curvature(self, z: float, y: float) -> float:
        """Return 1 up to the threshold, and 0 beyond it."""
        return 1.0 if abs(z - y) <= self.threshold else 0.0

    def implicit(self, m: float, q: float, y: float) -> float:
        r"""Return the root of :math:`2 (z - m)/q + \mathrm{slope}(z, y)`."""
        z = m + 0.5 * q / (1.0 + 0.5 * q) * (y - m)
        if abs(z - y) <= self.threshold:
            return z
        return m - 0.5 * q * math.copysign(self.threshold, m - y)

    def substitute(self, m: float, v: float) -> float:
        """Return (g(-Y) - g(Y))/(2 Y)."""
        Y = self.target_bound
        return (self._generalised(m, v, -Y) - self._generalised(m, v, Y)) / (2.0 * Y)

    def _generalised(self, m: float, v: float, y: float) -> float:
        """Return g(y), from the parts of its expectation beyond each end and between the ends."""
        Y, a = self.target_bound, self.mixability
        if v <= 0.0:
            return 0.5 * (max(-Y, min(Y, m)) - y) ** 2
        s = math.sqrt(v)
        inner, mean = math.sqrt(v / (1.0 + a * v)), (m + a * v * y) / (1.0 + a * v)
        low, high = (-Y - mean) / inner, (Y - mean) / inner
        if low > 0.0:  # by symmetry, if both are close to 1
            low, high = -high, -low
        within = log_ndtr(high) + math.log(max(-math.expm1(float(log_ndtr(low) - log_ndtr(high))), 1e-300))
        parts = (
            log_ndtr((-Y - m) / s) - 0.5 * a * (-Y - y) ** 2,
            log_ndtr((m - Y) / s) - 0.5 * a * (Y - y) ** 2,
            within - 0.5 * math.log1p(a * v) - 0.5 * a * (m - y) ** 2 / (1.0 + a * v),
        )
        return -float(logsumexp(np.array(parts))) / a

    def check(self, norm_bound: float, radius: float) -> None:
        r"""Raise a UsageError if the threshold is below :math:`\max(2 Y, B R + Y)`."""
        least = max(2.0 * self.target_bound, norm_bound * radius + self.target_bound)
        if self.threshold < least * (1.0 - 1e-12):
            raise UsageError(
                f"threshold must be at least max(2 Y, B R + Y) = {least:g} (below it GAF's assumption A1 or A3 fails), "
                f"got {self.threshold:g}"
            )
