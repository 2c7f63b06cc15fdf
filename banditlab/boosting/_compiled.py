"""The rounds of an expert booster over compiled trees, in one kernel: the same numbers as through the learners' protocol.

What the booster's own share of a round is made of: costs that change in one row and one column are taken anew there only,
a label's row of costs serves edge, weight and step, and e^{-M} of a count of mistakes is looked up.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from banditlab.boosting._forest import prepare, teach, uniform
from banditlab.boosting._losses import cost_matrix, gradient, slope
from banditlab.boosting._weak import Floats, least_costly, tied
from banditlab.kernels import bind, borrow, draw, inline, is_answer, njit

DONE, FULL, WRONG = range(3)
NEVER = 746
"""Mistakes behind the best expert after which e^{-M} is 0."""


class Room(NamedTuple):
    """What a round of N learners and K classes is written into.

    payload (N (K + 2),)    predictions (N,), experts' labels (N,), votes S (N, K)
    costs (N + 1, K, K)     the gradients of all labels at s^0 ... s^N; those at s^0 never change
    handed (K, K)           the costs a learner is handed, where they are others
    estimates (N, K)        the learners' estimates
    p, gain (K,)            what is played; scratch
    v, w (N,)               experts' weights; uniforms for the learners' ties, then their examples' weights
    fading (NEVER,)         e^{-M} of M = 0, 1, ...
    """

    payload: Floats
    costs: Floats
    handed: Floats
    estimates: Floats
    p: Floats
    gain: Floats
    v: Floats
    w: Floats
    fading: Floats

    @classmethod
    def of(cls, N: int, loss: int, zero: Floats) -> Room:
        """Return the room of N learners whose edges are measured with the gradients of `loss`; zero (K,) is s^0."""
        K = len(zero)
        costs, fading = np.zeros((N + 1, K, K)), np.zeros(NEVER)
        cost_matrix(loss, zero, costs[0])
        fade(fading)
        p, gain, v, w = np.zeros(K), np.zeros(K), np.zeros(N), np.zeros(N)
        return cls(np.zeros(N * (K + 2)), costs, np.zeros((K, K)), np.zeros((N, K)), p, gain, v, w, fading)


class Counts(NamedTuple):
    """The booster's own arrays (N,): sums of the edges, mistakes of the experts; tops and scales of the weights."""

    got: Floats
    best: Floats
    mistakes: Floats
    tops: Floats
    scales: Floats


@njit
def fade(fading):  # type: ignore[no-untyped-def]
    """Write e^{-M} into fading, as `expert_weights` has it."""
    for i in range(fading.shape[0]):
        fading[i] = np.exp(-float(i))


@inline
def parts(payload, K):  # type: ignore[no-untyped-def]
    """Return predictions (N,), experts' labels (N,) and votes (N, K) of a payload, as views."""
    N = payload.shape[0] // (K + 2)
    return payload[:N], payload[N : 2 * N], payload[2 * N :].reshape(N, K)


@njit
def follow(forest, S, choices, mistakes, fading, v, p):  # type: ignore[no-untyped-def]
    """Write each expert's label into choices (N,) and hedge's mix of them into p (K,), as `follow_experts` does."""
    N, K = S.shape
    least, total = mistakes.min(), 0.0
    for i in range(N):
        u = uniform(forest, N)
        best, place, count = S[i, 0], 0, 1
        for l in range(1, K):
            if S[i, l] > best:
                best, place, count = S[i, l], l, 1
            elif S[i, l] == best:
                count += 1
        choices[i] = place if count == 1 and best == best else tied(S[i], best, count, u)
        behind = mistakes[i] - least
        v[i] = fading[int(behind)] if 0.0 <= behind < NEVER else 0.0 * behind  # no number stays none
        total += v[i]
    for k in range(K):
        p[k] = 0.0
    again = 0.0
    for i in range(N):
        if v[i] > 0.0:
            v[i] /= total
            p[int(choices[i])] += v[i]
            again += v[i]
    for k in range(K):
        p[k] /= again


def respond_template(forest, rule, room, mistakes, x):  # type: ignore[no-untyped-def]
    """Ask every learner at x: fills room.payload, room.costs and room.p."""
    forest, rule, room, mistakes, x = borrow(forest), borrow(rule), borrow(room), borrow(mistakes), borrow(x)
    votes, choices, S = parts(room.payload, room.p.shape[0])
    prepare(forest, x, room.estimates, room.w)
    for i in range(votes.shape[0]):
        handed = hand_kernel(room.costs[i], room.handed)  # type: ignore[name-defined]  # noqa: F821
        l = least_costly(room.estimates[i], handed, room.gain, room.w[i])
        votes[i] = l
        step_kernel(rule, i, l, S, room.costs)  # type: ignore[name-defined]  # noqa: F821
    follow(forest, S, choices, mistakes, room.fading, room.v, room.p)


def absorb_template(rule, room, counts, y, rounds):  # type: ignore[no-untyped-def]
    """Count edges and mistakes, adapt the votes, and write the weights of the example into room.w."""
    rule, room, counts = borrow(rule), borrow(room), borrow(counts)
    votes, choices, S = parts(room.payload, room.p.shape[0])
    root = math.sqrt(rounds)
    for i in range(votes.shape[0]):
        l, row = int(votes[i]), room.costs[i, y]
        counts.got[i] += row[l]
        counts.best[i] += row[y]
        room.w[i] = min(1.0, -row[y] / counts.tops[i]) * counts.scales[i]
        counts.mistakes[i] += choices[i] != y
        adapt_kernel(rule, i, l, y, root, S, room.costs)  # type: ignore[name-defined]  # noqa: F821


def recall_template(rule, room, loss, zero, y):  # type: ignore[no-untyped-def]
    """Fill in what `absorb` reads beside the payload: the label's costs, and what the rule kept of the votes."""
    rule, room, zero = borrow(rule), borrow(room), borrow(zero)
    votes, _, S = parts(room.payload, zero.shape[0])
    N = votes.shape[0]
    for i in range(N + 1):
        s = S[i - 1] if i > 0 else zero
        gradient(loss, s, y, room.costs[i, y])
        if i < N:
            recall_kernel(rule, i, int(votes[i]), s)  # type: ignore[name-defined]  # noqa: F821


def play_template(forest, rule, room, counts, V, y, U, rounds, cursor, action, correct, p_true):  # type: ignore[no-untyped-def]
    """Play rounds from cursor[0] on: V (n, columns) are the contexts as trees read them, `rounds` those before the block.

    Returns DONE; FULL, cursor (2,) being the round and the tree whose arrays are to be enlarged, which then goes on there;
    or WRONG where room.p is no distribution.
    """
    forest, rule, room, counts = borrow(forest), borrow(rule), borrow(room), borrow(counts)
    V, y, U = borrow(V), borrow(y), borrow(U)
    t, j = cursor[0], cursor[1]
    while t < y.shape[0]:
        if j < 0:
            respond_kernel(forest, rule, room, counts.mistakes, V[t])  # type: ignore[name-defined]  # noqa: F821
            a = draw(room.p, U[t, 1])
            cursor[0] = t
            if not is_answer(a, room.p):
                return WRONG
            action[t], correct[t], p_true[t] = a, a == y[t], room.p[y[t]]
            absorb_kernel(rule, room, counts, y[t], rounds + t + 1)  # type: ignore[name-defined]  # noqa: F821
            j = 0
        j = teach(forest, j, V[t], y[t], room.w)
        if j < forest.trees.shape[0]:
            cursor[0], cursor[1] = t, j
            return FULL
        t, j = t + 1, -1
    return DONE


class Loops(NamedTuple):
    """The compiled templates of one rule."""

    respond: Any
    absorb: Any
    recall: Any
    play: Any


@cache
def loops(owner: str, hand: Any, step: Any, adapt: Any, recall: Any) -> Loops:
    """Return the templates bound to a rule's kernels; `owner` names them.

    hand(costs (K, K), room) returns the costs a learner is handed; step(rule, i, l, S, costs) writes s^{i+1} and the gradients
    there; adapt(rule, i, l, y, sqrt(rounds), S, costs) learns; recall(rule, i, l, s) does what `step` did that `adapt` reads.
    """
    respond = bind(respond_template, owner, hand_kernel=hand, step_kernel=step)
    absorb = bind(absorb_template, owner, adapt_kernel=adapt)
    return Loops(
        respond,
        absorb,
        bind(recall_template, owner, recall_kernel=recall),
        bind(play_template, owner, respond_kernel=respond, absorb_kernel=absorb),
    )


@inline
def change_costs(loss, s, l, before, after):  # type: ignore[no-untyped-def]
    """Write the gradients at s into after (K, K), `before` those at votes that differ from s in entry l only."""
    K = s.shape[0]
    for r in range(K):
        for k in range(K):
            after[r, k] = before[r, k]
    for k in range(K):
        if k != l:
            after[l, k] = slope(loss, s[k] - s[l])
            after[k, l] = slope(loss, s[l] - s[k])
    for r in range(K):
        total = 0.0
        for k in range(K):
            if k != r:
                total += after[r, k]
        after[r, r] = -total


@inline
def share_costs(p, C):  # type: ignore[no-untyped-def]
    """Write the gradients of -log softmax(s)_r into C (K, K), p (K,) = softmax(s)."""
    K = p.shape[0]
    for r in range(K):
        total = 0.0
        for l in range(K):
            C[r, l] = p[l]
            if l != r:
                total += p[l]
        C[r, r] = -total
