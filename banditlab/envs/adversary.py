"""An adaptive environment: in some rounds the label is the class that the agent has chosen least often."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from banditlab.envs._adaptive import AdaptiveEnv
from banditlab.envs._base import Floats, Streams
from banditlab.envs._planted import JUST_BELOW_ONE, directions
from banditlab.losses import softmax
from banditlab.problem import Problem
from banditlab.validation import at_least, positive, probability


class Adversary(AdaptiveEnv):
    r"""A planted logistic model, interrupted with probability :math:`\rho` by an adversary that observes the agent's actions.

    Contexts are uniform on the sphere of radius R. The sphere is divided into cells: each context belongs to the
    nearest of `n_cells` planted centres. In an interrupted round the label is the class that the agent has chosen least
    often in this context's cell so far (the first such class if there are several). In all other rounds it is drawn
    from :math:`\mathrm{softmax}(W x)` with a planted W whose rows have norm B. The label is fixed before the action and
    depends on earlier actions only.

    An agent that always chooses the same class in a cell makes a mistake in every interrupted round of this cell,
    except possibly in the cell's first round. An agent that chooses uniformly at random is right with probability
    :math:`1/K` in these rounds.

    The comparator is the best model in hindsight for the labels of the run. The bounds of forecasters, and of agents
    that observe every label, hold for it. Bounds of agents with bandit feedback assume a comparator that is fixed in
    advance and do not hold here (docs/results/adaptive.md): a sweep shows "no theorem covers this stream".

    Parameters
    ----------
    n_features, n_classes
        d and K.
    norm_bound
        B, the norm of every row of the planted W.
    rho
        Probability in [0, 1] of an interrupted round.
    n_cells
        Number of cells in which the adversary counts the agent's actions.
    radius
        R.
    horizon
        T, the number of rounds of an episode. In a sweep, the sweep's `rounds` sets it.

    Raises
    ------
    UsageError
        A parameter is outside its range.
    """

    id: ClassVar[str] = "banditlab/Adversary-v0"
    summary: ClassVar[str] = "adaptive: logistic model, sometimes the class chosen least often for similar contexts"
    reference: ClassVar[str] = "this package"
    version: ClassVar[int] = 1

    def __init__(
        self,
        *,
        n_features: int = 5,
        n_classes: int = 3,
        norm_bound: float = 10.0,
        rho: float = 0.1,
        n_cells: int = 8,
        radius: float = 1.0,
        horizon: int = 10_000,
    ) -> None:
        self.n_features = at_least("n_features", n_features, 1)
        self.n_classes = at_least("n_classes", n_classes, 2)
        self.norm_bound = positive("norm_bound", norm_bound)
        self.rho = probability("rho", rho)
        self.n_cells = at_least("n_cells", n_cells, 1)
        self.radius = positive("radius", radius)
        super().__init__(Problem(self.n_features, self.n_classes, self.radius, horizon))

    def _begin(self, streams: Streams) -> None:
        self._current = streams
        self._W = self.norm_bound * directions(streams.model, self.n_classes, self.n_features)
        self._centres = directions(streams.model, self.n_cells, self.n_features)
        self._plays = np.zeros((self.n_cells, self.n_classes), dtype=np.int64)

    def _cell(self, context: Floats) -> int:
        return int(np.argmax(self._centres @ context))

    def _next(self) -> tuple[Floats, int]:
        x = directions(self._current.contexts, 1, self.n_features)[0] * (self.radius * JUST_BELOW_ONE)
        # Every round makes both draws, so runs that differ in rho or in their actions share contexts and random
        # numbers.
        interrupted = self._current.noise.random() < self.rho
        u = self._current.labels.random()
        if interrupted:
            return x, int(np.argmin(self._plays[self._cell(x)]))
        return x, int((u >= np.cumsum(softmax(self._W @ x))[:-1]).sum())

    def _played(self, context: Floats, action: int, label: int) -> None:
        self._plays[self._cell(context), action] += 1
