"""How a class or function is called, as it is written in its source."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def signature(thing: Any, *, method: bool = False) -> str:
    """Return "(problem, rng, *, gamma=0.05)" with annotations where there are some."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return "(...)"
    parameters = list(found.parameters.values())
    if method and parameters and parameters[0].name in ("self", "cls"):
        found = found.replace(parameters=parameters[1:])
    return " ".join(str(found).split()).replace("'", "")


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
