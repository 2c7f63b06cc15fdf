"""The progress of a sweep, for watchers."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from banditlab.engine.schedule import TASK_SECONDS, Kind

TABLES_SECONDS = 2e-4
"""Seconds per run for writing the tables at the end."""


@dataclass
class ClusterState:
    """The state of a cluster."""

    workers: int
    """Workers that answer."""
    in_flight: int
    """Tasks without a result yet."""


@dataclass
class Progress:
    """The progress of a sweep, which is passed to the watcher after every task."""

    runs: int
    """Runs to be played."""
    streams: int
    """Streams whose comparators are to be computed."""
    runs_done: int = 0
    """Runs played so far, failed ones included."""
    streams_done: int = 0
    """Streams whose comparators are computed."""
    rounds_done: int = 0
    """Rounds of the runs played so far."""
    failed: int = 0
    """Runs that failed."""
    stage: str = "compiling or loading kernels"
    """The current activity, as text for the user."""
    jobs: int = 1
    """Worker processes."""
    kinds: dict[str, Kind] = field(default_factory=dict)
    """Runs and comparators by kind."""
    began: float = field(default_factory=time.perf_counter)
    """When the sweep began, on `time.perf_counter`."""
    playing_since: float | None = None
    """When the first task was finished; None before."""
    measured_since: tuple[float, float] | None = None
    """When all kernels were compiled, and the core-seconds until then; None before."""
    cluster: ClusterState | None = None
    """The cluster's state, None on this machine."""
    notices: list[str] = field(default_factory=list)
    """Lines for the user so far."""

    @property
    def rounds_per_second(self) -> float:
        """Rounds per second since the first task finished, over at least one second."""
        if self.playing_since is None:
            return 0.0
        return self.rounds_done / max(1.0, time.perf_counter() - self.playing_since)

    @property
    def seconds(self) -> float:
        """Seconds since the sweep began."""
        return time.perf_counter() - self.began

    @property
    def core_seconds(self) -> float:
        """Core-seconds of the finished runs and comparators."""
        return sum(kind.seconds for kind in self.kinds.values())

    @property
    def seconds_ahead(self) -> float | None:
        """Estimated remaining seconds, including tables.

        Each kind counts with the mean of its finished runs, or with its prior estimate times the other kinds' ratio of
        measured to estimated seconds. The sum is scaled by the wall time per core-second so far, at least one core's
        share.

        The result is None until 5 % is done, and therefore while kernels are compiled.
        """
        if self.playing_since is None:
            return None
        done, ahead = self.core_seconds, self._core_seconds_ahead()
        if done < 0.05 * ahead:
            return None
        # Tasks in progress are half done on average; one is as long as the longest run that is still to be played.
        longest = max((kind.mean for kind in self.kinds.values() if kind.done < kind.runs), default=0.0)
        under_way = 0.5 * min(self.jobs * max(TASK_SECONDS, longest), ahead)
        share = 1.0 / self.jobs
        if self.measured_since is not None and (counted := done - self.measured_since[1]) > 0:
            share = max(share, (time.perf_counter() - self.measured_since[0]) / (counted + under_way))
        return share * (ahead - under_way) + TABLES_SECONDS * self.runs

    def _core_seconds_ahead(self) -> float:
        known = [kind for kind in self.kinds.values() if kind.done]
        guessed = sum(kind.guess * kind.done for kind in known)
        factor = sum(kind.seconds for kind in known) / guessed if guessed else 1.0
        return sum(
            (kind.runs - kind.done) * (kind.mean if kind.done else factor * kind.guess) for kind in self.kinds.values()
        )

    def set_stage(self) -> None:
        """Set the stage; kernels count as being compiled until every player has finished a run."""
        untried = dict.fromkeys(kind.label for kind in self.kinds.values() if kind.label and not kind.done)
        self.stage = f"compiling or loading {', '.join(untried)}" if untried else "playing"
        if self.playing_since is None and (self.runs_done or self.streams_done):
            self.playing_since = time.perf_counter()
        if self.measured_since is None and not untried:
            self.measured_since = time.perf_counter(), self.core_seconds
