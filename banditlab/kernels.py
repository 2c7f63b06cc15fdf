"""The compiled pattern: loop templates that are rebound to an algorithm's own kernels.

`import banditlab.kernels` is the only way this package loads numba: it points numba's disk cache at a folder keyed by a
digest of every kernel source first, because numba stamps only the file that defines a function and would keep stale
code when a helper in another file changes.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.cache_folders import folder_for
from banditlab.errors import UsageError
from banditlab.rows import CSR, SparseRow, SparseRows, is_sparse, n_rows

PACKAGE = Path(__file__).parent
_KERNEL_ROOMS = ("kernels.py", "rows.py", "losses.py", "forecasters", "agents", "boosting", "comparators")


@cache
def source_digest() -> str:
    """Return a short hash over every source file that holds or may hold a kernel."""
    digest = hashlib.sha256()
    for room in _KERNEL_ROOMS:
        place = PACKAGE / room
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place] * place.exists()
        for file in files:
            digest.update(str(file.relative_to(PACKAGE)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _point_cache() -> None:
    if "NUMBA_CACHE_DIR" not in os.environ:
        import platformdirs

        root = Path(platformdirs.user_cache_dir("banditlab")) / "numba"
        os.environ["NUMBA_CACHE_DIR"] = str(folder_for(root, source_digest()))
    import numba

    # numba may have been imported before us
    numba.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]  # type: ignore[attr-defined]


_point_cache()

from numba import njit as _njit  # noqa: E402
from numba import types as nbtypes  # noqa: E402
from numba.core.typing.templates import AbstractTemplate, infer_global  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

from banditlab.kernel_cache import SharedCache  # noqa: E402


def njit(function: Callable[..., Any] | None = None, *, cache: bool = True, **options: Any) -> Any:
    """`numba.njit` as this package uses it: cached on disk, no fastmath, division like Python's numbers in C.

    Nobody asks for numba's C callback of a function, so none is compiled.
    """
    options = {"error_model": "numpy", "no_cfunc_wrapper": True, **options}

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher = _njit(**options)(function)
        if cache and hasattr(dispatcher, "enable_caching"):  # NUMBA_DISABLE_JIT leaves the function as it is
            dispatcher._cache = SharedCache(function, source_digest())  # in place of what `enable_caching` sets
        return dispatcher

    return compiled(function) if function is not None else compiled


def inline(function: Callable[..., Any]) -> Any:
    """Compile a small helper that LLVM should always inline into the kernel that calls it."""
    return njit(function, forceinline=True)


def bind(template: Callable[..., Any], owner: str, **kernels: Any) -> Any:
    """Return `template` compiled with the names in `kernels` bound to the given compiled functions.

    numba's disk cache knows a function by its qualified name and byte code but not by the globals it calls, so the
    owner, the digest of all sources and that of the kernels' own files (a lab's, a plug-in's) enter the name.

    Parameters
    ----------
    template
        A plain function that calls, for instance, `act_kernel` and `learn_kernel` as globals.
    owner
        A name unique to this binding, for instance the class's module and name.
    """
    code = template.__code__
    bound = types.FunctionType(code, {**template.__globals__, **kernels}, template.__name__, template.__defaults__)
    files = "".join(f"@{name}={_file_digest(kernels[name])}" for name in sorted(kernels))
    bound.__qualname__ = f"{template.__qualname__}@{owner}@{source_digest()}{files}"
    bound.__module__ = template.__module__
    return njit(bound)


def _file_digest(kernel: Any) -> str:
    """Return a hash of the file a kernel stands in, "" for this package's own, which `source_digest` covers.

    A file loaded from a lab says what it was when it was loaded; it may have been edited since. A kernel that was bound
    itself passes on the files in its name.
    """
    function = inspect.unwrap(getattr(kernel, "py_func", kernel))  # an intrinsic wraps its function
    if "@" in function.__qualname__:
        return hashlib.sha256(function.__qualname__.encode()).hexdigest()[:16]
    file = Path(function.__code__.co_filename)
    if file.is_relative_to(PACKAGE):
        return ""
    loaded = getattr(sys.modules.get(function.__module__), "__source_hash__", None)
    if loaded is None and file.is_file():
        loaded = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    # Code without a file (a notebook's cell) is known by its byte code only.
    return loaded or hashlib.sha256(function.__code__.co_code).hexdigest()[:16]


def as_contexts(contexts: Any) -> NDArray[np.float64]:
    """Return contexts (any shape) as a C-contiguous read-only float64 view: one signature, hence one compilation."""
    array = np.ascontiguousarray(contexts, dtype=np.float64).view()
    array.flags.writeable = False
    return array


# ------------------------------------------------------------------- what callers hand over: compiled code checks no bounds


def as_context(context: Any, d: int) -> NDArray[np.float64]:
    """Return one context (d,) as kernels take it, or raise a UsageError."""
    x = _as_floats("the context", as_contexts, context)
    if x.shape != (d,):
        raise UsageError(f"the context must be of shape ({d},), got {x.shape}")
    return x


def as_rows(contexts: Any, d: int, *, sparse: bool = False) -> Any:
    """Return contexts (n, d) as kernels take them, or raise a UsageError.

    Sparse ones come as a `CSR` where the kernels take that (`sparse`); else they are made dense, and an IncompatibleError
    is raised where they are too long for it.
    """
    if is_sparse(contexts):
        rows = SparseRows.of(contexts)
        if rows.shape[1] != d:
            raise UsageError(f"the contexts must be of shape (n, {d}), got {rows.shape}")
        return rows.csr if sparse else as_contexts(rows.made_dense())
    X = _as_floats("the contexts", as_contexts, contexts)
    if X.ndim != 2 or X.shape[1] != d:
        raise UsageError(f"the contexts must be of shape (n, {d}), got {X.shape}")
    return X


def as_block(contexts: Any, labels: Any, d: int, K: int, *, sparse: bool = False) -> tuple[Any, NDArray[np.int64]]:
    """Return contexts (n, d) and labels (n,) in 0 ... K-1 as compiled loops take them; see `as_rows`."""
    X, y = as_rows(contexts, d, sparse=sparse), np.asarray(labels)
    if y.shape != (n_rows(X),):
        raise UsageError(f"the labels must be of shape ({n_rows(X)},), one for every context, got {y.shape}")
    if y.dtype.kind not in "iu":
        raise UsageError(f"the labels must be integers in 0 ... {K - 1}, got an array of {y.dtype}")
    if len(y) and not (y.min() >= 0 and y.max() < K):
        raise UsageError(f"the labels must lie in 0 ... {K - 1}, got {y.min()} ... {y.max()}")
    return X, np.ascontiguousarray(y, dtype=np.int64)


def as_class(name: str, value: Any, K: int) -> int:
    """Return a label or an action in 0 ... K-1 (`name` says which) as an int, or raise a UsageError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < K:
        raise UsageError(f"{name} must be an integer in 0 ... {K - 1}, got {value!r}")
    return int(value)


def as_vector(name: str, values: Any, size: int) -> NDArray[np.float64]:
    """Return `size` numbers as a C-contiguous float64 vector, or raise a UsageError; None is no number."""
    given = () if values is None else values
    vector = _as_floats(name, lambda a: np.ascontiguousarray(a, dtype=np.float64), given)
    if vector.shape != (size,):
        raise UsageError(f"{name} must be of shape ({size},), got {None if values is None else vector.shape}")
    return vector


def _as_floats(name: str, convert: Callable[[Any], Any], given: Any) -> Any:
    try:
        return convert(given)
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be an array of numbers, got a {type(given).__name__}") from None


# ------------------------------------------------------------------------------------------- draws shared by all agents


@njit
def draw(p: NDArray[np.float64], u: float) -> int:
    """Return the inverse-CDF draw from p (K,) at the uniform u in [0, 1): the first k with u < p_0 + ... + p_k."""
    total = 0.0
    last = 0
    for k in range(p.shape[0]):
        if p[k] > 0.0:
            last = k
            total += p[k]
            if u < total:
                return k
    return last  # the sum fell short of 1 by rounding


@njit
def draw_uniform(n_classes: int, u: float) -> int:
    """Return a uniform draw over 0 ... n_classes-1 from u in [0, 1)."""
    k = int(u * n_classes)
    return min(k, n_classes - 1)


@inline
def is_answer(a, p):  # type: ignore[no-untyped-def]
    """Whether action a may come with probabilities p (K,): in range, a distribution (NaN is none), p[a] above 0."""
    if not 0 <= a < p.shape[0]:
        return False
    total, signs = 0.0, True
    for k in range(p.shape[0]):
        signs &= p[k] >= 0.0
        total += p[k]
    return signs and abs(total - 1.0) <= 1e-9 and p[a] > 0.0


@inline
def overwrite(target, source):  # type: ignore[no-untyped-def]
    """Write source (n,) over target (n,).

    `target[:] = source` would make numba compile what to say of shapes that differ, strings and all: three seconds in every
    process that compiles one, and again in each kernel around it.
    """
    for i in range(target.shape[0]):
        target[i] = source[i]


# --------------------------------------------------------------------------------- one kernel for both kinds of contexts


def by_context(
    dense: Callable[..., Any],
    sparse: Callable[..., Any],
    *,
    kind: type = SparseRow,
    name: str = "x",
    inlined: bool = False,
) -> Any:
    """Return one function that runs `dense` where its argument x is an array and `sparse` where it is a `SparseRow`.

    Kernels that touch x through such functions only are written once and take both kinds of contexts; compiled code holds
    the form it needs and no other. Both are plain functions, or such choices themselves, with the same parameters, one of
    them called `name`.
    """
    return _choice(
        (dense, sparse),
        name,
        lambda given: isinstance(given, kind),
        lambda typed: getattr(typed, "instance_class", None) is kind,
        inlined,
    )


def by_layout(columns: Callable[..., Any], rows: Callable[..., Any], *, name: str = "V", inlined: bool = False) -> Any:
    """Return one function that runs `rows` where its argument V is the transpose of a matrix in C order, else `columns`."""
    return _choice(
        (columns, rows),
        name,
        lambda given: bool(given.flags.f_contiguous and not given.flags.c_contiguous),
        lambda typed: typed.layout == "F",
        inlined,
    )


def _choice(
    functions: tuple[Callable[..., Any], Callable[..., Any]],
    name: str,
    is_second: Callable[[Any], bool],
    is_second_type: Callable[[Any], bool],
    inlined: bool,
) -> Any:
    """Return one function that runs the second of two where its argument `name` says so, told by its value or its type."""
    place = list(inspect.signature(functions[0]).parameters).index(name)
    forms = [form if hasattr(form, "form_for") else njit(form, forceinline=inlined) for form in functions]

    def either(*args: Any) -> Any:
        return forms[is_second(args[place])](*args)

    def form_for(types: Any) -> Any:
        """Return the compiled function for arguments of these types."""
        form = forms[is_second_type(types[place])]
        return form.form_for(types) if hasattr(form, "form_for") else form

    class Choice(AbstractTemplate):
        """What numba's `overload` makes, but of kernels that are in our own disk cache."""

        key = either

        def __init__(self, context: Any) -> None:
            super().__init__(context)
            self.chosen: dict[Any, Any] = {}

        def generic(self, args: Any, kws: Any) -> Any:
            form = nbtypes.Dispatcher(form_for(args))
            signature: Any = form.get_call_type(self.context, args, kws)
            self.chosen[signature.args] = form.get_overload(signature)
            return signature

        def get_impl_key(self, sig: Any) -> Any:
            return self.chosen[sig.args]

    infer_global(either, nbtypes.Function(Choice))
    either.form_for = form_for  # type: ignore[attr-defined]
    either.__name__, either.__doc__ = functions[0].__name__, functions[0].__doc__
    either.__signature__ = inspect.signature(functions[0])  # type: ignore[attr-defined]
    return either


def _row(X, t):  # type: ignore[no-untyped-def]
    """Return context t of the contexts X: an array (d,), or a `SparseRow` where X is a `CSR`."""
    return X[t]


def _sparse_row(X, t):  # type: ignore[no-untyped-def]
    start, stop = X.indptr[t], X.indptr[t + 1]
    return SparseRow(X.indices[start:stop], X.values[start:stop])


row = by_context(_row, _sparse_row, kind=CSR, name="X", inlined=True)


def _stretch(X, start, stop):  # type: ignore[no-untyped-def]
    """Return contexts start ... stop - 1 of the contexts X."""
    return X[start:stop]


def _sparse_stretch(X, start, stop):  # type: ignore[no-untyped-def]
    return CSR(X.values, X.indices, X.indptr[start : stop + 1])


stretch = by_context(_stretch, _sparse_stretch, kind=CSR, name="X", inlined=True)


# ------------------------------------------------------------------------------------------------------- loop templates


def _without_owner(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return a compiled array, or nested tuple of arrays, with its reference counter set to NULL."""
    if isinstance(kind, nbtypes.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = context.get_constant_null(nbtypes.MemInfoPointer(nbtypes.voidptr))
        return array._getvalue()
    if isinstance(kind, nbtypes.BaseTuple):
        kinds = kind.types  # type: ignore[attr-defined]
        items = [_without_owner(context, builder, k, builder.extract_value(value, i)) for i, k in enumerate(kinds)]
        return context.make_tuple(builder, kind, items)
    return value


def _borrow(typingctx, arrays):  # type: ignore[no-untyped-def]
    """Return the same arrays, counted by nobody: the Python caller of a loop keeps them alive.

    numba counts references with atomic instructions, which it cannot drop from a kernel that branches: about 15 ns for
    every array of the state on every call, more than the arithmetic of a first-order agent. A NULL counter is free.
    """
    return arrays(arrays), lambda context, builder, signature, args: _without_owner(context, builder, arrays, args[0])


borrow: Any = intrinsic(_borrow)


def _read_only(typingctx, array):  # type: ignore[no-untyped-def]
    """Return the same array, borrowed, typed as contexts are: a kernel takes it without being compiled once more."""
    kind = array.copy(readonly=True)
    return kind(array), lambda context, builder, signature, args: _without_owner(context, builder, kind, args[0])


read_only: Any = intrinsic(_read_only)


def _no_look(typingctx, state, X, t):  # type: ignore[no-untyped-def]
    """Do nothing with the contexts to come; nothing to compile either, for any state."""
    return nbtypes.none(state, X, t), lambda context, builder, signature, args: context.get_dummy_value()


no_look: Any = intrinsic(_no_look)
look_kernel = no_look
"""What `play_rounds` calls where nothing else is bound to the name."""


def play_rounds(state, X, y, U, p, payload, action, correct, p_true, explored):  # type: ignore[no-untyped-def]
    """Play one block: X (n, d) or `CSR`, y (n,), U (n, 2); only the bit `action == label` reaches `learn_kernel`.

    `look_kernel` is told before every round which context comes next, of which block, and at the end that none does.
    Returns n, or the first round whose answer is none (see `is_answer`): nothing is learnt from it, p still holds it.
    """
    state, X, y, U, p, payload = borrow(state), borrow(X), borrow(y), borrow(U), borrow(p), borrow(payload)
    n = y.shape[0]
    for t in range(y.shape[0]):
        look_kernel(state, X, t)
        a, e = act_kernel(state, row(X, t), U[t], p, payload)  # type: ignore[name-defined]  # noqa: F821
        hit = a == y[t]
        action[t] = a
        correct[t] = hit
        p_true[t] = p[y[t]]
        explored[t] = e
        if not is_answer(a, p):
            n = t
            break
        learn_kernel(state, row(X, t), a, p, payload, hit)  # type: ignore[name-defined]  # noqa: F821
    look_kernel(state, X, y.shape[0])
    return n


def forecast_rounds(state, X, y, z, logits):  # type: ignore[no-untyped-def]
    """Forecast one block with the labels revealed: update_kernel writes the logits it predicted with into z (K,)."""
    state, X, y, z, logits = borrow(state), borrow(X), borrow(y), borrow(z), borrow(logits)
    for t in range(y.shape[0]):
        update_kernel(state, row(X, t), y[t], z)  # type: ignore[name-defined]  # noqa: F821
        overwrite(logits[t], z)
