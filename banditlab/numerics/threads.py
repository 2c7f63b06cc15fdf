"""Limits on the thread pools of numba and BLAS, so a task runs with one thread."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Run the block with one thread."""
    import numba
    from threadpoolctl import threadpool_limits

    numba.set_num_threads(1)
    with threadpool_limits(limits=1):
        yield
