"""Rounds that wait for feedback: the inputs of `learn_kernel`, in a ring buffer that compiled loops fill and empty."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.contexts import by_context
from banditlab.numerics.dense import overwrite
from banditlab.numerics.jit import inline, read_only
from banditlab.numerics.sparse_rows import CSR, SparseRow, n_rows

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
NEVER = 2**61
"""The delay, in rounds, of a bit that never arrives."""


class Rules(NamedTuple):
    """The fixed rules for the arrival of feedback bits.

    `wrong` and `right`: the delay of the bit of a wrong or right action if both are constant and there is no other
    rule, else -1. `answered` (2, K): the probability that the bit of a wrong or right action arrives. `timeout` (or
    `NEVER`), `batch` and `rounds`, the length of the run, are in rounds.
    """

    wrong: int
    right: int
    answered: Floats
    timeout: int
    batch: int
    rounds: int


class Draws(NamedTuple):
    """The draws for the n rounds of a block: the delays (n, 2) of the bit of a wrong and of a right action, a uniform
    number (n,) that determines whether the bit arrives, and whether the bit is flipped (n,).
    """

    delay: Whole
    answer: Floats
    flip: NDArray[np.bool_]


class SparseSlots(NamedTuple):
    """Sparse contexts, one per slot: indices (C, m) and values (C, m), of which the first `size` (C,) are used."""

    indices: NDArray[np.uint32]
    values: Floats
    size: Whole


ACTION, BIT, PLACE, NEXT = range(4)
"""The columns of `Ring.notes`."""
SPARE, WAITING = range(2)
"""The entries of `Ring.counts`."""


class Ring(NamedTuple):
    """The pending rounds in C slots, and for each of the next L rounds a list of the slots whose bits arrive at its end.

    A slot contains a round's context, p (K,), payload and `notes` (4,). The notes are the action, the bit, the
    context's row in the block if the bit arrives within the block (-1 if `x` contains a copy), and the next slot of the
    same list. Lists are circular. Entry t modulo L of `last` (L,) is the last slot of the list for arrivals in round t,
    or -1 if the list is empty. `counts` (2,) contains the first slot of the list of unused slots, and the number of
    pending rounds.
    """

    x: Any
    p: Floats
    payload: Floats
    notes: Whole
    last: Whole
    counts: NDArray[np.uint32]


def empty_ring(X: Any, n_classes: int, payload_size: int, window: int) -> Ring:
    """Return a ring without slots, for contexts in the form of X and delays below `window` rounds."""
    sparse = SparseSlots(np.zeros((0, 0), np.uint32), np.zeros((0, 0)), np.zeros(0, np.int64))
    x = sparse if isinstance(X, CSR) else np.zeros((0, X.shape[1]))
    p, payload, notes = np.zeros((0, n_classes)), np.zeros((0, payload_size)), np.zeros((0, 4), np.int64)
    return Ring(x, p, payload, notes, np.full(window, -1), np.zeros(2, np.uint32))


def with_room(ring: Ring, X: Any) -> Ring:
    """Return the ring with enough slots for a block's contexts, but at most L; if it grows, it doubles at least."""
    slots = len(ring.notes)
    left = len(ring.last) - slots
    wanted = min(left, int(ring.counts[WAITING]) + n_rows(X) - slots) if left else 0
    more = min(left, max(wanted, slots)) if wanted > 0 else 0
    if not (more or isinstance(X, CSR)):
        return ring
    longest = int(np.diff(X.indptr).max(initial=0)) if isinstance(X, CSR) else 0
    if isinstance(ring.x, SparseSlots):
        x: Any = SparseSlots(*(_grown(array, more, longest) for array in ring.x))
    else:
        x = _grown(ring.x, more)
    grown = Ring._make((x, *(_grown(array, more) for array in ring[1:-2]), *ring[-2:]))
    if more:  # put the new slots before the other unused slots
        grown.notes[slots:, NEXT] = [*range(slots + 1, slots + more), grown.counts[SPARE]]
        grown.counts[SPARE] = slots
    return grown


def _grown(array: NDArray[Any], more: int, columns: int = 0) -> NDArray[Any]:
    """Return the array with `more` rows of zeros appended and at least `columns` columns."""
    wider = [(0, max(0, columns - size)) for size in array.shape[1:]]
    return np.pad(array, [(0, more), *wider]) if more or any(map(any, wider)) else array


@inline
def arrival(rules, draws, t, now, hit, action, too_late):
    """Return the round at whose end the bit of round `now`, the t-th of the block, arrives, and the bit.

    If the bit is lost or later than the timeout, "wrong" arrives at the timeout instead, and `too_late` (1,) counts the
    bits that are later than the timeout. Without a timeout, the returned round of a lost bit is after the end of the
    run.
    """
    delay, bit = rules.right if hit else rules.wrong, hit
    if delay >= 0:
        return now + delay, bit
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
    """Return the context in a slot, in the form that `row` returns."""
    return read_only(slots[slot])


def _stored_sparse(slots, slot):
    n = slots.size[slot]
    return SparseRow(read_only(slots.indices[slot][:n]), read_only(slots.values[slot][:n]))


store = by_context(_store, _store_sparse, kind=SparseSlots, name="slots")
stored = by_context(_stored, _stored_sparse, kind=SparseSlots, name="slots", inlined=True, arrays="views")


@inline
def put(ring, end, action, bit, place):
    """Append the first unused slot to the list of the round whose number modulo L is `end`."""
    counts, notes, end = ring.counts, ring.notes, np.uint64(end)  # unsigned, because indices below 0 wrap around
    slot, last = counts[SPARE], ring.last[end]
    counts[SPARE] = notes[slot, NEXT]
    counts[WAITING] += 1
    notes[slot, ACTION], notes[slot, BIT], notes[slot, PLACE], notes[slot, NEXT] = action, bit, place, slot
    if last >= 0:  # a circular list, in which the first slot follows the last
        notes[slot, NEXT], notes[last, NEXT] = notes[last, NEXT], slot
    ring.last[end] = slot


@inline
def due(ring, end):
    """Return the first and the last slot of a round's list, or -1 if it is empty, and mark its slots as unused.

    `end` is the round modulo L. The slots' content is valid until the next decision, except `NEXT` of the last one.
    """
    counts, notes, end = ring.counts, ring.notes, np.uint64(end)
    last = ring.last[end]
    if last < 0:
        return last, last
    first = notes[last, NEXT]
    ring.last[end], notes[last, NEXT], counts[SPARE] = -1, counts[SPARE], first
    return first, last
