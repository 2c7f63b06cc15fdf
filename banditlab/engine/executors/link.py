"""The connection to a Dask scheduler: asked with a limit in time, made again where a scheduler came back."""

from __future__ import annotations

import contextlib
import logging
import os
import time
import warnings
from pathlib import Path
from typing import Any

from banditlab.children import SAFE_PATH, safe_start
from banditlab.distributions import refuse_without
from banditlab.errors import ClusterError, UsageError

ANSWER = 10.0
"""Seconds the scheduler has for an answer before it counts as silent, for this time."""
CONNECT = 30.0
"""Seconds in which a scheduler must take the connection, or take it up again before another is made."""
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.worker.memory.monitor-interval": "1s",
}
"""For workers started here: Dask looks a hundred times a second at what a worker does, which is to wait for other processes."""
ON_START = {f"distributed.nanny.pre-spawn-environ.{SAFE_PATH}": "1"}
"""For workers started here, and those that take the place of one that ended."""
LOUD = ("distributed", "tornado", "asyncio")


class Link:
    """The connection to a scheduler: made, asked with a limit in time, made again where a scheduler came back."""

    def __init__(self, where: Any, patience: float) -> None:
        refuse_without("--cluster", "distributed")
        import distributed

        self.where = where
        self.local: Any = None
        self.levels: dict[str, int] = {}  # of the loggers that are quiet meanwhile
        self.own = not isinstance(where, distributed.Client)
        self.client: Any = None
        try:
            self.client = self._connected(min(patience, CONNECT)) if self.own else where
        except BaseException:
            self.close()  # the log says again what it said before, and workers that were started here end
            raise
        self.name = where if isinstance(where, str) else self.client.scheduler.address

    def _connected(self, seconds: float) -> Any:
        import dask
        from distributed import Client, LocalCluster

        self._hush()
        options = _address(self.where)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # differences between versions are said by this package, too
                if "local" in options:
                    with dask.config.set(QUIET | ON_START), safe_start():
                        self.local = LocalCluster(
                            n_workers=options["local"],
                            threads_per_worker=1,
                            host="127.0.0.1",
                            dashboard_address=None,
                            memory_limit=0,
                        )
                    options = {"address": self.local}
                return Client(**options, timeout=seconds, set_as_default=False)
        except (OSError, ValueError, TypeError, RuntimeError, ImportError) as error:
            line = " ".join(str(error).split())[:300]
            raise ClusterError(f"{self.where}: no scheduler answers there ({line})") from None

    def _hush(self) -> None:
        """Keep Dask's own log quiet until the end: what there is to say is said by this package, in a line."""
        for name in ["distributed", *logging.root.manager.loggerDict]:
            if name.partition(".")[0] in LOUD and name not in self.levels:
                logger = logging.getLogger(name)
                self.levels[name] = logger.level
                logger.setLevel(logging.CRITICAL + 1)

    def restored(self) -> Any:
        """Return the client: a new one where the old one has given up, and it is ours."""
        if self.client.status == "closed" and self.own and self.local is None:
            with contextlib.suppress(ClusterError, UsageError):  # a scheduler that ends takes its file with it
                self.client = self._connected(ANSWER)
        return self.client

    def ask(self, question: str) -> Any:
        """Return what the scheduler answers, None where it does not in time."""
        if self.client.status != "running":
            return None
        try:
            asked = getattr(self.client.scheduler, question)
            return self.client.sync(asked, callback_timeout=ANSWER)
        except Exception:
            return None

    def run(self, function: Any, *arguments: Any, workers: list[str], seconds: float) -> dict[str, Any]:
        """Return what a function returns or raises in these workers; those that do not answer in time are left out."""
        if not workers or self.client.status != "running":
            return {}
        try:
            # Client.run has no limit in time.
            call = self.client._run
            return dict(
                self.client.sync(
                    call, function, *arguments, workers=workers, on_error="return", callback_timeout=seconds
                )
            )
        except Exception:
            if len(workers) == 1:
                return {}
        found: dict[str, Any] = {}
        until = time.monotonic() + seconds
        for one in workers:  # who of them is silent
            if time.monotonic() < until:
                found |= self.run(function, *arguments, workers=[one], seconds=min(seconds, ANSWER))
        return found

    def dashboard(self) -> str:
        """Return the address of Dask's own page, "" where there is none."""
        found = self.ask("identity")
        return str(self.client.dashboard_link) if found and "dashboard" in found["services"] else ""

    def close(self) -> None:
        """Leave."""
        if not self.own:
            return
        for each in (self.client, self.local):
            with contextlib.suppress(Exception):
                if each is not None:
                    each.close(timeout=5)
        for name, level in self.levels.items():
            logging.getLogger(name).setLevel(level)


def _address(where: Any) -> dict[str, Any]:
    """Return how to reach a cluster, as keyword arguments of `Client`, or {"local": N}."""
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
