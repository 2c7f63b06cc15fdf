"""The rounds of an expert booster in kernels: whole over compiled trees, from estimates, or one learner at a time.

A rule is what AdaBoost.OLM and AdaBoost.OLM++ differ in: seven kernels (`Steps`). The loops here are bound to a rule's
kernels, so that each rule is written once, whoever its learners are, and the numbers are the same.

A learner's prediction decides the costs of the next one: a chain of N steps. A tree is updated with a round's example and
predicts the next one's at once, while it is in the cache. Each step also writes what the update will need for any label.

In these kernels `scratch` is scratch of a round, `state` and `rule` are what lasts.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.boosting.hedge import fading_weights, mix_experts
from banditlab.boosting.losses import gradient
from banditlab.boosting.trees.forest import estimate, prepare, uniform, update_tree
from banditlab.boosting.weak.weak_learner import Floats, least_costly, most_probable
from banditlab.numerics.draws import draw, is_valid_decision
from banditlab.numerics.jit import bind, borrow, inline, njit

DONE, FULL, WRONG = range(3)
"""How a block ends: after its last round, at a tree whose arrays are too small, at probabilities that are none."""
ROUND, TREE = range(2)
"""Slots of a block's cursor: the round that is learnt, and the first tree that has not learnt it."""


class Scratch(NamedTuple):
    r"""Scratch of a round of N learners and K classes.

    payload (N (K + 2),)    predictions (N,), experts' labels (N,), votes S (N, K): row i of S is :math:`s^{i+1}`
    mass (N + 1, K)         :math:`-C^i(r, r)` of every label r, at :math:`s^0, \dots, s^N`
    before, after (N, K)    :math:`C^i(r, l)` and :math:`C^{i+1}(r, l)` of every label :math:`r \ne l`,
                            l being learner i's prediction
    costs (K, K), gain (K,) what a learner is asked at, and less the expected cost of each class
    estimates (N, K)        the learners' estimates
    uniforms, weights (N,)  uniforms for ties, the learners' and then the experts'; the example's weight for each learner
    experts (N,)            hedge's weights
    fading (NEVER,)         a constant, see `hedge`
    p (K,)                  what is played
    own                     the rule's own scratch arrays, with what `adapt` reads of :math:`s^i`
    """

    payload: Floats
    mass: Floats
    before: Floats
    after: Floats
    costs: Floats
    gain: Floats
    estimates: Floats
    uniforms: Floats
    weights: Floats
    experts: Floats
    fading: Floats
    p: Floats
    own: Any

    @classmethod
    def of(cls, N: int, K: int, own: Any) -> Scratch:
        """Return the scratch arrays of N learners and K classes; `own.of(N, K)` is the rule's part."""
        return cls(
            payload=np.zeros(N * (K + 2)),
            mass=np.zeros((N + 1, K)),
            before=np.zeros((N, K)),
            after=np.zeros((N, K)),
            costs=np.zeros((K, K)),
            gain=np.zeros(K),
            estimates=np.zeros((N, K)),
            uniforms=np.zeros(N),
            weights=np.zeros(N),
            experts=np.zeros(N),
            fading=fading_weights(),
            p=np.zeros(K),
            own=own.of(N, K),
        )


class State(NamedTuple):
    """The booster's own arrays (N,): sums of the edges, mistakes of the experts; the weights' tops and scales stay."""

    got: Floats
    best: Floats
    mistakes: Floats
    tops: Floats
    scales: Floats


class Block(NamedTuple):
    """n rounds: contexts V as trees read them, labels y, uniforms U (n, 2); action, correct, p_true (n,) are written."""

    V: Floats
    y: NDArray[np.int64]
    U: Floats
    action: NDArray[np.int64]
    correct: NDArray[np.bool_]
    p_true: Floats


@inline(arrays="views")
def parts(payload, K):
    """Return predictions (N,), experts' labels (N,) and votes (N, K) of a payload, as views."""
    payload, N = borrow(payload), payload.shape[0] // (K + 2)
    return payload[:N], payload[N : 2 * N], payload[2 * N :].reshape(N, K)


@inline
def draw_ties(forest, scratch):
    """Draw the uniforms for the experts' ties."""
    N = scratch.uniforms.shape[0]
    for i in range(N):
        scratch.uniforms[i] = uniform(forest, N)


@njit
def follow(scratch, mistakes):
    r"""Write each expert's label :math:`\arg\max_l s^i_l` into the payload and hedge's mix of them into p: Algorithm 2,
    lines 8, 10.
    """
    scratch, mistakes = borrow(scratch), borrow(mistakes)
    _, choices, S = parts(scratch.payload, scratch.p.shape[0])
    for i in range(choices.shape[0]):
        choices[i] = most_probable(S[i], scratch.uniforms[i])
    mix_experts(mistakes, choices, scratch.fading, scratch.experts, scratch.p)


# -------------------------------------------------------------------------- a round, predictions of all learners in one kernel


def respond_template(forest, rule, scratch, mistakes, x):
    """Ask every learner at x: fills the scratch arrays."""
    forest, rule, scratch, mistakes, x = borrow(forest), borrow(rule), borrow(scratch), borrow(mistakes), borrow(x)
    votes, _, S = parts(scratch.payload, scratch.p.shape[0])
    prepare(forest, x, scratch.estimates, scratch.uniforms)
    begin_kernel(rule, scratch)  # type: ignore[name-defined]  # noqa: F821
    for i in range(votes.shape[0]):
        costs_kernel(rule, scratch, i, scratch.costs)  # type: ignore[name-defined]  # noqa: F821
        l = least_costly(scratch.estimates[i], scratch.costs, scratch.gain, scratch.uniforms[i])
        votes[i] = l
        step_kernel(rule, scratch, i, l, S)  # type: ignore[name-defined]  # noqa: F821
    draw_ties(forest, scratch)
    follow(scratch, mistakes)


def absorb_template(rule, scratch, state, y, rounds):
    r"""Count edges and mistakes, adapt the votes (lines 12, 13), and write the weights of the example into the scratch
    arrays.

    The weight of learner i is :math:`-C^i(y, y) / \text{tops}_i`, at most 1, times :math:`\text{scales}_i`. Line 14
    prints :math:`-C^i(y, l)`, which is negative where :math:`l \ne y`; the text has it right.
    """
    rule, scratch, state = borrow(rule), borrow(scratch), borrow(state)
    votes, choices, S = parts(scratch.payload, scratch.p.shape[0])
    root = math.sqrt(rounds)
    for i in range(votes.shape[0]):
        l, own, other = int(votes[i]), -scratch.mass[i, y], scratch.before[i, y]
        state.got[i] += own if l == y else other
        state.best[i] += own
        scratch.weights[i] = min(1.0, -own / state.tops[i]) * state.scales[i]
        state.mistakes[i] += choices[i] != y
        adapt_kernel(rule, scratch, i, l, y, root, S)  # type: ignore[name-defined]  # noqa: F821


def recall_template(rule, scratch, loss, zero, y):
    """Write what `absorb` reads beside the payload: the terms of label y, and what the rule stored of the votes."""
    rule, scratch, zero = borrow(rule), borrow(scratch), borrow(zero)
    votes, _, S = parts(scratch.payload, zero.shape[0])
    N, g = votes.shape[0], scratch.gain
    for i in range(N + 1):
        s = S[i - 1] if i > 0 else zero
        gradient(loss, s, y, g)
        scratch.mass[i, y] = -g[y]
        if i > 0:
            scratch.after[i - 1, y] = g[int(votes[i - 1])]
        if i < N:
            scratch.before[i, y] = g[int(votes[i])]
            recall_kernel(rule, scratch, i, int(votes[i]), s)  # type: ignore[name-defined]  # noqa: F821


# -------------------------------------------------------- a round, predictions of learners one by one in Python (lines 4 to 7)


def ask_template(rule, scratch, done, asked, costs):
    """Take the predictions of learners `done`, ..., `asked - 1`, which stand in the payload, and write the next one's
    costs (K, K).

    `done = -1` starts the round at :math:`s^0`; after the last learner, `asked = N`, no costs are written.
    """
    rule, scratch, costs = borrow(rule), borrow(scratch), borrow(costs)
    votes, _, S = parts(scratch.payload, scratch.p.shape[0])
    if done < 0:
        begin_kernel(rule, scratch)  # type: ignore[name-defined]  # noqa: F821
    for i in range(max(done, 0), asked):
        step_kernel(rule, scratch, i, int(votes[i]), S)  # type: ignore[name-defined]  # noqa: F821
    if asked < votes.shape[0]:
        costs_kernel(rule, scratch, asked, costs)  # type: ignore[name-defined]  # noqa: F821


# ------------------------------------------------------------------------------ a block of rounds over compiled trees


def pass_template(forest, rule, scratch, block, cursor):
    """Take every learner from round t, `t = cursor[ROUND]`, to round :math:`t + 1`: its trees learn t, then it is asked
    :math:`t + 1`.

    Returns False where a tree's arrays are too small, `cursor[TREE]`: it has learnt nothing yet, and the pass goes on
    there when it is called again. Else the cursor stands at :math:`(t + 1, 0)` and the votes of round :math:`t + 1` are
    complete.
    """
    forest, rule, scratch, block = borrow(forest), borrow(rule), borrow(scratch), borrow(block)
    votes, _, S = parts(scratch.payload, scratch.p.shape[0])
    N, n = votes.shape[0], block.y.shape[0]
    members = forest.trees.shape[0] // N
    t, j = cursor[ROUND], cursor[TREE]
    if j == 0:
        begin_kernel(rule, scratch)  # type: ignore[name-defined]  # noqa: F821
    for i in range(j // members, N):
        while t >= 0 and j < (i + 1) * members:
            if not update_tree(forest, j, j - i * members, block.V[t], block.y[t], scratch.weights[i]):
                cursor[ROUND], cursor[TREE] = t, j
                return False
            j += 1
        if t + 1 < n:
            if i > 0:
                step_kernel(rule, scratch, i - 1, int(votes[i - 1]), S)  # type: ignore[name-defined]  # noqa: F821
            estimate(forest, i, block.V[t + 1], scratch.estimates[i])
            costs_kernel(rule, scratch, i, scratch.costs)  # type: ignore[name-defined]  # noqa: F821
            votes[i] = least_costly(scratch.estimates[i], scratch.costs, scratch.gain, uniform(forest, i))
    if t + 1 < n:
        step_kernel(rule, scratch, N - 1, int(votes[N - 1]), S)  # type: ignore[name-defined]  # noqa: F821
    cursor[ROUND], cursor[TREE] = t + 1, 0
    return True


@inline
def answer(forest, scratch, mistakes, block, t):
    """Follow an expert in round t and write the answer into the block; False where p is no distribution."""
    draw_ties(forest, scratch)
    follow(scratch, mistakes)
    a = draw(scratch.p, block.U[t, 1])
    if not is_valid_decision(a, scratch.p):
        return False
    block.action[t], block.correct[t], block.p_true[t] = a, a == block.y[t], scratch.p[block.y[t]]
    return True


def play_template(forest, rule, scratch, state, block, rounds, cursor):
    """Play a block; `rounds` are those before it, the cursor is (-1, 0) at the start.

    A learner predicts in round :math:`t + 1` directly after its trees' update of round t, while they are in the cache.
    So two rounds run through one another, in passes over the learners:

        pass         learner 0         learner 1        ...   learner N - 1      then, all votes being there
        t = -1       ask 0             ask 0                  ask 0              answer 0, absorb 0
        t = 0        teach 0, ask 1    teach 0, ask 1         teach 0, ask 1     answer 1, absorb 1
        ...
        t = n - 1    teach n - 1       teach n - 1            teach n - 1        done

    What learner i is asked needs the votes of learners 0 ... i - 1 in the same round, which are there; what it is taught,
    its weight, was written when the round before was absorbed.

    Returns DONE; FULL, the cursor's tree being the one whose arrays are to be enlarged, which then goes on there; or
    WRONG where scratch.p of the cursor's round is no distribution.
    """
    forest, rule, scratch, state, block = borrow(forest), borrow(rule), borrow(scratch), borrow(state), borrow(block)
    n = block.y.shape[0]
    while cursor[ROUND] < n:
        if not pass_kernel(forest, rule, scratch, block, cursor):  # type: ignore[name-defined]  # noqa: F821
            return FULL
        t = cursor[ROUND]
        if t == n:
            break
        if not answer(forest, scratch, state.mistakes, block, t):
            return WRONG
        absorb_kernel(rule, scratch, state, block.y[t], rounds + t + 1)  # type: ignore[name-defined]  # noqa: F821
    return DONE


# ------------------------------------------------------------------------------------------------------ bound to a rule


class Steps(NamedTuple):
    r"""A rule's kernels, and the class of its scratch arrays, with what `adapt` reads of :math:`s^i`.

    begin(rule, scratch)                 writes what `adapt` reads of :math:`s^0`, its mass too
    costs(rule, scratch, i, C)          writes learner i's costs into C (K, K)
    step(rule, scratch, i, l, S)           writes :math:`s^{i+1}` into `S[i]`, its mass, what was before and is after
    adapt(rule, scratch, i, l, y, root, S) learns the label y; root is :math:`\sqrt{\text{rounds}}`
    recall(rule, scratch, i, l, s)         does again what the others did that `adapt` reads in `scratch.own`,
                                           s being :math:`s^i`
    """

    own: Any
    begin: Any
    costs: Any
    step: Any
    adapt: Any
    recall: Any


class Loops(NamedTuple):
    """The compiled templates of one rule, and the class of its scratch arrays."""

    own: Any
    respond: Any
    absorb: Any
    recall: Any
    ask: Any
    play: Any


@cache
def loops(owner: str, steps: Steps) -> Loops:
    """Return the templates bound to a rule's kernels; `owner` names them."""
    begin, costs, step = steps.begin, steps.costs, steps.step
    absorb = bind(absorb_template, owner, adapt_kernel=steps.adapt)
    passing = bind(pass_template, owner, begin_kernel=begin, costs_kernel=costs, step_kernel=step)
    return Loops(
        steps.own,
        respond=bind(respond_template, owner, begin_kernel=begin, costs_kernel=costs, step_kernel=step),
        absorb=absorb,
        recall=bind(recall_template, owner, recall_kernel=steps.recall),
        ask=bind(
            ask_template,
            owner,
            begin_kernel=begin,
            step_kernel=step,
            costs_kernel=costs,
        ),
        play=bind(play_template, owner, pass_kernel=passing, absorb_kernel=absorb),
    )
