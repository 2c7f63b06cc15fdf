"""Compiled kernels for the rounds of boosters that combine experts.

One kernel runs a whole round if the learners are compiled trees or estimate the probability of each class. Otherwise,
or if a learner overrides `predict`, the learners predict one by one in Python.

AdaBoost.OLM and AdaBoost.OLM++ compute votes and costs differently. The five kernels that do this are called the rule
(`Steps`). The loops of this module work with any rule and any weak learner.

A learner's prediction determines the costs of the next learner, so a round is a chain of N steps. Each step also stores
what the update needs, for every possible label.

`scratch` contains the work arrays of a round; `state` and `rule` contain the arrays that persist.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.boosting.hedge import fading_weights, mix_experts
from banditlab.boosting.losses import gradient
from banditlab.boosting.trees.forest import prepare, uniform, update_trees
from banditlab.boosting.weak.weak_learner import Floats, least_costly, most_probable
from banditlab.numerics.draws import draw, is_valid_decision
from banditlab.numerics.jit import bind, borrow, inline, njit

DONE, FULL, WRONG = range(3)
"""How a block ends: after its last round, at a tree whose arrays are too small, or at invalid probabilities."""
ROUND, TREE = range(2)
"""Indices of a block's cursor: the current round, and the first tree not yet updated with it (NONE before the
action)."""
NONE = -1


class Scratch(NamedTuple):
    r"""Work arrays of a round of N learners and K classes.

    payload (N (K + 2),)    predictions (N,), experts' labels (N,), votes S (N, K): row i of S is :math:`s^{i+1}`
    mass (N + 1, K)         :math:`-C^i(r, r)` of every label r, at :math:`s^0, \dots, s^N`
    before, after (N, K)    :math:`C^i(r, l)` and :math:`C^{i+1}(r, l)` of every label :math:`r \ne l`,
                            l being learner i's prediction
    costs (K, K), gain (K,) a learner's costs C(label, prediction), and minus the expected cost of each prediction
    estimates (N, K)        the learners' estimates
    uniforms (N,)           uniform draws that break ties, first the learners' and then the experts'
    weights (N,)            the example's weight for each learner
    experts (N,)            Hedge's weights
    fading (NEVER,)         a constant, see `hedge`
    p (K,)                  the distribution of the action
    own                     the rule's work arrays, including what `adapt` needs of :math:`s^i`
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
        """Return the work arrays of N learners and K classes; `own.of(N, K)` returns the rule's part."""
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
    """The booster's arrays, each with one entry per learner or expert (N,).

    A learner's edge is `got / best`. `mistakes` counts each expert's mistakes. `tops` and `scales` are constants in the
    weights of an example (see `absorb_template`).
    """

    got: Floats
    best: Floats
    mistakes: Floats
    tops: Floats
    scales: Floats


class Block(NamedTuple):
    """n rounds: contexts V as the trees' `view` returns them, labels y, uniforms U (n, 2); other arrays are outputs."""

    V: Floats
    y: NDArray[np.int64]
    U: Floats
    action: NDArray[np.int64]
    correct: NDArray[np.bool_]
    p_true: Floats


@inline(arrays="views")
def parts(payload, K):
    """Return the predictions (N,), experts' labels (N,) and votes (N, K) in the flat array `payload`, as views."""
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
    r"""Write each expert's label :math:`\arg\max_l s^i_l` into `payload`, and their mixture with Hedge's weights into
    p.

    These are lines 8 and 10 of Algorithm 2.
    """
    scratch, mistakes = borrow(scratch), borrow(mistakes)
    _, choices, S = parts(scratch.payload, scratch.p.shape[0])
    for i in range(choices.shape[0]):
        choices[i] = most_probable(S[i], scratch.uniforms[i])
    mix_experts(mistakes, choices, scratch.fading, scratch.experts, scratch.p)


# -------------------------------------------------------------------------- a round, predictions of all learners in one kernel


def respond_template(forest, rule, scratch, mistakes, x):
    """Predict with every learner at x and fill the work arrays."""
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
    r"""Update the sums of edges and mistakes, adapt the rule (lines 12 and 13 of Algorithm 2), and write the example's
    weights into `scratch`.

    The weight for learner i is :math:`\min(1, -C^i(y, y) / \text{tops}_i)\, \text{scales}_i`. Line 14 of Algorithm 2
    has :math:`-C^i(y, l)`, which is negative for :math:`l \ne y`; the paper's text has the right formula.
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
    """Recompute what `absorb` needs and the payload lacks: `mass`, `before`, `after` and `own`, for label y."""
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
    """Add the votes of learners `done`, ..., `asked - 1` and write the costs (K, K) of learner `asked`.

    The predictions of these learners are in the payload. `done = -1` starts the round at :math:`s^0`. If `asked = N`,
    no costs are written.
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


def play_template(forest, rule, scratch, state, block, rounds, cursor):
    """Run a block of rounds; `rounds` is the number of rounds before it, and the cursor is (0, NONE) at the start.

    Returns DONE, FULL or WRONG. After FULL, the caller must enlarge the arrays of the cursor's tree; the next call
    continues there. After WRONG, `scratch.p` of the cursor's round is not a distribution.
    """
    forest, rule, scratch, state, block = borrow(forest), borrow(rule), borrow(scratch), borrow(state), borrow(block)
    for t in range(cursor[ROUND], block.y.shape[0]):
        if cursor[TREE] == NONE:
            cursor[ROUND], cursor[TREE] = t, 0
            respond_kernel(forest, rule, scratch, state.mistakes, block.V[t])  # type: ignore[name-defined]  # noqa: F821
            a = draw(scratch.p, block.U[t, 1])
            if not is_valid_decision(a, scratch.p):
                return WRONG
            block.action[t], block.correct[t], block.p_true[t] = a, a == block.y[t], scratch.p[block.y[t]]
            absorb_kernel(rule, scratch, state, block.y[t], rounds + t + 1)  # type: ignore[name-defined]  # noqa: F821
        cursor[TREE] = update_trees(forest, cursor[TREE], block.V[t], block.y[t], scratch.weights)
        if cursor[TREE] < forest.trees.shape[0]:
            return FULL
        cursor[TREE] = NONE
    return DONE


# ------------------------------------------------------------------------------------------------------ bound to a rule


class Steps(NamedTuple):
    r"""The five kernels of a rule; `own` is the class of the rule's work arrays, which store what `adapt` needs.

    * `begin(rule, scratch)` writes `mass` at :math:`s^0`, and into `scratch.own` what `adapt` needs of :math:`s^0`;
    * `costs(rule, scratch, i, C)` writes learner i's costs into C (K, K);
    * `step(rule, scratch, i, l, S)` writes :math:`s^{i+1}` into `S[i]`, and `mass`, `before`, `after` into `scratch`;
    * `adapt(rule, scratch, i, l, y, root, S)` updates the rule after label y in round t; root is :math:`\sqrt{t}`;
    * `recall(rule, scratch, i, l, s)` recomputes from the stored votes s, which are :math:`s^i`, what `adapt` needs in
      `scratch.own`.
    """

    own: Any
    begin: Any
    costs: Any
    step: Any
    adapt: Any
    recall: Any


class Loops(NamedTuple):
    """The compiled loops of one rule, and the class of its work arrays."""

    own: Any
    respond: Any
    absorb: Any
    recall: Any
    ask: Any
    play: Any


@cache
def loops(owner: str, steps: Steps) -> Loops:
    """Return the loops compiled with a rule's kernels; `owner` names them."""
    begin, costs, step = steps.begin, steps.costs, steps.step
    absorb = bind(absorb_template, owner, adapt_kernel=steps.adapt)
    respond = bind(respond_template, owner, begin_kernel=begin, costs_kernel=costs, step_kernel=step)
    return Loops(
        steps.own,
        respond=respond,
        absorb=absorb,
        recall=bind(recall_template, owner, recall_kernel=steps.recall),
        ask=bind(
            ask_template,
            owner,
            begin_kernel=begin,
            step_kernel=step,
            costs_kernel=costs,
        ),
        play=bind(play_template, owner, respond_kernel=respond, absorb_kernel=absorb),
    )
