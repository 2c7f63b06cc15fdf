"""Loops over the rounds of a block, which `bind` compiles with an algorithm's own kernels."""

from __future__ import annotations

from typing import Any

from numba import types as nbtypes
from numba.extending import intrinsic

from banditlab.numerics.contexts import row
from banditlab.numerics.dense import overwrite
from banditlab.numerics.draws import is_valid_decision
from banditlab.numerics.jit import borrow
from banditlab.numerics.pending import ACTION, BIT, NEXT, PLACE, SPARE, WAITING, arrival, due, put, store, stored
from banditlab.numerics.right_actions import is_right, probability_right


def _no_prefetch(typingctx, state, X, t):
    """Do nothing, for any state; this compiles to no code."""
    return nbtypes.none(state, X, t), lambda context, builder, signature, args: context.get_dummy_value()


no_prefetch: Any = intrinsic(_no_prefetch)


prefetch_kernel = no_prefetch
"""The default for `prefetch_kernel` in `play_rounds`."""
act_kernel: Any = None
learn_kernel: Any = None
update_kernel: Any = None
"""Placeholders that `bind` replaces by a player's kernels; a template is never called without them."""


def play_rounds(state, X, y, U, p, payload, action, correct, p_true, explored):
    """Run one block: X (n, d) or `CSR`, y (n,) or (n, K), U (n, 2); `learn_kernel` receives only the bit of the action.

    `prefetch_kernel` is called before every round t, and with t = n at the end. The loop stops without an update
    at the first round whose decision is invalid (see `is_valid_decision`); p then contains the probabilities of that
    round. Return this round, or n if all decisions are valid.
    """
    state, X, y, U, p, payload = borrow(state), borrow(X), borrow(y), borrow(U), borrow(p), borrow(payload)
    n = y.shape[0]
    for t in range(y.shape[0]):
        prefetch_kernel(state, X, t)
        a, e = act_kernel(state, row(X, t), U[t], p, payload)
        hit = is_right(y, t, a)
        action[t] = a
        correct[t] = hit
        p_true[t] = probability_right(y, t, p)
        explored[t] = e
        if not is_valid_decision(a, p):
            n = t
            break
        learn_kernel(state, row(X, t), a, p, payload, hit)
    prefetch_kernel(state, X, y.shape[0])
    return n


def play_rounds_late(
    state, X, y, U, p, payload, ring, rules, draws, start, too_late, action, correct, p_true, explored
):
    """Run one block as `play_rounds` does, but update with the bit of a round when it arrives, if ever.

    The block begins with round `start` of the run. For `ring`, `rules` and `draws`, see `banditlab.numerics.pending`.
    Updates on bits that arrive together are in the order of their rounds.
    """
    state, X, y, U, p, payload, ring = (
        borrow(state),
        borrow(X),
        borrow(y),
        borrow(U),
        borrow(p),
        borrow(payload),
        borrow(ring),
    )
    L = ring.last.shape[0]
    here = start % L
    for t in range(y.shape[0]):
        slot = ring.counts[SPARE]
        p_t, payload_t = ring.p[slot], ring.payload[slot]
        a, e = act_kernel(state, row(X, t), U[t], p_t, payload_t)
        hit = is_right(y, t, a)
        action[t] = a
        correct[t] = hit
        p_true[t] = probability_right(y, t, p_t)
        explored[t] = e
        if not is_valid_decision(a, p_t):
            overwrite(p, p_t)
            return t
        arrives, bit = arrival(rules, draws, t, start + t, hit, a, too_late)
        if arrives < rules.rounds:  # less than L rounds after this one
            place = t
            if arrives >= start + y.shape[0]:
                place = -1
                store(ring.x, slot, row(X, t))
            end = here + arrives - (start + t)
            put(ring, end if end < L else end - L, a, bit, place)
        slot, last = due(ring, here)
        while slot >= 0:
            place, bit = ring.notes[slot, PLACE], ring.notes[slot, BIT] != 0
            x = row(X, place) if place >= 0 else stored(ring.x, slot)
            learn_kernel(state, x, ring.notes[slot, ACTION], ring.p[slot], ring.payload[slot], bit)
            ring.counts[WAITING] -= 1
            slot = ring.notes[slot, NEXT] if slot != last else -1
        here = here + 1 if here + 1 < L else 0
    return y.shape[0]


def forecast_rounds(state, X, y, z, logits):
    """Forecast one block with revealed labels; `update_kernel` writes the logits of its forecast into z (K,)."""
    state, X, y, z, logits = borrow(state), borrow(X), borrow(y), borrow(z), borrow(logits)
    for t in range(y.shape[0]):
        update_kernel(state, row(X, t), y[t], z)
        overwrite(logits[t], z)


def play_label_rounds(state, X, y, U, p, payload, action, correct, p_true, explored):
    """Run one block: X (n, d) or `CSR`, y (n,), U (n, 2); `learn_kernel` receives the label after the action.

    The return value is that of `play_rounds`.
    """
    state, X, y, U, p, payload = borrow(state), borrow(X), borrow(y), borrow(U), borrow(p), borrow(payload)
    for t in range(y.shape[0]):
        a = act_kernel(state, row(X, t), U[t], p, payload)
        action[t] = a
        correct[t] = a == y[t]
        p_true[t] = p[y[t]]
        explored[t] = False
        if not is_valid_decision(a, p):
            return t
        learn_kernel(state, row(X, t), a, p, payload, y[t])
    return y.shape[0]
