"""One thread a task: numba's and BLAS's pools are held to it while a task is done."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Do what is inside with one thread."""
    import numba
    from threadpoolctl import threadpool_limits

    numba.set_num_threads(1)
    with threadpool_limits(limits=1):
        yield
