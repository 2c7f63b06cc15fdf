"""A page for each agent, forecaster, booster, weak learner and environment, from its docstring and the committed tables."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any

from banditlab.cli.listing import FEEDBACK, bound_line
from banditlab.distributions import install_command
from banditlab.registry import KINDS, registry
from docs.make import measured
from docs.make.api import directive
from docs.make.docstrings import escaped

TITLES = {
    "agents": "Agents",
    "forecasters": "Forecasters",
    "boosters": "Boosters",
    "weak_learners": "Weak learners",
    "envs": "Environments",
}


@cache
def built_in() -> dict[str, list[tuple[str, Any]]]:
    """Return (id, class) of everything the package brings, by kind."""
    return {kind: [(e.id, e.load()) for e in registry().entries(kind) if e.origin == "banditlab"] for kind in KINDS}


def stem(id_: str) -> str:
    """Return an id as a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", id_.lower().replace("++", "-plus").removeprefix("banditlab/")).strip("-")


def page_of(cls: Any) -> str:
    """Return the page of a class below docs, "" where it has none."""
    for kind, found in built_in().items():
        for id_, known in found:
            if known is cls:
                return f"algorithms/{kind.replace('_', '-')}/{stem(id_)}.md"
    return ""


def pages() -> dict[str, str]:
    """Return every page by its path below docs, with an index for each kind."""
    made = {}
    for kind, found in built_in().items():
        folder = kind.replace("_", "-")
        made[f"algorithms/{folder}/index.md"] = _index(kind, found)
        for id_, cls in found:
            made[f"algorithms/{folder}/{stem(id_)}.md"] = page(kind, id_, cls)
    listed = "\n".join(f"{kind.replace('_', '-')}/index" for kind in built_in())
    made["algorithms/index.md"] = f"""# Algorithms

Each algorithm has a page with its update rule, guarantee, cost, settings, sources and measurements. `banditlab describe ID`
prints the same text without the measurements.

```{{toctree}}
:maxdepth: 2

{listed}
```
"""
    return made


def _index(kind: str, found: list[tuple[str, Any]]) -> str:
    rows = "\n".join(f"| [`{id_}`]({stem(id_)}.md) | {escaped(cls.summary)} |" for id_, cls in found)
    names = "\n".join(stem(id_) for id_, _ in found)
    return f"""# {TITLES.get(kind, kind.capitalize())}

| id | what it is |
|---|---|
{rows}

```{{toctree}}
:hidden:

{names}
```
"""


def page(kind: str, id_: str, cls: Any) -> str:
    """Return the page of one player or environment."""
    place = f"banditlab.{cls.__module__.split('.')[1]}.{cls.__name__}"
    figures = measured.figures(kind, id_)
    parts = [f"# `{id_}`", _facts(kind, cls), directive("class", place), f"## Measured\n\n{figures}"]
    if getattr(cls, "reference", "") and "\nReferences\n---" not in (inspect.getdoc(cls) or ""):
        parts.append(f"## References\n\n{escaped(cls.reference)}")
    return "\n\n".join(parts) + "\n"


def _facts(kind: str, cls: Any) -> str:
    rows = [("version", str(getattr(cls, "version", 1)))]
    if kind != "envs":
        rows += [("feedback", FEEDBACK.get(cls.feedback, cls.feedback)), ("bound", f"`{bound_line(cls)}`")]
    if getattr(cls, "requires", ()):
        rows.append(("needs", f"`{install_command(cls.requires)}`"))
    return "| property | value |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in rows)
