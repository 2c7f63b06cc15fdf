"""The compiled kernels execute what is committed: counted, not timed."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from benchmarks.measure import counts
from benchmarks.measure.costs import Cell
from benchmarks.measure.instrument import Content, content, instrument
from benchmarks.measure.players import OURS

X86 = platform.machine().lower() in ("x86_64", "amd64")
FEW = ("banditron gamma=0.1", "aioli")
BLOCKS = """define double @f(ptr %x, i64 %n) {
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %a = load <4 x double>, ptr %x, align 8
  %b = fmul <4 x double> %a, %a
  %r = call i32 @numba_xxgemv(i8 100, i8 116, i64 %n, i64 7, ptr %x, ptr %x, i64 7, ptr %x, ptr %x, ptr %x)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %out

out:
  ret double 0.0
}
"""


@pytest.mark.slow
@pytest.mark.skipif(not X86, reason="the committed counts are for x86-64")
def test_a_handful_of_kernels_executes_what_is_committed() -> None:
    known, compiler = counts.read(counts.FILE)
    found = counts.count(list(FEW))
    same = compiler == counts.compiler()
    assert [line for name in FEW for line in counts.compare(name, found[name], known.get(name), same)] == []


def test_every_player_has_a_committed_count() -> None:
    known, _ = counts.read(counts.FILE)
    assert set(known) == {player.label for player in OURS}


@pytest.mark.parametrize("label", ["banditron gamma=0.1", "linucb", "aioli", "folklore norm_bound=5.0", "ogd"])
def test_declared_operations_are_those_executed(label: str) -> None:
    """The floor may count less than the kernels execute, never much more; exponentials stand apart in both."""
    known, _ = counts.read(counts.FILE)
    player = next(player for player in OURS if player.label == label)
    cost = player.cost(Cell.dense(player.classes or counts.CLASSES, counts.FEATURES))
    declared = cost.gemm + cost.gemv + cost.stream
    assert 0.5 < declared / known[label]["operations"] < 1.02


def test_more_than_the_tolerance_is_a_complaint() -> None:
    committed = {"operations": 1000.0, "instructions": 2000.0, "bytes": 8000.0, "elementary": 3.0}
    assert counts.compare("p", committed, committed, True) == []
    [line] = counts.compare("p", {**committed, "operations": 1100.0}, committed, True)
    assert line == "p: MORE operations: 1,100 a round, 1,000 committed"
    [line] = counts.compare("p", {**committed, "bytes": 4000.0}, committed, True)
    assert line == "p: fewer bytes: 4,000 a round, 8,000 committed"
    assert counts.compare("p", {**committed, "instructions": 2800.0}, committed, False) == []
    [line] = counts.compare("p", {**committed, "operations": 1100.0}, committed, False)
    assert "MORE operations" in line
    assert counts.compare("p", committed, None, True) == ["p: no count is committed; run with --update"]


def test_counts_are_read_back(tmp_path: Path) -> None:
    held = {"uniform": {"operations": 26.0, "instructions": 139.5, "bytes": 228.0, "elementary": 0.0}}
    counts.write(tmp_path / "counts.csv", held)
    assert counts.read(tmp_path / "counts.csv") == (held, counts.compiler())
    assert counts.read(tmp_path / "none.csv") == ({}, "")


@pytest.mark.parametrize(
    ("line", "held"),
    [
        ("  %1 = fadd <4 x double> %a, %b", Content(4, 0, 1, 0)),
        ("  %1 = fmul double %a, %b", Content(1, 0, 1, 0)),
        ("  %1 = tail call <8 x double> @llvm.sqrt.v8f64(<8 x double> %a)", Content(8, 0, 1, 0)),
        ("  %1 = call double @llvm.fmuladd.f64(double %a, double %b, double %c)", Content(2, 0, 1, 0)),
        ("  %1 = tail call double @exp(double %a)", Content(0, 0, 1, 1)),
        ("  %1 = load <4 x double>, ptr %p, align 8", Content(0, 32, 1, 0)),
        ("  store i64 %a, ptr %p, align 8", Content(0, 8, 1, 0)),
        ("  %1 = phi i64 [ 0, %a ], [ %b, %c ]", Content()),
        ("  br label %out", Content(0, 0, 1, 0)),
    ],
)
def test_what_an_instruction_does(line: str, held: Content) -> None:
    assert content(line) == held


def test_every_block_gets_a_counter_and_the_blas_its_shapes() -> None:
    text, contents = instrument(BLOCKS, "counts")
    assert contents == [Content(0, 0, 1, 0), Content(4, 32, 6, 0), Content(0, 0, 1, 0)]
    assert "@counts = global [4 x i64] zeroinitializer" in text
    assert "mul i64 %n, 7" in text
    lines = text.splitlines()
    assert lines.index("  %i = phi i64 [ 0, %entry ], [ %next, %loop ]") < lines.index(
        "  %counted.b1 = add i64 %count.b1, 1"
    )
