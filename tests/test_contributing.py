"""CONTRIBUTING.md names every file that an addition touches: a toy agent and a toy bound are added to a copy in that way."""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from banditlab.cli.scaffold import _filled

ROOT = Path(__file__).parents[1]
COPIED = ("banditlab", "tests", "benchmarks", "agents", "envs", "docs")
BESIDE = ("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md")
CACHES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")

AGENT_TEST = '''"""The toy agent keeps its contract."""

from banditlab.checks import check_id


def test_it_keeps_its_contract() -> None:
    assert [str(result) for result in check_id("toy") if result.status == "failed"] == []
'''

BOUND = '''"""A toy bound."""

from __future__ import annotations

from banditlab.bounds._theorem import theorem


@theorem(source="made here", unit="mistakes", assumes="nothing")
def toy_mistakes(rounds: float) -> float:
    """Mistakes of anybody: at most one a round."""
    return float(rounds)
'''

BOUND_TEST = '''"""The toy bound."""

from banditlab.bounds import THEOREMS
from banditlab.bounds.toy import toy_mistakes


def test_it_is_one_a_round() -> None:
    assert THEOREMS["toy_mistakes"].function(7) == toy_mistakes(7) == 7.0
'''

SPEC = """
name = "toy"
rounds = 200
repetitions = 2
environment = [{ id = "banditlab/Logistic-v0" }]
agent = [{ id = "toy", grid = { gamma = [0.05, 0.2] } }, { id = "uniform" }]
"""


def named(addition: str) -> set[str]:
    """Return the files that CONTRIBUTING.md names for an addition called toy."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    [line] = [line for line in text.splitlines() if line.startswith(f"| {addition} |")]
    words = re.findall(r"`([^` ]+)`", line)
    return {word.replace("NAME", "toy") for word in words if re.search(r"\.(py|md|csv)$", word)}


class Tree:
    """A copy of the checkout, for commands that see nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(*CACHES))
        for name in BESIDE:
            shutil.copy(ROOT / name, folder / name)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `python -m WORDS` in the copy."""
        env = os.environ | {"PYTHONPATH": str(self.folder)}
        command = [sys.executable, "-m", *words]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, env=env)

    def done(self, *words: str) -> str:
        """Run `python -m WORDS` in the copy and return what it prints; it must succeed."""
        found = self.run(*words)
        assert found.returncode == 0, f"{' '.join(words)}\n{found.stdout[-4000:]}{found.stderr[-2000:]}"
        return found.stdout

    def pytest(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run("pytest", "--verbosity=0", "-p", "no:cacheprovider", "-p", "no:xdist", *words)

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        assert not file.exists(), f"{path} is there already"
        file.write_text(text, "utf-8")

    def insert(self, path: str, after: str, line: str) -> None:
        """Put a line after the only one that holds `after`."""
        lines = (self.folder / path).read_text("utf-8").splitlines()
        [place] = [i for i, text in enumerate(lines) if after in text]
        (self.folder / path).write_text("\n".join([*lines[: place + 1], line, *lines[place + 1 :]]) + "\n", "utf-8")

    def restore(self, path: str) -> None:
        """Make a file what it is in the checkout: away, where it is not there."""
        if (ROOT / path).exists():
            shutil.copy(ROOT / path, self.folder / path)
        else:
            (self.folder / path).unlink()

    def changed(self) -> set[str]:
        """Return the files that are not as in the checkout."""
        found = set(BESIDE)
        for name in COPIED:
            found |= {str(file.relative_to(self.folder)) for file in (self.folder / name).rglob("*") if file.is_file()}
        found = {path for path in found if "__pycache__" not in path}
        found -= {"tests/record/machine.json"}  # a machine that nothing was recorded on is added to it
        return {
            path
            for path in found
            if not (ROOT / path).is_file() or not filecmp.cmp(ROOT / path, self.folder / path, shallow=False)
        }


def agent_source() -> str:
    """Return the agent that `banditlab new agent toy` writes, without the comments that a stricter mypy asks for."""
    text = _filled("agent.py", {"id": "toy", "class_name": "Toy"})
    return re.sub(r"  # type: ignore\[[a-z-]+\]", "", text)


def add_door_lines(tree: Tree) -> None:
    door = "banditlab/agents/__init__.py"
    tree.insert(door, "from banditlab.agents.uniform import", "    from banditlab.agents.toy import Toy as Toy")
    tree.insert(door, '"Uniform": (', '        "Toy": ("toy", "banditlab.agents.toy"),')


def add_measured_line(tree: Tree) -> None:
    line = '    Player("toy", "agents", {}, "first"),'
    tree.insert("benchmarks/measure/players.py", 'Player("banditron",', line)


def add_to_changelog(tree: Tree) -> None:
    lines = (tree.folder / "CHANGELOG.md").read_text("utf-8").splitlines()
    (tree.folder / "CHANGELOG.md").write_text("\n".join([*lines, "* A toy."]) + "\n", "utf-8")


AGENT: dict[str, Callable[[Tree], object]] = {
    "banditlab/agents/toy.py": lambda tree: tree.write("banditlab/agents/toy.py", agent_source()),
    "banditlab/agents/__init__.py": add_door_lines,
    "tests/agents/test_toy.py": lambda tree: tree.write("tests/agents/test_toy.py", AGENT_TEST),
    "benchmarks/measure/players.py": add_measured_line,
    "tests/record/cases.py": lambda tree: tree.insert(
        "tests/record/cases.py", '    "uniform": [', '    "toy": [("three", {}), ("two", {"gamma": 0.2})],'
    ),
    "tests/record/runs.csv": lambda tree: tree.done("tests.record.recording", "--only", "toy"),
    "CHANGELOG.md": add_to_changelog,
}
"""What is done for each file that CONTRIBUTING.md names."""

BOUND_STEPS: dict[str, Callable[[Tree], object]] = {
    "banditlab/bounds/toy.py": lambda tree: tree.write("banditlab/bounds/toy.py", BOUND),
    "tests/bounds/test_toy.py": lambda tree: tree.write("tests/bounds/test_toy.py", BOUND_TEST),
    "CHANGELOG.md": add_to_changelog,
}

EVERY_PLAYER = [
    "tests/test_registry.py::test_every_algorithm_file_is_registered",
    "tests/test_lazy.py::test_every_class_with_an_id_is_in_its_rooms_table[agents]",
    "tests/test_lazy.py::test_type_checkers_read_the_same_table[banditlab.agents]",
    "tests/test_imports.py::test_no_circle",
    "tests/test_imports.py::test_modules_make_no_circle",
    "tests/test_imports.py::test_few_types_are_ignored",
    "tests/test_imports.py::test_only_kernels_have_no_annotations",
    "tests/benchmarks/test_speed.py::test_every_player_is_measured_or_left_out_with_a_reason",
    "tests/benchmarks/test_speed.py::test_players_of_two_forms_are_those_that_take_one",
    "tests/benchmarks/test_speed.py::test_labels_tell_lines_apart",
    "tests/record/test_recorded_runs.py::test_every_built_in_id_is_recorded",
    "tests/record/test_recorded_runs.py::test_every_row_is_run_and_its_machine_known",
    "tests/cli/test_listing.py::test_every_agent_has_one_line_under_its_group",
    "tests/agents/test_sparse_contexts.py::test_no_player_with_sparse_kernels_is_left_out",
]
"""Tests that hold for every player, as far as they compile nothing."""
BY_NAME = [
    "tests/test_registry.py",
    "tests/test_lazy.py",
    "tests/test_imports.py",
    "tests/cli/test_listing.py",
    "tests/test_asked_before_built.py",
    "tests/agents/test_agent_inputs.py",
    "tests/agents/test_allocations.py",
    "tests/record/test_recorded_runs.py",
    "tests/agents/test_toy.py",
]
"""Tests with a case a player: the toy's are played."""


def test_the_steps_here_are_those_of_contributing() -> None:
    assert set(AGENT) == named("an agent")
    assert set(BOUND_STEPS) == named("a bound")


@pytest.fixture(scope="module")
def with_agent(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    tree = Tree(tmp_path_factory.mktemp("agent") / "checkout")
    for step in AGENT.values():
        step(tree)
    return tree


@pytest.mark.slow
def test_an_agent_needs_no_further_file(with_agent: Tree, tmp_path: Path) -> None:
    assert with_agent.changed() == named("an agent")
    said = with_agent.done("banditlab", "check", "toy")
    assert "failed" not in said.replace("0 failed", "")
    assert re.search(r"^ *toy +epsilon-greedy over one logistic", with_agent.done("banditlab", "list", "agents"), re.M)
    (tmp_path / "toy.toml").write_text(SPEC)
    sweep = ["run", str(tmp_path / "toy.toml"), "-j", "1", "--no-report", "-o", str(tmp_path / "out")]
    assert "0 runs were already finished, 6 executed now" in with_agent.done("banditlab", *sweep)
    done = with_agent.pytest(*EVERY_PLAYER)
    assert done.returncode == 0, done.stdout[-6000:]
    done = with_agent.pytest(*BY_NAME, "-k", "toy")
    assert done.returncode == 0, done.stdout[-6000:]
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) >= 10
    assert with_agent.changed() == named("an agent")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "guard"),
    [
        ("banditlab/agents/__init__.py", "test_every_algorithm_file_is_registered"),
        ("benchmarks/measure/players.py", "test_every_player_is_measured_or_left_out_with_a_reason"),
        ("tests/record/cases.py", "test_every_row_is_run_and_its_machine_known"),
        ("tests/record/runs.csv", "test_every_built_in_id_is_recorded"),
    ],
)
def test_an_agent_needs_every_file_between(with_agent: Tree, path: str, guard: str) -> None:
    """A forgotten line fails a test; so one of a new table would."""
    kept = (with_agent.folder / path).read_text("utf-8")
    with_agent.restore(path)
    try:
        [test] = [test for test in EVERY_PLAYER if test.endswith(f"::{guard}")]
        assert with_agent.pytest(test).returncode == 1
    finally:
        (with_agent.folder / path).write_text(kept, "utf-8")


@pytest.mark.slow
def test_a_bound_needs_no_further_file(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "checkout")
    for step in BOUND_STEPS.values():
        step(tree)
    assert tree.changed() == named("a bound")
    assert "toy_mistakes" in tree.done("banditlab", "list", "bounds")
    assert "Mistakes of anybody" in tree.done("banditlab", "describe", "toy_mistakes")
    done = tree.pytest("tests/bounds/test_toy.py", "tests/test_imports.py", "-k", "toy or bounds or circle")
    assert done.returncode == 0, done.stdout[-4000:]
