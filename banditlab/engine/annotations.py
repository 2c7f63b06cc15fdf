"""Annotations of settings as readable text, such as `float | 'theory'`, with type aliases spelt out."""

from __future__ import annotations

import inspect
import types
import typing
from typing import Annotated, Any, Literal, Union


def shown_type(annotation: Any) -> str:
    """Return a type as written in a docstring, with a class as its name and a Literal as its values."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is inspect.Parameter.empty or annotation is Any:
        return "anything"
    if annotation is None or annotation is types.NoneType:
        return "None"
    if origin is Annotated:
        return shown_type(arguments[0])
    if origin is Literal:
        return " | ".join(map(repr, arguments))
    if origin in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(map(shown_type, arguments)))
    if origin is not None:
        return f"{getattr(origin, '__name__', origin)}[{', '.join(map(shown_type, arguments))}]"
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).removeprefix("typing.")


def shown_types(cls: Any) -> dict[str, str]:
    """Return the shown types of a constructor's parameters by name.

    Annotations that cannot be resolved (a name that only type checkers import) are shown as written.
    """
    written = {name: p.annotation for name, p in inspect.signature(cls.__init__).parameters.items()}
    try:
        resolved = typing.get_type_hints(cls.__init__)
    except (NameError, AttributeError, TypeError):
        resolved = {}
    return {name: shown_type(resolved.get(name, annotation)) for name, annotation in written.items()}
