"""FOLKLORE in a reproducing kernel Hilbert space, for any K, and its Nystroem projection."""

from __future__ import annotations

from typing import Literal

import numpy as np

from banditlab.bounds.folklore import folklore_any_regularization
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.forecasters.kernel_span import KernelSpanForecaster
from banditlab.problem import Problem


class KernelFOLKLORE(KernelSpanForecaster):
    r"""FOLKLORE on the features :math:`\phi(x)` of a kernel, in coordinates of the span of all updates' features.

    Problem: full-information multiclass prediction, logistic loss, adversarial stream.

    Update rule: that of `folklore` with :math:`\phi(x)` instead of x, in coordinates of the span of the updates'
    features. With the linear kernel this is FOLKLORE. With `landmarks` = m, the first m contexts outside the span are
    stored, and later ones are projected onto the span (Nystroem), so the cost per round stays bounded.

    Guarantee: Theorem 3's argument holds in the kernel's space with the effective dimension instead of d
    (`folklore_kernel` in `banditlab.bounds`). `space_certificate` bounds the regret against :math:`f = (f_1 \dots f_K)`
    with :math:`\|f_k\| \le B`. It accounts for projections: each update adds :math:`2 B` times the norm of the part of
    the feature outside the span. For the linear kernel, the functions f include the linear functions with rows of norm
    at most B. For the polynomial kernel they include these functions scaled by :math:`1/\sqrt{\text{degree}}`. For both
    kernels `certificate` equals `space_certificate`, and `bound` is that of Theorem 3 with d the dimension of the
    space, or the number of rounds if that is smaller. A Gaussian kernel's space has no linear function, so `bound` is
    None and `certificate` NaN.

    Cost: r kernel values, :math:`r^2 / 2` multiplications and FOLKLORE's round in r dimensions, :math:`K^3 r^2 / 2`,
    with r the number of stored contexts. The arrays grow by doubling, so rounds are run one at a time.

    Parameters
    ----------
    norm_bound
        B: the comparators are :math:`f_1` ... :math:`f_K` with :math:`\|f_k\| \le B` in the kernel's space.
    kernel
        "linear": :math:`x'y`. "gaussian": :math:`\exp(-\|x - y\|^2 / (2\,\text{bandwidth}^2))`. "polynomial":
        :math:`(1 + x'y)^{\text{degree}}`.
    bandwidth
        Bandwidth of the Gaussian kernel, in the units of the contexts.
    degree
        Degree of the polynomial kernel, 1 or above.
    regularization, curvature
        As for `folklore`, with :math:`R = \sup \sqrt{k(x, x)}`.
    landmarks
        m, the largest number of stored contexts; 0 for no limit.
    tolerance
        A context is stored if its feature's distance from the span exceeds this multiple of R.

    Raises
    ------
    UsageError
        A setting is outside its range.

    References
    ----------
    N. Agarwal, S. Kale, J. Zimmert. Efficient methods for online multiclass logistic regression. ALT 2022.
    R. Jézéquel, P. Gaillard, A. Rudi. Efficient improper learning for online logistic regression. COLT 2020, section 4.1.
    """

    id = "kernel-folklore"
    group = "theory"
    summary = "any K: FOLKLORE with a kernel; stores the span of the contexts, or landmarks (Nystroem)"
    reference = "Agarwal, Kale and Zimmert, ALT 2022, with Jézéquel, Gaillard and Rudi, COLT 2020, Section 4.1"
    state_order = (1, 0)
    bound_unit = "nats"
    bound_adversary = "adaptive"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        kernel: Literal["linear", "gaussian", "polynomial"] = "gaussian",
        bandwidth: float = 1.0,
        degree: int = 2,
        regularization: float | Literal["theory"] = "theory",
        curvature: float | Literal["simple", "tight"] = "simple",
        landmarks: int = 0,
        tolerance: float = 1e-6,
    ) -> None:
        super().__init__(problem, rng)
        self._begin(kernel, bandwidth, degree, landmarks, tolerance)
        own = self._own_problem()
        inner = FOLKLORE(
            own, None, norm_bound=norm_bound, regularization=regularization, curvature=curvature, form="primal"
        )
        self._learn_with(inner)

    def bound(self, rounds: float) -> float | None:
        """Return the regret bound against linear functions after `rounds` rounds, in nats, or None if none holds."""
        dimension = self._dimension(rounds)
        if dimension is None or not self._inner.proved(self.norm_bound):
            return None
        K, R, lam, c = self.problem.n_classes, self.feature_radius, self.regularization, self.curvature
        theorem = folklore_any_regularization(rounds, int(dimension), K, self.norm_bound, R, lam, c)
        return theorem + self._left_out(rounds)
