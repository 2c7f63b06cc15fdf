"""GAF for a given loss (NeurIPS 2021, Section 4.1): online linear regression, and a scikit-learn regressor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditlab.lazy import lazy_names

if TYPE_CHECKING:
    from banditlab.regression.estimator import OnlineRegressor as OnlineRegressor
    from banditlab.regression.gaf import GaussianRegression as GaussianRegression
    from banditlab.regression.losses import Huber as Huber
    from banditlab.regression.losses import Squared as Squared

_MODULES = {
    "banditlab.regression.estimator": ("OnlineRegressor",),
    "banditlab.regression.gaf": ("GaussianRegression",),
    "banditlab.regression.losses": ("Huber", "Squared"),
}

if not TYPE_CHECKING:  # with it, a type checker would accept any name
    __getattr__, __dir__, __all__ = lazy_names(__name__, _MODULES)
