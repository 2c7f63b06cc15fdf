"""Gradient descent on the base-2 logistic loss with one bit of feedback and a decoding rule."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.linear import InFrobeniusBall, LinearScores, resolved_step
from banditlab.bounds.template import WIDE, template_fixed, template_gamma, template_step
from banditlab.errors import UsageError
from banditlab.numerics.argmax import argmax
from banditlab.numerics.decoding import DECODINGS, Decoding, decode
from banditlab.numerics.draws import mixed_draw
from banditlab.numerics.jit import inline
from banditlab.numerics.simd_math import exponentials
from banditlab.numerics.vectors import add, matrix, scores, squared_norm
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import at_least, number, one_of, positive, probability

LN2 = math.log(2.0)


class State(NamedTuple):
    r"""The state: W (K, d), padded, and the work arrays z, r (K,).

    `step` is :math:`\eta`, or :math:`B_0` if `adaptive` is 1. `squares` (1,) is :math:`\sum \|g\|_F^2`.
    `decoding` is the index in `DECODINGS`.
    """

    W: NDArray[np.float64]
    z: NDArray[np.float64]
    r: NDArray[np.float64]
    gamma: float
    step: float
    adaptive: bool
    squares: NDArray[np.float64]
    decoding: int


# payload (K,) stores s = softmax(W x).


@inline
def act_kernel(state, x, u, p, payload):
    z, K = state.z, p.shape[0]
    scores(state.W, x, z)
    best = argmax(z, K)
    top = 1.0 / exponentials(z, 1.0, z[best], K, payload)
    for k in range(K):
        payload[k] *= top  # s = softmax(W x)
        p[k] = payload[k]
    decode(state.decoding, best, p)
    return mixed_draw(state.gamma, u, p)  # p = (1 - gamma) h(s) + gamma/K


@inline
def learn_kernel(state, x, action, p, payload, correct):
    if not correct:  # g_t = 0
        return
    r, K = state.r, p.shape[0]
    weight = 1.0 / (p[action] * LN2)  # g_t = (s - e_y) (x) x / (p_y ln 2); r is its factor over the classes
    r_squared = 0.0
    for k in range(K):
        r[k] = weight * (payload[k] - 1.0 if k == action else payload[k])
        r_squared += r[k] * r[k]
    eta = state.step
    if state.adaptive:
        state.squares[0] += r_squared * squared_norm(x)
        eta /= math.sqrt(2.0 * (1e-8 + state.squares[0]))
    for k in range(K):
        add(state.W, k, -eta * r[k], x)


class DecodedDescent(LinearScores, InFrobeniusBall, KernelAgent):
    r"""Gradient descent on the base-2 logistic loss; actions are drawn from the decoded softmax, with uniform
    exploration.

    Problem: bandit multiclass, adversarial stream.

    Update rule (:math:`W_1 = 0`, no projection): let :math:`s = \mathrm{softmax}(W_t x_t)` and let h be the decoding.
    The agent draws its action from :math:`p = (1 - \gamma) h(s) + \gamma/K`. Then :math:`W_{t+1} = W_t - \eta g_t` with
    :math:`g_t = (1[\text{right}] / p_y) (s - e_y) \otimes x_t / \ln 2`, an unbiased estimate of the gradient of
    :math:`l = -\log_2 s_y`.

    Guarantee (oblivious adversary, :math:`\|x_t\| \le R`). Let c be the decoding's constant, 1/2 for half-log, and
    :math:`b = R^2/\ln 2`. For steps :math:`\eta \le 2 c \gamma/(b K)`, every U and any number of rounds,
    :math:`\mathbb{E}[M] \le \sum_t l_t(U) + \|U\|_F^2/(2 \eta) + \gamma (1 - 1/K) T`. At the default settings and for
    :math:`\|U\|_F \le D = \sqrt{K} B` the additive term is at most :math:`D \sqrt{b K T/c}`; with half-log it is
    :math:`1.70 R D \sqrt{K T}`.

    Half-log and sparsemax allow larger steps, :math:`2 h \gamma/(K R^2)` with :math:`h = 0.427` and 0.496, because a
    label that is likely to be played has a small importance weight. The additive terms are then 1.53 and
    :math:`1.42 R D \sqrt{K T}`. `bound` returns the additive term for :math:`\|U\|_F = D`, in bits. It returns None for
    the adaptive step, for larger steps and for :math:`\gamma = 0`.

    With `delay` :math:`= \tau` the guarantee holds if every bit arrives at most :math:`\tau` rounds late, in any order,
    for steps :math:`\eta \le 2 c/(b (K/\gamma + 2 \tau))`. The delay adds :math:`b \tau \|U\|_F^2/(2 c)` mistakes,
    whatever T. The delay may depend on the context, on the label and on whether the action is right, but not otherwise
    on the agent's random draws. The proof uses that W is a sum of updates, of which a late bit only delays one term,
    and that the expected update is the gradient, without an importance weight.

    The proof follows that of Gaptron and RDUE, whose decoding rules are available here as "thresholded" and
    "randomized". The rule half-log and the constants are new: see docs/theory/half-log.md.

    Cost: :math:`O(K\, \mathrm{nnz}(x))` per round for sparse contexts, :math:`O(K d)` for dense ones, and K
    exponentials. Memory: :math:`K d` numbers.

    Parameters
    ----------
    norm_bound
        B, the bound on the norm of each row of a comparator. It determines :math:`\gamma` (:math:`D = \sqrt{K} B`); W
        is not projected.
    gamma
        Exploration rate in [0, 1], or "theory", which needs the horizon: :math:`\min\{1, D \sqrt{b K/(4 c T)}\}`, or
        :math:`\min\{1, R D \sqrt{K/(4 h T)}\}` with the wide step.
    decoding
        "half-log", "sample", "sparsemax", "randomized", "gap" or "thresholded" (`banditlab.numerics.decoding`).
    step
        :math:`\eta`: a number, "theory", "wide" or "adaptive". "theory" is :math:`2 c \gamma/(b K)`. "wide", for
        half-log and sparsemax, is :math:`2 h \gamma/(K R^2)`. "adaptive" is
        :math:`\mathrm{step\_scale} / \sqrt{2 (10^{-8} + \sum_{s\le t} \|g_s\|_F^2)}`, which Shibukawa et al. use for
        RDUE and Gaptron (App. H.1).
    step_scale
        :math:`B_0` in the adaptive step, in units of a norm of W, 10 by default; other steps do not use it.
    delay
        :math:`\tau`, the largest number of rounds by which a bit may be late. It determines the theory's step and the
        bound.

    Raises
    ------
    UsageError
        `gamma` is outside [0, 1]; `norm_bound`, `step` or `step_scale` is not above 0; the decoding is unknown; `gamma`
        is 0 and `step` is "theory" or "wide", so the step would be 0; the wide step is combined with a delay, or with a
        decoding for which it is not defined; or `delay` is not an integer of at least 0.
    HorizonRequiredError
        `gamma = "theory"` and the horizon is unknown.

    References
    ----------
    D. van der Hoeven. Exploiting the surrogate gap in online multiclass classification. NeurIPS 2020.
    S. Sakaue, H. Bao, T. Tsuchiya, T. Oki. Online structured prediction with Fenchel-Young losses and improved surrogate
    regret for online multiclass classification with logistic loss. COLT 2024.
    """

    id = "decoded-descent"
    group = "theory"
    summary = "first-order: logistic gradient descent with a decoding rule, by default half-log"
    reference = "ours, unpublished; the argument of van der Hoeven, NeurIPS 2020, and Sakaue et al., COLT 2024"
    bound_unit = "bits"
    act_kernel = act_kernel
    learn_kernel = learn_kernel
    sparse = True

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        gamma: float | Literal["theory"] = "theory",
        decoding: Decoding = "half-log",
        step: float | Literal["theory", "wide", "adaptive"] = "theory",
        step_scale: float = 10.0,
        delay: int = 0,
    ) -> None:
        super().__init__(problem, rng)
        K, d = problem.n_classes, problem.n_features
        self.norm_bound = positive("norm_bound", norm_bound)
        self.delay = self.bound_late = at_least("delay", delay, 0)
        self.decoding = one_of("decoding", decoding, DECODINGS)
        if step == "wide" and self.decoding not in WIDE:
            raise UsageError(
                f"decoding must be one of {', '.join(map(repr, WIDE))} with step = 'wide', got {decoding!r}"
            )
        if step == "wide" and self.delay:
            raise UsageError(f"step = 'wide' has no proof for delayed feedback: delay must be 0, got {self.delay}")
        if gamma == "theory":
            T = problem.known_horizon("gamma = 'theory'", "give gamma as a number")
            self.gamma = template_gamma(K, problem.radius, self.frobenius_bound, T, self.decoding, wide=step == "wide")
        else:
            self.gamma = probability("gamma", number("gamma", gamma, "theory"))
        self.step: float | str = resolved_step(step, self.gamma, self._theory_step)
        self.step_scale = positive("step_scale", step_scale)
        adaptive = self.step == "adaptive"
        self.payload_size = K
        self.state = State(
            W=matrix(K, d),
            z=np.zeros(K),
            r=np.zeros(K),
            gamma=self.gamma,
            step=self.step_scale if adaptive else float(self.step),
            adaptive=adaptive,
            squares=np.zeros(1),
            decoding=DECODINGS.index(self.decoding),
        )

    def _theory_step(self, wide: bool) -> float:
        K, R = self.problem.n_classes, self.problem.radius
        return template_step(K, R, self.gamma, self.decoding, wide=wide, delay=self.delay)

    def bound(self, rounds: int) -> float | None:
        r"""Return :math:`D^2/(2\, \text{step}) + \gamma (1 - 1/K) T`, a bound on :math:`\mathbb{E}[M]` minus the
        comparator's loss in bits.

        Returns None for the adaptive step, for a step above that of the theorem, and for :math:`\gamma = 0`.
        """
        if not isinstance(self.step, float) or self.gamma == 0.0:
            return None
        K, R = self.problem.n_classes, self.problem.radius
        value = template_fixed(K, R, self.frobenius_bound, self.step, self.gamma, rounds, self.decoding, self.delay)
        return None if math.isnan(value) else value
