"""coba's linear learners as agents: what `coba-linucb` and `coba-lints` share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from banditlab.agents.peers.adapter import PeerAgent, PickledBySettings
from banditlab.distributions import library
from banditlab.players.agent import Floats
from banditlab.players.saved import restored
from banditlab.problem import Problem


class CobaAgent(PickledBySettings, PeerAgent):
    """A learner of `coba.learners` with one ridge regression of the bit on context times class: K d joint weights.

    A class is the one-hot vector e_k to coba, the features are those of x crossed with it (coba's `features = ["ax"]`), so
    that W x is what it forecasts. coba is asked for its probabilities and the action is drawn from them here, since the
    state of its own generator cannot be read, nor pickled.
    """

    requires = ("coba",)
    arrays: ClassVar[tuple[str, ...]]
    """The learner's attributes that learn."""

    def __init__(self, problem: Problem, rng: np.random.Generator | None) -> None:
        super().__init__(problem, rng)
        self._begin()

    def _begin(self) -> None:
        self._classes = [tuple(row) for row in np.eye(self.problem.n_classes).tolist()]
        self._learner = self._make(library("coba.learners", self.id))
        # coba makes its arrays when it first predicts
        self._learner._initialize([0.0] * self.problem.n_features, self._classes[0])

    @abstractmethod
    def _make(self, learners: Any) -> Any:
        """Return the learner of the module `coba.learners`."""

    def _distribution(self, x: Floats) -> Floats:
        return np.array(self._learner._pmf(x.tolist(), self._classes))

    def _update(self, x: Floats, action: int, probability: float, correct: bool) -> None:
        self._learner.learn(x.tolist(), self._classes[action], float(correct), probability)

    # ------------------------------------------------------------------------------------------------------------ state

    def get_state(self) -> dict[str, Any]:
        """Return the generator and the learner's arrays."""
        return {"rng": self.rng, "arrays": {name: getattr(self._learner, name) for name in self.arrays}}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over a state that `get_state` of a player with the same settings returned."""
        self._begin()
        mine = {"rng": self.rng, "arrays": {name: getattr(self._learner, name) for name in self.arrays}}
        taken = restored(mine, state)
        self.rng = taken["rng"]
        vars(self._learner).update({name: taken["arrays"][name] for name in self.arrays})
