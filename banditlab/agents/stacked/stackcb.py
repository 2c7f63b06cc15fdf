"""StackCB: stacking combines experts on several views of a context; inverse-gap weighting draws the action."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.inverse_gap.class_models import sigmoid
from banditlab.agents.inverse_gap.fastcb import inverse_gap
from banditlab.agents.second_order import resolved_order
from banditlab.agents.stacked.change import ALARM, cusum
from banditlab.agents.stacked.cold_start import COLUMNS, add_bounds, is_due, miss_penalty
from banditlab.agents.stacked.experts import (
    LINEAR,
    RIDGE,
    WEAKER,
    WEIGHT,
    bank,
    expert,
    reset_expert,
    ridge_margin,
    update_expert,
    update_ridge,
)
from banditlab.agents.stacked.stack import (
    Stack,
    compete,
    logit,
    margin,
    reset_stack,
    stack,
    update_stack,
    write_rivals,
    write_scores,
)
from banditlab.agents.stacked.trees import Trees, empty_trees, read_trees, reset_trees, update_trees
from banditlab.agents.stacked.views import (
    Scale,
    empty_scale,
    frequencies,
    has_moved,
    measure,
    size_of_views,
    write_views,
)
from banditlab.errors import UsageError
from banditlab.numerics.argmax import argmax
from banditlab.numerics.class_inverses import Inverses
from banditlab.numerics.diagonal_inverses import DiagonalInverses
from banditlab.numerics.draws import draw
from banditlab.numerics.jit import borrow, inline, njit, read_only
from banditlab.numerics.limits import Limits
from banditlab.numerics.model_forms import read
from banditlab.numerics.packed_symmetric import pad, rows_times, width, zeros
from banditlab.numerics.tanh_root import aioli_roots
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import at_least, one_of, positive, true_or_false

MEMORY = 2048
"""Number of rounds that are stored for replay."""
LAST_REBUILD = 512
r"""The scale is estimated again at :math:`n = 2, 4, 8, \dots` up to this n, and up to `MEMORY` if the contexts drift."""
MOST_AFTER_CHANGE = 2000
"""Largest number of past rounds that still count as updates after a change."""
FLOOR = 100
"""m in :math:`1/(K (n + m))`, the least probability of each class."""
GREEDY = 1e9
"""Factor of g if one model serves two classes, so no exploration is needed; it is finite, so ties remain ties."""
GROWTH = 0.25
"""The power of n in :math:`g_n`."""
LAMBDA = 0.001
r""":math:`\lambda` of the first expert on each linear view and of the Fourier experts."""
LEAST_HOPE = 0.25
r"""Lower limit of :math:`\pi`, the share of the positive virtual label."""
LATELY, AT_FIRST = 500, 100
"""The share of hits covers about the last `LATELY` rounds. It begins with `AT_FIRST` pseudo-rounds, half of them hits."""
SecondOrder = Literal["auto", "full", "diagonal"]


class Memory(NamedTuple):
    """The last rounds as a circular buffer: X (N, d), action (N,), hit (N,)."""

    X: NDArray[np.float64]
    action: NDArray[np.int64]
    hit: NDArray[np.bool_]


class Scratch(NamedTuple):
    r"""Work arrays for one context.

    m, q and z (N M, padded) have one entry per model: the M models of the first of N experts, then those of the next.
    :math:`\zeta` (K,) are the logits of the classes. views has the views of the context. margins are the inputs of the
    stacks for one class: N margins, then N + 1 more for the third stack if there is one.
    """

    m: NDArray[np.float64]
    q: NDArray[np.float64]
    z: NDArray[np.float64]
    zeta: NDArray[np.float64]
    margins: NDArray[np.float64]
    views: NDArray[np.float64]


class State(NamedTuple):
    r"""The state: the experts `linear`, `fourier` and `trees` (None if matrices are diagonal), with M models each.

    start (E, M) has :math:`1/\lambda` of each linear and Fourier model, and W the Fourier frequencies.

    M is K, or 1 if one model serves two classes: it is then class 0's model, and class 1's margin is its negative.
    counts (5,) has the updates since the last change, the next index in the memory, the rounds since G was 0, and the
    numbers of rebuilds and of changes. G (1,) is the change detector's statistic. settings (2,) has
    :math:`g_n / n^{1/4}` and `stacked.change.ALARM`, or infinity without `changes`. hits (1,) is the recent share of hits.
    cold (1,) says whether `stacked.cold_start` applies.
    """

    linear: Inverses | DiagonalInverses
    fourier: Inverses
    trees: Trees | None
    start: NDArray[np.float64]
    W: NDArray[np.float64]
    scale: Scale
    stack: Stack
    memory: Memory
    scratch: Scratch
    counts: NDArray[np.int64]
    G: NDArray[np.float64]
    settings: NDArray[np.float64]
    hits: NDArray[np.float64]
    cold: NDArray[np.bool_]

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        largest = np.array([2**53, len(self.memory.X) - 1, 2**53, 2**53, 2**53])
        limits: Limits = {"counts": (0, largest), "memory.action": (0, len(self.scratch.zeta) - 1)}
        columns = (0, self.memory.X.shape[1] - 1)
        return limits if self.trees is None else {**limits, "trees.columns": columns, "trees.column": columns}


ROUNDS, PLACE, SINCE, EPOCH, CHANGES = range(5)
SHARPNESS, THRESHOLD = range(2)


@inline
def n_experts(state):
    """Return N, the number of experts: the E with matrices, and the trees if there are any."""
    return state.stack.third.shape[0]


@inline
def n_linear(state):
    """Return the number of linear experts: four, and the ridge expert if there is one."""
    return state.linear.P.shape[0]


@inline(arrays="views")
def view_of(state, views, e):
    """Return the part of `views` that expert e reads."""
    m, F, left = state.scale.mean.shape[0] + 1, state.fourier.H.shape[2], state.start.shape[0] - e
    if e < n_linear(state):
        return borrow(views)[e // 2 * m : (e // 2 + 1) * m]
    return borrow(views)[views.shape[0] - left * F : views.shape[0] - (left - 1) * F]


@njit
def act_kernel(state, x, u, p, payload):
    scratch, N, M, K, zeta = state.scratch, n_experts(state), state.start.shape[1], p.shape[0], state.scratch.zeta
    read = 1 + scratch.margins.shape[0]
    read_experts(state, x, payload[read:])
    for k in range(M):  # zeta_k = theta'(z_1k, ..., z_Nk, 1)
        zeta[k] = margin(state.stack.theta, scratch.z[k : N * M : M])
    if M == K:
        compete(state.stack, scratch.z, zeta)
    n = state.counts[ROUNDS] + 1.0
    if state.cold[0]:
        add_bounds(scratch.m, scratch.q, lift(state), LINEAR * M, M, n, x.shape[0], zeta)
    if M < K:
        zeta[1] = -zeta[0]
    inverse_gap(zeta, state.settings[SHARPNESS] * n**GROWTH, p)
    best, least = argmax(zeta, K), 1.0 / (K * (n + FLOOR))
    for k in range(K):
        if k != best and p[k] < least:
            p[best] -= least - p[k]
            p[k] = least
    action = draw(p, u[1])
    payload[0] = state.counts[EPOCH]
    write_margins(state, action, payload[1:read])
    return action, False


@njit
def read_experts(state, x, views):
    """Write into `scratch` the margins z of all models, and m and q of the linear and Fourier ones.

    The views of x are written into `views`. All Fourier experts use the q of the first.
    """
    scratch, fourier, (E, M), lifted = state.scratch, state.fourier, state.start.shape, lift(state)
    first, middle = n_linear(state), middle_of(state)
    write_views(state.scale, state.W, fourier.H.shape[2], x, views)
    for e in range(E):
        view, m, q = view_of(state, views, e), scratch.m[e * M : (e + 1) * M], scratch.q[e * M : (e + 1) * M]
        if e < first:
            read(expert(state.linear, e), view, m, q)
        elif e == first:
            read(expert(fourier, 0), view, m, q)
        else:
            pad(view, fourier.point.x)
            rows_times(fourier.H[e - first], fourier.point.x, m)
            for k in range(M):
                q[k] = scratch.q[first * M + k]
    for i in range(scratch.m.shape[0]):
        scratch.m[i] += lifted * max(0.0, scratch.q[i])
    # z = m + w q (pi - sigmoid(z)), in m the term w (pi - 1/2) q of `lift`
    aioli_roots(scratch.m, scratch.q, WEIGHT, scratch.z)
    for i in range(LINEAR * M, first * M):
        scratch.z[i] = ridge_margin(scratch.m[i], scratch.q[i], middle)
    read_trees(state.trees, x, scratch.z[:M], scratch.z[E * M : (E + 1) * M])


@inline
def write_margins(state, action, out):
    """Write the stacks' inputs for an action into `out`, with the layout of `Scratch.margins`, after `read_experts`."""
    N, M, z = n_experts(state), state.start.shape[1], state.scratch.z
    for e in range(N):
        out[e] = z[e * M + (0 if shares_a_model(state) else action)]
    if not shares_a_model(state):
        write_rivals(state.stack, z, action, out[N:])


@inline
def shares_a_model(state):
    """Return whether one model serves two classes."""
    return state.start.shape[1] < state.scratch.zeta.shape[0]


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
    if state.G[0] > state.settings[THRESHOLD] + math.log(n):
        state.counts[ROUNDS] = min(n, min(state.counts[SINCE], MOST_AFTER_CHANGE))
        state.counts[CHANGES] += 1
        state.G[0], state.counts[SINCE] = 0.0, 0
        rebuild(state, True)
    elif 2 <= n <= MEMORY and is_due(n, x.shape[0] if state.cold[0] else 0):
        first = (state.counts[PLACE] - n) % MEMORY
        if n <= LAST_REBUILD or has_moved(state.scale, state.memory.X, first, n):
            rebuild(state, False)
    update_trees(state.trees, state.memory, state.counts[PLACE], state.counts[ROUNDS], shares_a_model(state))


@njit
def update_models(state, views, z, action, correct, fresh):
    """Update all experts and the stacks with the outcome; return the predicted probability p.

    z has the layout of `Scratch.margins`. If fresh, the experts' margins are computed here and written into z;
    otherwise z must contain those of this context.
    """
    k, right, first, lifted, shared_q = action, correct, n_linear(state), lift(state), -1.0
    if shares_a_model(state):
        # One model for both classes, of class 0: a miss of class 1 is a hit of it.
        k, right = 0, correct == (action == 0)
    y, d, K = 1.0 if right else -1.0, state.scale.mean.shape[0], state.scratch.zeta.shape[0]
    penalty = miss_penalty(state.counts[ROUNDS], d, K) if state.cold[0] else 0.0
    for e in range(state.start.shape[0]):
        view = view_of(state, views, e)
        if e >= first:
            z[e], q = update_expert(expert(state.fourier, e - first), view, k, y, z[e], fresh, shared_q, lifted)
            shared_q = q if e == first else shared_q
        elif e < LINEAR:
            z[e], _ = update_expert(expert(state.linear, e), view, k, y, z[e], fresh, -1.0, lifted)
        else:
            z[e] = update_ridge(expert(state.linear, e), view, k, y, z[e], fresh, lifted, middle_of(state), penalty)
    predicted = sigmoid(logit(state.stack, z))
    update_stack(state.stack, z, 1.0 if right else 0.0)
    return predicted if right == correct else 1.0 - predicted


@njit
def read_again(state, x, action):
    """Write the experts' inputs at x and the margins of an action into `scratch`."""
    read_experts(state, x, state.scratch.views)
    if not shares_a_model(state):
        write_scores(state.stack, state.scratch.z)
    write_margins(state, action, state.scratch.margins)


@inline
def remember(state, x, action, correct):
    place, memory = state.counts[PLACE], state.memory
    for j in range(x.shape[0]):
        memory.X[place, j] = x[j]
    memory.action[place], memory.hit[place] = action, correct
    state.counts[PLACE] = (place + 1) % memory.X.shape[0]
    state.counts[ROUNDS] += 1


@njit
def forget(state, changed):
    """Reset all models, and the third stack only if a change was detected."""
    d, first = state.scale.mean.shape[0], n_linear(state)
    for e in range(state.start.shape[0]):
        if e < first:
            reset_expert(expert(state.linear, e), state.start[e], d + 1)
        else:
            reset_expert(expert(state.fourier, e - first), state.start[e], state.fourier.H.shape[2])
    reset_stack(state.stack, changed)
    reset_trees(state.trees)


@njit
def rebuild(state, changed):
    """Estimate the scale from the rounds since the last change, reset the models, and replay the rounds with the new
    scale.
    """
    memory, scratch, n, N = state.memory, state.scratch, state.counts[ROUNDS], state.memory.X.shape[0]
    first, margins = (state.counts[PLACE] - n) % N, scratch.margins[: n_experts(state)]
    margins[:] = 0.0  # that of the trees stays so
    measure(state.scale, state.W, memory.X, first, n)
    forget(state, changed)
    for i in range(n):
        t = (first + i) % N
        x = read_only(memory.X[t])
        write_views(state.scale, state.W, state.fourier.H.shape[2], x, scratch.views)
        update_models(state, scratch.views, margins, memory.action[t], memory.hit[t], True)
    state.counts[EPOCH] += 1


class StackCB(KernelAgent):
    r"""Inverse-gap weighting over a stack of experts: linear models, random Fourier features and boosted trees.

    Problem: bandit multiclass. Every expert has a model of each class; the stacks predict the probability that each
    class would be correct.

    Update rule: equations (1) to (8) of docs/theory/stackcb.md. The views of a context are standardised columns,
    columns scaled by their range, and `blocks` blocks of random Fourier features (`stacked.views`). Most experts are
    AIOLI per class (as in `fastcb`) on one view; one expert is a ridge regression of the bit (`stacked.experts`). The
    last expert consists of boosted trees, fitted to the rounds in memory after 512, 1,024, 2,048, ... updates; every
    round updates their leaves (`stacked.trees`). Three stacks combine the margins to a logit :math:`\zeta_k`
    (`stacked.stack`). With
    :math:`\text{best} = \arg\max \zeta` and :math:`L_k = \mathrm{sigmoid}(-\zeta_k)`, for :math:`k \ne \text{best}`,

    .. math::

        p_k = \max(L_{\text{best}} / (K L_{\text{best}} + g_n (L_k - L_{\text{best}})), 1 / (K (n + 100))),

    and the best class has the remaining probability. :math:`g_n = \text{sharpness}\, (K - 1) n^{1/4}`, where
    :math:`n - 1` is the number of updates so far. Then the played class's models and the stacks are updated with the
    bit. With `complement` one model serves two classes, :math:`\zeta_1 = -\zeta_0`, and is updated in every round.

    Scales of the views are estimated at :math:`n = 2, 4, 8, \dots, 512`, and at 1,024 and 2,048 if the columns' means
    have drifted. Each time, all models are reset and the stored rounds are replayed. With :math:`d \ge 4 K` the first d
    rounds differ (`stacked.cold_start`). With `changes` a test detects that hits are much rarer than predicted
    (`stacked.change`). The models are then reset, and the rounds since the test statistic was last 0 are replayed.

    Guarantee: none on regret; `bound` is None. On every stream every class is played infinitely often, because
    :math:`p_k \ge 1/(K (n_t + 100))` with :math:`n_t \le t`, whose sum diverges (Lévy's extension of the second
    Borel-Cantelli lemma). The exploration that this lower bound forces adds at most :math:`\ln(1 + T/100)` expected
    mistakes in T rounds, as long as no change is detected.

    Units: a change of a column's unit or zero, :math:`x_j \to a_j x_j + b_j` with :math:`a_j > 0`, gives the same
    decisions up to rounding. The first decisions, before the scale is estimated, do not use contexts. R is not used.

    Cost: let :math:`m = d + 1`, F be the number of features, and M the number of models, K or 1. A prediction with all
    models takes :math:`M (2.5 m^2 + F^2 / 2)` multiplications, an update :math:`10 m^2 + 2\,\text{blocks}\, F^2`, the
    features :math:`\text{blocks}\, F d / 2`, and there are :math:`(4 + \text{blocks}) M` roots. A round that estimates
    the scale, or detects a change, takes as long as n updates. A fit of the trees to 2,048 rounds takes some 15 ms.
    Memory: :math:`M (2.5 m^2 + \text{blocks}\, F^2 / 2)`
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
        The stored form of each linear expert's matrices: "full", or "diagonal", which omits the ridge expert and the
        trees. "auto" is "full" if :math:`K d^2` is at most 4,194,304, else "diagonal".

    Raises
    ------
    UsageError
        A setting is out of its range, or `second_order` is unknown.

    References
    ----------
    D. Foster, A. Krishnamurthy. Efficient first-order contextual bandits: prediction, allocation, and triangular
    discrimination. NeurIPS 2021.
    R. Jézéquel, P. Gaillard, A. Rudi. Efficient improper learning for online logistic regression. COLT 2020.
    J. Friedman. Greedy function approximation: a gradient boosting machine. Annals of Statistics 29, 2001.
    L. Prokhorenkova et al. CatBoost: unbiased boosting with categorical features. NeurIPS 2018.
    A. Rahimi, B. Recht. Random features for large-scale kernel machines. NIPS 2007.
    D. Wolpert. Stacked generalization. Neural Networks 5, 1992.
    V. Vovk. Aggregating strategies. COLT 1990.
    E. Page. Continuous inspection schemes. Biometrika 41, 1954.
    """

    id = "stackcb"
    summary = "linear, Fourier and tree experts under one online stack, inverse-gap weighting, forgets after a change"
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
        self.second_order = resolved_order(second_order, problem, "diagonal")
        K, d, whole = problem.n_classes, problem.n_features, self.second_order == "full"
        M, F = models(K, self.features, self.complement)
        E, size = LINEAR + whole + self.blocks, size_of_views(d, self.blocks, F, whole)
        N = E + whole  # and the trees
        read = 2 * N + 1 if M == K else N
        m, q, z = (zeros(width(N * M)) for _ in range(3))
        lambdas = [LAMBDA, WEAKER * LAMBDA] * 2 + [RIDGE] * whole + [LAMBDA] * self.blocks
        start = np.repeat(1.0 / np.array(lambdas)[:, None], M, axis=1)
        # Another generator, seeded from the state of the agent's, which does not advance.
        side = np.random.default_rng(copy.deepcopy(self.rng).integers(2**63, size=4))
        W = frequencies(side, d, self.blocks, F)
        self.payload_size = 1 + read + size
        self.state = State(
            linear=bank(start[: E - self.blocks], d + 1, whole),
            fourier=bank(start[E - self.blocks :], F, True),
            trees=empty_trees(side, d, M, MEMORY) if whole else None,
            start=start,
            W=W,
            scale=empty_scale(d, self.blocks, F),
            stack=stack(N, K, (LINEAR, N - 1) if whole else ()),
            memory=Memory(np.zeros((MEMORY, d)), np.zeros(MEMORY, np.int64), np.zeros(MEMORY, np.bool_)),
            scratch=Scratch(m, q, z, np.zeros(K), np.zeros(read), np.zeros(size)),
            counts=np.zeros(5, np.int64),
            G=np.zeros(1),
            settings=np.array([self.sharpness * (K - 1) if M == K else GREEDY, ALARM if self.changes else math.inf]),
            hits=np.array([0.5]),
            cold=np.array([whole and d >= COLUMNS * K]),
        )

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return a lower bound on the size of the state in bytes: the experts' matrices and the memory."""
        given = cls.completed(settings)
        K, d, (blocks, F) = problem.n_classes, problem.n_features, (given["blocks"], given["features"])
        numbers = isinstance(blocks, int) and isinstance(F, int)
        M, F = models(K, F if numbers else 0, given["complement"] is not False)
        fourier = 0.5 * max(0, blocks) * float(F) ** 2 if numbers else 0.0
        whole = resolved_order(given["second_order"], problem, "diagonal") == "full"
        linear = 2.0 * (LINEAR + 1) * d * d if whole else 16.0 * LINEAR * d  # whole matrices are of float32
        return M * (linear + 4.0 * fourier) + 8.0 * MEMORY * d

    @property
    def has_models_by_class(self) -> bool:
        """Return whether the state has a row per class: whole matrices, and no model shared by two classes."""
        return isinstance(self.state.linear, Inverses) and self.state.start.shape[1] == self.problem.n_classes

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


def models(n_classes: int, features: int, complement: bool) -> tuple[int, int]:
    """Return how many models an expert has, and how many features a Fourier expert has."""
    if n_classes == 2 and complement:
        return 1, 16 * -(-3 * features // 32)
    return n_classes, features
