"""Kernels that others call: compiled once, without what only Python needs, and what Python does call is whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from banditlab.kernels import bind, inline, njit


def fresh() -> tuple[Any, Any]:
    """Return a kernel and another that calls it, both unknown to any cache."""

    @njit(cache=False)
    def root(x):  # type: ignore[no-untyped-def]
        if x < 0.0:
            raise ValueError("negative", x)  # the number is only known there: built by way of the environment
        return np.sqrt(x)

    @njit(cache=False)
    def total(X):  # type: ignore[no-untyped-def]
        s = 0.0
        for x in X:
            s += root(x)
        return s

    return root, total


def test_what_only_kernels_call_has_neither_wrapper_nor_machine_code() -> None:
    root, total = fresh()
    assert total(np.array([4.0, 9.0])) == 5.0
    assert not root.overloads
    [inner] = root.inner.overloads.values()
    library = inner.library
    assert library.get_pointer_to_function(inner.fndesc.llvm_cpython_wrapper_name) == 0
    names = [f.name for f in library.get_defined_functions()]
    assert inner.fndesc.llvm_func_name in names
    assert not any("cpython" in name for name in names)
    [whole] = total.overloads.values()
    sizes = [len(one.library._get_compiled_object()) for one in (inner, whole)]
    assert sizes[0] < 2048 < sizes[1]


def test_python_may_call_it_afterwards() -> None:
    root, total = fresh()
    assert [total(np.array([4.0])), root(9.0), root(16.0), total(np.array([25.0, 1.0]))] == [2.0, 3.0, 4.0, 6.0]
    assert len(root.overloads) == len(root.inner.overloads) == 1
    assert root(np.float32(4.0)) == 2.0  # of other types


def test_what_python_had_compiled_is_shared() -> None:
    root, total = fresh()
    assert root(4.0) == 2.0
    assert total(np.array([4.0])) == 2.0
    assert not root.inner.overloads


def test_errors_come_through_with_what_they_say() -> None:
    root, total = fresh()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"negative.*-2\.0"):
            total(np.array([1.0, -2.0]))
    with pytest.raises(ValueError, match=r"negative.*-3\.0"):
        root(-3.0)


@njit(cache=False)
def act_kernel(x):  # type: ignore[no-untyped-def]
    return x + 1


@inline
def helper_kernel(x):  # type: ignore[no-untyped-def]
    return x * 2


def _twice(x):  # type: ignore[no-untyped-def]
    return x * 2


def _template(x):  # type: ignore[no-untyped-def]
    return helper_kernel(act_kernel(x))


def test_what_a_player_calls_is_compiled_once_for_both() -> None:
    bound = bind(
        _template, "test of what a player calls", act_kernel=act_kernel, helper_kernel=njit(_twice, cache=False)
    )
    assert (bound(3), act_kernel(3)) == (8, 4)
    assert (len(act_kernel.overloads), len(act_kernel.inner.overloads)) == (1, 0)


def test_an_inlined_helper_is_still_a_function() -> None:
    assert (helper_kernel(3), helper_kernel(1.5)) == (6, 3.0)


@njit(cache=False)
def factorial(n):  # type: ignore[no-untyped-def]
    return 1 if n < 2 else n * factorial(n - 1)


def test_a_kernel_that_calls_itself() -> None:
    @njit(cache=False)
    def twice(n):  # type: ignore[no-untyped-def]
        return 2 * factorial(n)

    assert (twice(4), factorial(5)) == (48, 120)


MODULE = """
from banditlab.kernels import njit

@njit
def half(x):
    if x < 0.0:
        raise ValueError("negative", x)
    return 0.5 * x

@njit
def one(x):
    return half(x) + 1.0

@njit
def two(x):
    return half(x) + 2.0
"""

CALLS = """
import sys
import kernels_of_others as k
for name in sys.argv[1:]:
    kernel = getattr(k, name)
    try:
        kernel(-7.0)
        print("no error")
    except ValueError as error:
        assert error.args == ("negative", -7.0), error.args
    print(name, kernel(5.0))
print([sum(d.stats.cache_hits.values()) for d in (k.half, k.half.inner)])
print([sum(d.stats.cache_misses.values()) for d in (k.half, k.half.inner)])
"""


def test_processes_share_what_only_kernels_call(tmp_path: Path) -> None:
    (tmp_path / "kernels_of_others.py").write_text(MODULE)
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *filter(None, [env.get("PYTHONPATH")])])

    def told(*names: str) -> list[str]:
        command = [sys.executable, "-c", CALLS, *names]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split(
            "\n"
        )

    assert told("one")[:-1] == ["one 3.5", "[0, 0]", "[0, 1]"]
    assert told("two")[:-1] == ["two 4.5", "[0, 1]", "[0, 0]"]  # takes in what the first has left
    assert told("one")[:-1] == ["one 3.5", "[0, 0]", "[0, 0]"]  # whole from disk
    assert told("half")[:-1] == ["half 2.5", "[0, 0]", "[1, 0]"]  # Python's own, beside it
    assert told("half", "two")[:-1] == ["half 2.5", "two 4.5", "[1, 0]", "[0, 0]"]
