"""GAF, the Gaussian aggregating forecaster (Jézéquel, Gaillard and Rudi, NeurIPS 2021)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.curvature import margin_range, simple_curvature, tight_curvature
from banditlab.bounds.gaf import gaf, gaf_regularization, gaf_sampling, gaf_smoothing
from banditlab.errors import IncompatibleError, UsageError
from banditlab.forecasters.primal_dual import QuadraticForecaster, prediction_kernels
from banditlab.numerics.gaussian_softmax import Nodes, cubature, gauss_hermite, log_mean_softmax
from banditlab.numerics.jit import borrow, njit
from banditlab.numerics.joint_inverse import Blocks, add_hessian, form_and_complete, rounding_doubt
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.softmax_root import (
    TOLERANCE,
    RootScratch,
    half_solve,
    half_solve_transposed,
    root,
    times_Y,
    times_Yt,
)
from banditlab.problem import Problem
from banditlab.validation import at_least, number, one_of, positive, resolve


class State(NamedTuple):
    r"""The state: blocks, :math:`A^{-1}`; h (K, d), :math:`A^{-1} b`, so :math:`\theta = -h/2`; nodes for :math:`N(0, I)`.

    `constants` (5,) contains c, :math:`\mu`, the covariance's factor (1, or 2 as printed), 1 if the printed linear term
    is used (else 0), and :math:`\lambda`. `spent` (1,) is the sum in the certificate, `doubt` (1,) is a bound on its
    rounding error, and `longest` (1,) is the largest :math:`\|x\|^2` of an update. `unsolved` (1,) counts steps whose
    root did not reach its tolerance. `mean`, g, u, `step` (K,), C (K, K) and `root` are work arrays.
    """

    blocks: Blocks
    h: NDArray[np.float64]
    nodes: Nodes
    constants: NDArray[np.float64]
    spent: NDArray[np.float64]
    doubt: NDArray[np.float64]
    longest: NDArray[np.float64]
    unsolved: NDArray[np.int64]
    mean: NDArray[np.float64]
    g: NDArray[np.float64]
    u: NDArray[np.float64]
    step: NDArray[np.float64]
    C: NDArray[np.float64]
    root: RootScratch

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        return {"unsolved": COUNT}


@njit
def forecast_at(state, x, z):
    """Write the smoothed forecast (6) at x into z (K,), and the mean logits into `state.mean`, from `state.blocks.At`."""
    At, C, h, mean = state.blocks.At, state.C, state.h, state.mean
    mu, factor = state.constants[1], state.constants[2]
    K = z.shape[0]
    for k in range(K):
        mean[k] = -0.5 * np.dot(h[k], x)  # theta' Phi(x)
        for l in range(K):
            C[k, l] = factor * At[k, l]  # (1/2) Phi' A^{-1} Phi
    log_mean_softmax(mean, C, state.nodes, mu, z)


predict_kernel, predict_many_kernel = prediction_kernels(forecast_at, __name__)


@njit
def implicit_step(state, y):
    r"""Write the logits of :math:`\theta_{t+1} = \arg\min (Q_{t-1} + \mathrm{loss}_t)` into `state.step`.

    They are the root of :math:`z = \text{mean} - \tilde{A} (s(z) - e_y)`. Also write :math:`s - e_y` into `state.u`.
    Return the root's residual and :math:`\mathrm{loss}_t(\theta_{t+1}) + (1/2) u'\tilde{A} u`, the increase of the
    minimum of the sum of surrogates.
    """
    At, mean, g, u, step = state.blocks.At, state.mean, state.g, state.u, state.step
    K = g.shape[0]
    for k in range(K):
        g[k] = mean[k] + At[k, y]
    residual = root(g, At, step, state.root)
    state.unsolved[0] += not residual <= TOLERANCE
    largest = 0.0
    for k in range(K):
        largest = max(largest, abs(g[k]))
    top = step[0]
    for k in range(1, K):
        top = max(top, step[k])
    total, square = 0.0, 0.0
    for k in range(K):
        total += math.exp(step[k] - top)
        u[k] = state.root.s[k]
    u[y] -= 1.0
    for k in range(K):
        square += u[k] * (state.root.a[k] - At[k, y])
    return top + math.log(total) - step[y] + 0.5 * square, residual * (1.0 + largest)


@njit
def add_printed_term(state):
    r"""Add :math:`2 Q_c (z_{t+1} - z_t)` to u, for the printed :math:`b_t` (its Hessian term is at :math:`\theta_t`).

    :math:`Q_c` is defined in `numerics.joint_inverse.add_hessian`.
    """
    g, u, L = state.g, state.u, state.root.L
    for k in range(g.shape[0]):
        g[k] = state.step[k] - state.mean[k]
    times_Yt(state.root.s, state.root.q, g)
    half_solve(L, g)
    half_solve_transposed(L, g)
    times_Y(state.root.s, state.root.q, g)
    for k in range(g.shape[0]):
        u[k] += 2.0 * state.constants[0] * g[k]


@njit(arrays="new")
def update_kernel(state, x, y, z):
    state, x, z = borrow(state), borrow(x), borrow(z)
    V, h, u = state.blocks.V, state.h, state.u
    K, d = h.shape
    form_and_complete(state.blocks, x)
    forecast_at(state, x, z)
    grown, residual = implicit_step(state, y)
    state.spent[0] -= z[y] + grown
    centre = 0.0
    for k in range(K):
        centre += state.mean[k]
    terms = abs(z[y]) + abs(grown)
    state.doubt[0] += rounding_doubt(state.blocks.At, x, state.constants[4], abs(centre), u, residual, terms)
    state.longest[0] = max(state.longest[0], np.dot(x, x))
    add_hessian(state.blocks, state.constants[0], state.root)  # A_t = A_{t-1} + (beta/2) H_t at theta_{t+1}
    if state.constants[3] > 0.0:
        add_printed_term(state)
    for k in range(K):  # b_t = b_{t-1} + grad - beta H_t theta_{t+1}
        for l in range(K):
            for j in range(d):
                h[k, j] += u[l] * V[k, l, j]


class GAF(QuadraticForecaster):
    r"""Mix all linear predictors by a Gaussian density: exp of minus the sum of quadratic surrogates of past losses.

    Problem: full-information multiclass prediction, logistic loss, adversarial stream.

    Update rule (Algorithm 1, Efficient-GAF): the density is :math:`\exp(-\theta'A \theta - b'\theta)`. The logits at
    :math:`x_t` are therefore :math:`N(\theta_t'\Phi, (1/2) \Phi'A_{t-1}^{-1} \Phi)` with :math:`\Phi = I \otimes x_t`.
    The forecast is the logarithm of :math:`(1 - \mu) E\, \mathrm{softmax}(\text{logits}) + \mu/K`, where m nodes
    approximate the expectation. Then :math:`\theta_{t+1}` minimises
    :math:`b'\theta + \theta'A \theta + \mathrm{loss}_t(\theta)`. This is an implicit step whose logits are the root of
    :math:`z = \theta_t'\Phi - \tilde A (\mathrm{softmax}(z) - e_y)`, with the covariance :math:`\tilde A`. Finally
    :math:`A_t = A_{t-1} + (\beta/2) H_t` and :math:`b_t = b_{t-1} + \mathrm{grad} - \beta H_t \theta_{t+1}`, where
    :math:`H_t` and grad are the loss's Hessian and gradient at :math:`\theta_{t+1}`. The state is that of FOLKLORE with
    surrogates expanded at other points. :math:`\theta_t` and :math:`A_t` do not depend on the nodes.

    Errata. Algorithm 1 prints the covariance without 1/2, and the last term of :math:`b_t` with :math:`\theta_t`
    instead of :math:`\theta_{t+1}`. The density (4) and the surrogate (3) give the forms above. The printed forms are
    available: `covariance = "printed"`, `linear_term = "printed"`. In the proof of Proposition 3 :math:`\mu` has a
    factor K, which is missing in the statement of the proposition.

    Guarantee: let :math:`p_t` be the forecasts that were made, with any nodes. The regret over
    :math:`\{W : \|W_k\| \le B\}` is at most the certificate

    .. math::

        \lambda K B^2 + \sum_t [-\ln p_{t,y} - \mathrm{loss}_t(\theta_{t+1}) - (1/2)(s - e_y)'\tilde A (s - e_y)],

    because the minimum of the surrogates' sum increases by the last two terms, and surrogates are lower bounds of the
    losses. For the exact expectation this is at most
    :math:`\lambda K B^2 + (\kappa/(4c)) (K-1) d \ln(1 + c R^2 n/(K d \lambda))` with :math:`c = \beta/2`, for any
    :math:`\lambda > 0`, and :math:`\kappa \to 1` as :math:`\lambda` grows (smaller constants than in Theorem 1 and
    Corollary 2). Sampling adds `gaf_sampling` in expectation, for streams that do not depend on the nodes. At
    :math:`\mu = 0` the sampling error has no proved bound, so `bound` is None.

    Cost: FOLKLORE's in either form, plus :math:`K^2 m` multiplications and :math:`K m` exponentials per forecast.
    Memory: :math:`K^2 d^2 / 2 + K m` numbers.

    Parameters
    ----------
    norm_bound
        B, the largest norm of a row of W. (The paper's own B bounds the Frobenius norm.)
    regularization
        :math:`\lambda` in the paper; "theory" is Corollary 2's :math:`32 K d R^2`. The paper's experiments use the best
        of .01 to 10.
    curvature
        :math:`c = \beta/2`. "simple" is the paper's :math:`\beta/2 = 1/(2 B R + \ln K + 2)`. "tight" is
        :math:`1/(1 + \cosh b)` with :math:`b + \sinh b = 2 B R + \ln(K - 1)`, within 4 % of the largest admissible
        constant. A number sets c directly. Above "tight" there is no bound and no certificate.
    samples
        m, the number of nodes (100 in the paper's experiments). "fixed" needs an even number; "gauss-hermite" uses the
        largest :math:`q^{K-1} \le m` with q at least 3; "cubature" has :math:`2 K` nodes, for any m.
    nodes
        "fixed": :math:`m/2` standard normal vectors and their negatives, which the constructor draws once. (The bound
        in expectation excludes adversaries that know them.) "gauss-hermite": the deterministic product rule, for few
        classes. Permuting the classes changes the forecast by the rule's error, 1e-4 at logit variances around 100 with
        30 nodes per axis. "cubature": :math:`\pm \sqrt{K} e_k`, deterministic and exact up to degree 3. `gaf-fresh`
        draws new samples in each round.
    smoothing
        :math:`\mu` in the paper, in [0, 1/2]; "theory" is :math:`\min(1/2, \sqrt{K/(4m)})`, where m counts an
        antithetic pair once.
    covariance, linear_term
        "corrected", or "printed" for Algorithm 1 as in the paper. The printed forms have no bound, and the printed
        linear term has no certificate.
    form, max_memory
        As for `folklore`.

    Raises
    ------
    UsageError
        A setting is outside its range, :math:`R^2/\lambda` is above 20,000 (see `folklore`), `rng` is None with
        "fixed" nodes, or the dual form needs more than `max_memory`.
    IncompatibleError
        "gauss-hermite" nodes need more `samples` for this number of classes.

    References
    ----------
    R. Jézéquel, P. Gaillard, A. Rudi. Mixability made efficient: fast online multiclass logistic regression.
    NeurIPS 2021.
    """

    id = "gaf"
    group = "theory"
    summary = "any K: mixes all linear predictors with a Gaussian density, fixed nodes for the integral"
    reference = "Jézéquel, Gaillard and Rudi, NeurIPS 2021, Algorithm 1 (corrected)"
    bound_unit = "nats"
    predict_kernel = predict_kernel
    update_kernel = update_kernel
    predict_many_kernel = predict_many_kernel

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        regularization: float | Literal["theory"] = "theory",
        curvature: float | Literal["simple", "tight"] = "simple",
        samples: int = 100,
        nodes: Literal["fixed", "gauss-hermite", "cubature"] = "fixed",
        smoothing: float | Literal["theory"] = 0.0,
        covariance: Literal["corrected", "printed"] = "corrected",
        linear_term: Literal["corrected", "printed"] = "corrected",
        form: Literal["auto", "primal", "dual"] = "auto",
        max_memory: float = 4.0,
    ) -> None:
        super().__init__(problem, rng)
        K, d, R = problem.n_classes, problem.n_features, problem.radius
        self.norm_bound = B = positive("norm_bound", norm_bound)
        words = {"simple": simple_curvature(K, B, R), "tight": tight_curvature(margin_range(K, B, R))}
        self.regularization = resolve("regularization", regularization, {"theory": gaf_regularization(d, K, R)})
        self.curvature = resolve("curvature", curvature, words)
        self.samples = at_least("samples", samples, 1)
        self.nodes = one_of("nodes", nodes, ("fixed", "gauss-hermite", "cubature"))
        self.smoothing = smoothing_of(smoothing, K, self._independent())
        self.covariance = one_of("covariance", covariance, ("corrected", "printed"))
        self.linear_term = one_of("linear_term", linear_term, ("corrected", "printed"))
        factor = 2.0 if self.covariance == "printed" else 1.0
        n = self._coordinates(form, max_memory)
        state = State(
            Blocks.initial(K, n, self.regularization),
            np.zeros((K, n)),
            self._make_nodes(K),
            np.array(
                [self.curvature, self.smoothing, factor, float(self.linear_term == "printed"), self.regularization]
            ),
            np.zeros(1),
            np.zeros(1),
            np.zeros(1),
            np.zeros(1, np.int64),
            mean=np.zeros(K),
            g=np.zeros(K),
            u=np.zeros(K),
            step=np.zeros(K),
            C=np.zeros((K, K)),
            root=RootScratch.empty(K),
        )
        self._begin(state)

    def _independent(self) -> int:
        """The number of independent terms in the average, where an antithetic pair counts as one."""
        return max(1, self.samples // 2) if self.nodes == "fixed" else self.samples

    def _make_nodes(self, K: int) -> Nodes:
        m = self.samples
        if self.nodes == "cubature":
            return cubature(K)
        if self.nodes == "gauss-hermite":
            per_axis = math.floor(m ** (1.0 / (K - 1)) + 1e-9)
            if per_axis < 3:
                raise IncompatibleError(f"nodes = 'gauss-hermite' needs samples >= 3^(K-1) = {3 ** (K - 1)}, got {m}")
            return gauss_hermite(K, per_axis)
        if m % 2:
            raise UsageError(f"samples must be even for nodes = 'fixed' (antithetic pairs), got {m}")
        half = needed_generator(self.rng, "nodes = 'fixed'").spawn(1)[0].standard_normal((m // 2, K))
        return Nodes.of(np.concatenate([half, -half]), np.full(m, 1.0 / m))

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return the bytes of the initial state: the quadratic and the samples."""
        samples = settings.get("samples", cls.own_settings()["samples"].default)
        drawn = settings.get("nodes", "fixed") == "fixed"
        return super().least_bytes(problem, settings) + (4.0 * samples * problem.n_classes if drawn else 0.0)

    def bound(self, rounds: float) -> float | None:
        """Return the regret bound after `rounds` rounds, in nats, in expectation over the nodes, or None if unproved."""
        if (
            self.nodes != "fixed"
            or self.covariance == "printed"
            or not self.proved(self.norm_bound)
            or self.smoothing == 0.0
        ):
            return None
        return sampled_bound(self, rounds, self._independent())


def sampled_bound(player: Any, rounds: float, independent: int) -> float:
    """Return the exact forecaster's bound plus the expected sampling error."""
    K, d, R = player.problem.n_classes, player.problem.n_features, player.problem.radius
    exact = gaf(rounds, d, K, player.norm_bound, R, player.regularization, player.curvature)
    return exact + gaf_sampling(rounds, K, independent, player.smoothing)


def smoothing_of(value: float | str, n_classes: int, independent: int) -> float:
    r"""Return :math:`\mu` in [0, 1/2]."""
    if value == "theory":
        return gaf_smoothing(n_classes, independent)
    mu = number("smoothing", value, "theory")
    if not 0.0 <= mu <= 0.5:
        raise UsageError(f"smoothing must lie in [0, 0.5] or be 'theory', got {mu:g}")
    return mu


def needed_generator(rng: np.random.Generator | None, who: str) -> np.random.Generator:
    """Return the generator, or raise a UsageError that names the forecaster."""
    if rng is None:
        raise UsageError(f"{who} draws random numbers: rng must be a numpy Generator, got None")
    return rng
