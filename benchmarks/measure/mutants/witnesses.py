"""Which tests are meant to see a wrong line: those that name its module, those of its room, recorded runs of what uses it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ALSO = {
    "analysis": ["tests/cli"],
    "boosting": [],
    "engine": ["tests/lab", "tests/cli"],
    "players": ["tests/checks", "tests/engine/test_play.py", "tests/lab"],
    "results": ["tests/engine/test_sweep.py", "tests/engine/test_stale_inputs.py"],
}
"""Tests of other rooms that are about this one, too."""
KERNELS = ("agents", "boosting", "forecasters", "numerics")
"""Rooms of compiled algorithms, whose recorded runs are asked before the tests of their neighbours."""
QUICK = ("uniform", "banditron", "ogd", "linucb", "exploration", "gaptron", "aioli", "fastcb", "newtron")
"""Whose recorded runs are asked first, where many players use a module: their kernels compile soonest."""
USERS = 3
"""So many players' recorded runs at most."""
LONG = (
    "test_cluster",
    "test_crew",
    "test_estimates",
    "test_pool",
    "test_sweep",
    "test_stale_inputs",
    "test_references_in_sweeps",
)
"""Tests that start processes or play sweeps: asked after the others, but for their own modules."""


def witnesses(root: Path, path: str, scope: str = "") -> list[list[str]]:
    """Return arguments of pytest, one list after the other, for a module `path` of the package below `root`.

    Files that name one of the classes and functions in `scope`, which has dots between them, come first in each list.
    """
    parts = Path(path).parts
    room, stem = (parts[1] if len(parts) > 2 else "top"), Path(path).stem.strip("_")
    folder = root / "tests" / room
    own = sorted(folder.rglob("test_*.py")) if folder.is_dir() else sorted((root / "tests").glob("test_*.py"))
    for each in ALSO.get(room, []):
        place = root / each
        own += sorted(place.rglob("test_*.py")) if place.is_dir() else [place]
    module = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    every = _tests(root)
    near = [test for test in every if stem in test.stem or _names(test, module)]
    if len(near) > 8:  # a module that everything names: its own room's tests will do
        near = [test for test in near if test in own] or near[:8]
    near, own = ([test for test in tests if "record" not in test.parts] for tests in (near, own))
    first = [test for test in near if test in own]
    recorded = ["tests/record", "-k", " or ".join(_recorded(root, room, module)), "-m", "slow or not slow"]
    rest, elsewhere = ([test for test in tests if test not in first] for tests in (own, near))
    asked = recorded if recorded[2] else []
    # Recorded runs see most of what goes wrong in a kernel, and compile one player; the room's other tests compile many.
    kernels = room in KERNELS and first and asked
    names = tuple(filter(None, scope.split(".")))
    first, rest, elsewhere = (
        [*sorted(tests, key=lambda test: not _mentions(test, names))] for tests in (first, rest, elsewhere)
    )
    together = sorted([*first, *rest, *elsewhere], key=lambda test: test.stem in LONG and stem not in test.stem)
    ordered = [first, asked, elsewhere] if kernels else [together, asked]
    groups = [group if group is asked else _named(root, group) for group in ordered if group]
    if near:
        groups.append([*_named(root, near), "-m", "slow"])
    return groups


def _named(root: Path, tests: list[Path]) -> list[str]:
    return [test.relative_to(root).as_posix() for test in dict.fromkeys(tests)]


def _recorded(root: Path, room: str, module: str) -> list[str]:
    if room in ("comparators", "envs"):
        return ["comparators/" if room == "comparators" else "environments/"]
    return [f"players/{id_}/" for id_ in _users(root, module)]


def _users(root: Path, module: str) -> list[str]:
    """Return the ids of the nearest players that use a module: its own, or of modules that import it, and so on."""
    graph, ids = _graph(root)
    seen, layer = {module}, [module]
    while layer:
        found = sorted({id_ for each in layer for id_ in ids.get(each, [])})
        if found:
            found.sort(key=lambda id_: (QUICK.index(id_) if id_ in QUICK else len(QUICK), id_))
            return found[:USERS]
        layer = [user for user, used in graph.items() if user not in seen and used & set(layer)]
        seen |= set(layer)
    return []


@cache
def _graph(root: Path) -> tuple[dict[str, set[str]], dict[str, list[str]]]:
    """Return which modules of the package each imports, and the ids of the players that each defines."""
    graph, ids = {}, {}
    for file in sorted((root / "banditlab").rglob("*.py")):
        module = file.relative_to(root).as_posix().removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        tree = ast.parse(file.read_bytes())
        graph[module] = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
        if module.startswith(("banditlab.agents", "banditlab.forecasters", "banditlab.boosting")):
            ids[module] = [
                statement.value.value
                for node in ast.walk(tree)
                if isinstance(node, ast.ClassDef)
                for statement in node.body
                if isinstance(statement, ast.Assign)
                and isinstance(statement.targets[0], ast.Name)
                and statement.targets[0].id == "id"
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            ]
    return graph, ids


def _mentions(test: Path, names: tuple[str, ...]) -> bool:
    text = _text(test)
    return any(re.search(rf"\b{re.escape(name)}\b", text) for name in names)


def _names(test: Path, module: str) -> bool:
    text = _text(test)
    return f"from {module} import" in text or f"import {module}\n" in text or f'"{module}"' in text


@cache
def _tests(root: Path) -> list[Path]:
    return sorted((root / "tests").rglob("test_*.py"))


@cache
def _text(test: Path) -> str:
    return test.read_text("utf-8")
