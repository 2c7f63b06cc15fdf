"""Random numbers that boosters of trees draw once per learner: settings of the tree, and a factor of weights."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from banditlab.boosting.weak.weak_learner import Floats, WeakLearner
from banditlab.errors import UsageError
from banditlab.validation import at_least, positive

GRACE_PERIODS = (5, 20)
LOOSENESS = (0.01, 0.9)
"""Ranges of "random" in the experiments of Jung, Goetz and Tewari: of the grace period, and of the two other
settings."""
FIRST_SCALE, SCALES = 10.0, (5.0, 200.0)
"""`weight_scale = "random"`: the first learner's factor, and the range of all other factors."""
TUNED = ("grace_period", "split_confidence", "tie_threshold")


class Tuning:
    """The random settings and weight factors of N learners, from the booster's generators or from a given seed.

    Given a seed, the draws are those of the code of Jung, Goetz and Tewari (`gen_weaklearners`). Their code uses the
    seed 1 by default, so the trees have the same settings for every order of the rows. numpy's Mersenne Twister draws
    for each tree the split confidence, the grace period (a real number) and the tie threshold, and after all trees the
    factors of the weights.

    Raises
    ------
    UsageError
        The seed is below 0 or above :math:`2^{32} - 1`, the weak learners are not trees, or a setting is
        given that is drawn with the seed.
    """

    def __init__(self, seed: int | None, n_learners: int, cls: type[WeakLearner], written: dict[str, object]) -> None:
        self.n_learners, self._scales = n_learners, None
        self.settings: list[dict[str, float]] = [{} for _ in range(n_learners)]
        if seed is None:
            self.seed = None
            return
        self.seed = at_least("tuning_seed", seed, 0)
        if self.seed >= 2**32:
            raise UsageError(f"tuning_seed must be at most 2^32 - 1, got {seed}")
        if not set(TUNED) <= set(cls.own_settings()):
            raise UsageError(f"tuning_seed applies to trees, and {cls.id} is not a tree: leave out tuning_seed")
        for name in TUNED:
            if written.get(name, "random") != "random":
                raise UsageError(f"tuning_seed already draws {name}: leave out one of the two")
        source = np.random.RandomState(self.seed)
        low, high = (math.log10(end) for end in LOOSENESS)
        for drawn in self.settings:
            drawn["split_confidence"] = 10.0 ** source.uniform(low, high)
            drawn["grace_period"] = source.uniform(*GRACE_PERIODS)
            drawn["tie_threshold"] = 10.0 ** source.uniform(low, high)
        self._scales = source.uniform(*SCALES, size=n_learners)

    def drawn_scales(self, rng: np.random.Generator) -> Floats:
        """Return factors (N,) uniform in SCALES, from `rng` if there is no seed."""
        return rng.uniform(*SCALES, size=self.n_learners) if self._scales is None else self._scales.copy()

    def weight_scales(self, setting: float | Literal["random"], rng: np.random.Generator) -> Floats:
        """Return the factor (N,) of each learner's weights: one number for all, or "random", as in the paper's
        experiments.

        With "random" the first factor is 10. (In AdaBoost.OLM with the logistic loss, the first learner's weight before
        scaling is always 1/2, and 5 after it.) The other factors are uniform in [5, 200].
        """
        if setting != "random":
            return np.full(self.n_learners, positive("weight_scale", setting))
        scales = self.drawn_scales(rng)
        scales[0] = FIRST_SCALE
        return scales
