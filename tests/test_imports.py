"""The floors of the house: imports run one way, no private module is used from another package, packages import lazily."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import banditlab

PACKAGE = Path(banditlab.__file__).parent
ROOT = PACKAGE.parent
BASE = {"errors", "problem", "validation", "losses"}
FLOOR = BASE | {"numerics", "players", "kernels", "bounds", "lazy"}

ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "lazy": set(),
    "distributions": {"errors"},
    "problem": {"errors"},
    "validation": {"errors"},
    "losses": set(),
    "disk": set(),
    "numerics": {"numerics", "errors"},
    "bounds": {"bounds"},
    "players": BASE | {"players", "numerics", "disk"},
    "kernels": {"numerics", "players"},
    "children": {"errors", "validation"},
    "registry": {"errors", "players", "numerics", "children"},
    "forecasters": FLOOR | {"forecasters"},
    "agents": FLOOR | {"agents", "distributions", "forecasters", "registry"},
    "boosting": FLOOR | {"boosting", "agents", "distributions", "forecasters", "registry"},
    "comparators": BASE | {"comparators", "numerics", "lazy"},
    "envs": BASE | {"envs", "numerics", "lazy"},
    "checks": FLOOR | {"checks", "registry"},
    "results": {"results", "errors", "disk"},
    "engine": BASE
    | {
        "engine",
        "lazy",
        "distributions",
        "children",
        "registry",
        "comparators",
        "players",
        "numerics",
        "results",
        "envs",
    },
    "analysis": {"analysis", "errors", "validation", "results", "lazy"},
    "estimator": BASE | {"numerics", "players", "registry"},
    "regression": BASE | {"regression", "lazy", "bounds", "players", "numerics", "estimator"},
    "offpolicy": {"offpolicy", "errors", "validation"},
    "comparison": {
        "comparison",
        "engine",
        "envs",
        "numerics",
        "results",
        "analysis",
        "errors",
        "problem",
        "registry",
        "validation",
    },
    "policy": BASE
    | {
        "policy",
        "disk",
        "lazy",
        "distributions",
        "numerics",
        "registry",
        "players",
        "results",
        "engine",
        "envs",
        "analysis",
        "comparison",
        "offpolicy",
        "",
    },
    "cli": BASE
    | {"cli", "policy", "engine", "results", "analysis", "checks", "registry", "bounds", "comparison", "envs", ""}
    | {"distributions", "children"},
}
"""What each room may import of the package; "" is the front door itself, for the version."""

HIGHEST = {"__main__": {"cli"}, "": None}
"""`python -m banditlab` is the command line; the front door `__init__.py` may name everything, lazily."""

MOST_LOOSE = 13
MOST_IGNORES = 150


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def own_room(file: Path) -> str:
    name = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "" if name == "__init__" else name


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
            found |= {name for alias in node.names if is_module(name := f"{module}.{alias.name}")}
    return {module for module in found if module.split(".")[0] == "banditlab"}


def is_module(name: str) -> bool:
    place = PACKAGE.joinpath(*name.split(".")[1:])
    return name.startswith("banditlab.") and (place.with_suffix(".py").is_file() or (place / "__init__.py").is_file())


def private_elsewhere(file: Path, modules: set[str]) -> set[str]:
    """Return those of the modules that are private (a name with an underscore) to a package the file is not in."""
    own = ("banditlab", *file.relative_to(PACKAGE).parts[:-1])
    found = set()
    for module in modules:
        parts = module.split(".")
        hidden = [i for i, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")]
        if hidden and tuple(parts[: hidden[0]]) != own[: hidden[0]]:
            found.add(module)
    return found


BROUGHT = {"nbformat", "sklearn", "markupsafe", "rich", "llvmlite", "matplotlib", "click"}
"""Names that dependencies bring under another name than their own."""


@pytest.mark.slow
def test_types_are_checked_where_the_extras_are_not() -> None:
    """What is neither a dependency nor an extra of contributors is named to mypy as perhaps missing."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    there = project["project"]["dependencies"] + extras["test"] + extras["lint"]
    known = BROUGHT | {re.split(r"[^A-Za-z0-9-]", need)[0].replace("-", "_") for need in there}
    missing = {name.removesuffix(".*") for name in project["tool"]["mypy"]["overrides"][0]["module"]}
    imported = {node_name for file in files() for node_name in top_names(file)}
    others = imported - known - set(sys.stdlib_module_names) - {"banditlab"}
    assert others - missing == set()
    assert {"dask", "distributed"} <= others  # they are found inside functions, too


def top_names(file: Path) -> set[str]:
    """Return the first parts of all absolute imports of a file, at whatever depth."""
    found = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("file", files(), ids=lambda f: str(f.relative_to(PACKAGE)))
def test_imports_run_one_way(file: Path) -> None:
    own, modules = own_room(file), imports_of(file)
    assert not private_elsewhere(file, modules)
    allowed = ALLOWED[own] if own in ALLOWED else HIGHEST[own]
    if allowed is not None:
        plain = modules - {"banditlab"} if "" in allowed or own == "__main__" else modules
        rooms = {room_of(module) for module in plain}
        assert rooms <= allowed, f"{own} may not import {sorted(rooms - allowed)}"


def test_every_room_has_its_floor() -> None:
    assert {own_room(file) for file in files()} == set(ALLOWED) | set(HIGHEST)


def test_no_circle() -> None:
    """Rooms stand in one order: each is named after all that it may import."""
    left = {room: allowed - {room, ""} for room, allowed in ALLOWED.items()}
    while left:
        free = {room for room, needs in left.items() if not needs & set(left)}
        assert free, f"a circle among {sorted(left)}"
        left = {room: needs for room, needs in left.items() if room not in free}


def test_modules_make_no_circle() -> None:
    """Nor do single modules, imports inside functions and for type checkers left aside."""
    names = {file: ".".join(("banditlab", *file.relative_to(PACKAGE).with_suffix("").parts)) for file in files()}
    names = {file: name.removesuffix(".__init__") for file, name in names.items()}
    left = {names[file]: at_import(file) & set(names.values()) - {names[file]} for file in files()}
    while left:
        free = {module for module, needs in left.items() if not needs & set(left)}
        assert free, f"a circle among {sorted(left)}"
        left = {module: needs for module, needs in left.items() if module not in free}


def at_import(file: Path) -> set[str]:
    """Return the modules a file imports when it is imported itself; of `from package import module`, the module."""
    found = set()
    for node in ast.parse(file.read_bytes()).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = {name for alias in node.names if is_module(name := f"{node.module}.{alias.name}")}
            found |= inner or {node.module}
    return found


def test_few_files_lie_loose() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_LOOSE


def test_few_types_are_ignored() -> None:
    assert sum(file.read_text("utf-8").count("type: ignore") for file in files()) <= MOST_IGNORES


@pytest.mark.parametrize("room", ["engine", "analysis", "checks", "results", "players", "numerics"])
def test_no_algorithm_is_named(room: str) -> None:
    for file in (PACKAGE / room).rglob("*.py"):
        named = {m for m in imports_of(file) if room_of(m) in ("agents", "forecasters", "boosting", "envs")}
        assert named <= {"banditlab.envs"}, file


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
    (tmp_path / "engine.py").touch()
    (tmp_path / "agents" / "_base.py").touch()
    file = tmp_path / "agents" / "a.py"
    file.write_text(
        "from . import _base\nfrom ..cli import main\ndef f():\n    from banditlab import engine\n    import os\n"
        "from banditlab.forecasters._deep import x\n"
    )
    found = imports_of(file)
    assert found >= {"banditlab.agents", "banditlab.agents._base", "banditlab.cli", "banditlab", "banditlab.engine"}
    assert private_elsewhere(file, found) == {"banditlab.forecasters._deep"}


# ----------------------------------------------------------------------------------------------------------------- kernels


def unannotated(tree: ast.Module) -> set[str]:
    """Return the module's functions with parameters but no annotations, whose types mypy does not check."""
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and not node.returns
        and any(not a.annotation for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs])
    }


COMPILERS = {"njit", "inline", "reduction", "intrinsic", "bind", "by_context", "by_type", "sum_over_entries"}


def compiled(tree: ast.Module) -> set[str]:
    """Return the names that are decorated by a compiler or handed to one."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            found |= {node.name for d in node.decorator_list for n in ast.walk(d) if getattr(n, "id", "") in COMPILERS}
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in COMPILERS:
            found |= {
                n.id
                for a in [*node.args, *[k.value for k in node.keywords]]
                for n in ast.walk(a)
                if isinstance(n, ast.Name)
            }
    for node in ast.walk(tree):  # template = rounds_one_by_one
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Name):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {node.value.id for target in targets if getattr(target, "id", "") in found}
    return found


@pytest.mark.slow
def test_only_kernels_have_no_annotations() -> None:
    """mypy checks no function without annotations in the rooms of kernels: so nothing else may lack them."""
    trees = {file: ast.parse(file.read_bytes()) for file in files()}
    everywhere = set().union(*(compiled(tree) for tree in trees.values()))
    for file, tree in trees.items():
        assert not unannotated(tree) - compiled(tree) - everywhere, file


# --------------------------------------------------------------------------------------------------------------- the doors

HEAVY = {"gymnasium", "numba", "pandas", "scipy", "sklearn", "seaborn", "matplotlib", "pyarrow", "joblib"}


def loaded_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(out.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import banditlab.registry; banditlab.registry.registry().entries('agents')",
        "import banditlab.checks, banditlab.cli.scaffold",
        "import banditlab.bounds",
        "import banditlab.cli.main",
        "import banditlab.agents, banditlab.forecasters, banditlab.boosting, banditlab.envs, banditlab.policy",
        "import banditlab.engine, banditlab.comparators, banditlab.analysis",
        "from banditlab import Problem, Decision",
    ],
)
def test_the_doors_are_light(statement: str) -> None:
    assert not loaded_after(statement) & HEAVY


def test_the_front_door_needs_the_standard_library_only() -> None:
    packages = {name.replace("-", "_") for name in loaded_after("import site")}
    added = loaded_after("import banditlab; dir(banditlab)") - packages
    assert added <= {*sys.stdlib_module_names, "banditlab"}


def test_the_subprocess_sees_what_is_loaded() -> None:
    assert "numba" in loaded_after("import banditlab.kernels")
