"""Lazy public names: every public name is where its table says, for Python, for tab completion and for type checkers."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pickle
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.abc import Loader
from importlib.util import find_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import banditlab
from banditlab.lazy import after_import, lazy_names, modules_of
from banditlab.registry import KINDS, classes_of, registry

ROOT = Path(banditlab.__file__).parents[1]
DOORS = sorted(
    ".".join(file.relative_to(ROOT).parts[:-1])
    for file in (ROOT / "banditlab").rglob("__init__.py")
    if "lazy_names(" in file.read_text("utf-8")
)


def table(name: str) -> dict[str, str]:
    """Return a package's own table: for every public name its module."""
    module = importlib.import_module(name)
    return modules_of(module._OTHERS, module.BUILT_IN) if hasattr(module, "BUILT_IN") else modules_of(module._MODULES)


NAMES = [(package, name) for package in DOORS for name in table(package)]


def in_a_process(code: str) -> str:
    """Return what a fresh Python prints that finds this package first."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ------------------------------------------------------------------------------------------------------------------- names


def test_the_packages_with_a_door() -> None:
    rooms = ["agents", "analysis", "boosting", "comparators", "engine", "envs", "forecasters"]
    rooms += ["policy", "regression"]
    assert ["banditlab", *(f"banditlab.{room}" for room in rooms)] == DOORS


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_a_name_is_the_same_object_at_the_door_and_in_its_module(package: str, name: str) -> None:
    module = importlib.import_module(table(package)[name])
    found = getattr(importlib.import_module(package), name)
    assert found is getattr(module, name)
    assert found.__module__ == module.__name__ or package == "banditlab", "the table names where it is defined"
    assert pickle.loads(pickle.dumps(found)) is found


@pytest.mark.parametrize("kind", KINDS)
def test_every_class_of_the_registry_is_at_its_packages_door(kind: str) -> None:
    for entry in registry().entries(kind):
        if entry.origin == "banditlab":
            cls = entry.load()
            package = ".".join(cls.__module__.split(".")[:2])
            assert getattr(importlib.import_module(package), cls.__name__) is cls


UNLISTED = {("weak_learners", "one-vs-all"): "is made by boosters around a class, which no setting can name"}


@pytest.mark.parametrize("room", ["agents", "boosting", "envs", "forecasters"])
def test_every_class_with_an_id_is_in_its_rooms_table(room: str) -> None:
    """In the folders of families too: a forgotten line fails here."""
    package = importlib.import_module(f"banditlab.{room}")
    modules = [importlib.import_module(m.name) for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    found = {(kind, cls.id) for module in modules for kind, cls in classes_of(module)}
    listed = {(kind, id_) for kind, table in package.BUILT_IN.items() for id_, _ in table.values()}
    assert found - set(UNLISTED) == listed


@pytest.mark.parametrize("package", DOORS)
def test_all_and_dir_hold_the_table(package: str) -> None:
    module = importlib.import_module(package)
    assert sorted(module.__all__) == sorted(table(package))
    assert set(module.__all__) <= set(dir(module))
    inner = {"TYPE_CHECKING", "lazy_names", "modules_of"} & set(
        dir(module)
    )  # a module of that name is none of the package's own
    assert all(inspect.ismodule(getattr(module, name)) for name in inner), "noise in tab completion"


def test_dir_is_complete_before_anything_is_imported() -> None:
    code = "import importlib, sys\n"
    for package in DOORS:
        code += f"p = importlib.import_module({package!r}); before = set(sys.modules); print(*dir(p))\n"
        code += "assert before == set(sys.modules)\n"
    for package, names in zip(DOORS, in_a_process(code).splitlines(), strict=True):
        assert set(table(package)) <= set(names.split()), package


@pytest.mark.parametrize("package", DOORS)
def test_a_star_brings_every_name(package: str) -> None:
    found: dict[str, Any] = {}
    exec(f"from {package} import *", found)
    assert set(table(package)) <= set(found)


@pytest.mark.parametrize("package", DOORS)
def test_no_name_is_a_modules_too(package: str) -> None:
    """Once imported, a submodule of that name would stand in the class's or function's place."""
    modules = {module.name for module in pkgutil.iter_modules(importlib.import_module(package).__path__)}
    assert not modules & set(table(package))


@pytest.mark.parametrize("package", DOORS)
def test_type_checkers_read_the_same_table(package: str) -> None:
    file = importlib.import_module(package).__file__
    tree = ast.parse(Path(file or "").read_bytes())
    (block,) = [
        node for node in tree.body if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    ]
    seen: dict[str, str] = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom), ast.dump(node)
        for alias in node.names:
            assert alias.asname == alias.name, "only `name as name` is handed on"
            seen[alias.name] = str(node.module)
    assert seen == table(package)


def test_the_front_doors_names_of_the_readme() -> None:
    from banditlab import (
        Decision,
        OnlineClassifier,
        Problem,
        Sweep,
        best_in_ball,
        compare,
        load,
        make_agent,
        make_env,
        make_forecaster,
        play,
        read_spec,
        write_report,
    )

    assert all(callable(f) for f in (best_in_ball, compare, load, make_agent, make_env, make_forecaster, play))
    assert all(callable(f) for f in (read_spec, write_report))
    assert all(isinstance(cls, type) for cls in (Decision, OnlineClassifier, Problem, Sweep))


@pytest.mark.parametrize("package", DOORS)
def test_a_wrong_name_is_an_import_error(package: str) -> None:
    with pytest.raises(ImportError, match="cannot import name 'NoSuchThing'"):
        exec(f"from {package} import NoSuchThing")
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'NoSuchThing'"):
        importlib.import_module(package).NoSuchThing  # noqa: B018


def test_a_door_keeps_what_it_has_found(monkeypatch: pytest.MonkeyPatch) -> None:
    room = ModuleType("room")
    monkeypatch.setitem(sys.modules, "room", room)
    load, names, all_ = lazy_names("room", {"pathlib": ("Path",)})
    assert all_ == ["Path"]
    assert names() == sorted({*vars(ModuleType("room")), "Path"})
    assert load("Path") is Path
    assert vars(room)["Path"] is Path


def test_a_table_that_names_a_wrong_module_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "room", ModuleType("room"))
    load, _, _ = lazy_names("room", {"json": ("Path",)})
    with pytest.raises(AttributeError, match="module 'json' has no attribute 'Path'"):
        load("Path")


# -------------------------------------------------------------------------------------------------------- Gymnasium's names

MAKE = "print(gymnasium.make('banditlab/Digits-v0', horizon=3).unwrapped.problem.n_classes)"


ORDERS = {
    "before": "import banditlab.envs; import gymnasium",
    "after": "import gymnasium; import banditlab.envs",
    "a class first": "from banditlab.envs import Digits; import gymnasium",
}
"""How the two may be imported, each in a separate process; the usual ones first."""
USUAL = 2


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(code, id=name, marks=() if i < USUAL else pytest.mark.slow)
        for i, (name, code) in enumerate(ORDERS.items())
    ],
)
@pytest.mark.few(1)
@pytest.mark.slow
def test_environments_are_known_to_gymnasium(code: str) -> None:
    assert in_a_process(f"{code}\n{MAKE}").split() == ["10"]


class Source(Loader):
    """Executes a piece of code; what a test's finder returns."""

    def __init__(self, code: str) -> None:
        self.code = code

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, vars(module))

    def get_source(self, name: str) -> str:
        return self.code


class Finder:
    """A finder of one module, put at the end of Python's list."""

    def __init__(self, code: str) -> None:
        self.loader = Source(code)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return spec_from_loader(name, self.loader) if name == "watched_module" else None


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Finder]]:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))

    def make(code: str) -> Finder:
        finder = Finder(code)
        sys.meta_path.append(finder)  # type: ignore[arg-type]
        return finder

    yield make
    sys.modules.pop("watched_module", None)


def test_every_watcher_acts_after_every_execution(watched: Callable[[str], Finder]) -> None:
    watched("x = 1")
    done: list[tuple[str, int]] = []
    for name in ("first", "second"):
        after_import("watched_module", lambda name=name: done.append((name, sys.modules["watched_module"].x)))
    module = importlib.import_module("watched_module")
    assert sorted(done) == [("first", 1), ("second", 1)]
    importlib.reload(module)
    assert len(done) == 4
    after_import("watched_module", lambda: done.append(("now", 1)))
    assert done[4:] == [("now", 1)]


def test_a_watcher_hides_no_loader(watched: Callable[[str], Finder]) -> None:
    finder = watched("seen = __loader__, __spec__.loader")
    after_import("watched_module", lambda: None)
    spec = find_spec("watched_module")
    assert spec is not None
    assert spec.loader.get_source("watched_module") == finder.loader.code  # type: ignore[union-attr]
    module = importlib.import_module("watched_module")
    assert module.seen == (finder.loader, finder.loader)


def test_a_watcher_comes_before_every_finder_and_asks_those_behind_it(watched: Callable[[str], Finder]) -> None:
    finder = watched("x = 1")
    sys.meta_path.insert(0, sys.meta_path.pop())  # the one that finds the module is the first of all
    done: list[int] = []
    after_import("watched_module", lambda: done.append(1))
    watcher = sys.meta_path[0]
    assert watcher.find_spec("json", None) is None  # of no other module
    sys.meta_path.append(Finder("x = 2"))  # type: ignore[arg-type]
    module = importlib.import_module("watched_module")
    assert (module.x, module.__loader__, done) == (1, finder.loader, [1])


def test_nothing_is_done_for_a_module_that_fails_or_is_not_there(watched: Callable[[str], Finder]) -> None:
    done: list[int] = []
    after_import("watched_module", lambda: done.append(1))
    with pytest.raises(ModuleNotFoundError, match="watched_module"):
        importlib.import_module("watched_module")
    finder = watched("raise ImportError('not today')")
    with pytest.raises(ImportError, match="not today"):
        importlib.import_module("watched_module")
    assert done == []
    finder.loader.code = "x = 1"
    importlib.import_module("watched_module")
    assert done == [1]


# ------------------------------------------------------------------------------------------------------------------- types


def mypy(folder: Path, code: str) -> list[str]:
    """Return what mypy says of a file elsewhere that uses this package."""
    (folder / "consumer.py").write_text(code)
    command = [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--follow-imports=silent"]
    command += ["--ignore-missing-imports", f"--cache-dir={folder / 'cache'}", "consumer.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=os.environ | {"MYPYPATH": str(ROOT)})
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("consumer.py:")]


@pytest.mark.slow
def test_type_checkers_know_every_name_and_no_other(tmp_path: Path) -> None:
    """A name without a type would be revealed as Any; a wrong one is an error, not Any."""
    pytest.importorskip("mypy", reason="mypy comes with the extra lint")
    lines = [f"from {package} import {name} as n{i}" for i, (package, name) in enumerate(NAMES)]
    lines += [f"reveal_type(n{i})" for i in range(len(NAMES))]
    lines += [f"from {package} import NoSuchThing as w{i}" for i, package in enumerate(DOORS)]
    said = mypy(tmp_path, "\n".join(lines) + "\n")
    revealed = [line for line in said if "Revealed type" in line]
    assert len(revealed) == len(NAMES)
    for line, (_, name) in zip(revealed, NAMES, strict=True):
        assert '"Any"' not in line, name
    wrong = [line for line in said if re.match(r"consumer\.py:\d+: error: ", line)]
    assert len(wrong) == len(DOORS), wrong
    for line, package in zip(wrong, DOORS, strict=True):
        assert f'Module "{package}" has no attribute "NoSuchThing"' in line
