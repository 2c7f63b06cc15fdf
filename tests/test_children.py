"""Which plug-ins are imported in a separate process first: none that is imported already, none twice."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from banditlab import children
from banditlab.children import probe
from banditlab.errors import UsageError


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the plug-ins whose import was tried, each as a process is told of it; every one goes well."""
    commands: list[list[str]] = []

    def run(command: list[str], **settings: Any) -> Any:
        assert (settings["capture_output"], settings["check"], settings["timeout"]) == (True, False, 60)
        commands.append(command[-3:])
        return SimpleNamespace(stdout=b"told\nbanditlab: imported\n", returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.delenv("BANDITLAB_PLUGIN_SECONDS", raising=False)
    monkeypatch.setenv("BANDITLAB_PROBED", "")
    return commands


def point(name: str, value: str) -> Any:
    return SimpleNamespace(group="banditlab.agents", name=name, value=value)


def test_a_plug_in_is_tried_once_and_one_that_is_imported_is_not(asked: list[list[str]]) -> None:
    tried = ["one", "no_such_module:One", "banditlab.agents"]
    probe(point("one", "no_such_module:One"), "agent 'one'")
    assert asked == [tried]
    probe(point("one", "no_such_module:One"), "agent 'one'")  # known to be well, though it is imported nowhere
    probe(point("two", "json:Two"), "agent 'two'")  # imported, though it was never tried
    probe(point("three", "json"), "agent 'three'")
    assert asked == [tried]
    probe(point("two", "no_such_module:Two"), "agent 'two'")  # another class, another entry
    assert asked == [tried, ["two", "no_such_module:Two", "banditlab.agents"]]


@pytest.mark.parametrize(("code", "how"), [(1, "exit code 1"), (0, "exit code 0"), (-9, "signal 9"), (-1, "signal 1")])
def test_how_a_process_ended_is_told(
    code: int, how: str, asked: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = SimpleNamespace(stdout=b"banditlab: imported, almost", returncode=code)
    monkeypatch.setattr(children.subprocess, "run", lambda command, **settings: ended)
    for _ in range(2):  # what failed is tried again
        with pytest.raises(UsageError) as caught:
            probe(point("one", "no_such_module:One"), "agent 'one'")
        assert str(caught.value) == f"agent 'one' cannot be loaded: its import ended the process ({how})"
