"""Base of the adaptive boosters: expert i combines the first i weak learners, and Hedge draws the expert to follow."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.boosting.booster import Booster
from banditlab.boosting.compiled_rounds import FULL, NONE, ROUND, TREE, WRONG, Block, Loops, Scratch, State, follow
from banditlab.boosting.edges import Edges
from banditlab.boosting.hedge import weights_of
from banditlab.boosting.weak.weak_learner import Floats
from banditlab.players.agent import Trace, checked
from banditlab.players.inputs import as_class
from banditlab.problem import Decision, Problem


class Played(NamedTuple):
    """The arguments of a round's kernel, apart from the learners."""

    loops: Loops
    rule: Any
    scratch: Scratch
    state: State


class ExpertBooster(Booster):
    r"""A booster whose learner i predicts with costs computed from the votes :math:`s^{i-1}` of the learners before it.

    Expert i predicts :math:`\arg\max_l s^i_l`; Hedge at rate 1 draws the expert to follow. A subclass defines in
    `_rule` how predictions become votes and costs, and how the booster is updated (see `compiled_rounds.Steps`). It may
    store an increasing function of the votes, such as their softmax, if its `loss_code` expects that form.

    If the learners are compiled trees, one kernel runs a block of rounds. If they predict as `ProbableLearner` does,
    one kernel makes the predictions of all learners in a round. Other learners predict one by one. The results are the
    same.
    """

    loss_code: int
    """The surrogate loss whose gradients are the costs by which edges are measured."""

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        n_learners: int,
        weak_learner: str,
        weak_settings: dict[str, Any],
        weight_scale: float | str,
        tuning_seed: int | None,
    ) -> None:
        super().__init__(problem, rng, n_learners, weak_learner, weak_settings, tuning_seed)
        N, K = self.n_learners, problem.n_classes
        self.payload_size = N * (K + 2)
        self.weight_scale = weight_scale
        self._scales = self._tuning.weight_scales(weight_scale, self._ties)  # type: ignore[arg-type]
        self._tops = np.full(N, K - 1.0)
        self.rounds = 0
        self.edges = Edges.zero(N)
        self.mistakes = np.zeros(N)
        self._zero = np.zeros(K)  # s^0

    @abstractmethod
    def _rule(self) -> tuple[Loops, Any]:
        """Return the rule's loops and the arrays of this booster that the loops read and write."""

    def _played(self) -> Played:
        """Return the rule's loops and their arguments, apart from the learners; work arrays are reused."""
        loops, rule = self._rule()
        if self._grove.scratch is None:
            self._grove.scratch = Scratch.of(self.n_learners, self.problem.n_classes, loops.own)
        return Played(loops, rule, self._grove.scratch, State(*self.edges, self.mistakes, self._tops, self._scales))

    def _respond(self, view: Any) -> tuple[Floats, Floats]:
        forest = self._forest()
        loops, rule, scratch, state = self._played()
        if forest is not None:
            loops.respond(forest, rule, scratch, state.mistakes, self._grove.ask(view, scratch.estimates))
        else:
            self._ask_one_by_one(view)
        return scratch.p.copy(), scratch.payload.copy()

    def _ask_one_by_one(self, view: Any) -> None:
        """Pass its costs to every learner that uses costs, and store the predictions (lines 4 to 10 of Algorithm 2)."""
        loops, rule, scratch, state = self._played()
        N, K = self.n_learners, self.problem.n_classes
        C, done = np.zeros((K, K)), -1
        for i, learner in enumerate(self.learners):
            if getattr(learner, "reads_costs", True):
                loops.ask(rule, scratch, done, i, C)
                done = i
            scratch.payload[i] = as_class(f"the prediction of weak learner {i + 1}", learner.predict(view, C), K)
        loops.ask(rule, scratch, done, N, C)
        scratch.uniforms[:] = self._ties.random(N)
        follow(scratch, state.mistakes)

    def _absorb(self, view: Any, payload: Floats, label: int) -> None:
        forest = self._forest()
        self.rounds += 1
        loops, rule, scratch, state = self._played()
        scratch.payload[:] = payload
        loops.recall(rule, scratch, self.loss_code, self._zero, label)
        loops.absorb(rule, scratch, state, label, self.rounds)
        if forest is not None:
            self._grove.update_trees(forest, view, label, scratch.weights)
            return
        for learner, w in zip(self.learners, scratch.weights.tolist(), strict=True):
            learner.update(view, label, w)

    def _play(self, X: Floats, y: NDArray[np.int64], U: Floats, trace: Trace) -> None:
        """Run a checked block of rounds, in one kernel if the learners are compiled trees."""
        forest = self._forest()
        as_here = type(self)._respond is ExpertBooster._respond and type(self)._absorb is ExpertBooster._absorb
        if forest is None or not len(forest.trees) or not as_here:
            return super()._play(X, y, U, trace)
        trace.explored[:] = False
        loops, rule, scratch, state = self._played()
        block = Block(self._grove.views(X), y, U, trace.action, trace.correct, trace.p_true)
        cursor = np.array([0, NONE])
        while (code := loops.play(forest, rule, scratch, state, block, self.rounds, cursor)) == FULL:
            self._grove.grow(int(cursor[TREE]))
        if code == WRONG:
            self.rounds += int(cursor[ROUND])
            action = int(np.argmax(scratch.p))
            checked(Decision(action, scratch.p, None, scratch.payload), self.problem.n_classes, self)
        self.rounds += len(y)

    def diagnostics(self) -> dict[str, Any]:
        """Return each learner's empirical edge and each expert's weight, and the mistakes of the best expert so far."""
        edges, weights = self.edges.measured().tolist(), weights_of(self.mistakes).tolist()
        return (
            {f"edge.{i}": edge for i, edge in enumerate(edges, 1)}
            | {f"expert_weight.{i}": weight for i, weight in enumerate(weights, 1)}
            | {
                "best_expert_mistakes": float(self.mistakes.min()),
                "best_expert_bound": float(self._best_expert_bound()),
            }
        )

    def _best_expert_bound(self) -> float:
        """Return the proved bound on the mistakes of the best expert for the edges measured so far."""
        return float("nan")
