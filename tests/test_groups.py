"""Tests that share a worker under `--dist loadgroup`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest


@pytest.fixture
def ours(request: pytest.FixtureRequest) -> Any:
    """The module tests/conftest.py."""
    [found] = [plugin for plugin in request.config.pluginmanager.get_plugins() if hasattr(plugin, "group_of")]
    return found


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("tests/agents/test_obama.py::test_a[1-b]", "obama"),
        ("tests/agents/test_agent_inputs.py::test_blocks[obama-lite]", "obama"),
        ("tests/agents/test_agent_inputs.py::test_blocks[gaptron]", "tests/agents/test_agent_inputs.py"),
        ("tests/checks/test_checks.py::test_it[ons]", "ons"),
        ("tests/record/test_recorded_runs.py::test_numbers[players/gaf/three/defaults]", "gaf"),
        ("tests/checks/test_checks.py::test_questions", "tests/checks/test_checks.py"),
        ("tests/lab/test_lab_specs.py::test_a_spec[folklore.toml]", "tests/lab/test_lab_specs.py"),
        ("tests/test_cli.py::test_ridge", "tests/test_cli.py"),
    ],
)
def test_families_of_players_and_whole_files(ours: Any, nodeid: str, group: str) -> None:
    assert ours.group_of(nodeid) == group


def test_the_scheduler_of_xdist_asks_by_the_name_we_answer_to(ours: Any) -> None:
    """Were the method renamed, tests would go to any worker again, and nobody would notice but the clock."""
    scheduler = pytest.importorskip("xdist.scheduler").LoadScopeScheduling
    assert scheduler._split_scope(None, "tests/a.py::test_b") == "tests/a.py"
    assert "_split_scope" in scheduler._assign_work_unit.__code__.co_names + scheduler.schedule.__code__.co_names


def test_other_distributions_are_left_alone(ours: Any) -> None:
    assert ours.pytest_xdist_make_scheduler(SimpleNamespace(getvalue={"dist": "load"}.get), None) is None
