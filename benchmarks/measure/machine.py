"""The machine: its facts, and the best rates measured on one of its cores, from which the floors are computed.

Every rate is the best of what was tried (the processor's BLAS as the kernels call it, and plain compiled loops), each the
fastest of several CPU-timed repetitions: a floor is no average. Rates depend on the size, so each is a curve over sizes,
interpolated between them on logarithmic axes.
"""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.numerics.jit import njit
from banditlab.numerics.simd_math import exponentials as exponentials_of
from banditlab.numerics.vectors import matrix, scores

Floats = NDArray[np.float64]

REPEATS = 5
SECONDS = 0.004
"""CPU time of one repetition, at least."""
STREAMED = tuple(2**p for p in (10, 12, 14, 15, 17, 19, 20, 22, 24, 26, 28))
"""Bytes over which bandwidth and the rate of streaming operations are measured."""
INNER = 6
"""An n x n product is tried as n x n times n x n and as n x 6n times 6n x n: sums of products come so."""
PRODUCTS = (8, 16, 32, 64, 128, 256, 512)
SQUARES = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)


class Curve(NamedTuple):
    """A rate measured at increasing sizes; between them it is interpolated, beyond them the nearest one holds."""

    sizes: tuple[float, ...]
    rates: tuple[float, ...]

    def at(self, size: float) -> float:
        """Return the rate at a size."""
        place = np.log(max(size, 1.0))
        return float(np.exp(np.interp(place, np.log(self.sizes), np.log(self.rates))))

    def best(self, other: Curve) -> Curve:
        """Return the better of two measurements of the same curve."""
        return Curve(self.sizes, tuple(map(max, self.rates, other.rates)))


class Rates(NamedTuple):
    """What one core does at best: operations and bytes a nanosecond.

    gemm: matrix-matrix, multiplications and additions, where the product is n x n (size n). gemv: matrix-vector, by the
    number of entries of the matrix. stream: y += a x, by the bytes of x and y. bytes: bandwidth, by the bytes that are gone
    through again and again. exp, root, quotient: exponentials, x / sqrt(x) and 1 / x of many
    numbers.
    """

    gemm: Curve
    gemv: Curve
    stream: Curve
    bytes: Curve
    exp: Curve
    root: Curve
    quotient: Curve

    def best(self, other: Rates) -> Rates:
        """Return the better of two measurements."""
        return Rates(*(one.best(two) for one, two in zip(self, other, strict=True)))


# ------------------------------------------------------------------------------------------------------ what is measured


@njit
def product(A, B, C, n):  # type: ignore[no-untyped-def]
    """C = A B, n times, by the BLAS that kernels call."""
    for _ in range(n):
        np.dot(A, B, C)


@njit
def columns(A, x, z, n):  # type: ignore[no-untyped-def]
    """z = A'x, n times, eight rows of A at a time."""
    d, K = A.shape
    for _ in range(n):
        z[:] = 0.0
        whole = d - d % 8
        for j in range(0, whole, 8):
            x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
            x4, x5, x6, x7 = x[j + 4], x[j + 5], x[j + 6], x[j + 7]
            for k in range(K):
                low = (A[j, k] * x0 + A[j + 1, k] * x1) + (A[j + 2, k] * x2 + A[j + 3, k] * x3)
                high = (A[j + 4, k] * x4 + A[j + 5, k] * x5) + (A[j + 6, k] * x6 + A[j + 7, k] * x7)
                z[k] += low + high
        for j in range(whole, d):
            for k in range(K):
                z[k] += A[j, k] * x[j]


@njit
def scored(W, x, z, n):  # type: ignore[no-untyped-def]
    """z = W x, n times, as first-order agents do."""
    for _ in range(n):
        scores(W, x, z)


@njit
def axpy(a, x, y, n):  # type: ignore[no-untyped-def]
    """y += a x, n times."""
    for _ in range(n):
        for j in range(x.shape[0]):
            y[j] += a * x[j]


@njit
def read(x, y, n):  # type: ignore[no-untyped-def]
    """x'y, n times, by BLAS: the bytes of x and y are read."""
    total = 0.0
    for _ in range(n):
        total += np.dot(x, y)
    return total


@njit
def exponentials(x, y, n):  # type: ignore[no-untyped-def]
    """y = exp(x), n times."""
    for _ in range(n):
        for j in range(x.shape[0]):
            y[j] = math.exp(x[j])


@njit
def roots(x, y, n):  # type: ignore[no-untyped-def]
    """y = x / sqrt(x), n times."""
    for _ in range(n):
        for j in range(x.shape[0]):
            y[j] = x[j] / math.sqrt(x[j])


@njit
def quotients(x, y, n):  # type: ignore[no-untyped-def]
    """y = 1 / x, n times."""
    for _ in range(n):
        for j in range(x.shape[0]):
            y[j] = 1.0 / x[j]


@njit
def exponentials_by_eight(x, y, n):  # type: ignore[no-untyped-def]
    """y = exp(x - 2), n times, x <= 2, as kernels do: eight at a time."""
    for _ in range(n):
        exponentials_of(x, 1.0, 2.0, x.shape[0], y)


def fastest(work: Callable[[int], Any], seconds: float = SECONDS) -> float:
    """Return the nanoseconds of one turn of `work(turns)`: the fastest of REPEATS repetitions."""
    work(1)
    turns, spent = 1, 0.0
    while True:
        start = time.process_time_ns()
        work(turns)
        spent = time.process_time_ns() - start
        if spent > 1e9 * seconds / 4.0:
            break
        turns *= 4
    times = []
    for _ in range(REPEATS):
        start = time.process_time_ns()
        work(turns)
        times.append((time.process_time_ns() - start) / turns)
    return min(times)


def measure(seconds: float = SECONDS) -> Rates:
    """Measure every rate: some seconds of CPU time."""
    return Rates(
        Curve(PRODUCTS, tuple(_product_rate(n, seconds) for n in PRODUCTS)),
        Curve(tuple(n * n for n in SQUARES), tuple(_vector_rate(n, seconds) for n in SQUARES)),
        Curve(STREAMED, tuple(_stream_rate(size, seconds)[0] for size in STREAMED)),
        Curve(STREAMED, tuple(_stream_rate(size, seconds)[1] for size in STREAMED)),
        Curve((1.0,), (_element_rate((exponentials, exponentials_by_eight), seconds),)),
        Curve((1.0,), (_element_rate((roots,), seconds),)),
        Curve((1.0,), (_element_rate((quotients,), seconds),)),
    )


def _product_rate(n: int, seconds: float) -> float:
    rng = np.random.default_rng(0)
    A, C = rng.standard_normal((n, n)), np.empty((n, n))
    long, tall = rng.standard_normal((n, INNER * n)), rng.standard_normal((INNER * n, n))
    square = fastest(lambda turns: product(A, A, C, turns), seconds)
    deep = fastest(lambda turns: product(long, tall, C, turns), seconds) / INNER
    return 2.0 * n**3 / min(square, deep)


def _vector_rate(n: int, seconds: float) -> float:
    rng = np.random.default_rng(0)
    A, x, z = rng.standard_normal((n, n)), rng.standard_normal(n), np.empty(n)
    blas = fastest(lambda turns: product(A, x, z, turns), seconds)
    loop = fastest(lambda turns: columns(A, x, z, turns), seconds)
    W = matrix(n, n)
    W[:] = A
    rows = fastest(lambda turns: scored(W, x, z, turns), seconds)
    return 2.0 * n * n / min(blas, loop, rows)


def _aligned(n: int) -> Floats:
    """Return n numbers that begin with a cache line: elsewhere y += a x took up to twice as long."""
    room = np.empty(n + 7)
    start = -room.ctypes.data // 8 % 8
    return room[start : start + n]


def _stream_rate(size: int, seconds: float) -> tuple[float, float]:
    """Return operations and bytes a nanosecond of going through `size` bytes again and again."""
    n = size // 16
    x, y = _aligned(n), _aligned(n)
    x[:], y[:] = 1e-300, 0.0
    added = fastest(lambda turns: axpy(1e-3, x, y, turns), seconds)
    summed = fastest(lambda turns: read(x, y, turns), seconds)
    return 2.0 * n / added, max(16.0 * n / summed, 24.0 * n / added)


def _element_rate(kernels: tuple[Any, ...], seconds: float) -> float:
    """Return elements a nanosecond of the fastest kernel."""
    x, y = _aligned(512), _aligned(512)
    x[:] = np.linspace(0.5, 2.0, 512)
    return 512.0 / min(fastest(partial(kernel, x, y), seconds) for kernel in kernels)


# ----------------------------------------------------------------------------------------------------------------- facts


def caches() -> list[tuple[str, int]]:
    """Return (name, bytes) of the core's data caches, smallest first; empty where the system does not say."""
    found = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind, level, size = ((folder / name).read_text().strip() for name in ("type", "level", "size"))
        except OSError:
            continue
        if kind != "Instruction" and size.endswith("K"):
            found[f"L{level}"] = int(size[:-1]) * 1024
    return sorted(found.items(), key=lambda item: item[1])


def level(size: float) -> str:
    """Return the name of the smallest cache that holds so many bytes, or "memory"."""
    return next((name for name, room in caches() if size <= room), "memory")


def facts() -> dict[str, str]:
    """Return what a reader needs to compare machines."""
    import llvmlite  # type: ignore[import-untyped]
    import numba
    from threadpoolctl import threadpool_info

    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    blas = {f"{pool['internal_api']} {pool['version']} ({pool.get('architecture')})" for pool in threadpool_info()}
    return {
        "processor": f"{names[0] if names else platform.processor()}, {os.cpu_count()} cores",
        "caches": ", ".join(f"{name} {size // 1024:,} KiB" for name, size in caches()) or "not told",
        "memory": f"{total_memory() / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "libraries": f"numpy {np.__version__}, numba {numba.__version__}, llvmlite {llvmlite.__version__}",
        "BLAS": ", ".join(sorted(blas)),
        "threads": "1 (BLAS and numba)",
    }


def total_memory() -> int:
    """Return the machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
