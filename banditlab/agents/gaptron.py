"""Gaptron with the logistic, the hinge or the smooth hinge loss (van der Hoeven, NeurIPS 2020)."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.linear import InFrobeniusBall, ScaledScores, resolved_step
from banditlab.bounds.gaptron import KAPPA, gaptron_fixed, gaptron_gamma, gaptron_step
from banditlab.bounds.template import template_fixed, template_gamma, template_step
from banditlab.errors import UsageError
from banditlab.numerics.argmax import argmax, runner_up
from banditlab.numerics.decoding import DECODINGS, THRESHOLDED, Decoding, decode
from banditlab.numerics.draws import greedy_or_uniform, mixed_draw
from banditlab.numerics.jit import inline
from banditlab.numerics.limits import Limits, constant
from banditlab.numerics.running_norm import Norms, descend_in_balls
from banditlab.numerics.simd_math import exponentials
from banditlab.numerics.vectors import matrix, scores, squared_norm
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import number, one_of, positive, probability

LN2 = math.log(2.0)


LOSSES = ("logistic", "hinge", "smooth-hinge")
LOGISTIC, HINGE, SMOOTH_HINGE = range(3)


class State(NamedTuple):
    r"""The state: V (K, d), padded, which is W up to a scale; work arrays z, r (K,); the other arrays have one entry.

    `loss` is the index in `LOSSES`, and `decoding` the index in `DECODINGS`. `step` is :math:`\eta`, or :math:`B_0` if
    `adaptive` is 1. `squares` is :math:`\sum \|g\|_F^2`. W is `norm.scale[0]` times V. Without projection the radius is
    infinite.
    """

    V: NDArray[np.float64]
    z: NDArray[np.float64]
    r: NDArray[np.float64]
    loss: NDArray[np.int64]
    gamma: NDArray[np.float64]
    step: NDArray[np.float64]
    adaptive: NDArray[np.int64]
    squares: NDArray[np.float64]
    norm: Norms
    radius: float
    decoding: int

    def limits(self) -> Limits:
        """Return the allowed range of every integer in the state."""
        return {"loss": constant(self.loss), "adaptive": constant(self.adaptive)}


# payload (K + 1,) stores v = W x - max_k (W x)_k or, with the logistic loss, e^v followed by the sum of its entries.


@inline
def act_kernel(state, x, u, p, payload):
    z, scale, K = state.z, state.norm.scale[0], p.shape[0]
    scores(state.V, x, z)
    y_star = argmax(z, K)
    if state.loss[0] == LOGISTIC:
        payload[K] = exponentials(z, scale, z[y_star], K, payload)
        if state.decoding != THRESHOLDED:
            return decoded(state.decoding, y_star, state.gamma[0], payload, u, p)
        a = 1.0 - 1.0 / payload[K] if payload[K] <= 2.0 else 1.0  # 1 - p* if p* >= 1/2, else 1, p* = 1 / sum_k e^{v_k}
    else:
        for k in range(K):
            payload[k] = scale * (z[k] - z[y_star])
        a = hinge_gap(payload, y_star, K, state.loss[0])
    return greedy_or_uniform(y_star, max(a, state.gamma[0]), u, p)  # p' = (1 - q) e_y* + q/K, q = max(a, gamma)


@inline
def decoded(rule, y_star, gamma, payload, u, p):
    r"""Write :math:`(1 - \gamma) h(\mathrm{softmax}) + \gamma/K` into p, where h is the decoding, and return a draw
    from p.

    With probability :math:`\gamma` the draw is uniform, otherwise it is a draw from the decoded forecast.
    """
    K = p.shape[0]
    for k in range(K):
        p[k] = payload[k] / payload[K]
    decode(rule, y_star, p)
    return mixed_draw(gamma, u, p)


@inline
def hinge_gap(payload, y_star, K, loss):
    r"""Return the gap map a of the hinge or the smooth hinge loss, where :math:`m^*` is the margin of :math:`y^*`.

    Hinge: :math:`a = 1 - m^*` if :math:`m^* \le \kappa`, else 0. Smooth hinge: :math:`a = (1 - \min(1, m^*))^2`.
    """
    m_star = -payload[runner_up(payload, y_star, K)]
    if loss == SMOOTH_HINGE:
        return (1.0 - min(1.0, m_star)) ** 2
    return 1.0 - m_star if m_star <= KAPPA else 0.0


@inline
def learn_kernel(state, x, action, p, payload, correct):
    if not correct:  # g_t = 0
        return
    r, K = state.r, p.shape[0]
    if state.loss[0] == LOGISTIC:
        r_squared = logistic_slope(payload, action, 1.0 / (p[action] * LN2), K, r)
    else:
        r_squared = hinge_slope(payload, action, 1.0 / p[action], K, state.loss[0], r)
    eta = state.step[0]
    if state.adaptive[0] == 1:
        state.squares[0] += r_squared * squared_norm(x)
        eta /= math.sqrt(2.0 * (1e-8 + state.squares[0]))
    if r_squared == 0.0:  # beyond the margin
        return
    for k in range(K):
        r[k] *= eta
    descend_in_balls(state.V, x, r, state.norm, state.radius, state.z)


@inline
def logistic_slope(payload, y, weight, K, r):
    r"""Write :math:`\text{weight}\, (\mathrm{softmax} - e_y)` into r, and return :math:`\|r\|^2`.

    The gradient is the outer product :math:`g_t = r x'`.
    """
    p_star = 1.0 / payload[K]
    squares = 0.0
    for k in range(K):
        softmax = payload[k] * p_star
        r[k] = weight * (softmax - 1.0 if k == y else softmax)
        squares += r[k] * r[k]
    return squares


@inline
def hinge_slope(v, y, weight, K, loss, r):
    r"""Write :math:`\text{weight}\, l'(m) (e_y - e_{\tilde{k}})` into r, and return :math:`\|r\|^2`.

    :math:`m = z_y - z_{\tilde{k}}` is the margin of y, where :math:`\tilde{k} \ne y` is the class with
    the largest score.
    """
    other = runner_up(v, y, K)
    m = v[y] - v[other]
    if loss == SMOOTH_HINGE:  # l = 1 - 2m, (1 - m)^2, 0
        slope = 2.0 * min(1.0, max(0.0, 1.0 - m))
    else:  # l = 1 - m, but 0 where y = y* and m > kappa
        slope = 1.0 if m <= KAPPA else 0.0
    for k in range(K):
        r[k] = 0.0
    r[other] = weight * slope
    r[y] = -r[other]
    return 2.0 * r[other] * r[other]


class Gaptron(ScaledScores, InFrobeniusBall, KernelAgent):
    r"""Gradient descent on a surrogate loss; the gap between this loss and the mistake rate determines the probability
    of exploration.

    Problem: bandit multiclass, adversarial stream. The losses use the margin :math:`m = z_y - \max_{k \ne y} z_k` of
    the label at :math:`z = W x`:

    * "logistic", in base 2: :math:`-\log_2 \mathrm{softmax}(z)_y`; in nats the inequality in the proof is false;
    * "hinge": :math:`\max(0, 1 - m)`, counted as 0 in rounds where y is the argmax with :math:`m > \kappa = 1/2`;
    * "smooth-hinge": :math:`1 - 2 m` for :math:`m \le 0`, :math:`(1 - m)^2` up to :math:`m = 1`, 0 beyond.

    Update rule (:math:`W_1 = 0`, :math:`D = \sqrt{K} B` the Frobenius radius): let :math:`y^* = \arg\max_k (W_t x_t)_k`
    and :math:`q = \max(a, \gamma)` with the gap map a of the loss. The agent draws its action from
    :math:`p' = (1 - q) e_{y^*} + q/K`. Then :math:`W_{t+1} = \mathrm{Proj}_{\|W\|_F \le D}(W_t - \eta g_t)` with
    :math:`g_t = (1[\text{right}] / p'_y)\, \mathrm{grad}\, l_t(W_t)`.

    The gap maps (Table 2) use :math:`p^* = \max_k\, \mathrm{softmax}(W_t x_t)_k` and the margin :math:`m^*` of
    :math:`y^*`. Logistic: :math:`1 - p^*` if :math:`p^* \ge 1/2`, else 1. Hinge: :math:`1 - m^*` if
    :math:`m^* \le \kappa`, else 0. Smooth hinge: :math:`(1 - \min(1, m^*))^2`. With the logistic loss the agent
    therefore plays uniformly while :math:`p^* < 1/2`, even if the argmax is right. At the theorem's :math:`\gamma` it
    always plays uniformly unless :math:`T > K^2 R^2 D^2 / \ln 2`.

    Guarantee (theorem on the bandit setting; oblivious adversary, :math:`\|x_t\| \le R`, every :math:`\|U\|_F \le D`,
    hence every U with rows of norm at most B): at the default settings

    .. math::

        \mathbb{E}[M] \le \sum_t l_t(U) + \max\{2 K^2 R^2 D^2 / \ln 2, 2 K R D \sqrt{T / \ln 2}\}.

    The bounds for the hinge losses are `gaptron_bandit_hinge` and `gaptron_bandit_smooth_hinge`. For any fixed
    :math:`\gamma` and any step up to the wide one, projected or not, the additive term is
    :math:`D^2/(2\,\text{step}) + \gamma ((K-1)/K) T`. At the theorem's settings it never exceeds the maximum above,
    after any number of rounds. `surrogate_bound` is this term for the agent's loss. `bound` is the same for the
    logistic loss, and None for the other losses, because comparators are measured by their logistic loss.

    The wide step is unpublished. The paper's inequality also holds at a step of order :math:`\gamma/(K R^2)`, K times
    the published step (proof in docs/gaptron-wide-step.md). The factor under the roots is then K instead of
    :math:`K^2`: `gaptron_wide` is about :math:`1.52 R D \sqrt{K T}`, instead of the paper's
    :math:`2.40 K R D \sqrt{T}`.

    With another decoding h (for the logistic loss only), the agent draws its action from
    :math:`(1 - \gamma) h(\mathrm{softmax}(W x)) + \gamma/K`. With the decoding's constant c, the bound is
    `template_fixed`, for steps up to :math:`2 c \gamma (\ln 2)/(K R^2)`. With half-log the term is
    :math:`1.70 R D \sqrt{K T}` (new: see docs/theory/half-log.md).

    Cost: :math:`O(K\, \mathrm{nnz}(x))` per round for sparse contexts, :math:`O(K d)` for dense ones, and K
    exponentials. Memory: :math:`K d` numbers.

    Parameters
    ----------
    loss
        "logistic", "hinge" or "smooth-hinge".
    norm_bound
        B, the bound on each row's norm (:math:`D = \sqrt{K} B` in the paper, a Frobenius ball).
    gamma
        Exploration rate in [0, 1] (:math:`\gamma` in the paper), or "theory". "theory" makes the two terms of the bound
        equal and needs the horizon; it is :math:`\min\{1, K R D / \sqrt{T \ln 2}\}` by default.
    step
        :math:`\eta` in the paper: a number, "theory", "wide" or "adaptive". For the logistic, the hinge and the smooth
        hinge loss, "theory" is :math:`\gamma (\ln 2) / (2 K^2 R^2)`, :math:`\gamma / (2 K^2 R^2)` and
        :math:`\gamma / (4 K^2 R^2)`. "wide" is :math:`2.5 \gamma (\ln 2) / (2 K R^2)`, :math:`\gamma / (2 K R^2)` and
        :math:`\gamma / (4 K R^2)`. "adaptive" is
        :math:`\mathrm{step\_scale} / \sqrt{2 (10^{-8} + \sum_{s\le t} \|g_s\|_F^2)}`, the practical variant of
        Shibukawa et al., App. H.1, who attribute it to Gappletron.
    decoding
        "thresholded" is Gaptron's rule. The logistic loss also allows "half-log", "sample", "sparsemax", "randomized"
        and "gap" (`banditlab.numerics.decoding`). With these rules, "theory" sets `gamma` and
        `step` for the bound `template_fixed`.
    step_scale
        :math:`B_0`, the factor of the adaptive step, which other steps do not use; default 10.
    project
        Whether W is projected onto the Frobenius ball; "auto" projects unless the step is adaptive, as in the sources.

    Raises
    ------
    UsageError
        The loss or the decoding is unknown; a decoding other than "thresholded" is combined with a hinge loss or the
        wide step; `gamma` is outside [0, 1]; `norm_bound`, `step` or `step_scale` is not above 0; or `gamma` is 0
        with the step "theory" or "wide", which makes the step 0.
    HorizonRequiredError
        `gamma = "theory"` and the horizon is unknown.

    References
    ----------
    D. van der Hoeven. Exploiting the surrogate gap in online multiclass classification. NeurIPS 2020.
    Y. Shibukawa, S. Sakaue, T. Tsuchiya, K. Yamanishi. arXiv 2502.18709, NeurIPS 2025, App. H.1 (the adaptive step).
    """

    id = "gaptron"
    group = "theory"
    summary = "first-order; randomises actions by the surrogate gap of the base-2 logistic, hinge or smooth hinge loss"
    reference = "van der Hoeven, NeurIPS 2020, bandit setting; the wide step: ours, unpublished"
    bound_unit = "bits"
    act_kernel = act_kernel
    learn_kernel = learn_kernel
    sparse = True

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        loss: Literal["logistic", "hinge", "smooth-hinge"] = "logistic",
        norm_bound: float = 1.0,
        gamma: float | Literal["theory"] = "theory",
        step: float | Literal["theory", "wide", "adaptive"] = "theory",
        decoding: Decoding = "thresholded",
        step_scale: float = 10.0,
        project: bool | Literal["auto"] = "auto",
    ) -> None:
        super().__init__(problem, rng)
        K, d = problem.n_classes, problem.n_features
        self.loss = one_of("loss", loss, LOSSES)
        self.norm_bound = positive("norm_bound", norm_bound)
        D = self.frobenius_bound
        self.decoding = one_of("decoding", decoding, DECODINGS)
        if self.decoding != "thresholded" and (self.loss != "logistic" or step == "wide"):
            what = f"loss = {self.loss!r}" if self.loss != "logistic" else "step = 'wide'"
            raise UsageError(f"decoding must be 'thresholded' with {what}, got {decoding!r}")
        self.gamma = self._resolved_gamma(gamma, wide=step == "wide")
        self.step: float | str = resolved_step(step, self.gamma, self._theory_step)
        self.step_scale = positive("step_scale", step_scale)
        adaptive = self.step == "adaptive"
        if project not in (True, False, "auto"):
            raise UsageError(f"project must be true, false or 'auto', got {project!r}")
        self.project = (not adaptive) if project == "auto" else bool(project)
        self.payload_size = K + 1
        self.state = State(
            V=matrix(K, d),
            z=np.zeros(K),
            r=np.zeros(K),
            loss=np.array([LOSSES.index(self.loss)]),
            gamma=np.array([self.gamma]),
            step=np.array([self.step_scale if adaptive else float(self.step)]),
            adaptive=np.array([int(adaptive)]),
            squares=np.zeros(1),
            norm=Norms.of(1),
            radius=D if self.project else math.inf,
            decoding=DECODINGS.index(self.decoding),
        )

    def _resolved_gamma(self, gamma: float | str, wide: bool) -> float:
        if gamma != "theory":
            return probability("gamma", number("gamma", gamma, "theory"))
        K, R, D = self.problem.n_classes, self.problem.radius, self.frobenius_bound
        T = self.problem.known_horizon("gamma = 'theory'", "give gamma as a number")
        if self.decoding != "thresholded":
            return template_gamma(K, R, D, T, self.decoding)
        return gaptron_gamma(K, R, D, T, self.loss, wide=wide)

    def _theory_step(self, wide: bool) -> float:
        if self.decoding != "thresholded":
            return template_step(self.problem.n_classes, self.problem.radius, self.gamma, self.decoding)
        return gaptron_step(self.problem.n_classes, self.problem.radius, self.gamma, self.loss, wide=wide)

    def bound(self, rounds: int) -> float | None:
        """Return `surrogate_bound` for the logistic loss, in bits, and None for other losses."""
        return self.surrogate_bound(rounds) if self.loss == "logistic" else None

    def surrogate_bound(self, rounds: int) -> float | None:
        r"""Return :math:`D^2/(2\, \text{step}) + \gamma ((K-1)/K) T`, a bound on :math:`\mathbb{E}[M]` minus the
        comparator's loss, measured by `loss`.

        Returns None for the adaptive step, and for a step above the largest one for which the bound is proved. The
        largest one is the wide step, or, with a decoding other than "thresholded", the largest step of its theorem.
        """
        K, R = self.problem.n_classes, self.problem.radius
        if self.decoding != "thresholded":
            if not isinstance(self.step, float) or self.gamma == 0.0:
                return None
            value = template_fixed(K, R, self.frobenius_bound, self.step, self.gamma, rounds, self.decoding)
            return None if math.isnan(value) else value
        largest = gaptron_step(K, R, self.gamma, self.loss, wide=True)
        if not isinstance(self.step, float) or self.step > largest * (1.0 + 1e-12):
            return None
        return gaptron_fixed(K, self.frobenius_bound, self.step, self.gamma, rounds)
