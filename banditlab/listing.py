"""What `banditlab list` and `banditlab describe` print."""

from __future__ import annotations

import inspect
import textwrap

import rich.console
from rich.markup import escape
from rich.table import Table

from banditlab.annotations import shown_types
from banditlab.console import one_line
from banditlab.engine.describe import HORIZON
from banditlab.errors import UsageError, nearest
from banditlab.registry import KINDS, Entry, registry

UNWRAPPED = 1000  # columns where there is no terminal: a line each, whatever reads it
INDENT = "    "


def print_list(kind: str) -> None:
    """Print every registered thing of a kind, a line each; what cannot be loaded gets its reason below."""
    if kind not in (*KINDS, "bounds"):
        raise UsageError(f"nothing is listed as {kind!r}{nearest(kind, (*KINDS, 'bounds'))}")
    out = rich.console.Console(highlight=False)
    if not out.is_terminal:
        out = rich.console.Console(highlight=False, width=UNWRAPPED)
    if kind == "bounds":
        _list_bounds(out)
        return
    table = Table(box=None, pad_edge=False)
    for name in ("id", "group" if kind == "agents" else "", "summary", "from"):
        table.add_column(name)
    broken = []
    for entry in registry().entries(kind):
        try:
            cls = entry.load()
            row = (entry.id, getattr(cls, "group", ""), getattr(cls, "summary", ""), entry.origin)
        except UsageError as error:
            row = (entry.id, "", "cannot be loaded, see below", entry.origin)
            broken.append(one_line(error))
        table.add_row(*map(escape, row))
    out.print(table)
    for reason in broken:
        out.print(escape(reason), soft_wrap=True)


def _list_bounds(out: rich.console.Console) -> None:
    """Print two paragraphs a bound: name, unit and source, then the summary, indented."""
    from banditlab.bounds import THEOREMS

    for t in THEOREMS.values():
        for text, indent in ((f"{t.name} ({t.unit}): {t.source}", ""), (t.summary, INDENT)):
            lines = textwrap.fill(text, out.width, initial_indent=indent, subsequent_indent=INDENT)
            out.print(escape(lines), soft_wrap=True)


def print_description(id_: str) -> None:
    """Print docstring, settings, source and version of the player or environment, and the bound, of this name."""
    from banditlab.bounds import THEOREMS

    out = rich.console.Console(highlight=False, soft_wrap=True)
    known = {entry.id: entry for kind in KINDS for entry in registry().entries(kind)}
    if id_ not in known and id_ not in THEOREMS:
        raise UsageError(f"nothing is called {id_!r}{nearest(id_, [*known, *THEOREMS])}")
    if id_ in known:
        _describe_entry(out, known[id_])
    if id_ in known and id_ in THEOREMS:
        out.print("\nThe bound of this name\n")
    if id_ in THEOREMS:
        t = THEOREMS[id_]
        out.print(escape(f"{t.name} (bound, in {t.unit})\n\n{inspect.getdoc(t.function)}\n"))
        out.print(escape(f"Source: {t.source}\nAssumes: {t.assumes}\nPrinted: {t.printed}"))


def _describe_entry(out: rich.console.Console, entry: Entry) -> None:
    cls = entry.load()
    out.print(escape(f"{entry.id} ({entry.kind[:-1]}, from {entry.origin}, version {getattr(cls, 'version', 1)})\n"))
    out.print(escape(inspect.getdoc(cls) or str(getattr(cls, "summary", ""))))
    parameters = inspect.signature(cls.__init__).parameters.values()
    types = shown_types(cls)
    settings = [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    if settings:
        out.print("\nSettings and defaults")
    for p in settings:
        default = "required" if p.default is inspect.Parameter.empty else repr(p.default)
        by_sweep = entry.kind == "envs" and p.name == HORIZON
        out.print(
            escape(f"  {p.name}: " + ("set by the sweep's rounds" if by_sweep else f"{types[p.name]} = {default}"))
        )
    if getattr(cls, "reference", ""):
        out.print(escape(f"\nReference: {cls.reference}"))
