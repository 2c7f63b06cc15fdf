"""One thread and fixed examples for every test: the same numbers on every machine, loaded or not."""

from __future__ import annotations

import gc
import re
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


def pytest_collection_finish() -> None:
    """Take what was imported out of the garbage collector's rounds: a tenth of the tests' time, numba makes many objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


FAMILIES = {
    "obama": "obama",
    "newtron": "newtron",
    "inverse gap": "fastcb|squarecb",
    "ridge": "confidit|linucb|lints|ridge",
    "gaf": "gaf",
    "grid": "b-grid|test_grid",
    "ons": "[^a-z]ons[^a-z]",
    "folklore": "folklore",
}
"""Players whose kernels take long to compile, as their tests are called."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep a file's tests in one worker (`--dist loadgroup`), and a slow family's from all files of players in one.

    Workers share what they compiled, but what two of them need at the same moment both compile. Other files stay whole:
    their fixtures, some of which play sweeps, are made once.
    """
    for item in items:
        of_players = item.path.parent.name in ("agents", "forecasters", "checks")
        found = [family for family, names in FAMILIES.items() if of_players and re.search(names, item.nodeid)]
        item.add_marker(pytest.mark.xdist_group(found[0] if found else item.nodeid.split("::")[0]))
