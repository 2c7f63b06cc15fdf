"""Join runs with the comparators of their streams, to compute relative mistakes."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pandas as pd

from banditlab.analysis.tables import Results, once
from banditlab.validation import loss_unit


def relative(results: Results, norm_bound: float | Literal["own"] = "own") -> pd.DataFrame:
    """Join runs with the comparators of the same stream and round, to compute relative mistakes.

    A player's own ball is the set of models within its norm bound. The player is joined with the comparator of this
    ball. It is joined with every comparator if it has no norm bound, if there is no comparator of its ball, or if its
    norm bound is "auto" (which is chosen without regard to any comparator). If the argument `norm_bound` is a number,
    only the pairs with a comparator of this norm bound are returned. Runs on streams without comparators are left out.

    Returns
    -------
    A table with one row per joined pair. Its columns are those of `results.runs`, where `norm_bound` is now the
    comparator's, and the following. Losses are in nats for every player. `loss` is the comparator's loss, and
    `loss_low` is `loss - gap`, so the best loss in the ball lies between the two. `relative_mistakes` is
    `mistakes - loss`, and `relative_mistakes_high` is `mistakes - loss_low`. `relative_expected` and
    `relative_expected_high` are the same with expected mistakes. `ratio` is `mistakes / loss`, and
    `comparator_mistakes` are the comparator's mistakes.

    Columns for the player's theorem: `own_ball`, whether the ball is the player's own (True for players without one);
    `unit` of the comparator's loss in the theorem ("nats", "bits", or a fraction such as "0.5 bits"); `unit_loss`, this
    loss in that unit, where "0.5 bits" means half the loss in bits; `bound_shown`, which is `min(bound, round)` for the
    player's own ball, and NaN for other balls, which the theorem does not cover; and `vacuous`, whether
    `bound >= round` for the player's own ball.
    """
    comparators = results.comparators.rename(columns={"mistakes": "comparator_mistakes"})
    comparators = comparators.drop(columns=["environment", "repetition", "seconds"])
    runs, keys = results.runs, ["stream_id", "round"]
    own = has_own_comparator(results)
    everywhere = runs[~own].assign(own_ball=runs.loc[~own, "norm_bound"].isna()).drop(columns="norm_bound")
    table = pd.concat(
        [
            runs[own].assign(own_ball=True).merge(comparators, on=[*keys, "norm_bound"]),
            everywhere.merge(comparators, on=keys),
        ],
        ignore_index=True,
    )
    if norm_bound != "own":
        table = table[np.isclose(table["norm_bound"].astype(float), float(norm_bound), rtol=1e-12)]
        table = table.reset_index(drop=True)
    return _with_differences(table)


@once
def own_relative(results: Results) -> pd.DataFrame:
    """Return the cached `relative(results)`."""
    return relative(results)


@once
def has_own_comparator(results: Results) -> pd.Series:
    """Return, for each row of `results.runs`, whether there is a comparator with the player's norm bound.

    The value is False if that norm bound is "auto".
    """
    runs, comparators = results.runs, results.comparators
    balls = set(zip(comparators["stream_id"], comparators["norm_bound"]))
    own = pd.Series(
        [pair in balls for pair in zip(runs["stream_id"], runs["norm_bound"])], index=runs.index, dtype=bool
    )
    for name in runs.columns:
        if name.startswith("setting.") and name.endswith("norm_bound"):
            own &= runs[name].ne("auto")
    return own


@np.errstate(invalid="ignore")  # inf - inf
def _with_differences(table: pd.DataFrame) -> pd.DataFrame:
    unit, own = table["bound_unit"].fillna(""), table["own_ball"].to_numpy(dtype=bool)
    unit = unit.where(unit.str.endswith("bits"), "nats")
    shares = unit.map({name: loss_unit(name) for name in unit.unique()}).to_numpy(dtype=float)
    bits = unit.eq("bits").to_numpy()
    loss = table["loss_nats"].to_numpy(dtype=float)
    loss_low = loss - table["gap"].to_numpy(dtype=float)
    bound, rounds = table["bound"].to_numpy(dtype=float), table["round"].to_numpy(dtype=float)
    mistakes, expected = (table[c].to_numpy(dtype=float) for c in ("mistakes", "expected_mistakes"))
    return table.assign(
        loss=loss,
        loss_low=loss_low,
        relative_mistakes=mistakes - loss,
        relative_mistakes_high=mistakes - loss_low,
        relative_expected=expected - loss,
        relative_expected_high=expected - loss_low,
        ratio=np.divide(mistakes, loss, out=np.full(len(loss), np.nan), where=loss > 0),
        unit=unit.to_numpy(),
        unit_loss=np.where(bits, table["loss_bits"].to_numpy(dtype=float), shares * loss),
        bound_shown=np.where(own, np.minimum(bound, rounds), math.nan),
        vacuous=own & (bound >= rounds),
    )
