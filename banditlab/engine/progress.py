"""The progress of a sweep, as passed to watchers."""

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
    """Number of responding workers."""
    in_flight: int
    """Number of tasks without a result so far."""


@dataclass
class Progress:
    """The progress of a sweep, which is passed to the watcher after every task."""

    runs: int
    """Number of runs to execute."""
    streams: int
    """Number of streams whose comparators are missing at the start."""
    runs_done: int = 0
    """Number of runs executed so far, including failed ones."""
    streams_done: int = 0
    """Number of streams whose comparators have been computed."""
    rounds_done: int = 0
    """Number of rounds of the runs executed so far."""
    failed: int = 0
    """Number of failed runs."""
    stage: str = "compiling or loading kernels"
    """The current activity, as text for the user."""
    jobs: int = 1
    """Worker processes."""
    kinds: dict[str, Kind] = field(default_factory=dict)
    """The kinds of runs and comparators, by key."""
    began: float = field(default_factory=time.perf_counter)
    """When the sweep began, by `time.perf_counter`."""
    playing_since: float | None = None
    """When the first task was finished; None before."""
    measured_since: tuple[float, float] | None = None
    """When all kernels were compiled, and the core-seconds until then; None before."""
    cluster: ClusterState | None = None
    """The cluster's state, or None without a cluster."""
    notices: list[str] = field(default_factory=list)
    """Messages for the user so far, one line each."""

    @property
    def rounds_per_second(self) -> float:
        """Rounds per second since the first task finished; less than one second counts as one."""
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
        """Estimated remaining seconds, including the writing of tables.

        A remaining run is expected to take the mean time of the finished runs of its kind. If its kind has none, the
        prior estimate is used, times the ratio of measured to estimated seconds of the other kinds. The sum, in
        core-seconds, is multiplied by the wall time per core-second so far, or by 1 / `jobs` if that is larger.

        The result is None until 5 % of the work is done.
        """
        if self.playing_since is None:
            return None
        done, ahead = self.core_seconds, self._core_seconds_ahead()
        if done < 0.05 * ahead:
            return None
        # Tasks in progress are half done on average, and take as long as the longest remaining run.
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
        self.stage = f"compiling or loading {', '.join(untried)}" if untried else "running"
        if self.playing_since is None and (self.runs_done or self.streams_done):
            self.playing_since = time.perf_counter()
        if self.measured_since is None and not untried:
            self.measured_since = time.perf_counter(), self.core_seconds
