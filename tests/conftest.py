"""One thread and fixed examples for every test: the same numbers on every machine, loaded or not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Hold BLAS to one thread, as the engine does."""
    with threadpool_limits(limits=1):
        yield
