"""Where a sweep stands, for whoever watches it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from banditlab.engine.executors.executor import State
from banditlab.engine.tasks import COMPARATOR_SECONDS


@dataclass
class Progress:
    """Where a sweep stands; handed to the watcher before every player that is compiled and after every task."""

    runs: int
    """Runs to be played."""
    streams: int
    """Streams whose comparators are to be computed."""
    runs_done: int = 0
    """Runs played so far, failed ones included."""
    streams_done: int = 0
    """Streams whose comparators are there."""
    rounds_done: int = 0
    """Rounds of the runs played so far."""
    failed: int = 0
    """Runs that failed."""
    stage: str = "compiling or loading kernels"
    """What is being done, for the user's eyes."""
    jobs: int = 1
    """Worker processes."""
    run_cost: float = 0.0
    """Estimated core-seconds of all runs."""
    run_cost_done: float = 0.0
    """Estimated core-seconds of the runs that are done."""
    run_seconds: float = 0.0
    """Core-seconds that the runs that are done took."""
    stream_seconds: float = 0.0
    """Core-seconds that the comparators that are done took."""
    began: float = field(default_factory=time.perf_counter)
    """When the sweep began, on `time.perf_counter`."""
    playing_since: float | None = None
    """When the first task began; None while kernels are compiled."""
    cluster: State | None = None
    """Where a cluster stands, None on this machine."""
    notices: list[str] = field(default_factory=list)
    """Lines for the user that came up so far."""

    @property
    def rounds_per_second(self) -> float:
        """Rounds a second since the first task began."""
        return 0.0 if self.playing_since is None else self.rounds_done / (time.perf_counter() - self.playing_since)

    @property
    def seconds(self) -> float:
        """Seconds since the sweep began."""
        return time.perf_counter() - self.began

    @property
    def seconds_ahead(self) -> float | None:
        """Estimated seconds to go, runs and comparators each by what those that are done took.

        None as long as next to nothing is done, and so throughout compiling, which no run's time says anything about.
        """
        if self.playing_since is None:
            return None
        run = self.run_seconds / self.run_cost_done if self.run_cost_done else 1.0
        stream = self.stream_seconds / self.streams_done if self.streams_done else COMPARATOR_SECONDS
        if self.cluster is not None and self.run_cost_done > 0.02 * self.run_cost and not self.streams:
            # Of a cluster whose workers come and go the wall clock says more than what runs took.
            return (time.perf_counter() - self.playing_since) * (self.run_cost / self.run_cost_done - 1)
        ahead = run * (self.run_cost - self.run_cost_done) + stream * (self.streams - self.streams_done)
        return None if self.run_seconds + self.stream_seconds < 0.05 * ahead else ahead / self.jobs
