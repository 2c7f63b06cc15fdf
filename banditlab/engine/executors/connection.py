"""The connection to a Dask cluster: an address, a scheduler file, workers started here, or an existing client."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
from distributed import Client, LocalCluster

from banditlab.children import SAFE_PATH, safe_start
from banditlab.errors import ClusterError, UsageError

LOCAL = {
    # Dask's default, which samples a worker's stack 100 times per second, is of no use, because workers only wait for
    # processes.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.worker.memory.monitor-interval": "1s",
    f"distributed.nanny.pre-spawn-environ.{SAFE_PATH}": "1",
}
"""Dask's configuration for workers started here, including replacements of workers that ended."""
LOUD = ("distributed", "tornado", "asyncio")
CLOSE = 5.0
"""Time limit in seconds for disconnecting from a cluster."""


@contextlib.contextmanager
def connected(where: Any, seconds: float) -> Iterator[Any]:
    """Connect to a cluster within `seconds`, and disconnect at the end; a client passed by the caller stays open.

    Raises
    ------
    UsageError
        `where` is not an address, a scheduler file, `local:N`, a Client or a Dask cluster.
    ClusterError
        No scheduler responds there.
    """
    if isinstance(where, Client):
        yield where
        return
    with _quiet(), contextlib.ExitStack() as opened:
        options = _address(where)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # workers with other versions are rejected
                if "local" in options:
                    options = {"address": _local(options["local"])}
                    opened.callback(_close, options["address"])
                client = Client(**options, timeout=seconds, set_as_default=False)
        except (OSError, ValueError, TypeError, RuntimeError, ImportError) as error:
            line = " ".join(str(error).split())[:300] or type(error).__name__
            raise ClusterError(f"{where}: no scheduler responds there ({line})") from None
        opened.callback(_close, client)
        yield client


def _close(opened: Any) -> None:
    with contextlib.suppress(Exception):  # the cluster may be gone
        opened.close(timeout=CLOSE)


def _local(workers: int) -> Any:
    with dask.config.set(LOCAL), safe_start():
        return LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, memory_limit=0
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Turn off the logs of Dask, because this package reports errors in one line.

    The logs stay off after an error, because further errors of Dask's own tasks have the same cause.
    """
    names = [name for name in ["distributed", *logging.root.manager.loggerDict] if name.partition(".")[0] in LOUD]
    levels = {name: logging.getLogger(name).level for name in names}
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def _address(where: Any) -> dict[str, Any]:
    """Return a cluster's address as keyword arguments for `Client`, or {"local": number of workers}."""
    if not isinstance(where, str | os.PathLike):
        if not hasattr(where, "scheduler_address"):
            raise UsageError(f"cluster must be an address, a Client or a Dask cluster, got a {type(where).__name__}")
        return {"address": where}
    text = os.fspath(where)
    kind, _, number = text.partition(":")
    if kind == "local" and (number.isdecimal() and int(number) > 0):
        return {"local": int(number)}
    if text.startswith(("tcp://", "tls://", "ucx://", "ws://", "wss://")):
        return {"address": text}
    if Path(text).is_file():
        return {"scheduler_file": text}
    raise UsageError(f"--cluster {text}: must be tcp://HOST:PORT, tls://HOST:PORT, a scheduler file, or local:N")
