"""GAF in a reproducing kernel Hilbert space (the extension proposed in the conclusion of the NeurIPS 2021 paper)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from banditlab.forecasters.gaf import GAF
from banditlab.forecasters.kernel_span import KernelSpanForecaster
from banditlab.problem import Problem


class KernelGAF(KernelSpanForecaster):
    r"""GAF on the features of a kernel, computed in the span of the features of all updates so far.

    Problem: full-information multiclass prediction, logistic loss, adversarial stream.

    Update rule: that of `gaf` with :math:`\phi(x)` instead of x. The Gaussian density is stored on the span of the
    updates' features and on the direction of the next feature outside it. In all other directions the density is that
    of the prior, :math:`N(0, I/(2 \lambda))`, which no forecast uses. With the linear kernel this is GAF. `landmarks`
    is as for `kernel-folklore`.

    Guarantee: as for `gaf`, with the effective dimension instead of d (`gaf_kernel` in `banditlab.bounds`, which
    assumes that the Gaussian expectation is computed exactly). `space_certificate` and `certificate` are as for
    `kernel-folklore`, and hold for every setting of `nodes`. There is no "theory" value of :math:`\lambda`, because
    that of `gaf`, :math:`32 K d R^2`, depends on d.

    Cost: as for `kernel-folklore`, with GAF's round instead of FOLKLORE's.

    Parameters
    ----------
    norm_bound, kernel, bandwidth, degree, landmarks, tolerance
        As for `kernel-folklore`.
    regularization
        :math:`\lambda` in the paper, in units of :math:`k(x, x)`.
    curvature, samples, nodes, smoothing
        As for `gaf`.

    Raises
    ------
    UsageError
        A setting is outside its range, or "fixed" nodes have no generator.
    IncompatibleError
        "gauss-hermite" nodes need more `samples` for this number of classes.

    References
    ----------
    R. Jézéquel, P. Gaillard, A. Rudi. Mixability made efficient: fast online multiclass logistic regression.
    NeurIPS 2021.
    """

    id = "kernel-gaf"
    group = "theory"
    summary = "any K: GAF with a kernel; stores the span of the contexts, or landmarks (Nystroem)"
    reference = "Jézéquel, Gaillard and Rudi, NeurIPS 2021, Conclusion"
    state_order = (1, 0)
    bound_unit = "nats"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        kernel: Literal["linear", "gaussian", "polynomial"] = "gaussian",
        bandwidth: float = 1.0,
        degree: int = 2,
        regularization: float = 1.0,
        curvature: float | Literal["simple", "tight"] = "simple",
        samples: int = 100,
        nodes: Literal["fixed", "gauss-hermite", "cubature"] = "fixed",
        smoothing: float | Literal["theory"] = 0.0,
        landmarks: int = 0,
        tolerance: float = 1e-6,
    ) -> None:
        super().__init__(problem, rng)
        self._begin(kernel, bandwidth, degree, landmarks, tolerance)
        inner = GAF(
            self._own_problem(),
            rng,
            norm_bound=norm_bound,
            regularization=regularization,
            curvature=curvature,
            samples=samples,
            nodes=nodes,
            smoothing=smoothing,
            form="primal",
        )
        self.samples, self.nodes, self.smoothing = inner.samples, inner.nodes, inner.smoothing
        self._learn_with(inner)
