"""The CSV tables of a report, with one row per observation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from banditlab.analysis.arena import REFERENCE, Arena
from banditlab.analysis.statistics import Interval
from banditlab.analysis.summary import Standing


def ranking(rows: Sequence[Standing]) -> pd.DataFrame:
    """Return the ranked table, with shares as fractions of the rounds."""
    return pd.DataFrame([_flat(row) for row in rows])


def references(rows: Sequence[Standing]) -> pd.DataFrame:
    """Return the table of the references, like the ranked table but without ranks and differences."""
    table = ranking(rows).assign(kind=REFERENCE)
    return table[[name for name in table if name != "rank" and not str(name).startswith("behind")]]


def _flat(row: Standing) -> dict[str, Any]:
    over, behind_rank = row.relative, None if row.opens_rank else row.behind_group
    return {
        "rank": row.rank,
        "label": row.label,
        "settings": row.settings,
        "mistakes": row.mistakes.mean,
        "low": row.mistakes.low,
        "high": row.mistakes.high,
        "interval": row.mistakes.method,
        "repetitions": row.mistakes.n,
        "counted": row.counted.mean,
        "repeated": row.repeated,
        "below_constant": row.below_constant,
        "behind_first": row.behind_first.mean,
        "behind_first_low": row.behind_first.low,
        "behind_first_high": row.behind_first.high,
        "behind_rank": behind_rank.mean if behind_rank else math.nan,
        "behind_rank_low": behind_rank.low if behind_rank else math.nan,
        "behind_rank_high": behind_rank.high if behind_rank else math.nan,
        "explored": row.explored,
        **({} if math.isnan(row.cost) else {"mean_cost": row.cost}),
        "relative": over.mean if over else math.nan,
        "relative_low": over.low if over else math.nan,
        "relative_high": over.high if over else math.nan,
        "ratio": row.ratio,
        "comparator_bound": row.comparator_bound,
        "seconds_per_round": row.seconds_per_round,
    }


def best_settings(arena: Arena) -> pd.DataFrame:
    """Return the settings at which each player's repetitions are reported, and those chosen on all repetitions (see
    `Pick`).
    """
    return pd.DataFrame(
        [
            {"label": label, "settings": pick.settings, "among": pick.among, "held_out": pick.held_out}
            | {"halves_agree": pick.agree, "repetition": repetition, "reported_at": settings}
            for label, pick in arena.chosen.items()
            for repetition, settings in pick.reported.items()
        ]
    )


def paired_differences(arena: Arena, differences: Sequence[tuple[str, str, Interval]]) -> pd.DataFrame:
    """Return the difference in mistakes, first player minus second, for every pair, as a fraction of the rounds."""
    return pd.DataFrame(
        [
            {"first": a, "second": b, "difference": d.mean, "low": d.low, "high": d.high}
            | {"repetitions": d.n, "paired": arena.paired, "interval": d.method}
            for a, b, d in differences
        ]
    )
