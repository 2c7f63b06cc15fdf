"""GAF with fresh samples every round (Jézéquel, Gaillard and Rudi, NeurIPS 2021)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from banditlab.bounds.gaf import gaf, gaf_mu, gaf_samples, gaf_sampling_high_probability
from banditlab.errors import HorizonRequiredError, IncompatibleError
from banditlab.forecasters.gaf import GAF, needed_generator, sampled_bound, smoothing_of
from banditlab.forecasters.primal_dual import GIB, MOST, refuse_primal
from banditlab.numerics.gaussian_softmax import Nodes
from banditlab.numerics.joint_inverse import Blocks
from banditlab.players.forecaster import Floats, Forecaster
from banditlab.problem import Problem
from banditlab.validation import at_least

PROBABILITY = 0.05
r""":math:`\delta` of `samples = "theory"`."""


class GAFFresh(Forecaster):
    r"""GAF with m independent samples of the logits, drawn anew for every round as in Algorithm 1.

    Problem, update rule, errata and certificate are those of `gaf`. An update draws the samples for the next forecast,
    so forecasts do not change the state. Forecasts between two updates use the same samples.

    Guarantee: as for `gaf`, in expectation against any adversary that does not see a round's samples before choosing
    its label.

    Cost: as for `gaf`, plus :math:`K m` normal variates per update. Rounds are run one at a time, without compiled
    loops.

    Parameters
    ----------
    norm_bound, regularization, curvature, smoothing
        As for `gaf`.
    samples
        m, the number of samples per round; "theory" is Proposition 3's :math:`n^3 \ln(n/\delta)` with
        :math:`\delta = 1/20` and n the horizon, a million for :math:`n = 50`. `smoothing = "theory"` is then the
        :math:`\mu` of Proposition 3.

    Raises
    ------
    UsageError
        A setting is outside its range, or there is no generator.
    IncompatibleError
        The covariance needs more than 4 GiB.

    References
    ----------
    R. Jézéquel, P. Gaillard, A. Rudi. Mixability made efficient: fast online multiclass logistic regression.
    NeurIPS 2021.
    """

    id = "gaf-fresh"
    group = "theory"
    summary = "GAF with fresh samples every round, as printed; slower than gaf"
    reference = "Jézéquel, Gaillard and Rudi, NeurIPS 2021, Algorithm 1 (corrected)"
    state_order = (2, 2)
    bound_unit = "nats"
    bound_adversary = "adaptive"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        regularization: float | Literal["theory"] = "theory",
        curvature: float | Literal["simple", "tight"] = "simple",
        samples: int | Literal["theory"] = 100,
        smoothing: float | Literal["theory"] = 0.0,
    ) -> None:
        super().__init__(problem, rng)
        K = problem.n_classes
        if samples == "theory":
            samples = self._printed_samples()
            smoothing = (
                gaf_mu(float(problem.horizon or 1), K, samples, PROBABILITY) if smoothing == "theory" else smoothing
            )
        self.samples = at_least("samples", samples, 1)
        self.smoothing = smoothing_of(smoothing, K, self.samples)
        self._draws = needed_generator(rng, "gaf-fresh").spawn(1)[0]
        advice = "use fewer features, or gaf, whose dual form only stores the span of the updates' contexts"
        refuse_primal("gaf-fresh: its covariance needs", Blocks.size(K, problem.n_features), problem, advice)
        settings: dict[str, Any] = {"norm_bound": norm_bound, "regularization": regularization, "curvature": curvature}
        self._gaf = GAF(problem, None, nodes="cubature", smoothing=self.smoothing, form="primal", **settings)
        nodes = Nodes.of(np.zeros((self.samples, K)), np.full(self.samples, 1.0 / self.samples))
        self._gaf.state = self._gaf.state._replace(nodes=nodes)
        self.norm_bound, self.regularization = self._gaf.norm_bound, self._gaf.regularization
        self.curvature = self._gaf.curvature
        self._draw()

    def _printed_samples(self) -> int:
        r"""Return :math:`n^3 \ln(n/\delta)`, or raise an IncompatibleError if that many samples do not fit into memory."""
        n = self.problem.horizon
        if n is None:
            raise HorizonRequiredError(f"{self.id}: samples = 'theory' needs the horizon T; give a number instead")
        m = gaf_samples(float(n), PROBABILITY)
        if 8.0 * m * self.problem.n_classes > MOST * GIB:
            raise IncompatibleError(
                f"{self.id}: samples = 'theory' is n^3 ln(n/delta) = {m:.3g} at n = {n:,}, which takes "
                f"more than {MOST:g} GiB; give a number"
            )
        return int(m)

    def _draw(self) -> None:
        self._draws.standard_normal(out=self._gaf.state.nodes.points)

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return a lower bound on the size of the state in bytes: the inverse and the samples."""
        samples = settings.get("samples", cls.own_settings()["samples"].default)
        if samples == "theory":  # without a horizon the constructor raises an error
            samples = gaf_samples(float(problem.horizon or 1), PROBABILITY)
        return super().least_bytes(problem, settings) + 4.0 * samples * problem.n_classes

    def predict(self, context: Floats) -> Floats:
        """Return the logits (K,) for `context` (d,), computed with the current samples."""
        return self._gaf.predict(context)

    def predict_many(self, contexts: Floats) -> Floats:
        """Return the logits (n, K) for `contexts` (n, d), computed with the current samples."""
        return self._gaf.predict_many(contexts)

    def update(self, context: Floats, label: int) -> None:
        """Update with the class `label` of `context` (d,), and draw the samples of the next round."""
        self._gaf.update(context, label)
        self._draw()

    def bound(self, rounds: float) -> float | None:
        r"""Return the regret bound after `rounds` rounds, in nats, in expectation over the samples; None if
        :math:`\mu = 0`.
        """
        if self.smoothing == 0.0 or math.isnan(self._gaf.certificate()):
            return None
        return sampled_bound(self, rounds, self.samples)

    def bound_with_probability(self, rounds: float, probability: float) -> float:
        r"""Return the regret bound of Proposition 3, in nats. It holds with probability at least :math:`1 - \delta`, where
        :math:`\delta` is `probability`.

        It is infinite if the proposition's :math:`\epsilon` is above 1/2, as for a small :math:`\mu`, and NaN if the
        forecaster with the exact expectation has no bound.
        """
        K, d, R = self.problem.n_classes, self.problem.n_features, self.problem.radius
        exact = gaf(rounds, d, K, self.norm_bound, R, self.regularization, self.curvature)
        return exact + gaf_sampling_high_probability(rounds, K, self.samples, self.smoothing, probability)

    def certificate(self) -> float:
        """Return the data-dependent bound on the regret so far, in nats, against rows of norm at most B; NaN if none holds."""
        return self._gaf.certificate()
