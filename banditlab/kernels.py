r"""Functions for writing a compiled player in a project folder (a lab), from `banditlab.numerics` and `banditlab.players`.

Compiled functions accept float64 arrays in C order without checks; the caller must ensure the shapes. z, v (K,) are
scores, one per class; p (K,) are probabilities; u is a uniform random number in [0, 1), or the round's pair of them; y
is a label in :math:`0, \dots, K-1`, and a is an action. x (d,) is a context. X (n, d) contains the contexts of a block,
dense or `CSR`, and U (n, 2) the uniforms of its rounds. `state` is the named tuple of the player's arrays, and
`payload` (m,) is the payload of a decision. `action`, `correct`, `p_true` and `explored` (n,) are the columns of a
`Trace`. `best` is the class that is chosen unless a coin flip of probability :math:`\gamma` selects exploration.

The `as_` functions check values from a user and raise a UsageError that names the argument. Their arguments are the
value or values, the name in the message, the space (the problem or d), and `sparse`, whether CSR is accepted. `njit`
and `inline` compile a function (`inline` always into its caller), with a cache on disk. `indices` are a sparse row's
column indices. `by_context` returns a function that calls one of two functions: the second if the argument called
`name` has the type `kind`, and otherwise the first.
"""

from banditlab.numerics.argmax import argmax, runner_up
from banditlab.numerics.contexts import as_contexts, by_context
from banditlab.numerics.contexts import counted_row as row
from banditlab.numerics.contexts import counted_stretch as stretch
from banditlab.numerics.dense import overwrite
from banditlab.numerics.draws import draw, draw_uniform, greedy_or_uniform, is_valid_decision
from banditlab.numerics.jit import bind, borrow, inline, njit, read_only
from banditlab.numerics.softmax import softmax_into
from banditlab.numerics.sparse_rows import CSR, SparseRow
from banditlab.numerics.symmetric import dot
from banditlab.players.inputs import as_bit, as_block, as_class, as_context, as_rows, as_vector
from banditlab.players.rounds import forecast_rounds, no_prefetch, play_rounds

__all__ = [
    "CSR",
    "SparseRow",
    "argmax",
    "as_bit",
    "as_block",
    "as_class",
    "as_context",
    "as_contexts",
    "as_rows",
    "as_vector",
    "bind",
    "borrow",
    "by_context",
    "dot",
    "draw",
    "draw_uniform",
    "forecast_rounds",
    "greedy_or_uniform",
    "inline",
    "is_valid_decision",
    "njit",
    "no_prefetch",
    "overwrite",
    "play_rounds",
    "read_only",
    "row",
    "runner_up",
    "softmax_into",
    "stretch",
]
