"""Gaptron with the logistic loss (van der Hoeven, NeurIPS 2020)."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents._base import KernelAgent
from banditlab.agents._scores import argmax, padded, scores, zero_weights
from banditlab.bounds.gaptron import gaptron_fixed, gaptron_gamma, gaptron_step
from banditlab.errors import UsageError
from banditlab.kernels import draw_uniform, njit
from banditlab.problem import Problem
from banditlab.validation import number, positive, probability

LN2 = math.log(2.0)


class State(NamedTuple):
    """V (d, Kp), the transpose of W padded with columns of zeros; z, r (Kp,) scratch; the others hold one number.

    step is eta, or B0 where `adaptive` is 1; squares is sum ||g||_F^2; D is infinite where nothing is projected.
    """

    V: NDArray[np.float64]
    z: NDArray[np.float64]
    r: NDArray[np.float64]
    gamma: NDArray[np.float64]
    step: NDArray[np.float64]
    adaptive: NDArray[np.int64]
    squares: NDArray[np.float64]
    D: NDArray[np.float64]


@njit
def act_kernel(state, x, u, p, payload):  # type: ignore[no-untyped-def]
    z, K = state.z, p.shape[0]
    scores(state.V, x, z)
    y_star = argmax(z, K)
    total = 0.0
    for k in range(K):
        payload[k] = math.exp(z[k] - z[y_star])
        total += payload[k]
    p_star = 1.0 / total
    for k in range(K):
        payload[k] *= p_star  # softmax(W x)
    a = 1.0 - p_star if p_star >= 0.5 else 1.0  # the gap map
    m = max(a, state.gamma[0])
    p[:] = m / K  # p' = (1 - m) e_y* + m/K
    p[y_star] += 1.0 - m
    if u[0] < m:
        return draw_uniform(K, u[1]), True
    return y_star, False


@njit
def learn_kernel(state, x, action, p, payload, correct):  # type: ignore[no-untyped-def]
    if not correct:  # g_t = 0
        return
    V, r, K = state.V, state.r, p.shape[0]
    weight = 1.0 / (p[action] * LN2)  # g_t = (softmax - e_y) x' / (p'_y ln 2), r its factor in the classes
    r_squared = 0.0
    for k in range(K):
        r[k] = weight * (payload[k] - 1.0 if k == action else payload[k])
        r_squared += r[k] * r[k]
    eta = state.step[0]
    if state.adaptive[0] == 1:
        x_squared = 0.0
        for j in range(x.shape[0]):
            x_squared += x[j] * x[j]
        state.squares[0] += r_squared * x_squared
        eta /= math.sqrt(2.0 * (1e-8 + state.squares[0]))
    for k in range(K):
        r[k] *= eta
    for j in range(x.shape[0]):
        xj = x[j]
        for k in range(V.shape[1]):
            V[j, k] -= xj * r[k]
    if state.D[0] < math.inf:
        project(V, state.D[0], r)


@njit
def project(V, D, column):  # type: ignore[no-untyped-def]
    """Rescale V to Frobenius norm D where it is longer; column (Kp,) is scratch and ends as zeros."""
    column[:] = 0.0
    for j in range(V.shape[0]):
        for k in range(V.shape[1]):
            column[k] += V[j, k] * V[j, k]
    norm = math.sqrt(column.sum())
    column[:] = 0.0
    if norm > D:
        V *= D / norm


class Gaptron(KernelAgent):
    """Randomise exactly as much as the gap between the surrogate and the mistake pays for.

    Problem: bandit multiclass, adversarial stream. The loss is the logistic loss in BASE 2,
    l(W) = -log2 softmax(W x)_y; in nats the inequality the proof rests on is false.

    Update rule (W_1 = 0, D = sqrt(K) B the Frobenius radius):
    y* = argmax_k (W_t x_t)_k, p* = max_k softmax(W_t x_t)_k, gap map a = 1 - p* if p* >= 1/2, else 1;
    m = max(a, gamma); play from p' = (1 - m) e_y* + m/K, drawn as a coin and a uniform class;
    g_t = 1[right] / p'_y * (softmax(W_t x_t) - e_y) x_t' / ln 2;
    W_{t+1} = Proj_{||W||_F <= D}(W_t - eta g_t).
    So as long as p* < 1/2 the play is uniform, even where the argmax is right; with the theorem's gamma it is uniform
    throughout unless T > K^2 R^2 D^2 / ln 2.

    Guarantee (Theorem on the bandit setting, logistic row of Table 2; adversarial, ||x_t|| <= R): at the default
    settings E[M] <= sum_t l_t(U) + max{2 K^2 R^2 D^2 / ln 2, 2 K R D sqrt(T / ln 2)} for every ||U||_F <= D, hence
    for every U in the row ball B. For any fixed gamma and step <= gamma ln 2 / (2 K^2 R^2), projected or not, the
    additive term is D^2/(2 step) + gamma (K-1)/K T; that is what `bound` returns, for at the theorem's settings it is
    never above the maximum and it holds after any number of rounds. None for a larger step and for the adaptive one.

    Cost: O(K d) a round, K exponentials, K d numbers.

    Parameters
    ----------
    norm_bound
        B, the bound on each row's norm (D = sqrt(K) B in the paper, a Frobenius ball).
    gamma
        Exploration rate in [0, 1] (gamma in the paper), or "theory": min{1, K R D / sqrt(T ln 2)}, which needs the
        horizon.
    step
        eta in the paper, a number; "theory": gamma ln 2 / (2 K^2 R^2); or "adaptive": step_scale / sqrt(2 (1e-8 +
        sum_{s<=t} ||g_s||_F^2)), the practical variant of Shibukawa et al., App. H.1, who say it follows Gappletron.
    step_scale
        B0 = 10 in the adaptive step, in units of a norm of W; the other steps do not use it.
    project
        Whether W is projected onto the Frobenius ball; "auto" projects unless the step is adaptive, as in the sources.

    Raises
    ------
    UsageError
        gamma outside [0, 1], norm_bound, step or step_scale not above 0, or gamma = 0 with the theorem's step (which
        is 0).
    HorizonRequiredError
        gamma = "theory" where the horizon is unknown.

    References
    ----------
    D. van der Hoeven. Exploiting the surrogate gap in online multiclass classification. NeurIPS 2020.
    Y. Shibukawa, S. Sakaue, T. Tsuchiya, K. Yamanishi. arXiv 2502.18709, NeurIPS 2025, App. H.1 (the adaptive step).
    """

    id = "gaptron"
    group = "theory"
    summary = "first-order, randomises by the surrogate gap (base-2 logistic loss)"
    reference = "van der Hoeven, NeurIPS 2020, bandit setting with the logistic loss"
    bound_unit = "bits"
    act_kernel = act_kernel
    learn_kernel = learn_kernel

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        gamma: float | Literal["theory"] = "theory",
        step: float | Literal["theory", "adaptive"] = "theory",
        step_scale: float = 10.0,
        project: bool | Literal["auto"] = "auto",
    ) -> None:
        super().__init__(problem, rng)
        K, d, R = problem.n_classes, problem.n_features, problem.radius
        self.norm_bound = positive("norm_bound", norm_bound)
        D = self.frobenius_bound
        if gamma == "theory":
            T = problem.known_horizon("gamma = 'theory'", "give gamma as a number")
            self.gamma = gaptron_gamma(K, R, D, T)
        else:
            self.gamma = probability("gamma", number("gamma", gamma, "theory"))
        self.step: float | str = self._resolved_step(step)
        self.step_scale = positive("step_scale", step_scale)
        adaptive = self.step == "adaptive"
        if project not in (True, False, "auto"):
            raise UsageError(f"project must be true, false or 'auto', got {project!r}")
        self.project = (not adaptive) if project == "auto" else bool(project)
        self.payload_size = K
        self.state = State(
            V=zero_weights(d, K),
            z=np.zeros(padded(K)),
            r=np.zeros(padded(K)),
            gamma=np.array([self.gamma]),
            step=np.array([self.step_scale if adaptive else float(self.step)]),
            adaptive=np.array([int(adaptive)]),
            squares=np.zeros(1),
            D=np.array([D if self.project else math.inf]),
        )

    def _resolved_step(self, step: float | str) -> float | str:
        K, R = self.problem.n_classes, self.problem.radius
        if step == "adaptive":
            return "adaptive"
        if step != "theory":
            return positive("step", number("step", step, "theory", "adaptive"))
        if self.gamma == 0.0:
            raise UsageError("step = 'theory' is gamma ln 2 / (2 K^2 R^2): it needs gamma above 0, got 0")
        return gaptron_step(K, R, self.gamma)

    @property
    def frobenius_bound(self) -> float:
        """D = sqrt(K) B, the radius of the Frobenius ball around the row ball."""
        return math.sqrt(self.problem.n_classes) * self.norm_bound

    @property
    def weights(self) -> NDArray[np.float64]:
        """W (K, d), a view."""
        return self.state.V[:, : self.problem.n_classes].T

    def bound(self, rounds: int) -> float | None:
        """Return D^2/(2 step) + gamma (K-1)/K T, in bits; None for the adaptive step and above the theorem's step."""
        K, R = self.problem.n_classes, self.problem.radius
        largest = gaptron_step(K, R, self.gamma)
        if not isinstance(self.step, float) or self.step > largest * (1.0 + 1e-12):
            return None
        return gaptron_fixed(K, self.frobenius_bound, self.step, self.gamma, rounds)
