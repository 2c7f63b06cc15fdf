"""StackCB: experts on several views of a context, combined by stacking, played by inverse-gap weighting."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.inverse_gap.class_models import sigmoid
from banditlab.agents.inverse_gap.fastcb import inverse_gap
from banditlab.agents.second_order import LARGEST_WHOLE
from banditlab.agents.stacked.change import cusum
from banditlab.agents.stacked.cold_start import COLUMNS, add_bounds, is_due, target_of_a_miss
from banditlab.agents.stacked.experts import WEIGHT, Bank, bank, read_expert, reset_bank, update_expert
from banditlab.agents.stacked.linear_experts import (
    LINEAR,
    Diagonals,
    linear_experts,
    read_linear,
    reset_linear,
    ridge_margin,
    update_linear,
)
from banditlab.agents.stacked.softmax_stack import (
    SoftmaxStack,
    begin,
    compete,
    learn_softmax,
    logit,
    rivals,
    softmax_stack,
    write_scores,
)
from banditlab.agents.stacked.stack import Stack, learn_stack, least_loss, margin, reset, stack
from banditlab.agents.stacked.views import (
    Scale,
    empty_scale,
    frequencies,
    has_moved,
    measure,
    reads_ranks,
    size_of_views,
    write_views,
)
from banditlab.errors import UsageError
from banditlab.numerics.argmax import argmax
from banditlab.numerics.draws import draw
from banditlab.numerics.jit import borrow, inline, njit, read_only
from banditlab.numerics.limits import Limits
from banditlab.numerics.packed_symmetric import width, zeros
from banditlab.numerics.tanh_root import aioli_roots
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import at_least, one_of, positive, true_or_false

MEMORY = 2048
"""Rounds that are stored for replay."""
LAST_REBUILD = 512
r"""The scale is estimated again at :math:`n = 2, 4, 8, \dots` until here, and until `MEMORY` where the contexts drift."""
MOST_AFTER_CHANGE = 2000
"""Most of the last rounds that are counted as learnt after a change."""
ALARM, MOST_AGAIN, CONTRADICTED = 14.0, 256, 10.0
"""G above which the rounds since it was 0 are read again, how many at most, and their G above which a change is called."""
FLOOR = 100
"""No class's probability is below :math:`1/(K (n + m))`, m this number."""
GREEDY = 1e9
"""g where exploration has no use; finite, so that ties stay ties."""
GROWTH = 0.25
"""The power of n in :math:`g_n`."""
LAMBDA = 0.001
r""":math:`\lambda` of the first expert on each linear view and of the Fourier experts."""
LEAST_HOPE = 0.25
r"""The least :math:`\pi`, the share of yes among the virtual labels."""
LATELY, AT_FIRST = 500, 100
"""Rounds that the share of hits is of, about, and the pseudo-rounds that it begins with, half of them hits."""
SecondOrder = Literal["auto", "full", "diagonal"]


class Memory(NamedTuple):
    """The last rounds as a circular buffer: X (N, d), action (N,), hit (N,)."""

    X: NDArray[np.float64]
    action: NDArray[np.int64]
    hit: NDArray[np.bool_]


class Scratch(NamedTuple):
    r"""Work arrays: m, q, z (E M, padded), the models expert by expert; :math:`\zeta` (K,); margins; views.

    margins has the features of a class for the stacks, (E,) or with a third stack (2 E + 1,).
    """

    m: NDArray[np.float64]
    q: NDArray[np.float64]
    z: NDArray[np.float64]
    zeta: NDArray[np.float64]
    margins: NDArray[np.float64]
    views: NDArray[np.float64]


class State(NamedTuple):
    """The state: `linear` and `fourier`, the experts, with M models each; W, the Fourier frequencies; and the arrays
    below.

    `by_rank` (blocks,) says which blocks use ranks. M is K, or 1 if one model serves two classes: it is then class 0's
    model, and class 1's margin is its negative. counts (5,) has the updates since the last change, the next index in
    the memory, the rounds since G was 0, the rebuilds, and the changes. G (1,) is the detector's statistic. settings
    (2,) has :math:`g_n / n^{1/4}` and the G at which a change is detected. hits (1,) is the recent share of hits.
    softmax is the third stack, or None. cold (1,) says whether `stacked.cold_start` applies.
    """

    linear: Bank | Diagonals
    fourier: Bank
    W: NDArray[np.float64]
    by_rank: NDArray[np.bool_]
    scale: Scale
    stack: Stack
    memory: Memory
    scratch: Scratch
    counts: NDArray[np.int64]
    G: NDArray[np.float64]
    settings: NDArray[np.float64]
    hits: NDArray[np.float64]
    softmax: SoftmaxStack | None
    cold: NDArray[np.bool_]

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        largest = np.array([2**53, len(self.memory.X) - 1, 2**53, 2**53, 2**53])
        return {"counts": (0, largest), "memory.action": (0, len(self.scratch.zeta) - 1)}


ROUNDS, PLACE, SINCE, EPOCH, CHANGES = range(5)
SHARPNESS, THRESHOLD = range(2)


@inline(arrays="views")
def view_of(views, b, n_blocks, size):
    """Return the part of `views` that holds Fourier block b; the last `n_blocks` parts, of `size` numbers each, are
    blocks.
    """
    start = views.shape[0] - (n_blocks - b) * size
    return borrow(views)[start : start + size]


@inline
def experts_of(state):
    """Return the number of experts."""
    return state.stack.theta.shape[0] - 1


@inline
def linear_of(state):
    """Return the number of linear experts."""
    return experts_of(state) - state.fourier.P.shape[0]


@njit
def act_kernel(state, x, u, p, payload):
    scratch, E, K = state.scratch, experts_of(state), p.shape[0]
    M, read = state.fourier.P.shape[1], 1 + scratch.margins.shape[0]
    views = payload[read:]
    write_views(state.scale, state.W, state.by_rank, state.fourier.H.shape[2], x, views)
    read_experts(state, views, x.shape[0] + 1, M)
    margins_of(state)
    for k in range(M):  # zeta_k = theta'(z_1k, ..., z_Ek, 1)
        scratch.zeta[k] = margin(state.stack.theta, scratch.z[k : E * M : M])
    compete(state.softmax, state.stack, scratch.z, K, scratch.zeta)
    n = state.counts[ROUNDS] + 1.0
    if state.cold[0]:
        add_bounds(scratch.m, scratch.q, lift(state), LINEAR, M, n, x.shape[0], scratch.zeta)
    if M < K:
        scratch.zeta[1] = -scratch.zeta[0]
    inverse_gap(scratch.zeta, state.settings[SHARPNESS] * n**GROWTH, p)
    at_least_once_in(K * (n + FLOOR), argmax(scratch.zeta, K), p)
    action = draw(p, u[1])
    payload[0] = state.counts[EPOCH]
    for e in range(E):
        payload[1 + e] = scratch.z[e * M + (action if M == K else 0)]
    rivals(state.softmax, scratch.z, action, K, payload[1 + E : read])
    return action, False


@inline
def at_least_once_in(n, best, p):
    """Raise every :math:`p_k` to at least :math:`1/n`, and reduce the best class's probability accordingly."""
    for k in range(p.shape[0]):
        if k != best and p[k] < 1.0 / n:
            p[best] -= 1.0 / n - p[k]
            p[k] = 1.0 / n


@njit
def read_experts(state, views, m, M):
    """Write m and q of every expert and model into `scratch`; all Fourier experts use the q of the first one."""
    scratch, size, n_blocks = state.scratch, state.fourier.H.shape[2], state.fourier.P.shape[0]
    read_linear(state.linear, views, m, scratch.m, scratch.q)
    for b in range(n_blocks):
        e = linear_of(state) + b
        row, before = slice(e * M, (e + 1) * M), slice((e - 1) * M, e * M)
        view = view_of(views, b, n_blocks, size)
        read_expert(state.fourier, b, view, scratch.m[row], scratch.q[row], b > 0, scratch.q[before])


@njit
def margins_of(state):
    """Write :math:`z_{ek}` of every expert and model into `scratch`."""
    scratch, lifted = state.scratch, lift(state)
    if lifted != 0.0:
        for i in range(scratch.m.shape[0]):
            scratch.m[i] += lifted * max(0.0, scratch.q[i])
    # z = m + w q (pi - sigmoid(z)), in m the term w (pi - 1/2) q of `lift`
    aioli_roots(scratch.m, scratch.q, WEIGHT, scratch.z)
    M, middle = state.fourier.P.shape[1], middle_of(state)
    for i in range(LINEAR * M, linear_of(state) * M):
        scratch.z[i] = ridge_margin(scratch.m[i], scratch.q[i], middle)


@inline
def shares_a_model(state):
    """Return whether one model serves two classes."""
    return state.fourier.P.shape[1] < state.scratch.zeta.shape[0]


@inline
def middle_of(state):
    """Return the mean of the ridge expert's two targets: 1 and 0, or 1/2 and -1/2 if one model serves two classes."""
    return 0.0 if shares_a_model(state) else 0.5


@inline
def lift(state):
    r"""Return :math:`w (\pi - 1/2)`.

    The root of :math:`z = m + w q (\pi - \mathrm{sigmoid}(z))` is `aioli_root` at :math:`m + w (\pi - 1/2) q`, because
    :math:`\mathrm{sigmoid}(z) - 1/2 = \tanh(z/2)/2`.
    """
    if shares_a_model(state):
        return 0.0  # one model of two classes: what lifts one lowers the other
    return WEIGHT * (min(0.5, max(LEAST_HOPE, state.hits[0])) - 0.5)


@inline
def miss_penalty(state):
    """Return the present distance of the ridge expert's target of a miss below 0."""
    K = state.scratch.zeta.shape[0]
    if not state.cold[0] or K == 2:  # two classes: one model separates them, and of two models both may be wrong
        return 0.0
    return target_of_a_miss(state.counts[ROUNDS], state.scale.mean.shape[0], K)


@njit
def learn_kernel(state, x, action, p, payload, correct):
    read = 1 + state.scratch.margins.shape[0]
    if payload[0] == state.counts[EPOCH]:
        predicted = update_models(state, payload[read:], payload[1:read], action, correct, False)
    else:  # the action was taken under another scale, or (NaN) put in the place of the one drawn
        read_again(state, x, action)
        predicted = update_models(state, state.scratch.views, state.scratch.margins, action, correct, False)
    remember(state, x, action, correct)
    # Page's test (`stacked.change`), then a new scale where one is due.
    state.G[0] = cusum(state.G[0], predicted, correct)
    state.counts[SINCE] = state.counts[SINCE] + 1 if state.G[0] > 0.0 else 0
    n = state.counts[ROUNDS]
    state.hits[0] += ((1.0 if correct else 0.0) - state.hits[0]) * max(1.0 / LATELY, 1.0 / (n + AT_FIRST))
    if state.G[0] > state.settings[THRESHOLD] and is_contradicted(state):
        state.counts[ROUNDS] = min(n, min(state.counts[SINCE], MOST_AFTER_CHANGE))
        state.counts[CHANGES] += 1
        state.G[0], state.counts[SINCE] = 0.0, 0
        rebuild(state, True)
    elif 2 <= n <= MEMORY and is_due(n, x.shape[0] if state.cold[0] else 0):
        first = (state.counts[PLACE] - n) % MEMORY
        if n <= LAST_REBUILD or has_moved(state.scale, state.memory.X, first, n):
            rebuild(state, False)


@njit
def update_models(state, views, z, action, correct, fresh):
    """Update all experts and the stacks with the outcome; return the predicted probability p.

    z, with the layout of `Scratch.margins`, is given, or is written if fresh.
    """
    E, m, size, k = experts_of(state), state.scale.mean.shape[0] + 1, state.fourier.H.shape[2], action
    n_blocks, lifted, q, right = state.fourier.P.shape[0], lift(state), -1.0, correct
    if shares_a_model(state):
        # One model for both classes, of class 0: a miss of class 1 is a hit of it.
        k, right = 0, correct == (action == 0)
    y = 1.0 if right else -1.0
    update_linear(state.linear, views, m, k, y, z, fresh, lifted, middle_of(state), miss_penalty(state))
    for b in range(n_blocks):
        e = linear_of(state) + b
        view = view_of(views, b, n_blocks, size)
        z[e], own = update_expert(state.fourier, b, view, k, y, z[e], fresh, q, lifted)
        q = own if b == 0 else q
    predicted = sigmoid(logit(state.softmax, state.stack, z, E))
    before, hit = least_loss(state.stack), 1.0 if right else 0.0
    learn_stack(state.stack, z[:E], hit)
    learn_softmax(state.softmax, state.stack, before, z, E, hit)
    return predicted if right == correct else 1.0 - predicted


@njit
def read_again(state, x, action):
    """Write the experts' inputs at x and the margins of an action into `scratch`."""
    scratch, E, M = state.scratch, experts_of(state), state.fourier.P.shape[1]
    write_views(state.scale, state.W, state.by_rank, state.fourier.H.shape[2], x, scratch.views)
    read_experts(state, scratch.views, x.shape[0] + 1, M)
    margins_of(state)
    write_scores(state.softmax, scratch.z, M)
    rivals(state.softmax, scratch.z, action, M, scratch.margins[E:])
    for e in range(E):
        scratch.margins[e] = scratch.z[e * M + (0 if shares_a_model(state) else action)]


@njit
def is_contradicted(state):
    """Return whether the rounds since G was 0 still contradict the models that were updated with them; recompute G.

    A context of a new kind is predicted badly only until the models are updated with it. A label that contradicts
    earlier rounds continues to be predicted badly.
    """
    memory, N, G = state.memory, state.memory.X.shape[0], 0.0
    n = min(state.counts[SINCE], min(state.counts[ROUNDS], MOST_AGAIN))
    for i in range(n):
        t = (state.counts[PLACE] - n + i) % N
        read_again(state, read_only(memory.X[t]), memory.action[t])
        p = sigmoid(logit(state.softmax, state.stack, state.scratch.margins, experts_of(state)))
        wrong_way = shares_a_model(state) and memory.action[t] == 1
        G = cusum(G, 1.0 - p if wrong_way else p, memory.hit[t])
    state.G[0] = G
    return G > CONTRADICTED


@inline
def remember(state, x, action, correct):
    place, memory = state.counts[PLACE], state.memory
    for j in range(x.shape[0]):
        memory.X[place, j] = x[j]
    memory.action[place], memory.hit[place] = action, correct
    state.counts[PLACE] = (place + 1) % memory.X.shape[0]
    state.counts[ROUNDS] += 1


@njit
def rebuild(state, changed):
    """Estimate the scale from the rounds since the last change, reset the models, and replay the rounds with the new
    scale.

    The third stack is reset only if a change was detected.
    """
    memory, n, N = state.memory, state.counts[ROUNDS], state.memory.X.shape[0]
    margins = state.scratch.margins[: experts_of(state)]
    first, size = (state.counts[PLACE] - n) % N, state.fourier.H.shape[2]
    measure(state.scale, state.W, state.by_rank, memory.X, first, n)
    reset_linear(state.linear)
    reset_bank(state.fourier)
    reset(state.stack, LINEAR if linear_of(state) > LINEAR else -1)
    if changed:
        begin(state.softmax, state.stack)
    for i in range(n):
        t = (first + i) % N
        write_views(state.scale, state.W, state.by_rank, size, read_only(memory.X[t]), state.scratch.views)
        update_models(state, state.scratch.views, margins, memory.action[t], memory.hit[t], True)
    state.counts[EPOCH] += 1


class StackCB(KernelAgent):
    r"""Inverse-gap weighting over a stack of experts: linear models and random Fourier features.

    Problem: bandit multiclass. Every expert e has a model of each class; the stack predicts the probability that each
    class would be correct.

    Update rule. Expert e is AIOLI per class (as in `fastcb`) on its own view of :math:`x_t` (`stacked.views`). Two
    experts, with :math:`\lambda` and :math:`100 \lambda`, use standardised columns; two use columns scaled by their
    range; `blocks` experts use random Fourier features. One more is a ridge regression of the bit
    (`stacked.linear_experts`).

    The prior mean of a model without rounds is the recent share of hits, between 1/4 and 1/2. The logit :math:`\zeta_k`
    is a weighted mean of two logits. One is :math:`\theta'(z_{1k}, \dots, z_{Ek}, 1)`, with :math:`\theta` a mixture of
    two online logistic regressions (`stacked.stack`). The other is that of a softmax over the classes
    (`stacked.softmax_stack`). With :math:`\text{best} = \arg\max \zeta` and :math:`L_k = \mathrm{sigmoid}(-\zeta_k)`,
    for :math:`k \ne \text{best}`,

    .. math::

        p_k = \max(L_{\text{best}} / (K L_{\text{best}} + g_n (L_k - L_{\text{best}})), 1 / (K (n + 100))),

    and the best class has the remaining probability. :math:`g_n = \text{sharpness}\, (K - 1) n^{1/4}`, where
    :math:`n - 1` is the number of updates so far. Then the played class's models and the stack are updated with the
    bit.

    Two classes: exactly one class is right, so a bit reveals the label whichever class was played. With
    `complement` one model serves both, :math:`\zeta_1 = -\zeta_0`, and is updated in every round. Only the lower bound
    :math:`1 / (2 (n + 100))` explores.

    Scales of the views are estimated at :math:`n = 2, 4, 8, \dots, 512`, and at 1,024 and 2,048 if the columns' means
    have moved. Each time, all models are reset and the stored rounds are replayed. With :math:`d \ge 4 K` the first d
    rounds differ (`stacked.cold_start`). Equations: docs/theory/stackcb.md.

    With `changes = true` a CUSUM compares hits with their predicted probabilities (`stacked.change`). When it passes
    14, the models, which have been updated with the rounds since it was 0, predict the last 256 of these rounds again.
    If the CUSUM of these predictions passes 10, the models are reset and replay the rounds since the first CUSUM was 0,
    at most 2,000, and n counts from there. Contexts of a new kind are predicted badly only until the models are updated
    with them, and do not count as a change.

    Guarantee: none on regret; `bound` is None. On every stream every class is played infinitely often, because
    :math:`p_k \ge 1/(K (n_t + 100))` with :math:`n_t \le t`, whose sum diverges (Lévy's extension of the second
    Borel-Cantelli lemma). This lower bound alone costs at most :math:`\ln(1 + T/100)` rounds in T while no change is
    detected.

    Units: a change of a column's unit or zero, :math:`x_j \to a_j x_j + b_j` with :math:`a_j > 0`, gives the same
    decisions up to rounding. The first decisions, before the scale is estimated, do not use contexts. R is not used.

    Cost: let :math:`m = d + 1`, F be the number of features, and M the number of models, K or 1. A prediction with all
    models takes :math:`M (2.5 m^2 + F^2 / 2)` multiplications, an update :math:`10 m^2 + 2\,\text{blocks}\, F^2`, the
    features :math:`\text{blocks}\, F d / 2`, and there are :math:`(4 + \text{blocks}) M` roots. A round that estimates
    the scale, or detects a change, takes as long as n updates. Memory: :math:`M (2.5 m^2 + \text{blocks}\, F^2 / 2)`
    numbers of four bytes, and 2,048 contexts with eight bytes per entry. With diagonals, :math:`8 M m` multiplications
    and numbers of eight bytes replace the :math:`2.5 M m^2`.

    Parameters
    ----------
    sharpness
        :math:`g_n / ((K - 1) n^{1/4})`, above 0; a larger value explores less.
    blocks
        Number of Fourier experts, 0 or above; bandwidths and columns alternate (`stacked.views.BANDWIDTHS`).
    features
        F, the number of features of a Fourier expert, a multiple of 16. If one model serves two classes, F is half as
        large again, rounded up to a multiple of 16, because the round is cheaper.
    changes
        Whether to reset the models when the agent is right much less often than it predicts.
    complement
        For :math:`K = 2`: whether exactly one class is right, so a miss of one class is a hit of the other.
    second_order
        The stored form of each linear expert's matrices: "full", or their "diagonal" without the ridge expert. "auto"
        is "full" if :math:`K d^2` is at most 4,194,304, else "diagonal".

    Raises
    ------
    UsageError
        A setting is out of its range, or `second_order` is unknown.

    References
    ----------
    D. Foster, A. Krishnamurthy. Efficient first-order contextual bandits: prediction, allocation, and triangular
    discrimination. NeurIPS 2021.
    R. Jézéquel, P. Gaillard, A. Rudi. Efficient improper learning for online logistic regression. COLT 2020.
    A. Rahimi, B. Recht. Random features for large-scale kernel machines. NIPS 2007.
    D. Wolpert. Stacked generalization. Neural Networks 5, 1992.
    V. Vovk. Aggregating strategies. COLT 1990.
    E. Page. Continuous inspection schemes. Biometrika 41, 1954.
    """

    id = "stackcb"
    summary = "linear and Fourier experts under one online stack, inverse-gap weighting, forgets after a change"
    reference = "ours, not from a paper; experts: Jezequel, Gaillard and Rudi, COLT 2020; see the docstring"
    explores = False
    state_order = (1, 2)
    act_kernel = act_kernel
    learn_kernel = learn_kernel

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        sharpness: float = 200.0,
        blocks: int = 8,
        features: int = 96,
        changes: bool = True,
        complement: bool = True,
        second_order: SecondOrder = "auto",
    ) -> None:
        super().__init__(problem, rng)
        self.sharpness = positive("sharpness", sharpness)
        self.blocks = at_least("blocks", blocks, 0)
        self.features = at_least("features", features, 16)
        if self.features % 16 != 0:
            raise UsageError(f"features must be a multiple of 16, got {features!r}")
        self.changes = true_or_false("changes", changes)
        self.complement = true_or_false("complement", complement)
        one_of("second_order", second_order, get_args(SecondOrder))
        self.second_order = _resolved(second_order, problem)
        K, d, whole = problem.n_classes, problem.n_features, self.second_order == "full"
        M, F = models(K, self.features, self.complement)
        E, size = LINEAR + whole + self.blocks, size_of_views(d, self.blocks, F, whole)
        read = 2 * E + 1 if M == K else E
        self.payload_size = 1 + read + size
        m, q, z = (zeros(width(E * M)) for _ in range(3))
        W = frequencies(_side_stream(self.rng), d, self.blocks, F)
        two = stack(E, LINEAR if whole else -1)
        self.state = State(
            linear=linear_experts(LAMBDA, M, d + 1, whole),
            fourier=bank(np.full(self.blocks, LAMBDA), M, F),
            W=W,
            by_rank=reads_ranks(self.blocks),
            scale=empty_scale(d, MEMORY, self.blocks, F),
            stack=two,
            memory=Memory(np.zeros((MEMORY, d)), np.zeros(MEMORY, np.int64), np.zeros(MEMORY, np.bool_)),
            scratch=Scratch(m, q, z, np.zeros(K), np.zeros(read), np.zeros(size)),
            counts=np.zeros(5, np.int64),
            G=np.zeros(1),
            settings=np.array([self.sharpness * (K - 1) if M == K else GREEDY, ALARM if self.changes else math.inf]),
            hits=np.array([0.5]),
            softmax=softmax_stack(E, K, two) if read > E else None,
            cold=np.array([whole and d >= COLUMNS * K]),
        )

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return a lower bound on the bytes of the state: the experts' matrices and the memory."""
        given = cls.completed(settings)
        K, d, (blocks, F) = problem.n_classes, problem.n_features, (given["blocks"], given["features"])
        numbers = isinstance(blocks, int) and isinstance(F, int)
        M, F = models(K, F if numbers else 0, given["complement"] is not False)
        fourier = 0.5 * max(0, blocks) * float(F) ** 2 if numbers else 0.0
        whole = _resolved(given["second_order"], problem) == "full"
        linear = 2.0 * (LINEAR + 1) * d * d if whole else 16.0 * LINEAR * d  # whole matrices are of float32
        return M * (linear + 4.0 * fourier) + 8.0 * MEMORY * d

    @property
    def has_models_by_class(self) -> bool:
        """Return whether the state has a row per class: whole matrices, and no model shared by two classes."""
        return isinstance(self.state.linear, Bank) and not shares_a_model(self.state)

    def learn_memory_of(self, other: StackCB) -> None:
        """Update with the rounds in another agent's memory since its last detected change, at most 2,000."""
        for own, its in zip(
            (*self.state.memory, self.state.counts), (*other.state.memory, other.state.counts), strict=True
        ):
            own[:] = its
        self.state.counts[ROUNDS] = min(self.state.counts[ROUNDS], MOST_AFTER_CHANGE)
        self.state.hits[:] = other.state.hits
        rebuild(self.state, True)

    def diagnostics(self) -> dict[str, Any]:
        """Return the number of detected changes, and the number of updates since the last one."""
        return {"changes": int(self.state.counts[CHANGES]), "rounds_since": int(self.state.counts[ROUNDS])}


def _side_stream(rng: np.random.Generator) -> np.random.Generator:
    """Return a generator seeded from the state of another generator, which does not advance."""
    return np.random.default_rng(copy.deepcopy(rng).integers(2**63, size=4))


def models(n_classes: int, features: int, complement: bool) -> tuple[int, int]:
    """Return how many models an expert has, and how many features a Fourier expert has."""
    if n_classes == 2 and complement:
        return 1, 16 * -(-3 * features // 32)
    return n_classes, features


def _resolved(second_order: Any, problem: Problem) -> Any:
    """Return the form that "auto" selects for this problem, or any other value unchanged."""
    if second_order != "auto":
        return second_order
    return "full" if problem.n_classes * problem.n_features**2 <= LARGEST_WHOLE else "diagonal"
