"""A page for each agent, forecaster, booster, weak learner and environment, from its docstring and the committed tables."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any

from banditlab.cli.listing import EXAMPLE, bound_at_the_example, missing
from banditlab.distributions import install_command
from banditlab.engine.annotations import shown_types
from banditlab.errors import BanditlabError
from banditlab.registry import KINDS, registry
from docs.make import docstrings, measured
from docs.make.signatures import source_of

TITLES = {
    "agents": "Agents",
    "forecasters": "Forecasters",
    "boosters": "Boosters",
    "weak_learners": "Weak learners",
    "envs": "Environments",
}
FEEDBACK = {"bit": "one bit after each round, right or wrong", "label": "the label after each round"}


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

A page each, made from the docstring that `banditlab describe ID` prints: rule, guarantee, cost, settings, sources, and what was
measured of it.

```{{toctree}}
:maxdepth: 2

{listed}
```
"""
    return made


def _index(kind: str, found: list[tuple[str, Any]]) -> str:
    rows = "\n".join(f"| [`{id_}`]({stem(id_)}.md) | {docstrings.inline(cls.summary)} |" for id_, cls in found)
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
    doc = docstrings.read(cls)
    parts = [f"# `{id_}`", docstrings.inline(doc.summary), _facts(kind, id_, cls), docstrings.prose(doc.body, level=2)]
    bound = _bound(cls) if kind in ("agents", "forecasters", "boosters") else ""
    if bound:
        parts.append(f"## Bound\n\n{bound}")
    parts.append(f"## Measured\n\n{measured.figures(kind, id_, cls)}")
    settings = _settings(cls, doc)
    if settings:
        parts.append(f"## Settings\n\n{settings}")
    for title in ("Attributes", "Raises"):
        if title in doc.sections:
            parts.append(f"## {title}\n\n{docstrings.listed(doc.sections[title])}")
    if "References" in doc.sections:
        parts.append(f"## References\n\n{docstrings.references(doc.sections['References'])}")
    elif getattr(cls, "reference", ""):
        parts.append(f"## References\n\n* {docstrings.escaped(cls.reference)}")
    return "\n\n".join(part for part in parts if part) + "\n"


def _facts(kind: str, id_: str, cls: Any) -> str:
    door = cls.__module__.split(".")[1]
    rows = [("id", f"`{id_}`"), ("class", f"[`banditlab.{door}.{cls.__name__}`](../../api/banditlab.{door}.md)")]
    if kind != "envs":
        feedback = getattr(cls, "feedback", "")
        rows += [("feedback", FEEDBACK.get(feedback, feedback))] if feedback else []
    rows += [("version", str(getattr(cls, "version", 1))), ("source", f"`{source_of(cls)}`")]
    if getattr(cls, "requires", ()):
        rows.append(("needs", f"`{install_command(cls.requires)}`"))
    return "| what | here |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in rows)


def _settings(cls: Any, doc: docstrings.Docstring) -> str:
    """Return the table of settings with types and defaults, and what the docstring says of each."""
    parameters = inspect.signature(cls.__init__).parameters.values()
    keyword = [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    types = shown_types(cls)
    rows = []
    for p in keyword:
        default = "required" if p.default is inspect.Parameter.empty else f"`{p.default!r}`"
        rows.append(f"| `{p.name}` | {docstrings.escaped(types[p.name])} | {default} |")
    table = "| setting | type | default |\n|---|---|---|\n" + "\n".join(rows) if rows else ""
    told = docstrings.listed(doc.sections["Parameters"]) if "Parameters" in doc.sections else ""
    return "\n\n".join(part for part in (table, told) if part)


def _bound(cls: Any) -> str:
    """Return what its theorem gives at the defaults on a problem of ordinary size."""
    if missing(cls) or not hasattr(cls, "bound"):
        return ""
    try:
        player, problem, value = bound_at_the_example(cls)
    except (BanditlabError, TypeError) as error:
        return f"Not worked out at the defaults: {docstrings.inline(' '.join(str(error).split()))}."
    T = EXAMPLE[-1]
    at = f"At the defaults with $d = {problem.n_features}$, $K = {problem.n_classes}$, $R = {problem.radius:g}$ and $T = {T}$"
    if value is None:
        return f"{at} there is no number: what is proved is under Guarantee."
    left = "\\text{log loss}" if hasattr(player, "predict") else "\\mathbb{E}[\\text{mistakes}]"
    vacuous = " That is vacuous: not below $T$." if value >= T and not hasattr(player, "predict") else ""
    number = f"{value:,.1f}".replace(",", "{,}")
    display = f"$$\n{left} \\le L(U) + {number},\n$$"
    return f"{at}, for every $U$ of the ball,\n\n{display}\n\nwith $L(U)$ in {player.bound_unit}.{vacuous}"
