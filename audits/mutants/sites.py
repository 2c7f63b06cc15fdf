"""Where a source can be changed by one wrong operator, comparison or constant, and the changed source.

Left alone are annotations, texts, `__all__`, what is not run but by a type checker, and `zip`'s `strict`, an assertion.
"""

from __future__ import annotations

import ast
import bisect
import random
from dataclasses import dataclass
from pathlib import Path

from analysis.result_pages.mutants import room_of

OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
"""An operator's text, and the wrong one that is put in its place."""
COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)


@dataclass(frozen=True)
class Mutant:
    """One change of one file: `before` at byte `start` becomes `after`. `text` is the line it stands in, `line` its number.

    `scope` is the classes and functions it stands in, from the outermost in, with dots between; nothing in the module itself.
    """

    path: str
    line: int
    start: int
    kind: str
    before: str
    after: str
    text: str
    scope: str = ""

    @property
    def room(self) -> str:
        """The folder of the package that it stands in."""
        return room_of(self.path)

    def applied(self, source: bytes) -> bytes:
        """Return the source with the change made."""
        before = self.before.encode()
        assert source[self.start : self.start + len(before)] == before, f"{self.path} has changed meanwhile"
        return source[: self.start] + self.after.encode() + source[self.start + len(before) :]


def drawn(root: Path, sample: int, seed: int, rooms: tuple[str, ...] = ()) -> list[Mutant]:
    """Return so many mutants of the package below `root`, drawn without replacement from all sites of those rooms."""
    files = sorted(path.relative_to(root).as_posix() for path in (root / "banditlab").rglob("*.py"))
    asked = [path for path in files if not rooms or room_of(path) in rooms]
    every = [mutant for path in asked for mutant in mutants_of(path, (root / path).read_bytes())]
    return random.Random(seed).sample(every, min(sample, len(every)))


def mutants_of(path: str, source: bytes) -> list[Mutant]:
    """Return every mutant of one file, in the order of the source."""
    lines = source.split(b"\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    finder = _Finder(source, starts)
    finder.visit(ast.parse(source))
    found = sorted(set(finder.found))
    return [
        Mutant(path, line, start, kind, before, after, lines[line - 1].decode().strip(), scope)
        for start, line, kind, before, after, scope in found
    ]


class _Finder(ast.NodeVisitor):
    def __init__(self, source: bytes, starts: list[int]) -> None:
        self.source, self.starts = source, starts
        self.found: list[tuple[int, int, str, str, str, str]] = []
        self.scope: list[str] = []

    def at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def begin(self, node: ast.expr) -> int:
        return self.at(node.lineno, node.col_offset)

    def end(self, node: ast.expr) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.at(node.end_lineno, node.end_col_offset)

    def add(self, start: int, kind: str, before: str, after: str) -> None:
        line = bisect.bisect_right(self.starts, start)
        self.found.append((start, line, kind, before, after, ".".join(self.scope)))

    def between(self, left: ast.expr, right: ast.expr, operator: ast.AST, kind: str) -> None:
        if type(operator) not in OPERATORS:
            return
        before, after = OPERATORS[type(operator)]
        start = _token(self.source, self.end(left), self.begin(right), before)
        if start >= 0:
            self.add(start, kind, before, after)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if not (_is_text(node.left) or _is_text(node.right)):
            self.between(node.left, node.right, node.op, "operator")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if not _is_text(node.value):
            self.between(node.target, node.value, node.op, "operator")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:]):
            self.between(left, right, node.op, "operator")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for left, operator, right in zip(sides, node.ops, sides[1:]):
            self.between(left, right, operator, "comparison")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.USub):
            self.add(self.begin(node), "operator", "-", "+")
        elif isinstance(node.op, ast.Not):
            self.add(self.begin(node), "operator", "not ", "")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        keywords = [each for each in node.keywords if not (isinstance(node.func, ast.Name) and node.func.id == "zip")]
        for each in [node.func, *node.args, *keywords]:
            self.visit(each)

    def visit_Constant(self, node: ast.Constant) -> None:
        text = self.source[self.begin(node) : self.end(node)].decode()
        if isinstance(node.value, bool):
            self.add(self.begin(node), "constant", text, str(not node.value))
        elif isinstance(node.value, int):
            self.add(self.begin(node), "constant", text, str(node.value + 1))
        elif isinstance(node.value, float):
            self.add(self.begin(node), "constant", text, repr(2.0 * node.value if node.value else 1.0))

    # What is not run: annotations, and imports for the type checker.

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.scope.append(node.name)
        for default in [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]:
            self.visit(default)
        for each in [*node.decorator_list, *node.body]:
            self.visit(each)
        self.scope.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.append(node.name)
        self.generic_visit(node)
        self.scope.pop()

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        # Tuple[int, ...] and Literal[...] at module level are types; an index of data is no name with a capital.
        if not (isinstance(node.value, ast.Name) and node.value.id in ("Literal", "Annotated", "NDArray", "Callable")):
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave texts alone: positions within them are not kept by every Python."""


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _token(source: bytes, start: int, end: int, token: str) -> int:
    """Return where the operator stands between two operands, comments and brackets aside; -1 if it is written otherwise."""
    place = start
    while place < end:
        if source[place : place + 1] == b"#":
            place = source.index(b"\n", place)
        if source[place : place + len(token)] == token.encode():
            return place
        place += 1
    return -1
