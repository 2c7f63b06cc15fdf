"""States of several learners as one state whose arrays have a leading axis, so kernels are compiled once.

`stack` and `member` accept states with any fields. A learner's kernels run on `member(s, i)` as on the learner's own
state, and change the stack's arrays in place. A stack stores the numbers of its states as vectors; kernels never change
these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types as nbtypes
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj


def stack(states: Sequence[Any]) -> Any:
    """Return one state of the same form, in which every array and number has a leading axis over the given states."""
    if isinstance(states[0], np.ndarray | float | int):
        return np.stack(states)
    return type(states[0])(*(stack(fields) for fields in zip(*states, strict=True)))


def view(stacked: Any, i: int) -> Any:
    """Return state i of a stack; its arrays are views, and its numbers are copies."""
    if isinstance(stacked, np.ndarray):
        return stacked[i] if stacked.ndim > 1 else stacked[i].item()
    return type(stacked)(*(view(field, i) for field in stacked))


def _type_of_member(kind: Any) -> Any:
    """Return the type of one state of a stack: the same named tuples, with one axis less."""
    if isinstance(kind, nbtypes.Array):
        return nbtypes.Array(kind.dtype, kind.ndim - 1, "C") if kind.ndim > 1 else kind.dtype
    fields = tuple(map(_type_of_member, kind.types))
    if len(set(fields)) == 1:
        return nbtypes.NamedUniTuple(fields[0], len(fields), kind.instance_class)
    return nbtypes.NamedTuple(fields, kind.instance_class)


def _member_of(context: Any, builder: Any, kind: Any, result: Any, value: Any, i: Any) -> Any:
    """Return entry i along the leading axis of an array, or of each array in a nested tuple, in compiled code."""
    if isinstance(kind, nbtypes.Array):
        array = context.make_array(kind)(context, builder, value)
        strides, shape = (cgutils.unpack_tuple(builder, a, kind.ndim) for a in (array.strides, array.shape))
        start = cgutils.pointer_add(builder, array.data, builder.mul(i, strides[0]), array.data.type)
        if kind.ndim == 1:
            return arrayobj.load_item(context, builder, kind, start)
        # A view of the remaining axes, without a reference counter.
        part = context.make_array(result)(context, builder)
        arrayobj.populate_array(
            part, data=start, shape=shape[1:], strides=strides[1:], itemsize=array.itemsize, meminfo=None
        )
        return part._getvalue()
    # A named tuple: field by field.
    items = [
        _member_of(context, builder, k, r, builder.extract_value(value, n), i)
        for n, (k, r) in enumerate(zip(kind.types, result.types, strict=True))
    ]
    return context.make_tuple(builder, result, items)


def _member(typingctx, stacked, i):
    """Return state i of a stack inside a kernel, without reference counts (see `borrow`) and without a check of bounds."""
    result = _type_of_member(stacked)

    def codegen(context, builder, signature, args):
        index = context.cast(builder, args[1], signature.args[1], nbtypes.intp)
        return _member_of(context, builder, stacked, result, args[0], index)

    return result(stacked, i), codegen


member: Any = intrinsic(_member)
