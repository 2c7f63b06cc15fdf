"""The API pages: a page for each public module and an entry for each public name; autodoc writes the entries."""

from __future__ import annotations

import importlib
import inspect
from functools import cache
from typing import Any

from docs.make.docstrings import escaped

DOORS = {
    "banditlab": "Top-level names",
    "banditlab.agents": "Agents",
    "banditlab.forecasters": "Forecasters",
    "banditlab.boosting": "Boosting",
    "banditlab.envs": "Environments",
    "banditlab.comparators": "Comparators",
    "banditlab.bounds": "Bounds",
    "banditlab.checks": "Checks",
    "banditlab.players": "Interfaces of players",
    "banditlab.kernels": "Building blocks for the kernels of a lab",
    "banditlab.engine": "The engine",
    "banditlab.analysis": "Reading results",
    "banditlab.results": "The results folder",
    "banditlab.policy": "Policies",
    "banditlab.offpolicy": "Off-policy evaluation",
    "banditlab.regression": "Regression",
    "banditlab.estimator": "scikit-learn",
    "banditlab.registry": "The registry",
    "banditlab.losses": "Losses",
    "banditlab.numerics.decoding": "Decodings",
    "banditlab.validation": "Validation of settings",
    "banditlab.errors": "Errors",
}
"""Every module that a user imports from, with the title of its page, in the order of the table of contents."""


def pages() -> dict[str, str]:
    """Return every page of the reference by its path below docs."""
    made = {f"api/{name}.md": page(name, title) for name, title in DOORS.items()}
    names = "\n".join(DOORS)
    made["api/index.md"] = f"""# API reference

The reference lists every public class and function under the module from which it is imported. Shapes are in parentheses.
Unless stated otherwise, losses are in nats and times in seconds.

```{{toctree}}
:maxdepth: 1

{names}
```
"""
    return made


@cache
def homes() -> dict[int, str]:
    """Return, for each public class and function by its identity, the first module that exports it and describes it."""
    found: dict[int, str] = {}
    for door in DOORS:
        module = importlib.import_module(door)
        for name in public_names(module):
            found.setdefault(id(getattr(module, name)), door)
    return found


def public_names(module: Any) -> list[str]:
    """Return a door's public names: its `__all__`, else the classes and functions a module defines itself."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__ == module.__name__
    ]


def directive(kind: str, name: str, *options: str) -> str:
    """Return a directive of autodoc in a page of Markdown."""
    lines = "".join(f"   :{name}: {value}\n" for name, _, value in (option.partition(": ") for option in options))
    return f"```{{eval-rst}}\n.. auto{kind}:: {name}\n{lines}```"


def page(name: str, title: str) -> str:
    """Return a door's page."""
    module = importlib.import_module(name)
    parts = [f"# {title}: `{name}`", directive("module", name)]
    if name == "banditlab.bounds":
        parts += [_theorem(theorem) for theorem in module.THEOREMS.values()]
    else:
        parts += [f"## {public}\n\n{_entry(name, public, getattr(module, public))}" for public in public_names(module)]
    return "\n\n".join(parts) + "\n"


def _entry(door: str, name: str, thing: Any) -> str:
    """Return the entry of one public name; an algorithm has its own page."""
    from docs.make.algorithms import page_of

    home, place = homes()[id(thing)], f"{door}.{name}"
    if home != door:
        return f"See [`{home}`]({home}.md)."
    if not inspect.isclass(thing):
        return directive("function", place) if callable(thing) else directive("data", place, "no-value")
    if page_of(thing):
        return f"[`{thing.id}`](../{page_of(thing)}): rule, guarantee, cost and settings."
    described = "\nAttributes\n---" in (inspect.getdoc(thing) or "")
    fields = ", ".join(thing._fields) if described and hasattr(thing, "_fields") else ""  # numpydoc lists them
    kind = "exception" if issubclass(thing, BaseException) else "class"
    return directive(kind, place, "members", *([f"exclude-members: {fields}"] if fields else []))


def _theorem(theorem: Any) -> str:
    facts = [
        f'`banditlab.bounds.THEOREMS["{theorem.name}"]`, in {theorem.unit}.',
        f"Source: {escaped(theorem.source)}.",
        f"Assumes: {escaped(theorem.assumes)}",
        f"Adversary: {theorem.adversary}. {escaped(theorem.rests_on)}",
        f"In the source: {escaped(theorem.printed)}",
    ]
    place = f"{theorem.function.__module__}.{theorem.function.__name__}"
    return f"## {theorem.name}\n\n{directive('function', place)}\n\n" + "\n\n".join(facts)
