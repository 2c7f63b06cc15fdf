"""GAF in a reproducing kernel Hilbert space (the extension that the conclusion of NeurIPS 2021 leaves)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from banditlab.forecasters.gaf import GAF
from banditlab.forecasters.kernel_span import KernelSpanForecaster
from banditlab.problem import Problem


class KernelGAF(KernelSpanForecaster):
    r"""GAF on the features of a kernel, in the coordinates of the span of its updates' contexts.

    Problem: full-information multiclass prediction, logistic loss, adversarial stream.

    Update rule: `gaf`'s with :math:`\phi(x)` for x: the Gaussian density lives on the span of the features learnt and
    on the direction in which the next one stands out, and is the prior :math:`N(0, I/(2 \lambda))` elsewhere, which
    no forecast sees. With the linear kernel it is GAF. `landmarks` as for `kernel-folklore`.

    Guarantee: that of `gaf`'s certificate with the effective dimension for d (`gaf_kernel` of the bounds, exact
    expectation); `space_certificate`, `certificate` as for `kernel-folklore`, whatever the nodes. The theory's
    :math:`\lambda` of `gaf` is :math:`32 K d R^2`; with no d in a kernel's space it has to be given here.

    Cost: as for `kernel-folklore`, with GAF's round for FOLKLORE's.

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
        A setting out of its range, or "fixed" nodes without a generator.
    IncompatibleError
        "gauss-hermite" nodes for more classes than `samples` allow.

    References
    ----------
    R. Jézéquel, P. Gaillard, A. Rudi. Mixability made efficient: fast online multiclass logistic regression.
    NeurIPS 2021.
    """

    id = "kernel-gaf"
    group = "theory"
    summary = "any K: GAF with a kernel, all contexts that stand out or a fixed number of landmarks (Nystroem)"
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
