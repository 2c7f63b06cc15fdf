"""The rounds of an expert booster, from the estimates of its learners or over compiled trees whole, in one kernel.

The numbers are those of the learners' protocol.

What the booster's own share of a round is made of. What a learner answers decides what the next one is asked: a chain of N
steps, each kept short, in registers of eight classes and without branches that depend on data, so that the processor goes on
to the next tree meanwhile. For that a tree learns a round's example and is asked the next one's at once, while it is at
hand. Beside the answer a step writes down what any label will need; e^{-M} of a count of mistakes is looked up.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from banditlab.boosting.losses import gradient
from banditlab.boosting.trees.forest import estimate, prepare, teach_one, uniform
from banditlab.boosting.weak.weak_learner import Floats, most_probable
from banditlab.numerics.draws import draw, is_answer
from banditlab.numerics.jit import bind, borrow, inline, njit
from banditlab.numerics.simd import WIDTH, first, how_many, largest, only, place, put, put_first

DONE, FULL, WRONG = range(3)
NEVER = 746
"""Mistakes behind the best expert after which e^{-M} is 0."""


def lines(rows: int, columns: int) -> Floats:
    """Return zeros (rows, columns), the first at the start of a line of the processor's cache."""
    room = np.zeros(rows * columns + WIDTH)
    start = -(room.ctypes.data // 8) % WIDTH
    return room[start : start + rows * columns].reshape(rows, columns)


class Room(NamedTuple):
    """What a round of N learners and K classes is written into; P is K made a multiple of eight, padded with zeros.

    payload (N (K + 2),)    predictions (N,), experts' labels (N,), votes S (N, K)
    mass (N + 1, P)         -C^i(r, r) of every label r, at s^0 ... s^N
    before, after (N, P)    C^i(r, l) and C^{i+1}(r, l) of every label r != l, l being learner i's prediction
    votes, odds (P,)        what the rule keeps of s^i
    pairs (K, P)            what it keeps of the costs there
    unit, others (K, P)     row k is 1 at k and 0 elsewhere; 0 at k and 1 elsewhere
    estimates (N, K)        the learners' estimates
    p (K,), gain, next (P,) what is played; scratch
    v, w (N,)               experts' weights; uniforms for the learners' ties, then their examples' weights
    fading (NEVER,)         e^{-M} of M = 0, 1, ...
    """

    payload: Floats
    mass: Floats
    before: Floats
    after: Floats
    votes: Floats
    odds: Floats
    pairs: Floats
    unit: Floats
    others: Floats
    estimates: Floats
    p: Floats
    gain: Floats
    next: Floats
    v: Floats
    w: Floats
    fading: Floats

    @classmethod
    def of(cls, N: int, K: int) -> Room:
        """Return the room of N learners and K classes."""
        P = -(-K // WIDTH) * WIDTH
        rows, fading, unit = lines(3 * N + 3 * K + 5, P), np.zeros(NEVER), np.eye(K, P)
        small = rows[3 * N + 1 :]
        fade(fading)
        small[: 2 * K] = np.concatenate([unit, 1.0 - unit])
        return cls(
            payload=np.zeros(N * (K + 2)),
            mass=rows[: N + 1],
            before=rows[N + 1 : 2 * N + 1],
            after=rows[2 * N + 1 : 3 * N + 1],
            votes=small[3 * K],
            odds=small[3 * K + 1],
            pairs=small[2 * K : 3 * K],
            unit=small[:K],
            others=small[K : 2 * K],
            estimates=np.zeros((N, K)),
            p=np.zeros(K),
            gain=small[3 * K + 2],
            next=small[3 * K + 3],
            v=np.zeros(N),
            w=np.zeros(N),
            fading=fading,
        )


class Counts(NamedTuple):
    """The booster's own arrays (N,): sums of the edges, mistakes of the experts; tops and scales of the weights."""

    got: Floats
    best: Floats
    mistakes: Floats
    tops: Floats
    scales: Floats


@njit
def fade(fading):
    """Write e^{-M} into fading, as `expert_weights` has it."""
    for i in range(fading.shape[0]):
        fading[i] = np.exp(-float(i))


@inline
def parts(payload, K):
    """Return predictions (N,), experts' labels (N,) and votes (N, K) of a payload, as views."""
    N = payload.shape[0] // (K + 2)
    return payload[:N], payload[N : 2 * N], payload[2 * N :].reshape(N, K)


@inline
def best_of(values, o, K, u):
    """Return `most_probable` of entries o ... o + K - 1 of values, counted flat, with the uniform u for a tie."""
    if K > WIDTH:
        return most_probable(values.reshape(values.size)[o : o + K], u)
    v = only(first(values, o, K), K, -math.inf)
    best = largest(v)
    if best > -math.inf and how_many(v, best) == 1:  # where none is a number the only -inf may be that of no class
        return place(v, best)
    return most_probable(values.reshape(values.size)[o : o + K], u)


@inline
def put_votes(S, i, b, v):
    """Write lanes v of classes b ... b + 7 into row i of S (N, K), as many as there are."""
    K = S.shape[1]
    if K - b >= WIDTH:
        put(S, i * K + b, v)
    else:
        put_first(S, i * K + b, v, K - b)


@njit
def follow(forest, S, choices, mistakes, fading, v, p):
    """Write each expert's label into choices (N,) and hedge's mix of them into p (K,), as `follow_experts` does."""
    N, K = S.shape
    least, total = mistakes.min(), 0.0
    for i in range(N):
        choices[i] = best_of(S, i * K, K, uniform(forest, N))
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


def respond_template(forest, rule, room, mistakes, x):
    """Ask every learner at x: fills the room."""
    forest, rule, room, mistakes, x = borrow(forest), borrow(rule), borrow(room), borrow(mistakes), borrow(x)
    votes, choices, S = parts(room.payload, room.p.shape[0])
    prepare(forest, x, room.estimates, room.w)
    begin_kernel(rule, room)  # type: ignore[name-defined]  # noqa: F821
    for i in range(votes.shape[0]):
        l = choose_kernel(rule, room, i, room.estimates[i], room.w[i])  # type: ignore[name-defined]  # noqa: F821
        votes[i] = l
        step_kernel(rule, room, i, l, S)  # type: ignore[name-defined]  # noqa: F821
    follow(forest, S, choices, mistakes, room.fading, room.v, room.p)


def absorb_template(rule, room, counts, y, rounds):
    """Count edges and mistakes, adapt the votes, and write the weights of the example into room.w."""
    rule, room, counts = borrow(rule), borrow(room), borrow(counts)
    votes, choices, S = parts(room.payload, room.p.shape[0])
    root = math.sqrt(rounds)
    for i in range(votes.shape[0]):
        l, own, other = int(votes[i]), -room.mass[i, y], room.before[i, y]
        counts.got[i] += own if l == y else other
        counts.best[i] += own
        room.w[i] = min(1.0, -own / counts.tops[i]) * counts.scales[i]
        counts.mistakes[i] += choices[i] != y
        adapt_kernel(rule, room, i, l, y, root, S)  # type: ignore[name-defined]  # noqa: F821


def recall_template(rule, room, loss, zero, y):
    """Fill in what `absorb` reads beside the payload: what label y needs, and what the rule kept of the votes."""
    rule, room, zero = borrow(rule), borrow(room), borrow(zero)
    votes, _, S = parts(room.payload, zero.shape[0])
    N, g = votes.shape[0], room.next[: zero.shape[0]]
    for i in range(N + 1):
        s = S[i - 1] if i > 0 else zero
        gradient(loss, s, y, g)
        room.mass[i, y] = -g[y]
        if i > 0:
            room.after[i - 1, y] = g[int(votes[i - 1])]
        if i < N:
            room.before[i, y] = g[int(votes[i])]
            recall_kernel(rule, i, int(votes[i]), s)  # type: ignore[name-defined]  # noqa: F821


def play_template(forest, rule, room, counts, V, y, U, rounds, cursor, action, correct, p_true):
    """Play rounds: V (n, columns) are the contexts as trees read them, `rounds` those before the block.

    Learner i answers round t + 1 as soon as its trees have learnt round t; cursor (2,) is t and a tree, (-1, 0) at the
    start. Returns DONE; FULL, the cursor's tree being the one whose arrays are to be enlarged, which then goes on there; or
    WRONG where room.p of the cursor's round is no distribution.
    """
    forest, rule, room, counts = borrow(forest), borrow(rule), borrow(room), borrow(counts)
    V, y, U = borrow(V), borrow(y), borrow(U)
    votes, choices, S = parts(room.payload, room.p.shape[0])
    N, n = votes.shape[0], y.shape[0]
    members = forest.trees.shape[0] // N
    t, j = cursor[0], cursor[1]
    while n > 0:
        if j == 0:
            begin_kernel(rule, room)  # type: ignore[name-defined]  # noqa: F821
        for i in range(j // members, N):
            while t >= 0 and j < (i + 1) * members:
                if not teach_one(forest, j, j - i * members, V[t], y[t], room.w[i]):
                    cursor[0], cursor[1] = t, j
                    return FULL
                j += 1
            if t + 1 < n:
                if i > 0:
                    step_kernel(rule, room, i - 1, int(votes[i - 1]), S)  # type: ignore[name-defined]  # noqa: F821
                estimate(forest, i, V[t + 1], room.estimates[i])
                u = uniform(forest, i)
                votes[i] = choose_kernel(rule, room, i, room.estimates[i], u)  # type: ignore[name-defined]  # noqa: F821
        t, j = t + 1, 0
        if t == n:
            break
        step_kernel(rule, room, N - 1, int(votes[N - 1]), S)  # type: ignore[name-defined]  # noqa: F821
        follow(forest, S, choices, counts.mistakes, room.fading, room.v, room.p)
        a = draw(room.p, U[t, 1])
        if not is_answer(a, room.p):
            cursor[0] = t
            return WRONG
        action[t], correct[t], p_true[t] = a, a == y[t], room.p[y[t]]
        absorb_kernel(rule, room, counts, y[t], rounds + t + 1)  # type: ignore[name-defined]  # noqa: F821
    return DONE


class Loops(NamedTuple):
    """The compiled templates of one rule."""

    respond: Any
    absorb: Any
    recall: Any
    play: Any


@cache
def loops(owner: str, begin: Any, choose: Any, step: Any, adapt: Any, recall: Any) -> Loops:
    """Return the templates bound to a rule's kernels; `owner` names them.

    begin(rule, room) writes what is kept of s^0, its mass too; choose(rule, room, i, q, u) returns learner i's prediction l
    from its estimate q (K,) and the uniform u, as `least_costly` has it; step(rule, room, i, l, S) writes s^{i+1} into S[i],
    its mass, and what was before and is after; adapt(rule, room, i, l, y, sqrt(rounds), S) learns; recall(rule, i, l, s) does
    what the two did that `adapt` reads in `rule`.
    """
    respond = bind(respond_template, owner, begin_kernel=begin, choose_kernel=choose, step_kernel=step)
    absorb = bind(absorb_template, owner, adapt_kernel=adapt)
    return Loops(
        respond,
        absorb,
        bind(recall_template, owner, recall_kernel=recall),
        bind(play_template, owner, begin_kernel=begin, choose_kernel=choose, step_kernel=step, absorb_kernel=absorb),
    )
