"""Data sets of openml.org, downloaded once through scikit-learn and then read from its cache."""

from __future__ import annotations

import os
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.error import URLError

from banditlab.envs._columns import Missing, Recipe, Scaling
from banditlab.envs._dataset import DataSetEnv
from banditlab.envs._frame import table_rows
from banditlab.envs._recipe import Rows
from banditlab.envs.files import made_dense
from banditlab.errors import UsageError
from banditlab.validation import at_least

if TYPE_CHECKING:
    import pandas as pd

DATA_HOME_VARIABLE = "BANDITLAB_DATA_HOME"


class OpenML(DataSetEnv):
    """A data set of openml.org, given by its id, with a new seeded order of the rows in each pass.

    The first use downloads it to scikit-learn's cache; later uses need no network. scikit-learn deletes a cached file
    that it considers invalid. If other programs use the same cache, make a copy of it first.

    Parameters
    ----------
    data_id
        The number in https://www.openml.org/d/NUMBER, a fixed version of a data set.
    label
        Name of the label column; "" for the data set's own target.
    drop_columns
        Names of columns to leave out, for instance columns that reveal the label.
    max_categories
        A nominal column with more categories is rejected.
    scaling
        "none": numeric columns as given. "minmax": each column scaled to [0, 1]. "auto": "minmax" if the ranges
        of two columns differ by more than a factor of 10, else "none"; columns with outliers are first clipped, or
        replaced by ranks if there are many outliers. "standard", "maxabs", "robust": scikit-learn's scalers, fitted to
        the whole table. "rowwise": asinh of each number, then each row divided by its own norm; no other row is used.
    missing
        Rule for missing, NaN and infinite entries: "error", "mean", "zero", "indicator" (the mean, and a 0/1 column
        that marks them) or "drop_rows".
    normalize
        Divide by the largest row norm.
    intercept
        Append a constant column.
    data_home
        Folder of the cache. "": the folder that the environment variable BANDITLAB_DATA_HOME names, or else
        scikit-learn's default. Runs that differ only in `data_home` count as the same run.
    horizon
        T, the number of rounds of an episode. In a sweep, the sweep's `rounds` sets it.

    Raises
    ------
    UsageError
        The data set or a column does not exist, a row has no label, or the data set is not cached and openml.org
        cannot be reached.
    """

    id: ClassVar[str] = "banditlab/OpenML-v0"
    summary: ClassVar[str] = "a data set of openml.org by its id, cached after the first use"
    reference: ClassVar[str] = (
        "Vanschoren, van Rijn, Bischl, Torgo: OpenML: networked science in machine learning, SIGKDD Explorations, 2013"
    )
    version: ClassVar[int] = 1

    def __init__(
        self,
        *,
        data_id: int,
        label: str = "",
        drop_columns: list[str] | None = None,
        max_categories: int = 100,
        scaling: Scaling = "auto",
        missing: Missing = "error",
        normalize: bool = True,
        intercept: bool = True,
        data_home: str = "",
        horizon: int = 10_000,
    ) -> None:
        self.data_id = at_least("data_id", data_id, 1)
        self.label_column = str(label)
        self.drop_columns = [str(name) for name in drop_columns or ()]
        self.max_categories = at_least("max_categories", max_categories, 2)
        self.scaling, self.missing = scaling, missing
        self.normalize, self.intercept = bool(normalize), bool(intercept)
        self.data_home = str(data_home)
        super().__init__(horizon)
        self.scaling = self._table.scaling

    @classmethod
    def identity(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the settings without the cache's folder; an empty list of columns to drop counts as none."""
        rest = {name: value for name, value in settings.items() if name != "data_home"}
        return rest | ({"drop_columns": rest["drop_columns"] or None} if "drop_columns" in rest else {})

    def _load(self) -> Rows:
        from sklearn.datasets import get_data_home

        # scikit-learn's default is SCIKIT_LEARN_DATA, or else a folder in the user's home.
        home = get_data_home(self.data_home or os.environ.get(DATA_HOME_VARIABLE) or None)
        recipe = Recipe(self.scaling, self.missing, self.normalize, self.intercept)
        return _rows(self.data_id, home, self.label_column, tuple(self.drop_columns), self.max_categories, recipe)


@lru_cache(maxsize=4)
def _rows(
    data_id: int, home: str, label: str, drop_columns: tuple[str, ...], max_categories: int, recipe: Recipe
) -> Rows:
    source = f"OpenML data set {data_id}"
    frame, target = _fetch(data_id, home, label, source)
    return table_rows(
        frame, target, recipe, drop_columns=list(drop_columns), max_categories=max_categories, source=source
    )


def _fetch(data_id: int, home: str, label: str, source: str) -> tuple[pd.DataFrame, str]:
    """Return the table and the name of its label column."""
    import pandas as pd
    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings():
            # The error below replaces this warning.
            warnings.filterwarnings("ignore", message="A network error occurred", category=UserWarning)
            bunch = fetch_openml(data_id=data_id, data_home=home, as_frame="auto", parser="auto", n_retries=1)
    except (URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise UsageError(
            f"{source} is not cached in {home} and openml.org cannot be reached ({reason}); download it once with a network "
            f"connection, or set data_home or {DATA_HOME_VARIABLE} to a folder that contains it"
        ) from None
    except (ValueError, KeyError, OSError) as error:
        raise UsageError(f"{source} cannot be used: {' '.join(str(error).split())}") from None
    if not isinstance(bunch.data, pd.DataFrame):
        labels = pd.Series(bunch.target, name=bunch.target_names[0])
        frame = made_dense(source, bunch.data, [str(name) for name in bunch.feature_names], labels)
    else:
        frame = bunch.frame
    targets = [str(name) for name in bunch.target_names or []]
    if not label and len(targets) != 1:
        raise UsageError(f"{source} has {len(targets)} targets {targets}; give label")
    return frame, label or targets[0]
