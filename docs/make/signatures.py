"""How a class or function is called, as it is written in its source."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, ForwardRef

ROOT = Path(__file__).parents[2]


def signature(thing: Any, *, method: bool = False) -> str:
    """Return "(problem: Problem, *, gamma: float = 0.05) -> Player", annotations as the source has them."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return "(...)"
    parameters = list(found.parameters.values())
    if method and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    shown, starred, positional = [], False, False
    for p in parameters:
        if positional and p.kind is not p.POSITIONAL_ONLY:
            shown.append("/")
        positional = p.kind is p.POSITIONAL_ONLY
        if p.kind is p.KEYWORD_ONLY and not starred:
            shown.append("*")
        starred = starred or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        shown.append(_parameter(p))
    shown += ["/"] if positional else []
    back = found.return_annotation
    returns = "" if back is inspect.Signature.empty or inspect.isclass(thing) else f" -> {_annotation(back)}"
    return f"({', '.join(shown)}){returns}"


def _parameter(p: inspect.Parameter) -> str:
    stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    note = "" if p.annotation is p.empty else f": {_annotation(p.annotation)}"
    if p.default is p.empty:
        return f"{stars}{p.name}{note}"
    default = repr(p.default) if isinstance(p.default, str | int | float | bool | tuple | None) else "..."
    return f"{p.name}{note}{' = ' if note else '='}{default}"


def _annotation(found: Any) -> str:
    """Return an annotation in one line, without quotes that only defer it."""
    if isinstance(found, ForwardRef):
        found = found.__forward_arg__
    text = found if isinstance(found, str) else inspect.formatannotation(found)
    return " ".join(text.split())


def source_of(thing: Any) -> str:
    """Return "banditlab/agents/banditron.py, line 66" of where a thing is defined, "" where nothing says so."""
    try:
        thing = inspect.unwrap(getattr(thing, "py_func", thing))
        file, line = inspect.getsourcefile(thing), inspect.getsourcelines(thing)[1]
    except (TypeError, OSError):
        return ""
    if file is None or not Path(file).is_relative_to(ROOT):
        return ""
    return f"{Path(file).relative_to(ROOT).as_posix()}, line {line}"
