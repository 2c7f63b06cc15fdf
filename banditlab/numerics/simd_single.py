"""Eight float32 at a time, for kernels whose matrices would be too large in float64: `singles(A, i)` and what it returns.

As in `simd`, a lane is an ordinary sum of float32, rounded alike on every processor; what is fused is fused by `fused` only.

    singles, put_singles, all_singles     eight lanes from memory (float64 is rounded) or from a number, and back
    fused, times, plus                    a b + c rounded once, b lanes or a number; products; sums
    single_totals, widened                eight sums of eight lanes; the same lanes as float64, for `simd.total`
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types as nbtypes
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic, models, register_model

from banditlab.numerics.simd import LANES, WIDTH

_FLOAT, _I32 = ir.FloatType(), ir.IntType(32)
_VECTOR, _WIDE = ir.VectorType(_FLOAT, WIDTH), ir.VectorType(ir.DoubleType(), WIDTH)


class SinglesType(nbtypes.Type):
    """The type of eight float32 in a register."""

    def __init__(self) -> None:
        super().__init__(name=f"Singles{WIDTH}")


SINGLES = SinglesType()


@register_model(SinglesType)
class _SinglesModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


def _pick(builder: Any, v: Any, w: Any, places: list[int]) -> Any:
    """Return the lanes `places` of v followed by w."""
    return builder.shuffle_vector(v, w, ir.Constant(ir.VectorType(_I32, len(places)), [_I32(i) for i in places]))


def _spread(builder: Any, x: Any) -> Any:
    """Return a number in every lane, rounded to float32."""
    x = builder.fptrunc(x, _FLOAT) if x.type != _FLOAT else x
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), x, _I32(0))
    return _pick(builder, one, ir.Constant(_VECTOR, ir.Undefined), [0] * WIDTH)


def _address(context: Any, builder: Any, kind: Any, array: Any, i: Any) -> Any:
    """Return the address of entry i of an array, counted flat, as that of eight numbers of its type."""
    shape = _VECTOR if kind.dtype == nbtypes.float32 else _WIDE
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [i]), shape.as_pointer())


def _singles(typingctx, A, i):
    """Return entries i ... i + 7 of a C-contiguous array, counted flat, float64 rounded; nothing checks that they exist."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        lanes = builder.load(_address(context, builder, kind, args[0], args[1]), align=kind.dtype.bitwidth // 8)
        return lanes if kind.dtype == nbtypes.float32 else builder.fptrunc(lanes, _VECTOR)

    return SINGLES(A, nbtypes.intp), generate


def _put_singles(typingctx, A, i, v):
    """Write v into entries i ... i + 7 of a float32 array A, as `singles` counts them."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _address(context, builder, signature.args[0], args[0], args[1]), align=4)
        return context.get_dummy_value()

    return nbtypes.void(A, nbtypes.intp, SINGLES), generate


def _all_singles(typingctx, x):
    """Return x in every lane."""
    kind = nbtypes.float32 if x == nbtypes.float32 else nbtypes.float64
    return SINGLES(kind), lambda context, builder, signature, args: _spread(builder, args[0])


def _fused(typingctx, a, b, c):
    """Return a b + c rounded once, a and c lanes, b lanes or a number."""
    kind = b if b in (SINGLES, nbtypes.float32) else nbtypes.float64

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        fma = get_or_insert_function(builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), "llvm.fma.v8f32")
        b = args[1] if args[1].type == _VECTOR else _spread(builder, args[1])
        return builder.call(fma, [args[0], b, args[2]])

    return SINGLES(SINGLES, kind, SINGLES), generate


def _single_totals(typingctx, a, b, c, e, f, g, h, k):
    """Return in lane i the sum of the lanes of the i-th argument, as `simd.totals`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def halve(v: Any, w: Any, run: int) -> Any:
            """Add every second run of lanes to the one before it; v's and w's sums take turns, run by run."""
            order = [i for s in range(0, WIDTH, 2 * run) for t in (s, WIDTH + s) for i in range(t, t + run)]
            return builder.fadd(_pick(builder, v, w, order), _pick(builder, v, w, [i + run for i in order]))

        rows = list(args)
        for run in (1, 2, 4):
            rows = [halve(rows[i], rows[i + 1], run) for i in range(0, len(rows), 2)]
        return rows[0]

    return SINGLES(*[SINGLES] * 8), generate


def _times(typingctx, v, w):
    """Return the products of two rows of lanes."""
    return SINGLES(SINGLES, SINGLES), lambda context, builder, signature, args: builder.fmul(*args)


def _plus(typingctx, v, w):
    """Return the sums of two rows of lanes."""
    return SINGLES(SINGLES, SINGLES), lambda context, builder, signature, args: builder.fadd(*args)


def _widened(typingctx, v):
    """Return the same lanes as float64."""
    return LANES(SINGLES), lambda context, builder, signature, args: builder.fpext(args[0], _WIDE)


# The intrinsics by the names that kernels call.
singles: Any = intrinsic(_singles)
put_singles: Any = intrinsic(_put_singles)
all_singles: Any = intrinsic(_all_singles)
fused: Any = intrinsic(_fused)
single_totals: Any = intrinsic(_single_totals)
times: Any = intrinsic(_times)
plus: Any = intrinsic(_plus)
widened: Any = intrinsic(_widened)
