"""Formulas as docstrings write them, typeset: `sqrt(K T)`, `W_{t+1} = W_t - eta g_t`, `||x_t|| <= R` become MathML.

Docstrings are read in a terminal too, so their formulas are plain text. A stretch of words is taken for a formula where
one of them can be nothing else (an index, a relation, a norm); words of prose are left alone. What is typeset has the same
symbols in the same order, so a stretch that is taken too short still reads right.
"""

from __future__ import annotations

import re
from html import escape

GREEK = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "epsilon": "ε",
    "eta": "η",
    "theta": "θ",
    "kappa": "κ",
    "lambda": "λ",
    "mu": "μ",
    "nu": "ν",
    "pi": "π",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "phi": "φ",
    "chi": "χ",
    "psi": "ψ",
    "omega": "ω",
}
FUNCTIONS = {
    *("argmax", "argmin", "max", "min", "ln", "log", "log2", "exp", "softmax", "sigmoid", "tr", "diag", "vec", "grad"),
    *("cosh", "sinh", "tanh", "clip", "nnz", "Proj", "Reg", "loss", "conv", "sign"),
}
BIG = {"sum": "∑", "prod": "∏"}
RELATIONS = {"<=": "≤", ">=": "≥", "!=": "≠", "~": "∼", "<": "<", ">": ">", "=": "=", "->": "→", ":=": ":="}
OPERATORS = {"+": "+", "-": "−", "/": "/", "*": "·", "(x)": "⊗", "+=": "+=", "-=": "−=", "...": "…", ".": "·"}

_TOKEN = re.compile(
    r"\s*(?:(?P<otimes>(?<=\s)\(x\)(?=\s))|(?P<star>(?<=[A-Za-z])\*(?![A-Za-z]))|(?P<sqrt>sqrt(?=\())|(?P<relation><=|>=|!=|\+=|-=|->|:=|[=<>~])|(?P<dots>\.\.\.)"
    r"|(?P<norm>\|\|)|(?P<number>\d[\d,]*(?:\.\d+)?(?:e-?\d+)?|\.\d+)|(?P<word>[A-Za-zα-ωΑ-Ω]+)|(?P<prime>'+)"
    r"|(?P<script>[_^])|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<other>.))"
)
_WEAK = re.compile(r"^[-+*/().,:;\d\[\]{}|<>'A-Za-z_^=~!]+$")


def formula(text: str) -> str:
    """Return one formula as MathML elements, one for each side of its relations and each of its terms: lines break there."""
    tokens, parts, part = _Tokens(text), [], ""
    while tokens.peek()[0] != "end":
        kind, word = tokens.peek()
        if part and (kind == "relation" or word in "+-") and not part.endswith("</mo>"):
            parts.append(part)
            part = ""
        part += _scripted(tokens)
    return "<wbr>".join(f"<math>{part}</math>" for part in [*parts, part])


# -------------------------------------------------------------------------------------------------------- finding formulas

Piece = tuple[str, str]
"""("text", "code" or "math") and what it says."""


def pieces(text: str) -> list[Piece]:
    """Return a paragraph cut into prose, code between backticks, and formulas."""
    parts = re.split(r"(`+)(.+?)\1", text, flags=re.DOTALL)
    found: list[Piece] = []
    for i in range(0, len(parts), 3):
        found += _prose(parts[i])
        if i + 2 < len(parts):
            found.append(("code", " ".join(parts[i + 2].split())))
    return found


def _prose(text: str) -> list[Piece]:
    found: list[Piece] = []
    run = ""
    for word in re.split(r"(\s+)", text):
        if not word or word.isspace():
            if run and "\n" in word and not _goes_on(run):
                found, run = found + _run(run), ""
            if run:
                run += word
            else:
                found.append(("text", word))
        elif _may_be_math(word, run):
            run += word
            ends = (word[-1] in ",;:." and not word.endswith("...")) or bool(_LARGE.match(word))
            if ends and not _open(run):
                found, run = found + _run(run), ""
        else:
            found, run = [*found, *_run(run), ("text", word)], ""
    return found + _run(run)


_LARGE = re.compile(r"^\d[\d,]*,\d{3}$|^\d+e-?\d+$")
"""A number that nothing is multiplied with: a formula ends there."""


def _open(text: str) -> bool:
    """Return whether a bracket is open at the text's end."""
    return sum(text.count(c) for c in "([{") > sum(text.count(c) for c in ")]}")


def _goes_on(run: str) -> bool:
    """Return whether a formula at the end of a line is unfinished."""
    return _open(run) or run.split()[-1] in {*RELATIONS, *OPERATORS}


def _may_be_math(word: str, run: str) -> bool:
    core = word.strip(",;:.")
    if not core:
        return bool(run) and _open(run)
    if not _WEAK.match(word) or core in ("i.e", "e.g", "a"):
        return False
    if (core in ("A", "I", "At") and not run) or core.endswith("'s"):
        return False
    bare = re.sub(r"[_^]\{?[A-Za-z]+", "_", core)  # what stands below or above may be any word
    letters = re.findall(r"[A-Za-z]+", bare)
    if letters:
        return all(_is_symbol(part) for part in letters)
    return bool(run) or core[0].isdigit() or (core[0] in "-(" and len(core) > 1)


def _is_symbol(part: str) -> bool:
    return len(part) == 1 or part in GREEK or part in FUNCTIONS or part in BIG or part in _NAMES


_NAMES = {"sqrt", "hat", "old", "wbar", "At", "Qc", "dt", "gam", "eps"}


def _run(run: str) -> list[Piece]:
    """Return a stretch of symbols as a formula with the text around it; without a variable it is prose."""
    core = run.strip()
    if not core:
        return [("text", run)] if run else []
    before, after = run[: len(run) - len(run.lstrip())], run[len(run.rstrip()) :]
    tail = re.search(r"[,;:.]+$", core)
    end = tail.group() if tail and not core.endswith("...") else ""
    head, core, foot = _balanced(core.removesuffix(end))
    if _open(core):  # "d (K d^2 / 2 multiplications)": two formulas, a bracket of the prose between them
        at = max(core.rfind(c) for c in "([{")
        return [
            *_run(before + head + core[:at]),
            ("text", core[at]),
            *_run(core[at + 1 :] + foot + end + after),
        ]
    if not _is_formula(core):
        return [("text", run)]
    return [("text", before + head), ("math", " ".join(core.split())), ("text", foot + end + after)]


def _is_formula(core: str) -> bool:
    words = re.findall(r"[A-Za-z]+", re.sub(r"\d+e-?\d+", "", core))
    variables = [w for w in words if len(w) == 1 or w in GREEK or w in _NAMES - {"sqrt"}]
    if core.split()[-1] in RELATIONS and len(core.split()) == 1:
        return False
    return bool(variables) and not re.fullmatch(r"[\d.,-]+\s?[a-z]", core)  # "3 s" are seconds


def _balanced(core: str) -> tuple[str, str, str]:
    """Return the brackets in front that are not closed, the rest, and those behind that were not opened."""
    head = foot = ""
    while core.startswith("(") and core.count("(") > core.count(")"):
        head, core = head + "(", core[1:].lstrip()
    while core.endswith(")") and core.count(")") > core.count("("):
        foot, core = ")" + foot, core[:-1]
    while core.endswith("}") and core.count("}") > core.count("{"):
        foot, core = "}" + foot, core[:-1]
    return head, core.strip(), foot


# -------------------------------------------------------------------------------------------------------- from text to MathML


class _Tokens:
    """The symbols of a formula, one look ahead."""

    def __init__(self, text: str) -> None:
        found = ((m.lastgroup, m.group().strip()) for m in _TOKEN.finditer(text))
        self.tokens = [(kind, word) for kind, word in found if kind and word]
        self.at = 0

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def next(self) -> tuple[str, str]:
        token = self.peek()
        self.at += 1
        return token


def _row(tokens: _Tokens, until: str) -> str:
    """Return items up to a closing bracket (or, inside a norm, the bars that end it)."""
    items = []
    while True:
        kind, _ = tokens.peek()
        if kind == "end" or (kind == "close" and until and until != "||") or (until == "||" and kind == "norm"):
            return "".join(items)
        items.append(_scripted(tokens))


def _scripted(tokens: _Tokens) -> str:
    """Return one symbol or bracket with what stands below and above it."""
    base = _atom(tokens)
    below = above = ""
    while tokens.peek()[0] in ("script", "prime", "star"):
        kind, word = tokens.next()
        if kind == "star":
            above += "<mo>∗</mo>"
        elif kind == "prime":
            above += f"<mo>{'′' * len(word)}</mo>"
        elif word == "_":
            below += _index(tokens)
        else:
            above += _index(tokens)
    if below and above:
        return f"<msubsup>{base}<mrow>{below}</mrow><mrow>{above}</mrow></msubsup>"
    if below:
        return f"<msub>{base}<mrow>{below}</mrow></msub>"
    return f"<msup>{base}<mrow>{above}</mrow></msup>" if above else base


def _index(tokens: _Tokens) -> str:
    word = tokens.peek()[1]
    if word in ("{", "("):
        tokens.next()
        inside = _row(tokens, "}")
        tokens.next()
        return inside if word == "{" else f"<mo>(</mo>{inside}<mo>)</mo>"
    if word == "-":
        tokens.next()
        return f"<mo>−</mo>{_atom(tokens)}"
    below = _atom(tokens)
    if tokens.peek()[0] == "star":  # e_y*: the star is the y's
        tokens.next()
        return f"<msup>{below}<mo>∗</mo></msup>"
    return below


def _atom(tokens: _Tokens) -> str:
    kind, word = tokens.next()
    if kind == "word":
        if word in BIG:
            return f"<mo>{BIG[word]}</mo>"
        name = f"<mi>{escape(GREEK.get(word, word))}</mi>"
        applied = word in FUNCTIONS and tokens.peek()[0] in ("word", "number", "norm", "sqrt")
        return f'<mrow>{name}<mspace width="0.17em"/></mrow>' if applied else name
    if word == ",":
        return '<mo separator="true">,</mo><mspace width="0.17em"/>'
    if kind == "number":
        return f"<mn>{word}</mn>"
    if kind == "sqrt":
        tokens.next()
        inside = _row(tokens, ")")
        tokens.next()
        return f"<msqrt><mrow>{inside}</mrow></msqrt>"
    if kind == "norm":
        inside = _row(tokens, "||")
        tokens.next()
        return f"<mrow><mo>‖</mo>{inside}<mo>‖</mo></mrow>"
    if kind == "open":
        inside = _row(tokens, ")")
        closing = tokens.next()[1]
        return f"<mrow><mo>{word}</mo>{inside}<mo>{escape(closing)}</mo></mrow>"
    if kind == "otimes":
        return "<mo>⊗</mo>"
    if kind == "prime":
        return f"<mo>{'′' * len(word)}</mo>"
    return f"<mo>{escape(RELATIONS.get(word, OPERATORS.get(word, word)))}</mo>"
