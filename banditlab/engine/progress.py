"""Where a sweep stands, for whoever watches it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from banditlab.engine.executors.executor import State
from banditlab.engine.tasks import COMPARATOR_SECONDS, TASK_SECONDS

TABLES_SECONDS = 2e-4
"""What a run takes at the end, when the tables are written."""


@dataclass
class Kind:
    """Runs that take about the same time (see `warming.kind_of_run`)."""

    cost: float
    """Estimated seconds of one."""
    runs: int
    done: int = 0
    seconds: float = 0.0
    """Core-seconds that those that are done took."""

    @property
    def mean(self) -> float:
        """Core-seconds that one takes: those that are done on average, as estimated before."""
        return self.seconds / self.done if self.done else self.cost


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
    kinds: dict[str, Kind] = field(default_factory=dict)
    """The runs by kind."""
    stream_seconds: float = 0.0
    """Core-seconds that the comparators that are done took."""
    began: float = field(default_factory=time.perf_counter)
    """When the sweep began, on `time.perf_counter`."""
    playing_since: float | None = None
    """When the first task began; None while kernels are compiled."""
    settled: tuple[float, float] | None = None
    """When all kernels were compiled, and the core-seconds that were done then; None before."""
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
    def core_seconds(self) -> float:
        """Core-seconds that the runs and the comparators that are done took."""
        return sum(kind.seconds for kind in self.kinds.values()) + self.stream_seconds

    @property
    def seconds_ahead(self) -> float | None:
        """Estimated seconds to go, tables included.

        Runs of a kind and comparators each by what those that are done took, a kind of which none is done by its estimate,
        which the others correct; all of it by the seconds that pass for a core-second, where that is more than one core's
        share: tasks are sent, workers come and go, the machine has other things to do.

        None as long as next to nothing is done, and so throughout compiling, which no run's time says anything about.
        """
        if self.playing_since is None:
            return None
        done, ahead = self.core_seconds, self._core_seconds_ahead()
        if done < 0.05 * ahead:
            return None
        # Tasks in work are half done on average; one is as long as a run of a kind that is still to be played.
        longest = max((kind.mean for kind in self.kinds.values() if kind.done < kind.runs), default=0.0)
        under_way = 0.5 * min(self.jobs * max(TASK_SECONDS, longest), ahead)
        share = 1.0 / self.jobs
        if self.settled is not None and (counted := done - self.settled[1]) > 0:
            share = max(share, (time.perf_counter() - self.settled[0]) / (counted + under_way))
        return share * (ahead - under_way) + TABLES_SECONDS * self.runs

    def _core_seconds_ahead(self) -> float:
        known = [kind for kind in self.kinds.values() if kind.done]
        told = sum(kind.cost * kind.done for kind in known)
        factor = sum(kind.seconds for kind in known) / told if told else 1.0
        runs = sum(
            (kind.runs - kind.done) * (kind.seconds / kind.done if kind.done else factor * kind.cost)
            for kind in self.kinds.values()
        )
        stream = self.stream_seconds / self.streams_done if self.streams_done else COMPARATOR_SECONDS
        return runs + stream * (self.streams - self.streams_done)

    def settle(self) -> None:
        """Take note that all kernels are compiled."""
        if self.settled is None:
            self.settled = time.perf_counter(), self.core_seconds
