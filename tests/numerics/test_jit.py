"""Compiling: templates bound to kernels, and a disk cache that never serves stale code."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from banditlab.numerics import jit
from banditlab.numerics.draws import draw_uniform
from banditlab.numerics.jit import bind, borrow, njit, read_only


def _twice(x):  # type: ignore[no-untyped-def]
    return inner(x) * 2  # type: ignore[name-defined]  # noqa: F821


@njit
def plus_one(x):  # type: ignore[no-untyped-def]
    return x + 1


@njit
def plus_two(x):  # type: ignore[no-untyped-def]
    return x + 2


def plain(kernel: Any) -> Any:
    """Return a kernel's function, which it is itself where nothing is compiled."""
    return getattr(kernel, "py_func", kernel)


def name_of(kernel: Any) -> str:
    return str(plain(kernel).__qualname__)


def test_a_template_is_bound_to_each_kernel() -> None:
    one, two = bind(_twice, "one", inner=plus_one), bind(_twice, "two", inner=plus_two)
    assert (one(1), two(1), one(1)) == (4, 6, 4)


def test_the_bound_name_holds_owner_and_sources() -> None:
    name = name_of(bind(_twice, "me", inner=plus_one))
    assert name.startswith(f"_twice@me@{jit.source_digest()}@inner=")
    # this test's file is no part of the package's digest
    assert name.rpartition("=")[2] == hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]


def test_a_loaded_file_is_known_by_what_it_was_and_a_cell_by_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "__source_hash__", "as it was loaded", raising=False)
    assert name_of(bind(_twice, "me", inner=plus_one)).endswith("@inner=as it was loaded")
    cell = _plus_elsewhere()
    expected = hashlib.sha256(plain(cell).__code__.co_code).hexdigest()[:16]
    assert name_of(bind(_twice, "me", inner=cell)).endswith(f"@inner={expected}")


def test_what_is_lent_to_be_read_cannot_be_written() -> None:
    @njit(cache=False)
    def writes(x):  # type: ignore[no-untyped-def]
        read_only(x)[0] = 1.0

    with pytest.raises(Exception, match=r"readonly|read-only|Cannot modify"):
        writes(np.zeros(2))


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled here")
def test_what_is_borrowed_is_the_same() -> None:
    @njit(cache=False)
    def total(rows, c):  # type: ignore[no-untyped-def]
        rows = borrow(rows)
        rows[0][1] = c
        return rows[0].sum() + rows[1]

    x = np.ones(2)
    assert total((x, 0.5), 3.0) == 4.5
    assert x.tolist() == [1.0, 3.0]


def test_package_kernels_are_covered_by_the_package_digest() -> None:
    assert name_of(bind(_twice, "me", inner=draw_uniform)).endswith("@inner=")


def test_a_bound_kernel_passes_its_files_on() -> None:
    """A reduction binds a lab's forecaster and is bound to the loop itself: the lab's file must show there."""
    one, two = (bind(plain(draw_uniform), "me", helper=kernel) for kernel in (plus_one, _plus_elsewhere()))
    names = [name_of(bind(_twice, "outer", inner=kernel)) for kernel in (one, two, one)]
    assert names[0] == names[2] != names[1]
    assert names[0].rpartition("=")[2] == hashlib.sha256(name_of(one).encode()).hexdigest()[:16]


def _plus_elsewhere() -> Any:
    """Return a kernel without a file, as a notebook's cell defines one."""
    namespace: dict[str, Any] = {"njit": njit, "__name__": "elsewhere"}
    exec(compile("def plus(x):\n    return x + 3\n", "<cell>", "exec"), namespace)
    return njit(namespace["plus"], cache=False)


@pytest.fixture
def digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Return a function that writes a module of a package in `tmp_path` and returns the digest of the package's sources."""
    monkeypatch.setattr(jit, "PACKAGE", tmp_path)
    (tmp_path / "agents").mkdir()

    def after(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        jit.kernel_sources.cache_clear()
        return jit.source_digest.__wrapped__()

    yield after
    jit.kernel_sources.cache_clear()


def test_the_digest_sees_every_kernel_source(digest: Callable[..., str], tmp_path: Path) -> None:
    """Modules that compile something, and all that they import, wherever they stand."""
    imports = "from banditlab.kernels import njit\n"
    digests = [
        digest("kernels.py", "import numba\n"),
        digest("agents/x.py", imports),
        digest("agents/x.py", imports + "a = 1\n"),
        digest("agents/y.py", imports + "from banditlab.constants import c\n"),
        digest("constants.py", "c = 1\n"),
        digest("constants.py", "c = 2\n"),
    ]
    (tmp_path / "agents" / "y.py").rename(tmp_path / "agents" / "z.py")
    digests.append(digest("constants.py", "c = 2\n"))
    assert len(set(digests)) == 7
    assert digest("unrelated.txt", "c") == digests[-1]
    assert digest("agents/tables.py", "nothing = 'compiled'\n") == digests[-1]


def test_every_module_that_compiles_is_a_source() -> None:
    found = {str(file.relative_to(jit.PACKAGE)) for file in jit.kernel_sources()}
    assert {
        "numerics/simd.py",
        "numerics/jit.py",
        "agents/banditron.py",
        "forecasters/ogd.py",
        "players/rounds.py",
    } <= found
    # Who plays and stores holds no kernel: an edit there leaves what is compiled alone.
    assert not [name for name in found if name.split("/")[0] in {"cli", "engine", "results", "analysis"}]


LAB_AGENT = """
from typing import NamedTuple
import numpy as np
from banditlab.agents import KernelAgent
from banditlab.kernels import njit

class State(NamedTuple):
    n: np.ndarray

@njit
def act_kernel(state, x, u, p, payload):
    p[:] = 0.0
    p[{action}] = 1.0
    return {action}, False

@njit
def learn_kernel(state, x, action, p, payload, correct):
    state.n[0] += 1

class Constant(KernelAgent):
    id = "test-constant"
    explores = False
    act_kernel = act_kernel
    learn_kernel = learn_kernel
    def __init__(self, problem, rng):
        super().__init__(problem, rng)
        self.state = State(np.zeros(1))
"""

PLAY = """
import sys
import numpy as np
from banditlab.agents import Trace
from banditlab.kernels import as_contexts
from banditlab.problem import Problem
from banditlab.registry import classes_of, load_file
cls = classes_of(load_file(sys.argv[1]))[0][1]
trace = Trace.empty(3)
agent = cls(Problem(2, 3, 1.0), np.random.default_rng(0))
agent.play_block(as_contexts(np.zeros((3, 2))), np.zeros(3, np.int64), trace)
print(*trace.action)
"""


@pytest.mark.slow
def test_an_edited_lab_kernel_is_played_as_it_is_now(tmp_path: Path) -> None:
    """The compiled loop stands in the package's file, which has not changed: only its name can tell the cache."""
    file = tmp_path / "constant.py"
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    played = []
    for action in (1, 2, 1):
        file.write_text(LAB_AGENT.format(action=action))
        out = subprocess.run(
            [sys.executable, "-c", PLAY, str(file)], env=env, capture_output=True, text=True, check=True
        )
        played.append(out.stdout.split())
    assert played == [["1"] * 3, ["2"] * 3, ["1"] * 3]


def cache_dir_of(env: dict[str, str]) -> list[str]:
    """Return numba's folder and the digest, as a fresh process sees them."""
    code = (
        "from banditlab.numerics.jit import source_digest; import numba; print(numba.config.CACHE_DIR, source_digest())"
    )
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    ).stdout.split()


def test_the_cache_lies_in_a_folder_of_these_sources(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    place, digest = cache_dir_of(env | {"XDG_CACHE_HOME": str(tmp_path)})
    assert Path(place).name == digest
    assert Path(place).is_relative_to(tmp_path)


def test_a_users_cache_folder_is_respected(tmp_path: Path) -> None:
    assert cache_dir_of(os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)})[0] == str(tmp_path)
