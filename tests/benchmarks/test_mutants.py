"""The audit by mutation: which changes are drawn, that each is one change, and that what notices them proves something."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from benchmarks.commands.mutants import ROOT, by_room, equivalents
from benchmarks.measure.mutants.sites import drawn, mutants_of
from benchmarks.measure.mutants.witnesses import witnesses

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


def test_a_sample_is_the_seeds_own_and_of_the_rooms_asked_for() -> None:
    some = drawn(ROOT, 30, 3, ("bounds", "results"))
    assert some == drawn(ROOT, 30, 3, ("bounds", "results"))
    assert some != drawn(ROOT, 30, 4, ("bounds", "results"))
    assert len(set(some)) == 30
    assert {each.room for each in some} == {"bounds", "results"}
    for each in drawn(ROOT, 200, 5):
        ast.parse(each.applied((ROOT / each.path).read_bytes()))


def test_every_module_has_tests_that_are_meant_to_see_it() -> None:
    for path in sorted((ROOT / "banditlab").rglob("*.py")):
        groups = witnesses(ROOT, path.relative_to(ROOT).as_posix())
        assert groups, path
        files = [name for group in groups for name in group if name.startswith("tests/")]
        assert files, path
        assert all((ROOT / name).exists() for name in files), path


def test_tests_that_name_the_function_are_asked_first() -> None:
    module = "banditlab/bounds/gaf.py"  # these tests import from it
    near = {f"tests/bounds/test_{name}.py" for name in ("by_formula", "edges", "gaf", "ranges")}
    for scope in ("gaf_kernel", "gaf_mu", "gaf_smoothing"):
        files = witnesses(ROOT, module, scope)[0][:4]
        assert set(files) == near
        named = [scope in (ROOT / file).read_text("utf-8") for file in files]
        assert named == sorted(named, reverse=True)
        assert not all(named)


def test_recorded_runs_of_what_uses_a_kernel_are_asked() -> None:
    groups = witnesses(ROOT, "banditlab/numerics/packed_symmetric.py")
    assert any("tests/record" in group and "players/" in group[2] for group in groups)
    assert ["tests/record", "-k", "players/gaptron/", "-m", "slow or not slow"] in witnesses(
        ROOT, "banditlab/agents/gaptron.py"
    )


def test_the_table_counts_what_is_noticed_or_equivalent() -> None:
    table = by_room(
        [("bounds", "noticed"), ("bounds", "not noticed"), ("engine", "equivalent"), ("engine", "out of time")]
    )
    assert table.splitlines()[2:] == [
        "| bounds | 2 | 1 | 0 | 1 | 0 | 50 % |",
        "| engine | 2 | 0 | 1 | 0 | 1 | 50 % |",
        "| all | 4 | 1 | 1 | 1 | 1 | 50 % |",
    ]


def test_equivalent_mutants_stand_where_they_are_said_to_and_have_a_reason() -> None:
    for (path, text, before, after), reason in equivalents().items():
        found = mutants_of(path, (ROOT / Path(path)).read_bytes())
        assert any((each.text, each.before, each.after) == (text, before, after) for each in found), (path, text)
        assert len(reason) > 10
