"""Pending rounds: what `learn_kernel` needs of each, in a ring that compiled loops fill and empty."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.contexts import by_context
from banditlab.numerics.dense import overwrite
from banditlab.numerics.jit import borrow, inline, read_only
from banditlab.numerics.sparse_rows import CSR, SparseRow, n_rows

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
NEVER = 2**61
"""The delay, in rounds, of a bit that does not come."""


class Rules(NamedTuple):
    """The fixed rules for the arrival of bits.

    answered (2, K), the chance that an action that is wrong, or right, is answered; timeout (or NEVER), batch and rounds,
    the length of the run, in rounds.
    """

    answered: Floats
    timeout: int
    batch: int
    rounds: int


class Draws(NamedTuple):
    """The draws for the rounds of a block: the delay (n, 2) of the bit if the action is wrong, and if it is right; a
    uniform (n,) that decides whether it is answered; whether the agent's bit is wrong (n,).
    """

    delay: Whole
    answer: Floats
    flip: NDArray[np.bool_]


class SparseSlots(NamedTuple):
    """Sparse contexts, one a slot: places (C, m) and values (C, m), of which the first `size` (C,) are used."""

    indices: NDArray[np.uint32]
    values: Floats
    size: Whole


class Ring(NamedTuple):
    """The pending rounds: C slots, and for the L rounds to come the slots whose bits arrive at the end of each.

    A slot has the context, p (K,), payload, action and bit of a round, and `following`, the next slot of the same arrival
    or -1. `place` is the context's row in the block where the bit arrives within it, -1 where `x` holds a copy. `first` and
    `last` (L,) hold the ends of these lists, -1 where one is empty, at the arrival's round modulo L. `free` (C,) begins with
    the `spare` (1,) slots that are not in use; the last of these is the next to be used.
    """

    x: Any
    p: Floats
    payload: Floats
    action: Whole
    bit: NDArray[np.bool_]
    place: Whole
    following: Whole
    free: Whole
    spare: Whole
    first: Whole
    last: Whole


def empty_ring(X: Any, n_classes: int, payload_size: int, window: int) -> Ring:
    """Return a ring without slots for contexts in the form of X, whose bits arrive less than `window` rounds later."""
    none, ends = np.zeros(0, np.int64), np.full(window, -1)
    sparse = SparseSlots(np.zeros((0, 0), np.uint32), np.zeros((0, 0)), none)
    x = sparse if isinstance(X, CSR) else np.zeros((0, X.shape[1]))
    p, payload, bit = np.zeros((0, n_classes)), np.zeros((0, payload_size)), np.zeros(0, np.bool_)
    return Ring(x, p, payload, none, bit, none, none, none, np.zeros(1, np.int64), ends, ends.copy())


def with_room(ring: Ring, X: Any) -> Ring:
    """Return the ring with slots for the contexts of a block, L slots at most; it doubles where there are too few."""
    slots, spare = len(ring.free), int(ring.spare[0])
    wanted = min(len(ring.first), slots - spare + n_rows(X))
    more = min(len(ring.first), max(wanted, 2 * slots)) - slots if wanted > slots else 0
    if not (more or isinstance(X, CSR)):
        return ring
    longest = int(np.diff(X.indptr).max(initial=0)) if isinstance(X, CSR) else 0
    if isinstance(ring.x, SparseSlots):
        x: Any = SparseSlots(*(_grown(array, more, longest) for array in ring.x))
    else:
        x = _grown(ring.x, more)
    grown = Ring._make((x, *(_grown(array, more) for array in ring[1:-3]), *ring[-3:]))
    grown.free[spare : spare + more] = np.arange(slots, slots + more)
    grown.spare[0] += more
    return grown


def _grown(array: NDArray[Any], more: int, columns: int = 0) -> NDArray[Any]:
    """Return the array with `more` rows of zeros appended and at least `columns` columns."""
    wider = [(0, max(0, columns - size)) for size in array.shape[1:]]
    return np.pad(array, [(0, more), *wider]) if more or any(map(any, wider)) else array


@inline
def arrival(rules, draws, t, now, hit, action, too_late):
    """Return the round at whose end the bit of round `now`, the t-th of the block, is learnt, and the bit.

    That round is beyond the run for a bit that never comes. An answer after the timeout adds to `too_late` (1,).
    """
    delay, bit = draws.delay[t, 1 if hit else 0], hit != draws.flip[t]
    if draws.answer[t] >= rules.answered[1 if hit else 0, action]:
        delay = NEVER
    if delay > rules.timeout:
        too_late[0] += delay < NEVER
        delay, bit = rules.timeout, False
    arrives = now + delay
    if rules.batch > 1:
        arrives = (arrives // rules.batch + 1) * rules.batch - 1
    return arrives, bit


def _store(slots, slot, x):
    """Write a context into a slot."""
    overwrite(slots[slot], x)


def _store_sparse(slots, slot, x):
    slots.size[slot] = x.values.shape[0]
    for j in range(x.values.shape[0]):
        slots.indices[slot, j] = x.indices[j]
        slots.values[slot, j] = x.values[j]


def _stored(slots, slot):
    """Return the context in a slot, as `row` returns those of a block."""
    return read_only(slots[slot])


def _stored_sparse(slots, slot):
    n = slots.size[slot]
    return SparseRow(read_only(slots.indices[slot][:n]), read_only(slots.values[slot][:n]))


store = by_context(_store, _store_sparse, kind=SparseSlots, name="slots")
stored = by_context(_stored, _stored_sparse, kind=SparseSlots, name="slots", inlined=True, arrays="views")


@inline
def put(ring, end, slot, action, bit, place):
    """Keep the next slot until the end of a round, behind those that arrive then, too; `end` is that round modulo L."""
    ring = borrow(ring)
    ring.spare[0] -= 1
    ring.action[slot], ring.bit[slot], ring.place[slot], ring.following[slot] = action, bit, place, -1
    if ring.first[end] < 0:
        ring.first[end] = slot
    else:
        ring.following[ring.last[end]] = slot
    ring.last[end] = slot


@inline
def taken(ring, end):
    """Return the slot of the first bit that arrives at the end of a round, and make it free; -1 if none is left.

    `end` is that round modulo L. The slot's content stays as it is until the next decision.
    """
    ring = borrow(ring)
    slot = ring.first[end]
    if slot >= 0:
        ring.first[end] = ring.following[slot]
        ring.free[ring.spare[0]] = slot
        ring.spare[0] += 1
    return slot
