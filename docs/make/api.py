"""The API pages: a page for each package's door, an entry for each public name, from docstrings and signatures."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from functools import cache
from typing import Any

from docs.make import docstrings
from docs.make.signatures import signature, source_of

DOORS = {
    "banditlab": "The front door",
    "banditlab.agents": "Agents",
    "banditlab.forecasters": "Forecasters",
    "banditlab.boosting": "Boosting",
    "banditlab.envs": "Environments",
    "banditlab.comparators": "Comparators",
    "banditlab.bounds": "Bounds",
    "banditlab.checks": "Checks",
    "banditlab.players": "Contracts of players",
    "banditlab.kernels": "What a lab's kernels are made of",
    "banditlab.engine": "The engine",
    "banditlab.analysis": "Reading results",
    "banditlab.results": "The results folder",
    "banditlab.policy": "Policies",
    "banditlab.regression": "Regression",
    "banditlab.estimator": "scikit-learn",
    "banditlab.registry": "The registry",
    "banditlab.losses": "Losses",
    "banditlab.numerics.decoding": "Decodings",
    "banditlab.validation": "Validation of settings",
    "banditlab.errors": "Errors",
}
"""Every door and every module that a user imports from, with its page's title, in the order of the table of contents."""


def pages() -> dict[str, str]:
    """Return every page of the reference by its path below docs."""
    made = {f"api/{name}.md": page(name, title) for name, title in DOORS.items()}
    names = "\n".join(DOORS)
    made["api/index.md"] = f"""# API reference

Every public class and function, by the package it is imported from. It is made from the docstrings: shapes in
parentheses, losses in nats where nothing else is said, times in seconds.

```{{toctree}}
:maxdepth: 1

{names}
```
"""
    return made


@cache
def homes() -> dict[int, str]:
    """Return, for each public class and function by its identity, the door it is described at: the first that has it."""
    found: dict[int, str] = {}
    for door in DOORS:
        module = importlib.import_module(door)
        for name in public_names(module):
            found.setdefault(id(getattr(module, name)), door)
    return found


def home_of(thing: Any) -> str:
    """Return the door at which a class or function is described."""
    return homes().get(id(thing), "")


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


def page(name: str, title: str) -> str:
    """Return a door's page."""
    module = importlib.import_module(name)
    doc = docstrings.read(module)
    parts = [f"# {title}: `{name}`", docstrings.inline(doc.summary), docstrings.prose(doc.body)]
    if name == "banditlab.bounds":
        parts += [_theorem(theorem) for theorem in module.THEOREMS.values()]
    else:
        parts += [_entry(name, public, getattr(module, public)) for public in public_names(module)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _entry(door: str, name: str, thing: Any) -> str:
    """Return what is said of one public name; an algorithm's own page says more than its entry."""
    from docs.make.algorithms import page_of

    home = home_of(thing)
    if home and home != door:
        return f"## {name}\n\nSee [`{home}`]({home}.md)."
    if inspect.isclass(thing):
        elsewhere = page_of(thing)
        head = f"## {name}\n\n````{{py:class}} {door}.{name}{_called(thing)}"
        body = _said(thing, short=bool(elsewhere))
        if elsewhere:
            body += f"\n\nRule, guarantee, cost and settings: [its own page](../{elsewhere})."
        else:
            body += _fields(thing) + _members(thing)
        return f"{head}\n\n{body}\n````"
    if callable(thing):
        call = f"{door}.{name}{signature(getattr(thing, 'py_func', thing))}"
        return f"## {name}\n\n````{{py:function}} {call}\n\n{_said(thing)}\n````"
    return f"## {name}\n\n````{{py:data}} {door}.{name}\n\nA value of type `{type(thing).__name__}`.\n````"


def _called(cls: Any) -> str:
    return "" if issubclass(cls, BaseException) else signature(cls)


def _theorem(theorem: Any) -> str:
    name = theorem.function.__name__
    call = f"````{{py:function}} {theorem.function.__module__}.{name}{signature(theorem.function)}"
    facts = [
        f'`banditlab.bounds.THEOREMS["{theorem.name}"]`, in {theorem.unit}.',
        f"Source: {docstrings.inline(theorem.source)}.",
        f"Assumes: {docstrings.inline(theorem.assumes)}",
        f"Printed: {docstrings.inline(theorem.printed)}",
    ]
    return f"## {theorem.name}\n\n{call}\n\n{_said(theorem.function)}\n\n" + "\n\n".join(facts) + "\n````"


def _said(thing: Any, *, short: bool = False) -> str:
    """Return a docstring as Markdown, and where the source is; short leaves it at the first line."""
    doc = docstrings.read(thing)
    parts = [docstrings.inline(doc.summary)]
    if not short:
        parts.append(docstrings.prose(doc.body))
        for title, section in doc.sections.items():
            told = docstrings.references(section) if title == "References" else docstrings.listed(section)
            if title in ("Returns", "Notes", "Examples") and not docstrings.definitions(section)[0][1]:
                told = docstrings.prose(section)
            parts.append(f"**{title}**\n\n{told}")
    place = source_of(thing)
    if place:
        parts.append(f"Source: `{place}`.")
    return "\n\n".join(part for part in parts if part)


def _members(cls: Any) -> str:
    """Return the public methods and properties a class has a docstring for, its own and its bases' of this package."""
    parts = []
    for name, member in inspect.getmembers_static(cls):
        owner = next((base for base in cls.__mro__ if name in vars(base)), cls)
        if name.startswith("_") or not owner.__module__.startswith("banditlab"):
            continue
        bare = getattr(member, "__func__", member)
        if isinstance(member, property):
            if member.__doc__:
                parts.append(f"```{{py:property}} {name}\n\n{_said(member.fget)}\n```")
        elif inspect.isfunction(bare) and bare.__doc__:
            parts.append(f"```{{py:method}} {name}{signature(bare, method=True)}\n\n{_member_said(bare)}\n```")
    return "\n\n" + "\n\n".join(parts) if parts else ""


def _fields(cls: Any) -> str:
    """Return what a named tuple or dataclass says of its fields below each of them, as a definition list."""
    told = {name: said for name, said in docstrings.fields(cls).items() if said} if is_record(cls) else {}
    if not told:
        return ""
    rows = "\n\n".join(f"`{name}`\n: {docstrings.inline(said)}" for name, said in told.items())
    return f"\n\n**Fields**\n\n{rows}"


def is_record(cls: Any) -> bool:
    """Return whether a class is a named tuple or a dataclass: its constructor takes its fields."""
    return dataclasses.is_dataclass(cls) or hasattr(cls, "_fields")


def _member_said(function: Any) -> str:
    return _said(function).replace("```text", "~~~text").replace("\n```", "\n~~~")
