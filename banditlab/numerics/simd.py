"""Eight numbers at a time, for kernels: `eight(A, i)`, and + - * / on its results, lane by lane.

A running sum does not vectorise without fastmath, because the compiler may not reorder it. Eight independent sums do
vectorise, in an order that the source determines. The sum in each lane is an ordinary float64 sum, rounded
alike on every processor. Only `fma`, `plus_outer` and `combined` use fused operations. LLVM splits the eight numbers if
registers are narrower. Arrays have type float64. `eight` and `put` also accept float32 arrays, whose entries are
converted to float64 when read.

    eight, first, pair, all_lanes       eight lanes from memory or from numbers
    put, put_first                      back to memory
    total, totals, totals_as_total                      sums of lanes
    how_many, how_many_below, lane, second             a number from lanes
    smaller, larger, only, unless_below, any_above     choices, lane by lane
    plus_outer, combined                               matrix products of eight rows
    fma, power_of_two  building blocks of `simd_math`

Every intrinsic below returns its types and a function `generate`, which emits its LLVM instructions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types as nbtypes
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

WIDTH = 8
_VECTOR, _SINGLES = ir.VectorType(ir.DoubleType(), WIDTH), ir.VectorType(ir.FloatType(), WIDTH)
_I32, _I64 = ir.IntType(32), ir.IntType(64)


class LanesType(nbtypes.Type):
    """The type of eight float64 numbers in a register."""

    def __init__(self) -> None:
        super().__init__(name=f"Lanes{WIDTH}")


LANES = LanesType()
ROWS = nbtypes.UniTuple(LANES, WIDTH)


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


def _spread(builder: Any, x: Any) -> Any:
    """Return a number in every lane."""
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), x, _I32(0))
    return builder.shuffle_vector(
        one, ir.Constant(_VECTOR, ir.Undefined), ir.Constant(ir.VectorType(_I32, WIDTH), None)
    )


def _pick(builder: Any, v: Any, w: Any, places: list[int]) -> Any:
    """Return the lanes `places` of v followed by w."""
    mask = ir.Constant(ir.VectorType(_I32, len(places)), [_I32(i) for i in places])
    return builder.shuffle_vector(v, w, mask)


def _address(context: Any, builder: Any, kind: Any, array: Any, i: Any) -> Any:
    """Return the address of entry i of a flattened array, typed as a pointer to eight numbers."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [i]), _VECTOR.as_pointer())


def _eight(typingctx, A, i):
    """Return entries i to :math:`i + 7` of a C-contiguous array, by flat index, without a check of bounds."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], args[0], args[1])
        if signature.args[0].dtype == nbtypes.float32:
            return builder.fpext(builder.load(builder.bitcast(address, _SINGLES.as_pointer()), align=4), _VECTOR)
        return builder.load(address, align=8)

    return LANES(A, nbtypes.intp), generate


def _put(typingctx, A, i, v):
    """Write v into entries i to :math:`i + 7` of A, by flat index; numbers are rounded if A is float32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], args[0], args[1])
        if signature.args[0].dtype == nbtypes.float32:
            builder.store(builder.fptrunc(args[2], _SINGLES), builder.bitcast(address, _SINGLES.as_pointer()), align=4)
        else:
            builder.store(args[2], address, align=8)
        return context.get_dummy_value()

    return nbtypes.void(A, nbtypes.intp, LANES), generate


def _before(builder: Any, n: Any) -> Any:
    """Return eight bits, true in the first n lanes."""
    whole, places = ir.VectorType(_I64, WIDTH), ir.VectorType(_I32, WIDTH)
    one = builder.insert_element(ir.Constant(whole, ir.Undefined), n, _I32(0))
    count = builder.shuffle_vector(one, ir.Constant(whole, ir.Undefined), ir.Constant(places, None))
    return builder.icmp_signed("<", ir.Constant(whole, [_I64(i) for i in range(WIDTH)]), count)


_ZERO = ir.Constant(_VECTOR, None)
_MASK = ir.VectorType(ir.IntType(1), WIDTH)


def _first(typingctx, A, i, n):
    """Return entries i to :math:`i + n - 1` of A in the first lanes, with n < 8, and zeros in the remaining lanes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR.as_pointer(), _I32, _MASK, _VECTOR])
        load = get_or_insert_function(builder.module, kind, "llvm.masked.load.v8f64.p0v8f64")
        address = _address(context, builder, signature.args[0], args[0], args[1])
        return builder.call(load, [address, _I32(8), _before(builder, args[2]), _ZERO])

    return LANES(A, nbtypes.intp, nbtypes.intp), generate


def _put_first(typingctx, A, i, v, n):
    """Write the first n lanes of v into entries i to :math:`i + n - 1` of A."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_VECTOR, _VECTOR.as_pointer(), _I32, _MASK])
        store = get_or_insert_function(builder.module, kind, "llvm.masked.store.v8f64.p0v8f64")
        address = _address(context, builder, signature.args[0], args[0], args[1])
        builder.call(store, [args[2], address, _I32(8), _before(builder, args[3])])
        return context.get_dummy_value()

    return nbtypes.void(A, nbtypes.intp, LANES, nbtypes.intp), generate


def _only(typingctx, v, n, rest):
    """Return v in the first n lanes and the number `rest` in the remaining lanes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(_before(builder, args[1]), args[0], _spread(builder, args[2]))

    return LANES(LANES, nbtypes.intp, nbtypes.float64), generate


def _unless_below(typingctx, v, w, u):
    """Return u with zeros in the lanes where :math:`v < w`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", *args[:2]), _ZERO, args[2])

    return LANES(LANES, LANES, LANES), generate


def _count(relation: str) -> Any:
    def count(typingctx, v, x):
        """Return the number of lanes for which the comparison with x holds."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.IntType(WIDTH)
            found = builder.bitcast(builder.fcmp_ordered(relation, args[0], _spread(builder, args[1])), kind)
            ones = get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), f"llvm.ctpop.i{WIDTH}")
            return builder.zext(builder.call(ones, [found]), _I64)

        return nbtypes.int64(LANES, nbtypes.float64), generate

    return intrinsic(count)


def _lane(typingctx, v):
    """Return the first lane."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.extract_element(args[0], _I32(0))

    return nbtypes.float64(LANES), generate


def _second(typingctx, v):
    """Return the second lane."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.extract_element(args[0], _I32(1))

    return nbtypes.float64(LANES), generate


def _pair(typingctx, x, y):
    """Return y in the second lane and x in all other lanes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.insert_element(_spread(builder, args[0]), args[1], _I32(1))

    return LANES(nbtypes.float64, nbtypes.float64), generate


def _all_lanes(typingctx, x):
    """Return x in every lane."""
    return LANES(nbtypes.float64), lambda context, builder, signature, args: _spread(builder, args[0])


def _total(typingctx, v):
    """Return the sum of the lanes: ((0+4)+(2+6)) + ((1+5)+(3+7))."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # Add the lanes of the other half, three times.
        v, n = args[0], WIDTH
        while n > 1:
            n //= 2
            v = builder.fadd(_pick(builder, v, v, list(range(n))), _pick(builder, v, v, list(range(n, 2 * n))))
        return builder.extract_element(v, _I32(0))

    return nbtypes.float64(LANES), generate


def _halve(builder: Any, v: Any, w: Any, run: int) -> Any:
    """Split v and w into runs of `run` lanes, and return sums of neighbouring runs, alternately of v and of w."""
    order = [i for s in range(0, WIDTH, 2 * run) for t in (s, WIDTH + s) for i in range(t, t + run)]
    return builder.fadd(_pick(builder, v, w, order), _pick(builder, v, w, [i + run for i in order]))


def _transposed(runs: tuple[int, ...], places: tuple[int, ...]) -> Any:
    def totals(typingctx, a, b, c, e, f, g, h, k):
        """Return the sum of the lanes of the i-th argument in lane i, by a transposition and seven additions.

        The bits of `totals_as_total` are those of `total`.
        """

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            # Reduce eight rows to four, two and one by adding neighbouring runs of lanes.
            rows = [args[place] for place in places]
            for run in runs:
                rows = [_halve(builder, rows[i], rows[i + 1], run) for i in range(0, len(rows), 2)]
            return rows[0]

        return LANES(*[LANES] * 8), generate

    return intrinsic(totals)


def _entry(context: Any, builder: Any, kind: Any, array: Any, i: Any) -> Any:
    """Return entry i of an array, by flat index, in every lane."""
    data = context.make_array(kind)(context, builder, array).data
    return _spread(builder, builder.load(builder.gep(data, [i])))


def _fused(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Return :math:`a b + c`, rounded once, of three numbers or of eight lanes each."""
    name = "llvm.fma.v8f64" if a.type == _VECTOR else "llvm.fma.f64"
    fused = get_or_insert_function(builder.module, ir.FunctionType(a.type, [a.type] * 3), name)
    return builder.call(fused, [a, b, c])


def _plus_outer(typingctx, a, A, i, v):
    """Return the rows :math:`a_r + A_{i+r} v`, rounded once, for eight rows :math:`a_r` and flat indices of A."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a, A, i, v = args
        # Row r: a_r + A[i + r] v.
        for r in range(WIDTH):
            entry = _entry(context, builder, signature.args[1], A, builder.add(i, i.type(r)))
            a = builder.insert_value(a, _fused(builder, entry, v, builder.extract_value(a, r)), r)
        return a

    return ROWS(ROWS, A, nbtypes.intp, LANES), generate


def _combined(typingctx, a, A, i, step):
    r"""Return the sum of :math:`A_{i + r\, \text{step}}\, a_r` over two, four or eight rows :math:`a_r`.

    Even and odd rows are summed separately first.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a, A, i, step = args
        # Two independent sums, each of which begins with a product.
        sums: list[Any] = [None, None]
        for r in range(signature.args[0].count):
            entry, row = _entry(context, builder, signature.args[1], A, i), builder.extract_value(a, r)
            before = sums[r % 2]
            sums[r % 2] = builder.fmul(entry, row) if before is None else _fused(builder, entry, row, before)
            i = builder.add(i, step)
        return builder.fadd(*sums)

    return LANES(a, A, nbtypes.intp, nbtypes.intp), generate


def _selected(sign: str) -> Any:
    def choose(typingctx, v, w):
        """Return, lane by lane, v where the comparison of v with w holds, and w elsewhere."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(builder.fcmp_ordered(sign, *args), *args)

        return LANES(LANES, LANES), generate

    return intrinsic(choose)


def _any_above(typingctx, v, w):
    """Return whether :math:`v > w` in some lane."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.bitcast(builder.fcmp_ordered(">", *args), ir.IntType(WIDTH))
        return builder.icmp_unsigned("!=", bits, ir.IntType(WIDTH)(0))

    return nbtypes.boolean(LANES, LANES), generate


ROUNDER = 1.5 * 2.0**52
"""For :math:`|v| < 2^{31}`, the last bits of v + `ROUNDER` are those of the nearest integer, which is (v + `ROUNDER`) -
`ROUNDER`.
"""


def _power_of_two(typingctx, v):
    """Return :math:`2^n` for :math:`v = n +` `ROUNDER`, with an integer n from -1022 to 1023."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole = ir.VectorType(_I64, WIDTH)
        shift, bias = (ir.Constant(whole, [_I64(number)] * WIDTH) for number in (52, 1023 << 52))
        # n is in the last bits of n + ROUNDER; shift it to the exponent and add the bias.
        exponent = builder.add(builder.shl(builder.bitcast(args[0], whole), shift), bias)
        return builder.bitcast(exponent, _VECTOR)

    return LANES(LANES), generate


# The following functions accept lanes or single numbers, and give an entry the same bits in both forms.


def _either(*kinds: Any) -> tuple[Any, list[Any]]:
    """Return the result's type (lanes if any argument is lanes, else a number) and each argument's type."""
    taken = [LANES if kind == LANES else nbtypes.float64 for kind in kinds]
    return (LANES if LANES in taken else nbtypes.float64), taken


def _fma(typingctx, a, b, c):
    """Return :math:`a b + c` rounded once; processors without this instruction compute the same bits more slowly."""
    kind, taken = _either(a, b, c)
    shape = _VECTOR if kind == LANES else ir.DoubleType()

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # Numbers are spread to lanes first.
        return _fused(builder, *(arg if arg.type == shape else _spread(builder, arg) for arg in args))

    return kind(*taken), generate


# The names by which kernels call the intrinsics.
eight: Any = intrinsic(_eight)
put: Any = intrinsic(_put)
first: Any = intrinsic(_first)
put_first: Any = intrinsic(_put_first)
only: Any = intrinsic(_only)
unless_below: Any = intrinsic(_unless_below)
lane: Any = intrinsic(_lane)
second: Any = intrinsic(_second)
pair: Any = intrinsic(_pair)
how_many: Any = _count("==")
how_many_below: Any = _count("<")
all_lanes: Any = intrinsic(_all_lanes)
total: Any = intrinsic(_total)
totals: Any = _transposed((1, 2, 4), (0, 1, 2, 3, 4, 5, 6, 7))
totals_as_total: Any = _transposed((4, 2, 1), (0, 4, 2, 6, 1, 5, 3, 7))
plus_outer: Any = intrinsic(_plus_outer)
combined: Any = intrinsic(_combined)
smaller: Any = _selected("<")
larger: Any = _selected(">")
any_above: Any = intrinsic(_any_above)
power_of_two: Any = intrinsic(_power_of_two)
fma: Any = intrinsic(_fma)


def _define(symbol: Callable[[Any, Any], Any], instruction: str) -> None:
    """Define an operator for lanes with lanes, and for lanes with a number on the right."""

    @type_callable(symbol)
    def type_of(context):
        def typer(v, w):
            return LANES if v == LANES and w in (LANES, nbtypes.float64) else None

        return typer

    @lower_builtin(symbol, LANES, LANES)
    def lower(context, builder, signature, args):
        return getattr(builder, instruction)(*args)

    @lower_builtin(symbol, LANES, nbtypes.float64)
    def lower_number(context, builder, signature, args):
        return getattr(builder, instruction)(args[0], _spread(builder, args[1]))


_define(operator.add, "fadd")
_define(operator.sub, "fsub")
_define(operator.mul, "fmul")
_define(operator.truediv, "fdiv")
