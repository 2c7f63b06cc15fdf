"""The output of `banditlab list` and `banditlab describe`."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any

import numpy as np
import rich.console
from rich.table import Table
from rich.text import Text

from banditlab.cli.plain import one_line, plain, say
from banditlab.distributions import install_command
from banditlab.distributions import missing as missing_modules
from banditlab.engine.annotations import shown_types
from banditlab.engine.describe import HORIZON
from banditlab.errors import BanditlabError, IncompatibleError, UsageError, nearest
from banditlab.problem import Problem
from banditlab.registry import KINDS, Entry, registry
from banditlab.validation import ALIASES, keyword_only

UNWRAPPED = 1000  # width without a terminal, so every entry has one line
INDENT = "    "
GROUPS = {
    "theory": "Theory: the default settings are those of a theorem",
    "practice": "Practice",
    "reference": "References: full information (never ranked with the others), or no updates",
    "adapter": "Adapters: methods of other libraries",
}
FEEDBACK = {"bit": "one bit after each round, right or wrong", "label": "the label after each round"}
EXAMPLE = (10, 3, 1.0, 10_000)
"""d, K, R and T of the example for which `describe` computes a bound."""


def print_list(kind: str) -> None:
    """Print every registered class of a kind, one line each, with the reason below a class that cannot be loaded."""
    if kind not in (*KINDS, "bounds"):
        raise UsageError(f"there is no list of {kind!r}{nearest(kind, (*KINDS, 'bounds'))}")
    out = rich.console.Console()
    if not out.is_terminal:
        out = rich.console.Console(width=UNWRAPPED)
    if kind == "bounds":
        _list_bounds(out)
        return
    sections: dict[str, list[tuple[str, str, str]]] = {heading: [] for heading in GROUPS.values()}
    broken = []
    for entry in registry().entries(kind):
        try:
            cls = entry.load()
            row = (entry.id, _summary(cls), entry.origin)
            heading = _heading(cls) if kind == "agents" else ""
        except Exception as error:  # the summary of a plug-in's class may raise any error
            row, heading = (entry.id, "cannot be loaded, see below", entry.origin), ""
            told = one_line(error)
            broken.append(told if isinstance(error, UsageError) else f"{entry.id!r} from {entry.origin}: {told}")
        sections.setdefault(heading, []).append(row)
    _print_sections(out, {heading: rows for heading, rows in sections.items() if rows})
    for reason in broken:
        say(out, reason)


def _heading(cls: Any) -> str:
    """Return the heading of an agent in the list; an agent without updates is a reference."""
    group = str(getattr(cls, "group", ""))
    return GROUPS.get("reference" if group == "baseline" else group, group)


def _summary(cls: Any) -> str:
    """Return the one-line summary of a class, with a note if a library that it needs is not installed."""
    needs = f" (needs {', '.join(missing(cls))})" if missing(cls) else ""
    return f"{without_dollars(str(getattr(cls, 'summary', '')))}{needs}"


def missing(cls: Any) -> list[str]:
    """Return the modules that a class needs (`requires`) and that are not installed, without importing them."""
    return missing_modules(getattr(cls, "requires", ()))


def _print_sections(out: rich.console.Console, sections: dict[str, list[tuple[str, str, str]]]) -> None:
    """Print rows under their headings, with the same column widths in all sections."""
    every = [row for rows in sections.values() for row in rows]
    width = max((len(row[0]) for row in every), default=0)
    for i, (heading, rows) in enumerate(sections.items()):
        if heading:
            say(out, heading if i == 0 else f"\n{heading}", "bold")
        table = Table(box=None, pad_edge=False, show_header=False)
        for least in (width if 2 * width <= out.width else 0, 0, 0):
            table.add_column(min_width=least, overflow="fold")
        for row in rows:
            table.add_row(*(Text(plain(cell)) for cell in row))
        out.print(table)


def _list_bounds(out: rich.console.Console) -> None:
    """Print two paragraphs per bound: name, unit, source and adversary, then the summary, indented."""
    from banditlab.bounds import THEOREMS

    for t in THEOREMS.values():
        head = f"{t.name} ({t.unit}): {t.source}; {t.adversary} adversary"
        for text, indent in ((without_dollars(head), ""), (without_latex(t.summary), INDENT)):
            lines = textwrap.fill(text, out.width, initial_indent=indent, subsequent_indent=INDENT)
            say(out, lines)


def print_description(id_: str) -> None:
    """Print the docstring, settings, source, version and bound of the player or environment with this id."""
    from banditlab.bounds import THEOREMS

    out = rich.console.Console()
    known = {entry.id: entry for kind in KINDS for entry in registry().entries(kind)}
    if id_ not in known and id_ not in THEOREMS:
        raise UsageError(f"nothing is called {id_!r}{nearest(id_, [*known, *THEOREMS])}")
    if id_ in known:
        _describe_entry(out, known[id_])
    if id_ in known and id_ in THEOREMS:
        say(out, "\nThe bound of this name\n")
    if id_ in THEOREMS:
        t = THEOREMS[id_]
        say(out, f"{t.name} (bound, in {t.unit})\n\n{without_latex(inspect.getdoc(t.function) or '')}\n")
        facts = f"Source: {t.source}\nAssumes: {t.assumes}\nAdversary: {t.adversary}. {t.rests_on}"
        say(out, without_dollars(f"{facts}\nIn the source: {t.printed}"))


PLAIN = {
    "mathrel{+}=": "+=",
    "mathrel{-}=": "-=",
    "mathrel{\\cdot}=": "*=",
    "|": "||",
    "le": "<=",
    "ge": ">=",
    "ne": "!=",
    "sim": "~",
    "to": "->",
    "pm": "+-",
    "dots": "...",
    "mid": "|",
    "times": "x",
    "otimes": "(x)",
    "langle ": "<",
    "rangle": ">",
    ", ": " ",
    ",": " ",
    ";": " ",
    "quad": " ",
    "qquad": " ",
    "cdot": "*",
    "leftarrow": "<-",
    "nabla": "grad",
}
"""LaTeX commands that a terminal shows by a symbol."""


def without_latex(docstring: str) -> str:
    r"""Return a docstring with formulas as plain text: `\|U\|_F \le D` becomes `||U||_F <= D`."""
    text = re.sub(r":math:`([^`]*)`", lambda found: _formula_without_latex(found[1]), docstring)
    blocks = re.split(r"^ *\.\. math::\n\n((?: +.*\n|\n)+)", text + "\n", flags=re.MULTILINE)
    bare = (_formula_without_latex(block) if i % 2 else block for i, block in enumerate(blocks))
    return "".join(bare).removesuffix("\n")


def without_dollars(prose: str) -> str:
    """Return a line of prose, such as a theorem's hypotheses, with the formulas `$...$` as plain text."""
    return re.sub(r"\$(\S(?:[^$\n]*\S)?)\$", lambda found: _formula_without_latex(found[1]), prose)


def _formula_without_latex(latex: str) -> str:
    bare = re.sub(r"\\(?:text|math(?:rm|bb|bf))\{([^{}]*)\}", r"\1", latex).replace(r" \rangle", ">")
    bare = re.sub(r"\\(sqrt|tilde|hat|bar)\{((?:[^{}]|\{[^{}]*\})*)\}", r"\1(\2)", bare)
    return re.sub(r"\\(mathrel\{.+?\}=|langle |, |[a-z]+|.)", lambda found: PLAIN.get(found[1], found[1]), bare)


def bound_at_the_example(cls: Any) -> tuple[Any, Problem, float | None]:
    """Return a player with default settings, its example problem, and its bound for this problem.

    The problem has two classes if the player does not support more.

    Raises
    ------
    BanditlabError, TypeError
        The player cannot be built with default settings, or its bound cannot be computed.
    """
    d, K, R, T = EXAMPLE
    try:
        player = cls(Problem(d, K, R, T), np.random.default_rng(0))
    except IncompatibleError:
        player = cls(Problem(d, 2, R, T), np.random.default_rng(0))
    return player, player.problem, player.bound(T)


def bound_line(cls: Any) -> str:
    """Return one line with the value of a player's theorem for default settings and an example problem."""
    if missing(cls):
        return f"needs {', '.join(missing(cls))}: {install_command(missing(cls))}"
    try:
        player, problem, value = bound_at_the_example(cls)
    except (BanditlabError, TypeError) as error:
        return f"not available with default settings ({one_line(error)})"
    T = EXAMPLE[-1]
    at = f"with default settings, d = {problem.n_features}, K = {problem.n_classes}, R = {problem.radius:g}, T = {T:,}"
    if value is None:
        return f"no value {at}; for what is proved, see Guarantee"
    measured = "log loss" if hasattr(player, "predict") else "expected mistakes"
    vacuous = ", vacuous: not below T" if value >= T and measured != "log loss" else ""
    adversary = f"{player.bound_adversary} adversary"
    return f"{measured} <= loss(U) + {value:,.1f}, loss(U) in {player.bound_unit}, {adversary}, {at}{vacuous}"


def _describe_entry(out: rich.console.Console, entry: Entry) -> None:
    cls = entry.load()
    say(out, f"{entry.id} ({entry.kind[:-1]}, from {entry.origin}, version {getattr(cls, 'version', 1)})\n")
    if entry.kind != "envs":
        say(out, f"Feedback: {FEEDBACK.get(cls.feedback, cls.feedback)}\nGroup: {cls.group}\n")
    say(out, without_latex(inspect.getdoc(cls) or _summary(cls)))
    if entry.kind != "envs":
        say(out, f"\nBound: {bound_line(cls)}")
    types, settings = shown_types(cls), keyword_only(cls)
    if settings:
        say(out, "\nSettings and defaults")
    for name, p in settings.items():
        default = "required" if p.default is inspect.Parameter.empty else repr(p.default)
        by_sweep = entry.kind == "envs" and name == HORIZON
        alias = "".join(f" (or {short})" for short, long in ALIASES.items() if long == name and entry.kind != "envs")
        shown = "set by the rounds of a sweep" if by_sweep else f"{types[name]} = {default}"
        say(out, f"  {name}: {shown}{alias}")
    if getattr(cls, "reference", ""):
        say(out, f"\nReference: {cls.reference}")
