"""The machine code of a compiled function, called without inspecting the types of its arguments each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def entry(function: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    """Return the compiled code of `function` for the types of `args`, compiled if needed.

    It skips numba's inspection of argument types, about 10 microseconds for a state of thirty arrays. Callers must pass
    arguments of exactly these types, dtypes and layouts, or memory is misread. A function that is not compiled, or chooses by
    type itself, is returned itself.
    """
    if not hasattr(function, "typeof_pyval"):
        return function
    compiled: Any = function
    found: Callable[..., Any] = compiled.compile(tuple(compiled.typeof_pyval(arg) for arg in args))
    return found
