"""The typical slips of a plug-in each give one message that says the mend, and the page shows it word for word."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from docs.make.slips import AGENT, ENV, SLIPS, Slip, made, plugin, table

sys.path.pop(0)

from banditlab.checks import check_file, check_file_one_by_one
from banditlab.cli.checking import print_checks
from banditlab.errors import UsageError


@pytest.mark.parametrize("page", [AGENT, ENV])
def test_what_the_tutorials_write_passes_at_once(page: str, tmp_path: Path) -> None:
    file = tmp_path / "p.py"
    file.write_text(plugin(page), encoding="utf-8")
    results = check_file(file)
    assert [str(result) for result in results if result.status == "failed"] == []
    assert sum(result.status == "passed" for result in results) >= 12


@pytest.mark.parametrize("slip", SLIPS, ids=[slip.what for slip in SLIPS])
def test_a_slip_gives_one_message(slip: Slip, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.py"
    file.write_text(made(slip), encoding="utf-8")
    if not slip.check:
        with pytest.raises(UsageError) as caught:
            list(check_file_one_by_one(file))
        assert str(caught.value).replace(str(file), "p.py") == slip.message
        return
    assert print_checks(str(file), settings=[]) == 1
    lines = capsys.readouterr().out.splitlines()
    failed = [line for line in lines if line.startswith("failed")]
    assert len(failed) == 1
    name, _, message = failed[0].removeprefix("failed").partition(": ")[2].partition(": ")
    pattern = re.escape(slip.message).replace(r"\.\.\.", ".*")
    assert (name, bool(re.fullmatch(pattern, message))) == (slip.check, True), failed[0]
    assert lines[-1].endswith("then this; mend it and check again (--all goes on)")


def test_there_are_twenty_and_the_page_has_them_all() -> None:
    assert len({slip.what for slip in SLIPS}) == len(SLIPS) >= 20
    assert all(slip.message in table() for slip in SLIPS)


def test_a_slip_that_cannot_be_made_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"Nothing\.: own-agent\.md has no 'no such text'"):
        made(SLIPS[0]._replace(what="Nothing.", changes=(("no such text", ""),)))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer: Windows")
@pytest.mark.parametrize(
    "loop", ["while True:\n    pass\n", "while True:\n    try:\n        pass\n    except Exception:\n        pass\n"]
)
def test_a_file_whose_import_never_ends_is_given_up(loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITLAB_PLUGIN_SECONDS", "1")
    file = tmp_path / "p.py"
    file.write_text(f"{plugin(AGENT)}\n{loop}", encoding="utf-8")
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(UsageError, match=r"its import did not end within 1 s \(BANDITLAB_PLUGIN_SECONDS\)"):
        check_file(file)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_function_is_no_plug_in(tmp_path: Path) -> None:
    file = tmp_path / "p.py"
    file.write_text("def mine(problem, rng):\n    return None\n\n\nmine.id = 'mine'\n", encoding="utf-8")
    with pytest.raises(UsageError, match="with an id; mine is a function: a plug-in is a class"):
        check_file(file)


def test_a_class_to_derive_from_is_left_alone_and_an_unfinished_one_is_not(tmp_path: Path) -> None:
    file = tmp_path / "p.py"
    base = "\n\nclass Base(Agent):\n    pass\n"
    file.write_text(plugin(AGENT) + base, encoding="utf-8")
    assert [r for r in check_file(file) if r.status == "failed"] == []
    file.write_text(plugin(AGENT) + base.replace("pass", 'id = "base"'), encoding="utf-8")
    [failed] = [r for r in check_file(file) if r.status == "failed"]
    assert failed.reason.startswith("leaves act, learn to be written")
