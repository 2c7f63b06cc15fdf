"""Kernels that kernels call are code only, until Python calls them; what runs is the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from banditlab.numerics import inner_kernels
from banditlab.numerics.jit import njit

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled here")


def square(x):  # type: ignore[no-untyped-def]
    return x * x


def root(x):  # type: ignore[no-untyped-def]
    if x < 0.0:
        raise ValueError("a root of less than nothing")
    return np.sqrt(x)


def checked(x, most):  # type: ignore[no-untyped-def]
    if x > most:
        raise ValueError("more than", most)
    return x


def kernels(cache: bool = False) -> dict[str, Any]:
    """Return a kernel that calls another that calls a third, all new."""
    named: dict[str, Any] = {"np": np, "square": njit(square, cache=cache), "root": njit(root, cache=cache)}
    exec("def length(x, y):\n    return root(square(x) + square(y))\n", named)
    exec("def scaled(x, y, c):\n    return c * length(x, y)\n", named)
    named["length"] = njit(named["length"], cache=False)
    named["scaled"] = njit(named["scaled"], cache=False)
    return named


def for_python(dispatcher: Any) -> int:
    """Return how many versions of a kernel Python can call."""
    return sum(callable(version.entry_point) for version in dispatcher.overloads.values())


def test_what_only_kernels_call_is_no_function_of_pythons() -> None:
    made = kernels()
    assert made["scaled"](3.0, 4.0, 2.0) == 10.0
    assert [for_python(made[name]) for name in ("scaled", "length", "root", "square")] == [1, 0, 0, 0]
    assert [len(made[name].overloads) for name in ("scaled", "length", "root", "square")] == [1, 1, 1, 1]


def test_python_may_call_it_later_and_earlier() -> None:
    made = kernels()
    assert made["square"](3.0) == 9.0  # before
    assert made["scaled"](3.0, 4.0, 2.0) == 10.0
    assert made["length"](3.0, 4.0) == 5.0  # after
    assert made["scaled"](6.0, 8.0, 2.0) == 20.0
    assert made["scaled"](3, 4, 2) == 10.0  # other types are compiled as they come
    assert made["length"](np.float32(3), np.float32(4)) == 5.0
    assert for_python(made["length"]) == 2  # of floats and of single floats; that of integers stays code
    assert len(made["length"].overloads) == 3


def test_other_callers_share_the_code() -> None:
    made = kernels()
    exec("def doubled(x, y):\n    return length(x, y) * 2\n", made)
    doubled = njit(made["doubled"], cache=False)
    made["scaled"](3.0, 4.0, 1.0)
    code = next(iter(made["length"].overloads.values())).library
    assert doubled(3.0, 4.0) == 10.0
    assert [version.library for version in made["length"].overloads.values()] == [code]


def test_errors_pass_through_with_what_they_say() -> None:
    made = kernels()
    exec("def tried(x):\n    return root(x) + 1.0\n", made)
    tried = njit(made["tried"], cache=False)
    with pytest.raises(ValueError, match="a root of less than nothing"):
        tried(-1.0)
    assert tried(4.0) == 3.0
    inner = njit(checked, cache=False)
    exec("def twice(x, most):\n    return 2 * inner(x, most)\n", {"inner": inner}, made)
    twice = njit(made["twice"], cache=False)
    assert twice(1.0, 5.0) == 2.0
    with pytest.raises(ValueError, match="more than") as told:
        twice(7.0, 5.0)  # what it says is boxed by the inner kernel's environment
    assert told.value.args == ("more than", 5.0)
    assert inner(1.0, 5.0) == 1.0  # its code gives way to a function of Python's; the outer one keeps its own
    with pytest.raises(ValueError, match="more than"):
        twice(7.0, 5.0)


def test_a_kernel_that_calls_itself() -> None:
    made: dict[str, Any] = {}
    exec("def factorial(n):\n    if n <= 1:\n        return 1\n    return n * factorial(n - 1)\n", made)
    made["factorial"] = factorial = njit(made["factorial"], cache=False)
    exec("def outer(n):\n    return factorial(n) + 1\n", made)
    assert njit(made["outer"], cache=False)(5) == 121
    assert factorial(6) == 720


def test_a_pickled_kernel_is_the_same_kernel_elsewhere() -> None:
    made = kernels()["square"]
    again = type(made)._rebuild(**made._reduce_states() | {"uuid": "another process"})
    outer = njit(bound(again), cache=False)
    assert (outer(3.0), for_python(again), again(3.0), outer(3.0), for_python(again)) == (10.0, 0, 9.0, 10.0, 1)


def bound(inner: Any) -> Any:
    """Return a plain function that calls a kernel."""
    named: dict[str, Any] = {"inner": inner}
    exec("def outer(x):\n    return inner(x) + 1.0\n", named)
    return named["outer"]


def test_an_inner_kernel_that_cannot_be_compiled_says_why() -> None:
    outer = njit(bound(njit(lambda x: x.nothing_such, cache=False)), cache=False)
    for _ in range(2):
        with pytest.raises(numba.TypingError, match="nothing_such"):
            outer(1.0)


def test_defaults_and_names_of_arguments() -> None:
    named: dict[str, Any] = {}
    exec("def shifted(x, by=3.0, times=2.0):\n    return (x + by) * times\n", named)
    named["shifted"] = njit(named["shifted"], cache=False)
    exec("def outer(x):\n    return shifted(x) + shifted(x, times=1.0) + shifted(x, 1.0, 1.0)\n", named)
    assert njit(named["outer"], cache=False)(1.0) == 8.0 + 4.0 + 2.0


def test_an_argument_that_must_be_known_while_compiling_is_asked_for_by_its_place() -> None:
    """Which entry of a tuple of several types is meant: a number in the caller's text."""
    named: dict[str, Any] = {"numba": numba, "np": np}
    exec("def entry(t, i=0):\n    return t[numba.literally(i)]\n", named)
    named["entry"] = njit(named["entry"], cache=False)
    exec("def outer(x):\n    return entry((x, np.ones(2)), 1).sum() + entry((x, 2 * x), i=0)\n", named)
    assert njit(named["outer"], cache=False)(5.0) == 7.0


def test_under_another_numba_kernels_are_compiled_as_numba_does(monkeypatch: pytest.MonkeyPatch) -> None:
    for version, known in (((0, 63, 9), False), ((0, 64, 0), True), ((0, 68, 1), True), ((0, 69, 0), False)):
        monkeypatch.setattr(numba, "version_info", version)
        assert inner_kernels.known() is known
    made = kernels()
    assert made["scaled"](3.0, 4.0, 2.0) == 10.0
    assert for_python(made["length"]) == 1


MODULE = """
from banditlab.kernels import njit

@njit
def third(x, most):
    if x > most:
        raise ValueError("more than", most)
    return x + 1.0

@njit
def second(x):
    return 2.0 * third(x, 10.0)

@njit
def first(x):
    return second(x) + 1.0

@njit
def other(x):
    return second(x) - 1.0
"""

PLAYED = """
import sys
from numba.core import event
from kernel_module import first, other, second
compiled = []
class Seen(event.Listener):
    def on_start(self, e): compiled.append(e.data["dispatcher"].py_func.__name__)
    def on_end(self, e): pass
seen = Seen()
event.register("numba:compile", seen)
from numba.core import compiler
plain = compiler.compile_extra
def told(typing, target, function, *args, **options):
    if options.get("library") is not None: compiled.append(function.__name__ + " as code")
    return plain(typing, target, function, *args, **options)
compiler.compile_extra = told
for name in sys.argv[1:]:
    assert {"first": 5.0, "other": 3.0, "second": 4.0}[name] == globals()[name](1.0), name
    try:
        globals()[name](11.0)
    except ValueError as error:
        assert error.args == ("more than", 10.0), error.args
    else:
        raise AssertionError(name)
print(*compiled, sep=",")
"""


@pytest.mark.slow
def test_code_is_kept_on_disk_and_used_by_other_processes(tmp_path: Path) -> None:
    (tmp_path / "kernel_module.py").write_text(MODULE)
    env: dict[str, Any] = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }

    def compiled_for(*names: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-c", PLAYED, *names], env=env, text=True, capture_output=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    assert compiled_for("first") == "first,second as code,third as code"
    assert compiled_for("first") == ""
    assert compiled_for("other") == "other"  # from the code of what it calls
    assert compiled_for("second") == "second"  # for Python, now
    assert compiled_for("other", "first", "second") == ""
