"""Contexts in kernels: read-only arrays of one type, and functions with one form per type of context.

`by_context` chooses between two functions by the type of a context (an array or a `SparseRow`). `by_type` chooses among
any number of functions by the class of a named tuple. The choice is made when a kernel is compiled, so it costs
nothing at run time.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numba import types as nbtypes
from numba.core.typing.templates import AbstractTemplate, infer_global

from banditlab.numerics.jit import borrow, inline, njit, reduction
from banditlab.numerics.read_only import as_contexts as as_contexts
from banditlab.numerics.sparse_rows import CSR, SparseRow


def by_context(
    dense: Callable[..., Any],
    sparse: Callable[..., Any],
    *,
    kind: type = SparseRow,
    name: str = "x",
    inlined: bool = False,
    arrays: str | None = None,
) -> Any:
    """Return a function that calls `dense` if its argument `name` is an array, and `sparse` if it is a `SparseRow`.

    Kernels that read contexts only through such functions are written once for both kinds. `dense` and `sparse` are
    plain Python functions, or results of `by_context`, with the same parameters, one of which is called `name`. For
    `inlined` and `arrays`, see `njit`.
    """
    return _choice(
        (dense, sparse),
        name,
        lambda given: isinstance(given, kind),
        lambda typed: getattr(typed, "instance_class", None) is kind,
        inlined,
        arrays,
    )


def sum_over_entries(function: Callable[..., Any]) -> Any:
    """Compile a function with sums over the entries of its argument x: a `reduction` if x is an array.

    The sums over a `SparseRow` are in the order of its entries. In an order chosen by the compiler, their last bits
    depended on which kernels were read from the disk cache, and sparse entries are not read faster in another order.
    """
    return by_context(reduction(function), njit(function, forceinline=False))


def by_type(name: str, forms: dict[type, Callable[..., Any]], *, inlined: bool = False) -> Any:
    """Return a function that calls the entry of `forms` for the class of its argument `name`, a named tuple.

    All forms have the same parameters. They are plain Python functions or compiled ones.
    """
    kinds = tuple(forms)
    return _choice(
        tuple(forms.values()),
        name,
        lambda given: kinds.index(type(given)),
        lambda typed: kinds.index(typed.instance_class),
        inlined,
    )


def _choice(
    functions: tuple[Callable[..., Any], ...],
    name: str,
    place_of: Callable[[Any], int],
    place_of_type: Callable[[Any], int],
    inlined: bool,
    arrays: str | None = None,
) -> Any:
    """Return a function that calls one of several, chosen by the value or the type of its argument `name`."""
    # The position of the argument, and the compiled functions, which may be such choices themselves.
    argument = list(inspect.signature(functions[0]).parameters).index(name)
    forms = [
        form
        if hasattr(form, "form_for") or hasattr(form, "py_func")
        else njit(form, forceinline=inlined, arrays=arrays)
        for form in functions
    ]

    # For calls from Python, choose by the argument's value.
    def either(*args: Any) -> Any:
        return forms[place_of(args[argument])](*args)

    def form_for(types: Any) -> Any:
        """Return the compiled function for arguments of these types."""
        form = forms[place_of_type(types[argument])]
        return form.form_for(types) if hasattr(form, "form_for") else form

    class Choice(AbstractTemplate):
        """numba's `overload`, for kernels that this package caches on disk."""

        key = either

        def __init__(self, context: Any) -> None:
            super().__init__(context)
            self.chosen: dict[Any, Any] = {}  # compiled code by argument types

        def generic(self, args: Any, kws: Any) -> Any:
            # For calls from a kernel, choose by the argument's type when that kernel is compiled.
            form = nbtypes.Dispatcher(form_for(args))
            signature: Any = form.get_call_type(self.context, args, kws)
            self.chosen[signature.args] = form.get_overload(signature)
            return signature

        def get_impl_key(self, sig: Any) -> Any:
            return self.chosen[sig.args]

    # Register `either` with numba under this typing rule.
    infer_global(either, nbtypes.Function(Choice))
    either.form_for = form_for  # type: ignore[attr-defined]
    either.__name__, either.__doc__ = functions[0].__name__, functions[0].__doc__
    either.__signature__ = inspect.signature(functions[0])  # type: ignore[attr-defined]
    return either


def _row(X, t):
    """Return context t of X as an array (d,), or as a `SparseRow` if X is a `CSR`."""
    return X[t]


def _sparse_row(X, t):
    start, stop = X.indptr[t], X.indptr[t + 1]
    return SparseRow(X.indices[start:stop], X.values[start:stop])


def _stretch(X, start, stop):
    """Return contexts start ... stop - 1 of the contexts X."""
    return X[start:stop]


def _sparse_stretch(X, start, stop):
    return CSR(X.values, X.indices, X.indptr[start : stop + 1])


# For kernels that may allocate their contexts, with reference counting.
counted_row = by_context(_row, _sparse_row, kind=CSR, name="X", inlined=True, arrays="new")
counted_stretch = by_context(_stretch, _sparse_stretch, kind=CSR, name="X", inlined=True, arrays="new")


@inline(arrays="views")
def row(X, t):
    """Return the result of `counted_row` without reference counting; the caller must keep X alive."""
    return counted_row(borrow(X), t)


@inline(arrays="views")
def stretch(X, start, stop):
    """Return the result of `counted_stretch` without reference counting; the caller must keep X alive."""
    return counted_stretch(borrow(X), start, stop)
