"""What the adaptive boosters share: expert i votes with the first i weak learners, hedge draws the expert to follow."""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.boosting.booster import Booster
from banditlab.boosting.compiled_rounds import FULL, WRONG, Counts, Loops, Room
from banditlab.boosting.edges import Edges
from banditlab.boosting.hedge import mix_experts, weights_of
from banditlab.boosting.losses import gradient
from banditlab.boosting.trees.forest import Forest
from banditlab.boosting.weak.weak_learner import Floats, tied
from banditlab.numerics.draws import draw
from banditlab.numerics.jit import njit
from banditlab.players.agent import Trace, checked
from banditlab.players.inputs import as_block
from banditlab.problem import Decision, Problem


@njit
def follow_experts(S, ties, mistakes, v, choices, p):
    """Write each expert's label argmax_l S[i, l] into choices (N,), ties drawn with `ties` (N,), and hedge's mix into p."""
    N, K = S.shape
    for i in range(N):
        best, count = S[i, 0], 0
        for l in range(1, K):
            best = max(best, S[i, l])
        for l in range(K):
            count += S[i, l] == best
        choices[i] = tied(S[i], best, count, ties[i])
    mix_experts(mistakes, choices, v, p)


@njit
def judge(loss, zero, S, votes, choices, y, tops, got, best, mistakes, w, g):
    """Count the learners' edges and the experts' mistakes of a round; write the learners' weights into w (N,).

    The weight of learner i is -C^i(y, y) / tops[i], at most 1 (the paper's line 14 prints -C^i(y, l), which is negative
    where l != y: the text has it right). zero (K,) is s^0; g (K,) is scratch.
    """
    for i in range(S.shape[0]):
        l = int(votes[i])
        gradient(loss, S[i - 1] if i > 0 else zero, y, g)
        got[i] += g[l]
        best[i] += g[y]
        w[i] = min(1.0, -g[y] / tops[i])
        mistakes[i] += choices[i] != y


class Played(NamedTuple):
    """What a round is played with in a kernel, beside the learners."""

    loops: Loops
    rule: Any
    room: Room
    counts: Counts


@cache
def _owners(cls: type, *names: str) -> set[type]:
    """Return the classes that define the methods of these names which `cls` has."""
    return {next(base for base in cls.__mro__ if name in vars(base)) for name in names}


class ExpertBooster(Booster):
    """A booster whose learner i is asked at costs made of the votes s^{i-1} of those before it.

    Expert i predicts argmax s^i; the one to follow is drawn by hedge at rate 1. A subclass turns a prediction into votes
    and costs (`_start`, `_step`), and learns what it learns beside the edges (`_adapt`); it may keep the votes in any form
    that grows with them, such as their softmax, that its `loss_code` reads. `_rule` is the same for learners that choose by
    their estimates: all of them choose in one kernel, with the same numbers, and where they are compiled trees a block of
    rounds is one kernel.
    """

    loss_code: int
    """The surrogate whose gradients are the costs that edges are measured with."""

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
        self._costs = np.zeros((K, K))
        self._zero, self._g = np.zeros(K), np.zeros(K)  # s^0
        self._w, self._v = np.zeros((2, N))

    @abstractmethod
    def _rule(self) -> tuple[Loops, Any]:
        """Return the compiled loops, and what they read and write of this booster, by reference.

        They are what `_start`, `_step` and `_adapt` do: a subclass that overrides one of these and not `_rule` does without.
        """

    @abstractmethod
    def _start(self, C: Floats) -> None:
        """Write the first learner's costs into C (K, K)."""

    @abstractmethod
    def _step(self, i: int, l: int, S: Floats, C: Floats) -> None:
        """Write the votes s^{i+1} after learner i's prediction l into S[i], and the next learner's costs into C."""

    @abstractmethod
    def _adapt(self, S: Floats, votes: Floats, y: int) -> None:
        """Learn how to turn predictions into votes from S (N, K), the votes of the round, and predictions (N,)."""

    def _forest(self) -> Forest | None:
        return super()._forest() if len(_owners(type(self), "_rule", "_start", "_step", "_adapt")) == 1 else None

    def _parts(self, payload: Floats) -> tuple[Floats, Floats, Floats]:
        """Return predictions (N,), experts' labels (N,) and votes S (N, K), as views of a payload."""
        N, K = self.n_learners, self.problem.n_classes
        return payload[:N], payload[N : 2 * N], payload[2 * N :].reshape(N, K)

    def _played(self, forest: Forest) -> Played:
        """Return what the compiled loops take of this booster beside the trees; the room is kept for the next round."""
        if self._grove.room is None:
            self._grove.room = Room.of(self.n_learners, self.problem.n_classes)
        loops, rule = self._rule()
        counts = Counts(*self.edges, self.mistakes, self._tops, self._scales)
        return Played(loops, rule, self._grove.room, counts)

    def _respond(self, view: Any) -> tuple[Floats, Floats]:
        forest = self._forest()
        if forest is not None:
            loops, rule, room, counts = self._played(forest)
            loops.respond(forest, rule, room, counts.mistakes, self._grove.ask(view, room.estimates))
            return room.p.copy(), room.payload.copy()
        payload, p, C = np.empty(self.payload_size), np.empty(self.problem.n_classes), self._costs
        votes, choices, S = self._parts(payload)
        self._start(C)
        for i, learner in enumerate(self.learners):
            l = learner.predict(view, C)
            votes[i] = l
            self._step(i, l, S, C)
        follow_experts(S, self._ties.random(self.n_learners), self.mistakes, self._v, choices, p)
        return p, payload

    def _absorb(self, view: Any, payload: Floats, label: int) -> None:
        forest = self._forest()
        self.rounds += 1
        if forest is not None:
            loops, rule, room, counts = self._played(forest)
            room.payload[:] = payload
            loops.recall(rule, room, self.loss_code, self._zero, label)
            loops.absorb(rule, room, counts, label, self.rounds)
            self._grove.teach(forest, view, label, room.w)
            return
        votes, choices, S = self._parts(payload)
        judge(
            self.loss_code,
            self._zero,
            S,
            votes,
            choices,
            label,
            self._tops,
            *self.edges,
            self.mistakes,
            self._w,
            self._g,
        )
        self._adapt(S, votes, label)
        for learner, w in zip(self.learners, (self._w * self._scales).tolist(), strict=True):
            learner.update(view, label, w)

    def play_block(self, X: Floats, y: NDArray[np.int64], trace: Trace) -> None:
        """Play n rounds, each label after its action: X (n, d), y (n,); fills `trace`, each (n,).

        Where the learners are compiled trees, in one kernel.

        Raises
        ------
        UsageError
            Contexts, labels or a trace of other shapes, or labels out of range.
        PlayerError
            The booster's probabilities are no distribution.
        """
        forest = self._forest()
        as_here = _owners(type(self), "_respond", "_absorb") == {ExpertBooster}
        if forest is None or not len(forest.trees) or not as_here:
            return super().play_block(X, y, trace)
        X, y = as_block(X, y, self.problem.n_features, self.problem.n_classes)
        trace.holds(len(y))
        U = self.rng.random((len(y), 2))
        trace.explored[:] = False
        loops, rule, room, counts = self._played(forest)
        V, cursor = self._grove.views(X), np.array([-1, 0])
        columns = trace.action, trace.correct, trace.p_true
        while True:
            code = loops.play(forest, rule, room, counts, V, y, U, self.rounds, cursor, *columns)
            if code != FULL:
                break
            self._grove.grow(int(cursor[1]))
        if code == WRONG:
            self.rounds += int(cursor[0])
            checked(Decision(int(draw(room.p, 0.0)), room.p, None, room.payload), self.problem.n_classes, self)
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
        """Return the proved bound on the mistakes of the best expert at the edges measured so far."""
        return float("nan")
