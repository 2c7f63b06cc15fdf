"""Handwritten digits: 1797 images of 8 x 8 pixels, which scikit-learn includes."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

import numpy as np

from banditlab.envs._columns import Column, Recipe, Scaling
from banditlab.envs._dataset import DataSetEnv
from banditlab.envs._recipe import Rows, prepare


class Digits(DataSetEnv):
    r"""The 1797 digits of scikit-learn, with :math:`K = 10` and :math:`R = 1`.

    Pixels are divided by 16, then by the largest row norm, and an intercept is appended. The rows are shuffled
    anew in each pass; the seed determines the orders.

    Parameters
    ----------
    scaling
        "none" (default): pixels divided by 16. "minmax" or "auto": each pixel scaled to [0, 1] by its own range.
        "standard", "maxabs", "robust": scikit-learn's scalers, fitted to all rows. "rowwise": asinh of each pixel, with
        each row divided by its own norm.
    normalize
        Divide by the largest row norm.
    intercept
        Append a constant column; :math:`d = 65` with it, 64 without.
    horizon
        T, the number of rounds of an episode. In a sweep, the sweep's `rounds` sets it.

    Raises
    ------
    UsageError
        A parameter is outside its range.
    """

    id: ClassVar[str] = "banditlab/Digits-v0"
    summary: ClassVar[str] = "handwritten digits of scikit-learn, 10 classes, 64 pixels and an intercept"
    reference: ClassVar[str] = (
        "Alpaydin, Kaynak: Optical Recognition of Handwritten Digits, UCI, 1998 (test part, as in scikit-learn)"
    )
    version: ClassVar[int] = 1

    def __init__(
        self,
        *,
        scaling: Scaling = "none",
        normalize: bool = True,
        intercept: bool = True,
        horizon: int = 10_000,
    ) -> None:
        self.scaling, self.normalize, self.intercept = scaling, bool(normalize), bool(intercept)
        super().__init__(horizon)
        self.scaling = self._table.scaling

    def _load(self) -> Rows:
        return _digits(self.scaling, self.normalize, self.intercept)


@cache
def _digits(scaling: Scaling, normalize: bool, intercept: bool) -> Rows:
    from sklearn.datasets import load_digits

    pixels, y = load_digits(return_X_y=True)
    columns = [Column(f"pixel_{j}", pixels[:, j] / 16.0) for j in range(pixels.shape[1])]
    recipe = Recipe(scaling, "error", normalize, intercept)
    return prepare(columns, y.astype(np.int64), list(range(10)), recipe, "Digits-v0")
