"""Which tests are meant to see a wrong line: those that name its module, those of its room, recorded runs of what uses it."""

from __future__ import annotations

import ast
import re
import runpy
from functools import cache
from pathlib import Path

from analysis.result_pages.mutants import room_of

ALSO = {
    "analysis": ["tests/cli"],
    "boosting": [],
    "checks": ["tests/envs/test_foreign.py"],
    "cli": ["tests/analysis/test_live.py"],
    "comparison": ["tests/cli/test_new_users_tables.py", "tests/cli/test_cli.py"],
    "engine": ["tests/lab", "tests/cli", "tests/analysis/test_switching.py", "tests/envs/test_units.py"],
    "envs": ["tests/policy/test_rows.py", "tests/cli/test_messy_tables.py"],
    "players": ["tests/checks", "tests/engine/test_play.py", "tests/lab"],
    "results": ["tests/engine/test_sweep.py", "tests/engine/test_stale_inputs.py"],
}
"""Tests of other rooms that are about this one, too."""
KERNELS = ("agents", "boosting", "forecasters", "numerics")
"""Rooms of compiled algorithms, whose recorded runs are asked before the tests of their neighbours."""
QUICK = ("uniform", "banditron", "ogd", "linucb", "exploration", "gaptron", "aioli", "fastcb", "newtron")
"""Whose recorded runs are asked first, where many players use a module: their kernels compile soonest."""
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
EVERY_PLAYER = (
    *("tests/players/test_defaults.py", "tests/players/test_resolved.py", "tests/players/test_shapes.py"),
    "tests/test_asked_before_built.py",
)
"""Tests that are about every player, and name none of their modules."""
USERS, UNCOMPILED_USERS = 3, 4
"""So many players' recorded runs at most, compiled and not."""


def witnesses(root: Path, path: str, line: int = 0, scope: str = "") -> list[list[str]]:
    """Return arguments of pytest, one list after the other, for a line of a module `path` of the package below `root`.

    Files that name one of the classes and functions in `scope`, which has dots between them, come first in each list.
    """
    scratch, stem = room_of(path), Path(path).stem.strip("_")
    near, own = _near_and_own(root, path)
    first = [test for test in near if test in own]
    recorded = ["tests/record", "-k", " or ".join(_recorded(root, scratch, path, line)), "-m", "slow or not slow"]
    rest, elsewhere = ([test for test in tests if test not in first] for tests in (own, near))
    asked = recorded if recorded[2] else []
    # Recorded runs see most of what goes wrong in a kernel, and compile one player; the room's other tests, which compile
    # many, come last.
    kernels = scratch in KERNELS and first and asked
    names = tuple(filter(None, scope.split(".")))
    first, rest, elsewhere = (
        [*sorted(tests, key=lambda test: not _mentions(test, names))] for tests in (first, rest, elsewhere)
    )
    together = sorted([*first, *rest, *elsewhere], key=lambda test: test.stem in LONG and stem not in test.stem)
    ordered = [first, asked, elsewhere] if kernels else [together, asked]
    groups = [group if group is asked else _named(root, group) for group in ordered if group]
    if scratch in KERNELS:
        groups.insert(0, list(EVERY_PLAYER))
    if near:
        groups.append([*_named(root, near), "-m", "slow"])
    if kernels and rest:
        groups.append(_named(root, rest))
    if scratch in KERNELS and (theirs := _of_users(root, path)):
        groups.append([*_named(root, theirs), "-m", "slow or not slow"])
    return groups


def uncompiled_witnesses(root: Path, path: str, line: int = 0) -> list[list[str]]:
    """Return what a module is asked uncompiled, one list after the other: files of tests, and "players/ID/" for recorded runs.

    The nearest first, then recorded runs of players that use what stands at `line`, then more players and their own tests.
    """
    near, own = _near_and_own(root, path)
    if not near:  # nobody names the module: whoever names one that imports it
        users = [user for user, used in _graph(root)[0].items() if _module(path) in used]
        near = [test for test in own if "record" not in test.parts and any(_names(test, user) for user in users)]
    ids = _users(root, _module(path), UNCOMPILED_USERS, _names_at(root, path, line))
    first = [test for test in near if test in own] or near
    stems = {f"test_{id_.replace('-', '_')}" for id_ in ids}
    rest = [
        test for scratch in KERNELS for test in sorted((root / "tests" / scratch).glob("*.py")) if test.stem in stems
    ]
    rest = [test for test in [*near, *rest] if test not in first]
    runs = [f"players/{id_}/" for id_ in ids]
    near, far, every = _named(root, first), _named(root, rest), EVERY_PLAYER if room_of(path) in KERNELS else ()
    if _graph(root)[1].get(_module(path)):  # the module is a player
        groups = [near, [*runs[:2], *every], runs[2:], far]
    else:
        groups = [near, runs[:2], runs[2:], [*far, *every]]
    return [group for group in groups if group]


def _module(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def _near_and_own(root: Path, path: str) -> tuple[list[Path], list[Path]]:
    """Return the tests that name a module, and those of its room; recorded runs are neither."""
    scratch, module, stem = room_of(path), _module(path), Path(path).stem.strip("_")
    folder = root / "tests" / scratch
    own = sorted(folder.rglob("test_*.py")) if folder.is_dir() else sorted((root / "tests").glob("test_*.py"))
    for each in ALSO.get(scratch, []):
        place = root / each
        own += sorted(place.rglob("test_*.py")) if place.is_dir() else [place]
    every = _tests(root)
    near = [test for test in every if stem in test.stem or _names(test, module)]
    if len(near) > 8:  # a module that everything names: its own room's tests will do
        near = [test for test in near if test in own] or near[:8]
    near, own = ([test for test in tests if "record" not in test.parts] for tests in (near, own))
    return near, own


def _of_users(root: Path, path: str) -> list[Path]:
    """Return the tests that name one of the modules that import a module, or those that import these; the nearest, up to 8."""
    graph, _ = _graph(root)
    layer, seen = [_module(path)], {_module(path)}
    while layer:
        layer = [user for user in graph if user not in seen and any(one in graph[user] for one in layer)]
        seen |= set(layer)
        found = [
            test for test in _tests(root) if "record" not in test.parts and any(_names(test, user) for user in layer)
        ]
        if found:
            return found[:8]
    return []


def _named(root: Path, tests: list[Path]) -> list[str]:
    return [test.relative_to(root).as_posix() for test in dict.fromkeys(tests)]


def _recorded(root: Path, scratch: str, path: str, line: int) -> list[str]:
    if scratch in ("comparators", "envs"):
        return ["comparators/" if scratch == "comparators" else "environments/"]
    return [f"players/{id_}/" for id_ in _users(root, _module(path), USERS, _names_at(root, path, line))]


def _users(root: Path, module: str, most: int = USERS, names: frozenset[str] = frozenset()) -> list[str]:
    """Return the ids of the nearest players that use a module: its own, or of modules that import it, and so on."""
    graph, ids = _graph(root)
    seen, layer = {module}, [module]
    while layer:
        found = sorted({id_ for each in layer for id_ in ids.get(each, [])})
        if found:
            found.sort(key=lambda id_: (QUICK.index(id_) if id_ in QUICK else len(QUICK), id_))
            return found[:most]
        users = {user: [graph[user][one] for one in layer if one in graph[user]] for user in graph if user not in seen}
        # Of those who import the module itself, only who imports one of the names.
        named = [user for user, found in users.items() if any(not names or not each or names & each for each in found)]
        layer, names = named or [user for user, found in users.items() if found], frozenset()
        seen |= set(layer)
    return []


@cache
def _names_at(root: Path, path: str, line: int) -> frozenset[str]:
    """Return the name that a line of a module is about, and those of what uses it there; none where it is about none."""
    parts = {}
    for node in ast.parse((root / path).read_bytes()).body:
        names = {node.name} if isinstance(node, ast.FunctionDef | ast.ClassDef) else set()
        if isinstance(node, ast.Assign):
            names = {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        parts[first, node.end_lineno or first] = (names, used)
    found = {name for (first, last), (names, _) in parts.items() if first <= line <= last for name in names}
    more = set(found)
    while more:
        more = {name for names, used in parts.values() if used & more for name in names} - found
        found |= more
    return frozenset(found)


@cache
def _graph(root: Path) -> tuple[dict[str, dict[str, set[str]]], dict[str, list[str]]]:
    """Return which names of which modules each module imports, and the players with recorded runs that each defines."""
    graph: dict[str, dict[str, set[str]]] = {}
    ids: dict[str, list[str]] = {}
    cases = runpy.run_path(str(root / "tests/record/cases.py"))["PLAYERS"]
    recorded = {id_ for players in cases.values() for id_ in players}
    for file in sorted((root / "banditlab").rglob("*.py")):
        module = file.relative_to(root).as_posix().removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        tree = ast.parse(file.read_bytes())
        graph[module] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                graph[module].setdefault(node.module, set()).update(alias.name for alias in node.names)
                for alias in node.names:  # a module of a package, all of it
                    graph[module].setdefault(f"{node.module}.{alias.name}", set())
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
                and statement.value.value in recorded
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
