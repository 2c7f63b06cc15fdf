"""Kernels as plain Python, for a first look at a mutant: a plugin of pytest, loaded where NUMBA_DISABLE_JIT is set.

What compiled code says by instructions (`simd`, addresses, borrowed arrays) is said here by numpy. Sums may be added in
another order than numba's, so recorded runs are compared with what the clean tree computes uncompiled, to the last bit.

First the clean tree plays, each test for SECONDS at most, and the tests that pass are written down with their seconds and
what they recorded (`UNCOMPILED_WRITES`). A mutant is then asked these tests only (`UNCOMPILED_READS`), the quick ones first.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.extending import _Intrinsic

SECONDS, RECORDED, ALTOGETHER = 1.5, 4.0, 25.0
"""What a test or a recorded run may take in the clean tree, and all that is asked at once."""
SLOWER, MORE = 20.0, 30.0
"""A mutant's test that takes so many times as long, and so many seconds more, never ends."""
LANES = np.arange(8)


# ------------------------------------------------------------------------------------------------- what intrinsics return


def _flat(A: Any) -> Any:
    """Return the entries of an array in the order of memory, as a view."""
    return (A if A.flags.c_contiguous else A.T).reshape(-1)


def _put(A: Any, i: int, v: Any) -> None:
    _flat(A)[i : i + 8] = v


def _first(A: Any, i: int, n: int) -> Any:
    v = np.zeros(8)
    v[:n] = _flat(A)[i : i + n]
    return v


def _put_first(A: Any, i: int, v: Any, n: int) -> None:
    _flat(A)[i : i + n] = v[:n]


def _folded(v: Any, choose: Callable[[Any, Any], Any]) -> Any:
    """Return what is left of eight lanes when the lower half meets the upper, three times."""
    for n in (4, 2, 1):
        v = choose(v[:n], v[n : 2 * n])
    return v[0]


def _totals(*rows: Any) -> Any:
    table = np.array(rows)
    for run in (1, 2, 4):
        order = np.array([i for s in range(0, 8, 2 * run) for t in (s, 8 + s) for i in range(t, t + run)])
        pairs = np.concatenate([table[0::2], table[1::2]], axis=1)
        table = pairs[:, order] + pairs[:, order + run]
    return table[0]


def _combined(a: Any, A: Any, i: int, step: int) -> Any:
    terms = [_flat(A)[i + r * step] * row for r, row in enumerate(a)]
    while len(terms) > 1:
        terms = [terms[r] + terms[r + 1] for r in range(0, len(terms), 2)]
    return terms[0]


def _bits(v: Any) -> Any:
    return np.asarray(v, dtype=np.float64).view(np.int64)


def _fma(a: Any, b: Any, c: Any) -> Any:
    """Return a b + c, rounded to 64 bits of mantissa on the way."""
    return (np.asarray(a, dtype=np.longdouble) * b + c).astype(np.float64)[()]


def _matrix_at(kind: Any) -> Callable[[int, int, int], Any]:
    def matrix_at(address: int, rows: int, columns: int) -> Any:
        memory = (kind * int(rows * columns)).from_address(int(address))
        return np.ctypeslib.as_array(memory).reshape(rows, columns)

    return matrix_at


def _next_uniform(function: int, generator: int) -> float:
    return np.float64(ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)(int(function))(int(generator)))


def _member(stacked: Any, i: int) -> Any:
    if isinstance(stacked, np.ndarray):
        return stacked[i]
    return type(stacked)(*(_member(field, i) for field in stacked))


def _read_only(array: Any) -> Any:
    seen = array.view()
    seen.flags.writeable = False
    return seen


PLAIN: dict[str, Callable[..., Any]] = {
    "simd.eight": lambda A, i: _flat(A)[i : i + 8].astype(np.float64),
    "simd.put": _put,
    "simd.first": _first,
    "simd.put_first": _put_first,
    "simd.only": lambda v, n, rest: np.where(n > LANES, v, rest),
    "simd.unless_below": lambda v, w, u: np.where(v < w, 0.0, u),
    "simd.lane": lambda v: v[0],
    "simd.second": lambda v: v[1],
    "simd.pair": lambda x, y: np.array([x, y] + [x] * 6),
    "simd.how_many": lambda v, x: int(np.count_nonzero(v == x)),
    "simd.how_many_below": lambda v, x: int(np.count_nonzero(v < x)),
    "simd.all_lanes": lambda x: np.full(8, x, dtype=np.float64),
    "simd.total": lambda v: _folded(v, lambda low, high: low + high),
    "simd.totals": _totals,
    "simd.totals_as_total": lambda *rows: np.array([PLAIN["simd.total"](row) for row in rows]),
    "simd.plus_outer": lambda a, A, i, v: tuple(row + _flat(A)[i + r] * v for r, row in enumerate(a)),
    "simd.combined": _combined,
    "simd.smaller": lambda v, w: np.where(v < w, v, w),
    "simd.larger": lambda v, w: np.where(v > w, v, w),
    "simd.any_above": lambda v, w: bool(np.any(v > w)),
    "simd.power_of_two": lambda v: ((_bits(v) << 52) + (1023 << 52)).view(np.float64),
    "simd.fma": _fma,
    "jit.borrow": lambda arrays: arrays,
    "jit.read_only": _read_only,
    "jit.stand_alone": lambda: None,
    "rounds.no_prefetch": lambda state, X, t: None,
    "stacked_states.member": _member,
    "forest._floats_at": _matrix_at(ctypes.c_double),
    "forest._integers_at": _matrix_at(ctypes.c_int64),
    "forest._next": _next_uniform,
}
"""What an intrinsic does, by the module it stands in and its name there."""


def _called(intrinsic: Any, *args: Any) -> Any:
    """Call an intrinsic from Python: what `PLAIN` has for it, looked up once."""
    plain = intrinsic.__dict__.get("_plain")
    if plain is None:
        module = sys.modules[intrinsic._defn.__module__]
        name = next(name for name, value in vars(module).items() if value is intrinsic)
        plain = intrinsic.__dict__["_plain"] = PLAIN[f"{module.__name__.rpartition('.')[2]}.{name}"]
    return plain(*args)


def _like_c(function: Callable[..., float], error: type[Exception], instead: Callable[..., float]) -> Any:
    """Return a function of `math` that says infinity or NaN where Python raises and compiled code does not."""

    def lenient(*args: Any) -> Any:
        try:
            return np.float64(function(*args))
        except error:
            return np.float64(instead(*args))

    return lenient


if numba.config.DISABLE_JIT:
    _Intrinsic.__call__ = _called
    math.exp = _like_c(math.exp, OverflowError, lambda z: math.inf)
    math.expm1 = _like_c(math.expm1, OverflowError, lambda z: math.inf)
    math.log = _like_c(math.log, ValueError, lambda z: -math.inf if z == 0.0 else math.nan)
    math.log1p = _like_c(math.log1p, ValueError, lambda z: -math.inf if z == -1.0 else math.nan)
    math.sqrt = _like_c(math.sqrt, ValueError, lambda z: math.nan)


# ------------------------------------------------------------------------------------------------------- what is asked


class Late(BaseException):
    """A test that does not end."""


RECORD = "test_recorded_runs.py::test_to_the_last_bit["
OTHER_RECORD = "test_recorded_runs.py::"


@cache
def known() -> dict[str, Any]:
    """Return the tests that pass uncompiled in the clean tree: seconds, and rows of what was recorded; {} at first."""
    files = filter(None, os.environ.get("UNCOMPILED_READS", "").split(os.pathsep))
    lines = [json.loads(line) for file in files for line in Path(file).read_text("utf-8").splitlines()]
    return {line["test"]: line for line in lines}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what is asked: of recorded runs the whole ones, of a mutant's what the clean tree passes, quick ones first."""
    found = known()
    for item in items:
        if RECORD in item.nodeid:
            _record_uncompiled(item, found)
    kept = [item for item in items if RECORD in item.nodeid or OTHER_RECORD not in item.nodeid]
    if "UNCOMPILED_READS" in os.environ:
        # A recorded run sees most: it is worth five tests of its length.
        kept = [item for item in kept if item.nodeid in found]
        kept.sort(key=lambda item: found[item.nodeid]["seconds"] * (0.2 if RECORD in item.nodeid else 1.0))
        total, asked = 0.0, []
        for item in kept:
            total += found[item.nodeid]["seconds"]
            if total <= ALTOGETHER:
                asked.append(item)
        kept = asked
    left_out = [item for item in items if item not in set(kept)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def _record_uncompiled(item: Any, found: dict[str, Any]) -> None:
    """Have a recorded run compared with the clean tree's rows, which the clean tree itself writes now."""
    module = item.module
    module.recording.machine_id = lambda: "uncompiled"
    for row in found.get(item.nodeid, {}).get("rows", []):
        module.ROWS[row["name"]] = module.recording.Row(**row)


BEGAN = time.monotonic()


def pytest_runtest_setup(item: Any) -> None:
    """Leave out what is left of a file that takes long in the clean tree."""
    if "UNCOMPILED_READS" not in os.environ and time.monotonic() - BEGAN > 2.0 * ALTOGETHER:
        pytest.skip("enough tests")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    """Time a test, stop one that does not end, and write down what passes in the clean tree."""
    found = known().get(item.nodeid) if "UNCOMPILED_READS" in os.environ else None
    most = SLOWER * found["seconds"] + MORE if found else RECORDED if RECORD in item.nodeid else SECONDS
    began = time.monotonic()
    rows: list[Any] = []

    def late(*_: Any) -> None:
        raise Late(f"not in {most:.0f} s")

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, most)
    try:
        if found is None and RECORD in item.nodeid:
            rows = _rows_now(item)
        outcome = yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    if outcome.excinfo is None and "UNCOMPILED_WRITES" in os.environ:
        with Path(os.environ["UNCOMPILED_WRITES"]).open("a", encoding="utf-8") as file:
            line = {"test": item.nodeid, "seconds": time.monotonic() - began, "rows": rows}
            file.write(json.dumps(line) + "\n")


def _rows_now(item: Any) -> list[Any]:
    """Return a recorded run's rows as computed here, and have the test compare with them."""
    name = item.callspec.params["name"]
    try:
        rows = item.module.found(name)
    except (Exception, Late):
        return []  # the test says it again
    item.module.ROWS.update(rows)
    return [asdict(row) for row in rows.values()]
