"""The audit by mutation: which changes are drawn, that each is one change, and that what notices them proves something."""

from __future__ import annotations

import ast
import importlib
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numba.core.extending import _Intrinsic

from analysis.result_pages.mutants import NOTICED, UNNOTICED, by_room
from audits.commands import mutants as command
from audits.commands.mutants import ROOT, equivalents
from audits.mutants.playing import Ground, Verdict, failed
from audits.mutants.sites import Mutant, drawn, mutants_of
from audits.mutants.uncompiled import PLAIN
from audits.mutants.witnesses import uncompiled_witnesses, witnesses
from banditlab.errors import UsageError

SOURCE = textwrap.dedent(
    '''
    """A text with 1 + 1 in it."""
    from typing import Literal

    KINDS = Literal["a", "b"]
    ä: int | None = -3  # a comment with +

    def f(x: float = 0.5, *, deep: bool = True) -> list[int]:
        if x < 1 and (  # not + here
            not deep
        ) or x is None:
            x **= 2
        for a, b in zip([x], [1.5], strict=True):
            sorted([a, b], reverse=True)
        return [f"{1 + x}" + "text", x - 0.0]
    '''
)
EXPECTED = [
    ("-", "+"),
    ("3", "4"),
    ("0.5", "1.0"),
    ("True", "False"),
    ("<", "<="),
    ("1", "2"),
    ("and", "or"),
    ("not ", ""),
    ("or", "and"),
    ("is", "is not"),
    ("**", "*"),
    ("2", "3"),
    ("1.5", "3.0"),
    ("True", "False"),
    ("-", "+"),
    ("0.0", "1.0"),
]


def test_operators_comparisons_and_constants_are_changed_and_nothing_else() -> None:
    source = SOURCE.encode()
    found = mutants_of("banditlab/bounds/x.py", source)
    assert [(each.before, each.after) for each in found] == EXPECTED
    for each in found:
        changed = each.applied(source)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
        lines = zip(source.decode().splitlines(), changed.decode().splitlines(), strict=True)
        assert [number for number, (a, b) in enumerate(lines, start=1) if a != b] == [each.line]
    assert {each.room for each in found} == {"bounds"}
    assert [each.scope for each in found] == [""] * 2 + ["f"] * 14
    with pytest.raises(AssertionError, match="changed meanwhile"):
        found[0].applied(b" " + source)


@pytest.mark.slow
def test_a_sample_is_the_seeds_own_and_of_the_rooms_asked_for() -> None:
    some = drawn(ROOT, 60, 3, ("bounds", "results"))
    assert some == drawn(ROOT, 60, 3, ("bounds", "results"))
    assert some != drawn(ROOT, 60, 4, ("bounds", "results"))
    assert len(set(some)) == 60
    assert {each.room for each in some} == {"bounds", "results"}
    for each in drawn(ROOT, 40, 5):
        ast.parse(each.applied((ROOT / each.path).read_bytes()))


@pytest.mark.slow
def test_every_module_has_tests_that_are_meant_to_see_it() -> None:
    for path in sorted((ROOT / "banditlab").rglob("*.py")):
        groups = witnesses(ROOT, path.relative_to(ROOT).as_posix())
        assert groups, path
        files = [name for group in groups for name in group if name.startswith("tests/")]
        assert files, path
        assert all((ROOT / name).exists() for name in files), path


@pytest.mark.slow
def test_tests_that_name_the_function_are_asked_first() -> None:
    module = "banditlab/bounds/gaf.py"  # these tests import from it
    near = {f"tests/bounds/test_{name}.py" for name in ("by_formula", "hypotheses", "gaf", "ranges")}
    for scope in ("gaf_kernel", "gaf_mu", "gaf_smoothing"):
        files = witnesses(ROOT, module, scope=scope)[0][:4]
        assert set(files) == near
        named = [scope in (ROOT / file).read_text("utf-8") for file in files]
        assert named == sorted(named, reverse=True)
        assert not all(named)


def test_tests_of_what_uses_a_kernel_are_asked_last_and_those_of_its_room_before() -> None:
    groups = witnesses(ROOT, "banditlab/numerics/unbounded_programme.py")
    assert "tests/agents/test_newtron.py" in groups[-1]  # newtron imports it
    assert groups[-1][-1] == "slow or not slow"
    groups = witnesses(ROOT, "banditlab/forecasters/primal_dual.py")
    assert "tests/forecasters/test_soft_labels.py" in groups[-2]


def test_recorded_runs_of_what_uses_a_kernel_are_asked() -> None:
    groups = witnesses(ROOT, "banditlab/numerics/packed_symmetric.py")
    assert any("tests/record" in group and "players/" in group[2] for group in groups)
    assert ["tests/record", "-k", "players/gaptron/", "-m", "slow or not slow"] in witnesses(
        ROOT, "banditlab/agents/gaptron.py"
    )


def test_every_intrinsic_can_be_played_as_plain_python() -> None:
    """Who adds an intrinsic says in `uncompiled.py` what it does, or no mutant is seen uncompiled where it is called."""
    named = set()
    for file in sorted((ROOT / "banditlab").rglob("*.py")):
        if "import intrinsic" in (text := file.read_text("utf-8")) or "    intrinsic," in text:
            module = importlib.import_module(file.relative_to(ROOT).as_posix().removesuffix(".py").replace("/", "."))
            found = {name: value for name, value in vars(module).items() if isinstance(value, _Intrinsic)}
            found = {name: value for name, value in found.items() if value._defn.__module__ == module.__name__}
            for one in found.values():
                names = {f"{file.stem}.{name}" for name, value in found.items() if value is one}
                assert names & PLAIN.keys(), names
                named |= names
    assert PLAIN.keys() <= named


def test_sums_of_lanes_are_added_in_the_order_of_compiled_ones() -> None:
    v = np.array([1.0, 1e16, 3.0, -1e16, 5.0, 1e16, 7.0, -1e16])
    assert PLAIN["simd.total"](v) == ((1.0 + 5.0) + (3.0 + 7.0)) + ((1e16 + 1e16) + (-1e16 - 1e16)) == 16.0
    rows = np.arange(64.0).reshape(8, 8)
    assert PLAIN["simd.totals"](*rows).tolist() == rows.sum(axis=1).tolist()
    assert PLAIN["simd.fma"](1.0 + 2.0**-30, 1.0 - 2.0**-30, -1.0) == -(2.0**-60)


def test_recorded_runs_are_asked_uncompiled_of_more_players() -> None:
    near, runs, more, theirs = uncompiled_witnesses(ROOT, "banditlab/numerics/tanh_root.py")
    assert "tests/numerics/test_tanh_root.py" in near
    assert all(name.startswith("players/") for name in [*runs, *more])
    assert len(runs) == 2 <= len([*runs, *more])
    assert set(near).isdisjoint(theirs)


@pytest.mark.slow
def test_a_wrong_kernel_is_noticed_uncompiled(tmp_path: Path) -> None:
    ground, path = Ground(ROOT, tmp_path, only_uncompiled=True), "banditlab/agents/banditron.py"
    try:
        found = [each for each in mutants_of(path, (ROOT / path).read_bytes()) if "gamma" in each.text]
        verdict = ground.tried(found[0], 600.0)
        assert verdict.outcome == NOTICED
        assert verdict.by.endswith("(uncompiled)")
        assert (ground.tree / path).read_bytes() == (ROOT / path).read_bytes()
    finally:
        ground.close()


@pytest.mark.parametrize(
    ("line", "test"),
    [
        ("FAILED tests/a/test_b.py::test_c - AssertionError: x", "tests/a/test_b.py::test_c"),
        ("FAILED tests/b.py::test_c[a - dash, and 2 spaces] - x[1] - y", "tests/b.py::test_c[a - dash, and 2 spaces]"),
        ("FAILED tests/test_b.py::TestD::test_c[a[0] b]", "tests/test_b.py::TestD::test_c[a[0] b]"),
        ("ERROR tests/test_b.py - ImportError: no", "tests/test_b.py"),
        ("ERROR tests/test_b.py", "tests/test_b.py"),
        ("1 failed in 2 s", ""),
    ],
)
def test_the_test_that_failed_is_named_whole(line: str, test: str) -> None:
    assert failed(f"F.\n=== short test summary info ===\n{line}\n1 failed in 3 s\n") == test


def test_what_fails_in_the_clean_tree_hides_no_other_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pytest stops at the first failure; one that proves nothing is left out, and the others are asked."""
    ground, asked = Ground(ROOT, tmp_path), []
    summary = "FAILED tests/t.py::test_{}[a b] - x"

    def run(tree: Path, arguments: list[str], *_: object) -> tuple[int | None, str]:
        asked.append((tree == ground.tree, arguments))
        if tree == ground.clean:
            return (1, summary.format("odd")) if "odd" in arguments[0] else (0, "")
        left_out = [name for name in ("odd", "sees") if any(name in each for each in arguments)]
        found = [name for name in names if name not in left_out]
        return (1, summary.format(found[0])) if found else (0, "")

    monkeypatch.setattr(ground, "_pytest", run)
    names = ["odd", "sees"]
    assert ground._seen_by(["t.py"], tmp_path, 60.0) == "tests/t.py::test_sees[a b]"
    assert [ours for ours, _ in asked] == [True, False, True, False]
    assert asked[2][1] == ["t.py", "--deselect", "tests/t.py::test_odd[a b]"]
    recorded = ["tests/record", "-k", "players/a/"]  # a folder
    assert ground._seen_by(recorded, tmp_path, 60.0) == "tests/t.py::test_sees[a b]"
    names = ["odd"]
    assert ground._seen_by(["t.py"], tmp_path, 60.0) == ""
    assert ground._seen_by(["t.py"], tmp_path, 0.0) is None
    monkeypatch.setattr(ground, "_pytest", lambda *_: (2, "ERROR odd.py - a marker nobody knows"))
    assert ground._seen_by(["odd.py"], tmp_path, 60.0) == ""  # nobody else is left to ask
    with pytest.raises(RuntimeError, match=r"does not leave odd\.py out"):
        ground._seen_by(["odd.py", "even.py"], tmp_path, 60.0)
    codes = iter([4, 0])
    monkeypatch.setattr(ground, "_pytest", lambda *_: (next(codes), "ImportError while loading conftest"))
    assert ground._seen_by(["t.py"], tmp_path, 60.0) == "the tests' process ended with 4"
    codes = iter([4, 4])
    with pytest.raises(RuntimeError, match="in the clean tree as well"):
        ground._seen_by(["t.py"], tmp_path, 60.0)


def test_the_table_counts_what_is_noticed_or_equivalent() -> None:
    table = by_room(
        [("bounds", "noticed"), ("bounds", "not noticed"), ("engine", "equivalent"), ("engine", "out of time")]
    )
    assert table.splitlines()[2:] == [
        "| bounds | 2 | 1 | 0 | 1 | 0 | 50 % |",
        "| engine | 2 | 0 | 1 | 0 | 1 | 50 % |",
        "| all | 4 | 1 | 1 | 1 | 1 | 50 % |",
    ]


@pytest.mark.slow
def test_equivalent_mutants_stand_where_they_are_said_to_and_have_a_reason() -> None:
    for (path, text, before, after), reason in equivalents().items():
        found = mutants_of(path, (ROOT / Path(path)).read_bytes())
        assert any((each.text, each.before, each.after) == (text, before, after) for each in found), (path, text)
        assert len(reason) > 10


@pytest.mark.slow
def test_an_audit_that_was_cut_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def trial(mutants: list[Mutant], *_: object) -> Iterator[tuple[Mutant, Verdict]]:
        asked.append(len(mutants))
        for i, mutant in enumerate(mutants):
            if len(asked) == 1 and i == 2:
                raise KeyboardInterrupt
            yield mutant, Verdict(NOTICED if i else UNNOTICED, f"test {i}", 1.26)

    monkeypatch.setattr(command, "PLACE", tmp_path)
    monkeypatch.setattr(command, "played", trial)
    with pytest.raises(KeyboardInterrupt):
        command.main(sample=5, seed=3, keep=True)
    first = (tmp_path / "mutants.csv").read_text()
    assert first.count("\n") == 3
    command.main(sample=5, seed=3, keep=True)
    assert asked == [5, 3]
    whole = (tmp_path / "mutants.csv").read_text()
    assert whole.startswith(first)
    assert whole.count("\n") == 6
    page = (tmp_path / "mutants.md").read_text()
    assert "5 mutants were tested: 3 are noticed or equivalent, 60.0%." in page
    assert page.count("| not noticed |") == 3
    assert "`python -m audits mutants --sample 5 --seed 3 --limit 600 --keep`" in page
    with pytest.raises(UsageError, match="of another draw"):
        command.main(sample=5, seed=4, keep=True)
    assert (tmp_path / "mutants.csv").read_text() == whole
    lines = whole.splitlines()
    cut, lie, unclear = lines[-1][:-8], lines[-1].replace(NOTICED, "seen"), lines[-1] + "x"
    for last in (cut, lie, unclear):
        (tmp_path / "mutants.csv").write_text("\n".join([*lines[:-1], last]) + "\n")
        with pytest.raises(UsageError, match=r"mutants\.csv"):
            command.main(sample=5, seed=3, keep=True)
    (tmp_path / "mutants.csv").write_bytes(b"")
    with pytest.raises(UsageError, match="damaged"):
        command.main(sample=5, seed=3, keep=True)


def test_the_page_names_what_was_left_out_of_an_audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "PLACE", tmp_path)
    monkeypatch.setattr(
        command, "played", lambda mutants, *_: ((mutant, Verdict(NOTICED, "t", 1.0)) for mutant in mutants)
    )
    command.main(sample=2, seed=3, rooms="bounds,engine", limit=60.0, only_uncompiled=True, keep=True)
    shown = "mutants --sample 2 --seed 3 --rooms bounds,engine --limit 60 --only-uncompiled --keep`"
    assert shown in (tmp_path / "mutants.md").read_text()
