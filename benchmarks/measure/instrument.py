"""Compiled kernels that count: every numba function compiled after `install()` notes how often its basic blocks run.

numba hands its optimised LLVM module to the processor's code generator; here the module's text gets one counter a basic
block first. What a block holds (vector instructions already formed) is read from the text, so operations, bytes and
instructions follow exactly from the counters: no clock, no privileges, the same on every machine that compiles for the
same target. Calls of the BLAS are opaque; their multiply-adds are taken from the shapes they are called with.

Only for a process of its own: numba's disk cache is switched off and its code generator patched.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any, NamedTuple

ARITHMETIC = {"fadd": 1, "fsub": 1, "fmul": 1, "fdiv": 1, "frem": 1, "fneg": 1, "fcmp": 1}
INTRINSICS = {"llvm.fma": 2, "llvm.fmuladd": 2, "llvm.sqrt": 1, "llvm.fabs": 1, "llvm.vector.reduce.fadd": 1}
ELEMENTARY = re.compile(r"@(?:llvm\.)?(exp|expm1|exp2|log|log1p|log2|pow|tanh|sinh|cosh|sin|cos|tan|atan|erf|lgamma)\b")
BLAS = {"numba_xxgemv": (2, 4), "numba_xxgemm": (3, 6), "numba_xxdot": (2, 3)}
"""Functions that numba calls for np.dot, and where their shapes stand among the arguments."""
WIDTHS = {"double": 8, "float": 4, "ptr": 8, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1}

LABEL = re.compile(r'^(?:[-\w$.]+|"[^"]*"):')
OPERATION = re.compile(r"^\s+(?:%\S+ = |%\"[^\"]*\" = )?(?:tail |musttail |notail )?(\w+)")
VECTOR = re.compile(r"<(\d+) x (\w+)>|\b(double|float|ptr|i64|i32|i16|i8|i1)\b")
CALLED = re.compile(r"@(\"[^\"]*\"|[-\w$.]+)\((.*)\)")


class Content(NamedTuple):
    """What one run of a basic block does: operations, bytes loaded and stored, instructions, elementary functions."""

    operations: int = 0
    bytes: int = 0
    instructions: int = 0
    elementary: int = 0

    def plus(self, other: Content) -> Content:
        """Return the sum."""
        return Content(*(a + b for a, b in zip(self, other, strict=True)))


class Module(NamedTuple):
    """An instrumented module: the symbol of its counters, what its blocks hold; the last counter is the BLAS's."""

    symbol: str
    contents: list[Content]


def content(line: str) -> Content:
    """Return what an instruction does."""
    found = OPERATION.match(line)
    name = found.group(1) if found else ""
    if name in ("", "phi"):
        return Content()
    lanes, width = _shape(line[found.end() :]) if found else (1, 8)
    if name in ARITHMETIC:
        return Content(operations=lanes, instructions=1)
    if name in ("load", "store"):
        return Content(bytes=lanes * width, instructions=1)
    if name == "call":
        weight = next((w for intrinsic, w in INTRINSICS.items() if f"@{intrinsic}." in line), 0)
        return Content(weight * lanes, 0, 1, lanes if ELEMENTARY.search(line) else 0)
    return Content(instructions=1)


def _shape(rest: str) -> tuple[int, int]:
    """Return lanes and bytes of a lane of the first type named."""
    found = VECTOR.search(rest)
    if found is None:
        return 1, 8
    return (int(found.group(1)), WIDTHS.get(found.group(2), 8)) if found.group(1) else (1, WIDTHS[found.group(3)])


def instrument(text: str, symbol: str) -> tuple[str, list[Content]]:
    """Return a module's text with a counter a basic block, and what each block holds."""
    out: list[str] = []
    contents: list[Content] = []
    inside = fresh = False
    for line in text.splitlines():
        if line.startswith("define "):
            inside = fresh = True
        elif inside and line.startswith("}"):
            inside = False
        elif inside and LABEL.match(line):
            fresh = True
        elif inside and line.startswith("  "):
            held = content(line)
            phi = OPERATION.match(line)
            if fresh and not (phi and phi.group(1) in ("phi", "landingpad")):
                out += _add(symbol, len(contents), "1", f"b{len(contents)}")
                contents.append(Content())
                fresh = False
            if contents and not fresh:
                contents[-1] = contents[-1].plus(held)
            out += _blas(line, symbol, len(out))
        out.append(line)
    room = f"[{len(contents) + 1} x i64]"
    globals_ = f"@{symbol} = global {room} zeroinitializer"
    numbered = "\n".join(out).replace("@BLAS@", str(len(contents))).replace("@ROOM@", room)
    return f"{numbered}\n{globals_}\n", contents


def _add(symbol: str, place: int | str, value: str, name: str) -> list[str]:
    """Return lines that add a value to a counter."""
    at = f"ptr getelementptr inbounds (@ROOM@, ptr @{symbol}, i64 0, i64 {place})"
    return [
        f"  %count.{name} = load i64, {at}",
        f"  %counted.{name} = add i64 %count.{name}, {value}",
        f"  store i64 %counted.{name}, {at}",
    ]


def _blas(line: str, symbol: str, unique: int) -> list[str]:
    """Return lines that add the multiply-adds of a call of the BLAS, [] for any other line."""
    found = CALLED.search(line)
    place = BLAS.get(found.group(1)) if found and " call " in line else None
    if place is None or found is None:
        return []
    sizes = [argument.split()[-1] for argument in found.group(2).split(",")[place[0] : place[1]]]
    lines, product = [], sizes[0]
    for i, size in enumerate(sizes[1:]):
        lines.append(f"  %blas.{unique}.{i} = mul i64 {product}, {size}")
        product = f"%blas.{unique}.{i}"
    return [*lines, *_add(symbol, "@BLAS@", product, f"blas.{unique}")]


class Counters:
    """The counters of every function compiled since `install`."""

    def __init__(self) -> None:
        self.modules: list[Module] = []
        self.engine: Any = None

    def totals(self) -> dict[str, int]:
        """Return operations, bytes, instructions, elementary functions and the BLAS's multiply-adds so far."""
        total, blas = [0] * len(Content._fields), 0
        for symbol, contents in self.modules:
            address = self.engine.get_global_value_address(symbol)
            counts = (ctypes.c_int64 * (len(contents) + 1)).from_address(address)
            for times, held in zip(counts, contents, strict=False):
                for i, value in enumerate(held):
                    total[i] += times * value
            blas += counts[len(contents)]
        return {**dict(zip(Content._fields, total, strict=True)), "blas": blas}


def install() -> Counters:
    """Make numba compile counting kernels from now on, uncached; return their counters."""
    import llvmlite.binding as llvm  # type: ignore[import-untyped]
    from numba.core import caching, codegen

    counters = Counters()

    def add_module(self: Any, module: Any) -> None:
        symbol = f"banditlab_counts_{len(counters.modules)}"
        text, contents = instrument(str(module), symbol)
        counted = llvm.parse_assembly(text)
        counted.verify()
        counters.modules.append(Module(symbol, contents))
        counters.engine = self._engine
        self._engine.add_module(counted)

    setattr(codegen.JITCPUCodegen, "_add_module", add_module)  # noqa: B010
    for verb in ("load_overload", "save_overload"):
        setattr(caching.Cache, verb, lambda self, *_: None)
    return counters
