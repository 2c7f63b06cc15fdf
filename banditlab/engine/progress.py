"""Where a sweep stands, for whoever watches it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from banditlab.engine.schedule import TASK_SECONDS, Kind

TABLES_SECONDS = 2e-4
"""What a run takes at the end, when the tables are written."""


@dataclass
class ClusterState:
    """Where a cluster stands."""

    workers: int
    """Workers that answer."""
    in_flight: int
    """Tasks that were sent and have not come back."""


@dataclass
class Progress:
    """Where a sweep stands; handed to the watcher after every task."""

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
    """Runs and comparators by kind."""
    began: float = field(default_factory=time.perf_counter)
    """When the sweep began, on `time.perf_counter`."""
    playing_since: float | None = None
    """When the first task was done; None before."""
    measured_since: tuple[float, float] | None = None
    """When all kernels were compiled, and the core-seconds that were done then; None before."""
    cluster: ClusterState | None = None
    """Where a cluster stands, None on this machine."""
    notices: list[str] = field(default_factory=list)
    """Lines for the user that came up so far."""

    @property
    def rounds_per_second(self) -> float:
        """Rounds a second since the first task was done, a second at least."""
        if self.playing_since is None:
            return 0.0
        return self.rounds_done / max(1.0, time.perf_counter() - self.playing_since)

    @property
    def seconds(self) -> float:
        """Seconds since the sweep began."""
        return time.perf_counter() - self.began

    @property
    def core_seconds(self) -> float:
        """Core-seconds that the runs and the comparators that are done took."""
        return sum(kind.seconds for kind in self.kinds.values())

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
        """Say what is being done; kernels are compiled until every player has finished a run."""
        untried = dict.fromkeys(kind.label for kind in self.kinds.values() if kind.label and not kind.done)
        self.stage = f"compiling or loading {', '.join(untried)}" if untried else "playing"
        if self.playing_since is None and (self.runs_done or self.streams_done):
            self.playing_since = time.perf_counter()
        if self.measured_since is None and not untried:
            self.measured_since = time.perf_counter(), self.core_seconds
