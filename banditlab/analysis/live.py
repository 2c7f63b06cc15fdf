"""The live page of a running sweep: progress and the ranking so far."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from banditlab.analysis.arena import arenas
from banditlab.analysis.embedding import policy, render, script_of
from banditlab.analysis.formats import data_title
from banditlab.analysis.summary import constant_name, standings, with_constant
from banditlab.analysis.tables import Results

MOST_FAILURES = 20
"""The largest number of failed runs that the page lists."""


@functools.cache
def live_policy() -> str:
    """Return the content security policy of the page, which allows its own script by hash, requests to its own origin,
    and an empty icon.
    """
    return str(policy(script_of("live.js"))).replace("connect-src 'none'", "connect-src 'self'; img-src data:")


def live_page(name: str, part: str) -> str:
    """Return the page. It contains `part`, and its script fetches that part again every two seconds."""
    return render("live.html.j2", name=name, part=Markup(part), script=script_of("live.js"))


def live_part(*, said: str, done: tuple[int, int], ended: str, ranking: str, error: str, notices: Sequence[str]) -> str:
    """Return the part that changes: progress, messages, and the ranking so far (HTML of `ranking_so_far`)."""
    return render(
        "live_part.html.j2", said=said, done=done, ended=ended, ranking=Markup(ranking), error=error, notices=notices
    )


def ranking_so_far(results: Results, planned: Mapping[tuple[str, str], int]) -> str:
    """Return the ranked tables of an unfinished sweep as HTML.

    Parameters
    ----------
    planned
        The number of planned runs, by environment and player.
    """
    final = results.final
    done = Counter(zip(final["environment"], final["label"], strict=True))
    tables = []
    for arena in arenas(results):
        rows = with_constant(arena, standings(arena))
        counts = {
            row.label: (done[arena.environment, row.label], planned.get((arena.environment, row.label), 0))
            for row in rows
        }
        waiting = [label for (place, label) in planned if place == arena.environment and label not in counts]
        tables.append((data_title(arena.environment), rows, counts, waiting, constant_name(arena), arena.noun))
    failures = [f"{f.player} on {f.environment}, repetition {f.repetition}: {f.error}" for f in results.failures]
    return render(
        "live_ranking.html.j2", tables=tables, done=done.total(), planned=results.planned, missing=results.missing,
        failures=failures[:MOST_FAILURES], failed=len(failures),
    )  # fmt: skip
