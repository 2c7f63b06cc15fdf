"""The machine code of a compiled function, called without looking at the types of its arguments each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def entry(function: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    """Return what `function(*args)` runs once it has found out of which types its arguments are, compiled if need be.

    Finding that out takes about 10 microseconds for a state of thirty arrays. What is returned does not: its callers pass
    arguments of exactly these types, dtypes and layouts, or memory is misread. A function that is not compiled, or chooses by
    type itself, is returned as it is.
    """
    if not hasattr(function, "typeof_pyval"):
        return function
    compiled: Any = function
    found: Callable[..., Any] = compiled.compile(tuple(compiled.typeof_pyval(arg) for arg in args))
    return found
