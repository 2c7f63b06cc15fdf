"""Direct access to the machine code of a compiled function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def entry(function: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    """Return the compiled code of `function` for the types of `args`, compiled if needed.

    Calls of this code skip numba's inspection of argument types, about 10 microseconds for a state of thirty arrays.
    Callers must pass arguments of exactly these types, dtypes and layouts; otherwise memory is misread. A function that
    is not compiled, or that has one form per type, is returned unchanged.
    """
    if not hasattr(function, "typeof_pyval"):
        return function
    compiled: Any = function
    found: Callable[..., Any] = compiled.compile(tuple(compiled.typeof_pyval(arg) for arg in args))
    return found
