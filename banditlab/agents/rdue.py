"""RDUE: randomised decoding with uniform exploration (Shibukawa, Sakaue, Tsuchiya and Yamanishi, NeurIPS 2025)."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.linear import ScaledScores
from banditlab.bounds.rdue import rdue_decoded, rdue_decoded_gamma, rdue_fixed, rdue_gamma, rdue_radius
from banditlab.errors import UsageError
from banditlab.numerics.argmax import argmax
from banditlab.numerics.decoding import DECODINGS, Decoding, decode
from banditlab.numerics.draws import mixed_draw
from banditlab.numerics.jit import inline
from banditlab.numerics.running_norm import Norms, descend_in_balls
from banditlab.numerics.simd_math import exponentials
from banditlab.numerics.vectors import matrix, scores, squared_norm
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import number, one_of, positive, probability

LN2 = math.log(2.0)


class State(NamedTuple):
    r"""The state: V (K, d), padded, which is W up to a scale; work arrays `z`, `r` (K,); the other arrays have one entry.

    `scale` and `floor` determine the step :math:`\text{scale} / \sqrt{2 (\text{floor} + \text{squares})}`, where
    `squares` is :math:`\sum \|G\|_F^2`. W is `norm.scale[0]` times V; the radius is infinite without projection.
    `decoding` is the index in `DECODINGS`.
    """

    V: NDArray[np.float64]
    z: NDArray[np.float64]
    r: NDArray[np.float64]
    gamma: NDArray[np.float64]
    scale: NDArray[np.float64]
    floor: NDArray[np.float64]
    squares: NDArray[np.float64]
    norm: Norms
    radius: float
    decoding: int


@inline
def act_kernel(state, x, u, p, payload):
    z, K = state.z, p.shape[0]
    scores(state.V, x, z)  # theta = W x, up to the scale
    best = argmax(z, K)
    q_max = 1.0 / exponentials(z, LN2 * state.norm.scale[0], z[best], K, payload)
    for k in range(K):
        payload[k] *= q_max  # q = softmax(theta ln 2)
        p[k] = payload[k]
    decode(state.decoding, best, p)
    return mixed_draw(state.gamma[0], u, p)  # gamma is q_0


@inline
def learn_kernel(state, x, action, p, payload, correct):
    if not correct:  # G_t = 0
        return
    r, K = state.r, p.shape[0]
    weight = 1.0 / p[action]  # G_t = (q - e_y) (x) x / p(y), r its factor in the classes
    r_squared = 0.0
    for k in range(K):
        r[k] = weight * (payload[k] - 1.0 if k == action else payload[k])
        r_squared += r[k] * r[k]
    state.squares[0] += r_squared * squared_norm(x)
    if state.squares[0] == 0.0:
        return
    eta = state.scale[0] / math.sqrt(2.0 * (state.floor[0] + state.squares[0]))
    for k in range(K):
        r[k] *= eta
    descend_in_balls(state.V, x, r, state.norm, state.radius, state.z)


class RDUE(ScaledScores, KernelAgent):
    r"""Decode the scores by a randomised rule whose mistakes the surrogate loss bounds, and explore uniformly.

    Problem: bandit multiclass, adversarial stream. The surrogate is the base-2 Fenchel-Young loss of the scores
    :math:`\theta = W x`, :math:`S(\theta, y) = \log_2 \sum_j 2^{\theta_j} - \theta_y`, whose gradient is
    :math:`(q - e_y) \otimes x` with :math:`q = \mathrm{softmax}(\theta \ln 2)`.

    Update rule (:math:`W_1 = 0`): with probability :math:`q_0` play a uniform class. Otherwise play the argmax of
    :math:`\theta` (the first one on ties) with probability :math:`1 - r`, and a draw from q with probability
    :math:`r = \min\{1, 2 (1 - \max_k q_k)\}`. So :math:`p(y) = q_0/K + (1 - q_0) ((1 - r) 1[y = \arg\max] + r q_y)`;
    for another `decoding`, its probability of y replaces :math:`(1 - r) 1[y = \arg\max] + r q_y`. The update is
    :math:`W_{t+1} = \mathrm{Proj}(W_t - \eta_t G_t)` with
    :math:`G_t = (1[\text{right}] / p(y)) (q - e_y) \otimes x_t`. The step is
    :math:`\eta_t = B' / \sqrt{2 \sum_{s\le t} \|G_s\|_F^2}`, where :math:`B'` is the Frobenius diameter of the set onto
    which Proj projects.

    Units: S is the base-2 logistic loss of the logits :math:`\theta \ln 2`. A comparator U with logits :math:`U x` and
    rows of norm at most B is therefore :math:`W = U / \ln 2` here. Its loss is
    :math:`S = -\log_2\, \mathrm{softmax}(U x)_y`, the logistic loss in bits. The set is the Frobenius ball of radius
    :math:`D = \sqrt{K} B / \ln 2`, which contains all such W. The paper's B is :math:`B' = 2 D`.

    Guarantee (oblivious adversary, :math:`\|x_t\| \le R`; :math:`a = 1 - \ln 2`, :math:`b = 2 (\ln 2) R^2`): the
    decoding is wrong with probability at most :math:`(1 - a) S`, so

    .. math::

        \mathbb{E}[M] \le \sum_t S(U x_t / \ln 2, y_t) + (b/(2a) + 1) B' \sqrt{K T}

    at :math:`q_0 = B' \sqrt{K/T}`. For any fixed :math:`q_0` the additive term is
    :math:`q_0 ((K-1)/K) T + b K B'^2/(2 a q_0)` after any number T of rounds, which `bound` returns in bits. At the
    theorem's :math:`q_0` it is smaller than the additive term above. `bound` is None for the adaptive step and without
    the projection. The theorem is implemented as published, but its :math:`1 - a = 0.693` is not sharp. The sharp value
    is 0.518 for any K: the largest value of :math:`(1 - 2 q^2)/\log_2(1/q)` over the probability :math:`q \le 1/2` of
    the label, which is attained with two classes. With another decoding, a is the constant of that decoding, 1/2 for
    half-log, and :math:`q_0 = B' \sqrt{b K/(2 a T)}` makes the two terms equal (our result: docs/theory/half-log.md).

    Cost: :math:`O(K\, \mathrm{nnz}(x))` per round for sparse contexts, :math:`O(K d)` for dense ones, and K
    exponentials. Memory: :math:`K d` numbers.

    Parameters
    ----------
    norm_bound
        B, the largest norm of a row of a comparator U, whose logits in nats are :math:`U x` (the paper's B is the
        Frobenius diameter above).
    gamma
        Exploration rate in [0, 1] (:math:`q_0` in the paper), or "theory": :math:`\min\{1, B' \sqrt{K/T}\}`, which
        needs the horizon. With another decoding it is :math:`\min\{1, B' \sqrt{b K/(2 a T)}\}`.
    decoding
        Decoding rule: "randomized" as in the paper, "half-log", "sample", "sparsemax", "gap" or "thresholded"
        (`banditlab.numerics.decoding`).
    step
        "theory" is :math:`B' / \sqrt{2 \sum \|G\|_F^2}`. "adaptive" is
        :math:`\mathrm{step\_scale} / \sqrt{2 (10^{-8} + \sum \|G\|_F^2)}`, as in the paper's experiments.
    step_scale
        The numerator of the adaptive step, which has the unit of W; "theory" does not use it.
    project
        Whether W is projected onto the Frobenius ball; "auto" projects unless the step is adaptive, as in the paper.

    Raises
    ------
    UsageError
        `gamma` is outside [0, 1], `norm_bound` or `step_scale` is not above 0, or `decoding`, `step` or `project` is
        unknown.
    HorizonRequiredError
        `gamma = "theory"` and the horizon is unknown.

    References
    ----------
    Y. Shibukawa, S. Sakaue, T. Tsuchiya, K. Yamanishi. Bandit and delayed feedback in online structured prediction.
    NeurIPS 2025, arXiv 2502.18709 (App. H.1 for the experiments' settings).
    """

    id = "rdue"
    group = "theory"
    summary = r"first-order, randomised decoding of base-2 scores, $\sqrt{K T}$ with proved constants"
    reference = "Shibukawa, Sakaue, Tsuchiya and Yamanishi, NeurIPS 2025, inverse-weighted estimator, multiclass"
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
        decoding: Decoding = "randomized",
        step: Literal["theory", "adaptive"] = "theory",
        step_scale: float = 10.0,
        project: bool | Literal["auto"] = "auto",
    ) -> None:
        super().__init__(problem, rng)
        K, d = problem.n_classes, problem.n_features
        self.norm_bound = positive("norm_bound", norm_bound)
        D = rdue_radius(K, self.norm_bound)
        self.decoding = one_of("decoding", decoding, DECODINGS)
        self.gamma = self._resolved_gamma(gamma, 2.0 * D)
        self.step = one_of("step", step, ("theory", "adaptive"))
        self.step_scale = positive("step_scale", step_scale)
        adaptive = self.step == "adaptive"
        if project not in (True, False, "auto"):
            raise UsageError(f"project must be true, false or 'auto', got {project!r}")
        self.project = (not adaptive) if project == "auto" else bool(project)
        self.payload_size = K
        self.state = State(
            V=matrix(K, d),
            z=np.zeros(K),
            r=np.zeros(K),
            gamma=np.array([self.gamma]),
            scale=np.array([self.step_scale if adaptive else 2.0 * D]),
            floor=np.array([1e-8 if adaptive else 0.0]),
            squares=np.zeros(1),
            norm=Norms.of(1),
            radius=D if self.project else math.inf,
            decoding=DECODINGS.index(self.decoding),
        )

    def _resolved_gamma(self, gamma: float | str, diameter: float) -> float:
        if gamma != "theory":
            return probability("gamma", number("gamma", gamma, "theory"))
        K, T = self.problem.n_classes, self.problem.known_horizon("gamma = 'theory'", "give gamma as a number")
        if self.decoding == "randomized":
            return rdue_gamma(K, diameter, T)
        return rdue_decoded_gamma(K, self.problem.radius, diameter, T, self.decoding)

    def bound(self, rounds: int) -> float | None:
        r"""Return :math:`q_0 ((K-1)/K) T + b K B'^2/(2 a q_0)`, a bound on :math:`\mathbb{E}[M]` minus the comparator's
        loss in bits.

        Returns None if the step is adaptive, if there is no projection, or if :math:`q_0 = 0`.
        """
        if self.step == "adaptive" or not self.project or self.gamma == 0.0:
            return None
        K, R = self.problem.n_classes, self.problem.radius
        diameter = 2.0 * rdue_radius(K, self.norm_bound)
        if self.decoding == "randomized":
            return rdue_fixed(K, R, diameter, self.gamma, rounds)
        return rdue_decoded(K, R, diameter, self.gamma, rounds, self.decoding)
