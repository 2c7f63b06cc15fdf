"""What a lab needs to write a compiled player: a facade over `banditlab.numerics` and `banditlab.players`."""

from banditlab.numerics.argmax import argmax, runner_up
from banditlab.numerics.contexts import as_contexts, by_context, by_layout, row, stretch
from banditlab.numerics.dense import overwrite
from banditlab.numerics.draws import draw, draw_uniform, greedy_or_uniform, is_answer
from banditlab.numerics.jit import bind, borrow, inline, njit, read_only
from banditlab.numerics.softmax import softmax_into
from banditlab.numerics.sparse_rows import CSR, SparseRow
from banditlab.numerics.symmetric import dot
from banditlab.players.inputs import as_bit, as_block, as_class, as_context, as_rows, as_vector
from banditlab.players.rounds import forecast_rounds, no_look, play_rounds

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
    "by_layout",
    "dot",
    "draw",
    "draw_uniform",
    "forecast_rounds",
    "greedy_or_uniform",
    "inline",
    "is_answer",
    "njit",
    "no_look",
    "overwrite",
    "play_rounds",
    "read_only",
    "row",
    "runner_up",
    "softmax_into",
    "stretch",
]
