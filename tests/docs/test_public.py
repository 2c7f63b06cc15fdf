"""docs/public-api.txt is the public interface: a change of either without the other fails here."""

from __future__ import annotations

import difflib
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from banditlab.engine.spec import Spec
from banditlab.results import schema
from docs.make import public

COMMITTED = public.FILE.read_text("utf-8").splitlines()


@pytest.mark.slow  # it imports every module
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="versions of Python write some types in other words")
def test_the_list_is_the_public_interface() -> None:
    changed = [line for line in difflib.ndiff(COMMITTED, public.lines()) if line[0] in "+-"]
    assert changed == [], "python -m docs.make.public writes the list; docs/stability.md says what may change"


def test_the_list_has_every_kind_of_interface_and_no_line_twice() -> None:
    page = (Path(public.__file__).parents[1] / "stability.md").read_text("utf-8")
    named = [word for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for word in re.findall(r"`(.*?)`", row)]
    assert {line.split()[0] for line in COMMITTED} == set(named)
    assert len(set(COMMITTED)) == len(COMMITTED)


def test_what_python_does_not_see_agrees_with_the_list() -> None:
    """The quick part: keys, columns, files, commands, routes, variables."""
    parts = (public.spec_keys, public.columns, public.formats, public.commands, public.routes, public.variables)
    assert [line for part in parts for line in part()] == [
        line for line in COMMITTED if line.split()[0] not in ("name", "id")
    ]


def test_a_change_of_a_signature_a_key_and_a_column_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    class Before:
        def play(self, rounds: int, *, seed: int = 0) -> None: ...

    class After:
        def play(self, rounds: int, *, seed: int | None = None) -> None: ...

    before, after = (list(public.class_lines("lab.Thing", thing)) for thing in (Before, After))
    assert before == ["name lab.Thing()"]  # only what this package defines
    monkeypatch.setattr(Before, "__module__", "banditlab.x")
    monkeypatch.setattr(After, "__module__", "banditlab.x")
    before, after = (list(public.class_lines("lab.Thing", thing)) for thing in (Before, After))
    assert before[1:] == ["name lab.Thing.play(self, rounds: int, *, seed: int = 0) -> None"]
    assert after[1:] == ["name lab.Thing.play(self, rounds: int, *, seed: int | None = None) -> None"]
    monkeypatch.delitem(schema.COLUMNS, "gap")
    assert "results.parquet gap: double" not in list(public.columns())
    fields: dict[str, Any] = dict(Spec.model_fields)
    del fields["rounds"]
    monkeypatch.setattr(public.Spec, "__pydantic_fields__", fields)
    assert not any(line.startswith("spec rounds") for line in public.spec_keys())
