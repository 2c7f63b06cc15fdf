"""Warnings about a results folder: missing, failed, unreadable or untrustworthy runs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from banditlab.analysis.formats import count, environment_title, plain
from banditlab.analysis.tables import Results


def alerts(results: Results) -> list[str]:
    """Return the lines of `incomplete`, and a line for each player and environment with untrustworthy runs."""
    return [*incomplete(results), *_off_expectation(results)]


def incomplete(results: Results) -> list[str]:
    """Return a line each for missing runs, failed runs, unreadable files and unranked runs, if there are any."""
    failed = len(results.failures)
    streams = sum(failure.is_comparator for failure in results.failures)
    last = results.final
    numberless = last.loc[last["ranked"].isna(), "label"]
    unreadable, runs = len(results.unreadable), count(results.planned, "run")
    lines = [
        (results.missing, f"Unfinished: {results.missing:,} of {runs} missing; the same command runs the rest."),
        (
            failed,
            f"Failed: {count(failed - streams, 'run')} and the comparators of {count(streams, 'stream')}, listed below.",
        ),
        (unreadable, f"Unreadable: {count(unreadable, 'file')} ({_some(results.unreadable)})."),
        (
            len(numberless),
            f"Not ranked: {count(len(numberless), 'run')} with an undefined number of mistakes ({_some(numberless)}).",
        ),
    ]
    return [line for n, line in lines if n]


def _some(names: Iterable[object]) -> str:
    """Return the first five different names, separated by commas, with "..." for the others."""
    different = list(dict.fromkeys(map(str, names)))
    return ", ".join(different[:5] + ["..."] * (len(different) > 5))


def _off_expectation(results: Results) -> list[str]:
    r"""Return a line for each player and environment with runs whose mistakes differ from their expectation by more
    than chance.

    By Freedman's inequality the probability that :math:`|\text{mistakes} - \text{expected}|` exceeds
    :math:`6 + 6 \sqrt{1 + V}` in a correct run is at most 1 in 3e7, with V the variance of the mistakes. This limit is
    about 6 standard deviations for large V, and 12 mistakes for small V. Forecasters are not tested, because they draw
    no action.
    """
    last = results.final
    last = last[last["kind"].isin(["bit", "reference"])]
    off = (last["mistakes"] - last["expected_mistakes"]).abs()
    runs = last[off > 6 + 6 * np.sqrt(1 + last["mistakes_variance"].astype(float))]
    return [
        f"Do not trust {label} on {environment_title(str(name))}: in {count(len(group), 'run')} its mistakes "
        f"(mean {plain(group['mistakes'].mean(), 1)}) differ by more than 6 standard deviations from the expectation under the "
        f"probabilities it reports (mean {plain(group['expected_mistakes'].mean(), 1)})."
        for (name, label), group in runs.groupby(["environment", "label"], sort=False)
    ]
