"""Imports run one way, and the front door is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import banditlab

PACKAGE = Path(banditlab.__file__).parent
BASE = {"errors", "problem", "validation", "losses", "rows", "kernels", "player"}

ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "problem": {"errors"},
    "validation": {"errors"},
    "losses": {"errors", "problem"},
    "rows": {"errors"},
    "kernels": {"errors", "rows", "kernel_cache", "cache_folders"},
    "kernel_cache": set(),
    "cache_folders": set(),
    "system": set(),
    "player": {"errors", "problem", "validation", "losses"},
    "registry": {"errors", "player"},
    "bounds": {"bounds"},
    "forecasters": BASE | {"forecasters", "bounds"},
    "agents": BASE | {"agents", "forecasters", "bounds", "registry"},
    "boosting": BASE | {"boosting", "agents", "forecasters", "bounds", "registry"},
    "comparators": {"comparators", "losses", "problem", "errors", "validation", "rows", "kernels"},
    "envs": {"envs", "problem", "losses", "errors", "validation", "rows"},
    "checks": BASE | {"checks", "registry", "agents"},
    "analysis": {"analysis", "errors", "validation"},
    "engine": BASE | {"engine", "registry", "comparators", "agents", "forecasters", "annotations", "system"},
    "scaffold": {"errors", "registry"},
}
"""What each room may import of the package. Rooms that are not listed may import everything but `cli`."""

FRAMEWORK = {"banditlab.agents", "banditlab.forecasters", "banditlab.envs"}
"""Contracts (Agent, Forecaster, Trace) that the engine and the checks may name; a particular algorithm they may not."""


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def imports_of(file: Path) -> set[str]:
    """Return every banditlab module a file imports, at whatever depth, type checking included."""
    found = set()
    package = ("banditlab", *file.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            module = ".".join(base + ([node.module] if node.module else []))
            found.add(module)
            if module == "banditlab":
                found |= {f"banditlab.{alias.name}" for alias in node.names}
    return {module for module in found if module.split(".")[0] == "banditlab"}


@pytest.mark.parametrize("file", files(), ids=lambda f: str(f.relative_to(PACKAGE)))
def test_imports_run_one_way(file: Path) -> None:
    own = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
    rooms = {room_of(module) for module in imports_of(file)} - {""}
    assert "cli" not in rooms or own == "__main__", "nothing imports cli"
    if own in ALLOWED:
        assert rooms <= ALLOWED[own], f"{own} may not import {sorted(rooms - ALLOWED[own])}"


@pytest.mark.parametrize("room", ["engine", "analysis", "checks"])
def test_no_algorithm_is_named(room: str) -> None:
    for file in (PACKAGE / room).rglob("*.py"):
        named = {m for m in imports_of(file) if room_of(m) in ("agents", "forecasters", "envs")} - FRAMEWORK
        assert not {m for m in named if not m.rpartition(".")[2].startswith("_")}, file


def test_bounds_import_numbers_only() -> None:
    for file in (PACKAGE / "bounds").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or "banditlab.bounds"] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                top = name.split(".")[0]
                ours = name.startswith("banditlab.bounds")
                assert top == "numpy" or top in sys.stdlib_module_names or ours, (file, name)


def test_the_test_of_imports_reads_relative_and_nested_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    (tmp_path / "agents").mkdir()
    file = tmp_path / "agents" / "a.py"
    file.write_text(
        "from . import _base\nfrom ..cli import main\ndef f():\n    from banditlab import engine\n    import os\n"
    )
    assert imports_of(file) == {"banditlab.agents", "banditlab.cli", "banditlab", "banditlab.engine"}


def loaded_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    return set(out.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import banditlab",
        "import banditlab.registry; banditlab.registry.registry().entries('agents')",
        "import banditlab.checks, banditlab.scaffold",
        "import banditlab.bounds",
        "import banditlab.cli",
    ],
)
def test_the_front_door_is_light(statement: str) -> None:
    heavy = {"gymnasium", "numba", "pandas", "scipy", "sklearn", "seaborn", "matplotlib", "pyarrow", "joblib"}
    assert not loaded_after(statement) & heavy


def test_the_subprocess_sees_what_is_loaded() -> None:
    assert "numba" in loaded_after("import banditlab.agents")
