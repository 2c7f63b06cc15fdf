"""The state of a sweep in words, for the progress line and for the live page."""

from __future__ import annotations

import math

from banditlab.engine import Progress


def many(n: int, what: str) -> str:
    """Return a count such as "1 run" or "2,000 runs"."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def stage_of(progress: Progress) -> str:
    """Return the current stage, and for a cluster the state of its workers."""
    state = progress.cluster
    if state is None:
        return progress.stage
    there = f"{many(state.workers, 'worker')}, {many(state.in_flight, 'task')} in flight"
    return f"{progress.stage} ({there})"


def done_of(progress: Progress, *, rate: bool = True) -> str:
    """Return the numbers of finished runs and comparators as text, or "" while kernels are compiled."""
    if progress.playing_since is None:
        return ""
    shown = f"{progress.runs_done:,}/{many(progress.runs, 'run')}"
    if progress.streams:
        shown += f", {progress.streams_done:,}/{many(progress.streams, 'stream')} with comparators"
    if progress.failed:
        shown += f", {progress.failed:,} failed"
    return f"{shown}, {progress.rounds_per_second:,.0f} rounds/s" if rate else shown


def left_of(progress: Progress) -> str:
    """Return the estimated remaining time as text, or "" without an estimate."""
    ahead, rest = progress.seconds_ahead, progress.runs + progress.streams - progress.runs_done - progress.streams_done
    return "" if ahead is None or not rest else f"about {math.ceil(ahead)} s left"
