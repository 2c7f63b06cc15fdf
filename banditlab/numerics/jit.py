"""Compilation: `njit` with a reliable disk cache, `reduction`, and `bind`, which inserts kernels into a loop template.

numba only checks the time stamp of the file that defines a function, and would use stale machine code after a change of
a function in another file that it calls. Importing this module therefore sets numba's disk cache to a folder whose name
is a digest of every kernel source.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import sys
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from banditlab.errors import UsageError
from banditlab.numerics.cache_folders import folder_for

PACKAGE = Path(__file__).parents[1]
USES = ("used", "views", "new")
"""How a compiled function may use arrays; see `njit`."""
_COMPILES = re.compile(
    r"^\s*(?:from|import) (?:banditlab\.(?:kernels|numerics\.(?:jit|contexts))|numba)\b", re.MULTILINE
)
_IMPORT = re.compile(r"^\s*(?:from (banditlab[\w.]*) import (\([^)]*\)|[^\n]*)|import (banditlab[\w.]*))", re.MULTILINE)


@cache
def kernel_sources() -> tuple[Path, ...]:
    """Return the files that a kernel's code may depend on.

    These are the files that import a compiler decorator or numba, and the package modules that they import, directly or
    indirectly. A kernel contains the code of other kernels and the values of constants from any of these files.
    """
    texts = {file: file.read_text("utf-8") for file in PACKAGE.rglob("*.py")}
    # Start with the files that compile something, and follow their imports.
    found: set[Path] = set()
    left = [file for file, text in texts.items() if _COMPILES.search(text)]
    while left:
        file = left.pop()
        if file not in found:
            found.add(file)
            left += _imported(texts[file]) & texts.keys()
    return tuple(sorted(found))


def _imported(text: str) -> set[Path]:
    """Return the files that may define the modules of this package that a source text imports."""
    files = set()
    for module, names, plain in _IMPORT.findall(text):
        base = PACKAGE.joinpath(*(module or plain).split(".")[1:])
        places = [base, *(base / name for name in re.findall(r"\w+", names))]
        files |= {file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")}
    return files


@cache
def source_digest() -> str:
    """Return a short hash of every source file that a kernel's code may depend on."""
    digest = hashlib.sha256()
    for file in kernel_sources():
        digest.update(str(file.relative_to(PACKAGE)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _point_cache() -> None:
    if "NUMBA_CACHE_DIR" not in os.environ:
        import platformdirs

        root = Path(platformdirs.user_cache_dir("banditlab")) / "numba"
        os.environ["NUMBA_CACHE_DIR"] = str(folder_for(root, source_digest()))
    import numba

    # numba may have been imported before this module
    numba.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]  # type: ignore[attr-defined]


_point_cache()

from numba import njit as _njit  # noqa: E402
from numba import types as nbtypes  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

from banditlab.numerics import inner_kernels  # noqa: E402
from banditlab.numerics.jit_cache import SharedCache  # noqa: E402


def njit(
    function: Callable[..., Any] | None = None, *, cache: bool = True, arrays: str | None = None, **options: Any
) -> Any:
    """Compile with `numba.njit` and this package's options: cached on disk, no fastmath, C division, no C callback.

    Parameters
    ----------
    arrays
        How the function uses arrays. With "used", it reads and writes its arguments, and returns no array. With
        "views", it returns parts of its arguments, as `borrow` does. With "new", it allocates arrays, or calls a
        function that does. References to borrowed arrays are not counted (see `borrow`). Default: "used" for functions
        of this package, "new" for all other functions.

    Raises
    ------
    UsageError
        `arrays` is not one of these words.
    """
    options = {"error_model": "numpy", "no_cfunc_wrapper": True, "fastmath": False, **options}
    if arrays is not None and arrays not in USES:
        raise UsageError(f"arrays must be one of {', '.join(map(repr, USES))}, got {arrays!r}")

    def compiled(function: Callable[..., Any]) -> Any:
        use = arrays or ("used" if _is_own(function) else "new")
        # Always set, because numba would otherwise inherit it from the first kernel that calls the function.
        counting = {"_nrt": use != "used"} if inner_kernels.known() else {}
        settings: dict[str, Any] = {**options, **counting}
        dispatcher: Any = _njit(**settings)(function)
        if not hasattr(dispatcher, "enable_caching"):  # with NUMBA_DISABLE_JIT the function is not compiled
            return dispatcher
        dispatcher.use_of_arrays = use
        if cache:
            dispatcher._cache = SharedCache(function, source_digest())  # replaces the value set by `enable_caching`
        return (
            inner_kernels.kernel(dispatcher, function, source_digest(), cache=cache)
            if inner_kernels.known()
            else dispatcher
        )

    return compiled(function) if function is not None else compiled


def _is_own(function: Callable[..., Any]) -> bool:
    """Return whether a function is defined in this package."""
    return Path(function.__code__.co_filename).is_relative_to(PACKAGE)


def inline(function: Callable[..., Any] | None = None, *, arrays: str | None = None) -> Any:
    """Compile a small helper that LLVM always inlines into the calling kernel; for `arrays`, see `njit`."""
    return njit(function, forceinline=True, arrays=arrays)


def _stand_alone(typingctx):
    """Prevent LLVM from inlining the function that calls this one."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return nbtypes.void(), generate


stand_alone: Any = intrinsic(_stand_alone)
reduction = njit(forceinline=False, fastmath={"reassoc", "contract", "nsz", "arcp"})
"""Compile a function whose sums the compiler may reorder.

The function's first line must be `stand_alone()`, so all callers get the same order.
"""


def bind(template: Callable[..., Any], owner: str, **kernels: Any) -> Any:
    """Return `template` compiled with the names in `kernels` bound to the given compiled functions.

    numba's disk cache identifies a function by its qualified name and byte code, but not by functions that it calls.
    The compiled name therefore contains the owner, the digest of all sources, and the digest of the kernels' own files
    (a lab's or a plug-in's).

    Parameters
    ----------
    template
        A plain Python function that calls, for instance, `act_kernel` and `learn_kernel` as globals.
    owner
        A name unique to this binding, for instance the class's module and name.
    """
    for kernel in kernels.values() if inner_kernels.known() else ():
        # A kernel compiled with numba's own njit would inherit the option from the template.
        getattr(kernel, "targetoptions", {}).setdefault("_nrt", True)
    code = template.__code__
    # The template's code with these globals, under a name that identifies them.
    bound = types.FunctionType(code, {**template.__globals__, **kernels}, template.__name__, template.__defaults__)
    files = "".join(f"@{name}={_file_digest(kernels[name])}" for name in sorted(kernels))
    bound.__qualname__ = f"{template.__qualname__}@{owner}@{source_digest()}{files}"
    bound.__module__ = template.__module__
    return njit(bound)


def _file_digest(kernel: Any) -> str:
    """Return a hash of the file that defines a kernel, or "" for this package's kernels, which `source_digest` covers.

    For a lab's file it is the hash of the file as it was when loaded, because the file may have been edited since. The
    name of a kernel made by `bind` already contains the hashes of its files.
    """
    function = inspect.unwrap(getattr(kernel, "py_func", kernel))  # an intrinsic wraps its function
    if "@" in function.__qualname__:
        return hashlib.sha256(function.__qualname__.encode()).hexdigest()[:16]
    if _is_own(function):
        return ""
    file = Path(function.__code__.co_filename)
    loaded = getattr(sys.modules.get(function.__module__), "__source_hash__", None)
    if loaded is None and file.is_file():
        loaded = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    # Code without a file (a notebook's cell) is identified by its byte code only.
    return loaded or hashlib.sha256(function.__code__.co_code).hexdigest()[:16]


# ------------------------------------------------------------------------------------------- arrays without a counter


def _without_owner(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return an array of compiled code, or a nested tuple of arrays, with the pointer to the reference counter NULL."""
    if isinstance(kind, nbtypes.Array):
        array = context.make_array(kind)(context, builder, value)
        # Without an owner, references are not counted.
        array.meminfo = context.get_constant_null(nbtypes.MemInfoPointer(nbtypes.voidptr))
        return array._getvalue()
    if isinstance(kind, nbtypes.BaseTuple):  # field by field; numbers do not change
        kinds = kind.types  # type: ignore[attr-defined]
        items = [_without_owner(context, builder, k, builder.extract_value(value, i)) for i, k in enumerate(kinds)]
        return context.make_tuple(builder, kind, items)
    return value


def _borrow(typingctx, arrays):
    """Return the same arrays without reference counting; the Python caller of a loop keeps them alive.

    numba counts references with atomic instructions, which it cannot remove from a kernel with branches. These take
    about 15 ns per array and call, longer than the arithmetic of a first-order agent. A NULL counter costs nothing.
    """
    return arrays(arrays), lambda context, builder, signature, args: _without_owner(context, builder, arrays, args[0])


borrow: Any = intrinsic(_borrow)


def _read_only(typingctx, array):
    """Return the array with the type of contexts (read-only), so kernels are not compiled again for a writable array.

    References to the result are not counted.
    """
    kind = array.copy(readonly=True)
    return kind(array), lambda context, builder, signature, args: _without_owner(context, builder, kind, args[0])


read_only: Any = intrinsic(_read_only)
