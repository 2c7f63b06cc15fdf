"""The exploration reduction around a booster: boosting from one bit of feedback."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.boosting.booster import Booster
from banditlab.errors import UsageError
from banditlab.numerics.draws import draw, draw_uniform
from banditlab.players.agent import Agent, Floats, Trace, checked
from banditlab.players.inputs import as_block, as_class, as_context, as_vector
from banditlab.problem import Decision, Problem
from banditlab.registry import registry
from banditlab.validation import probability


class BoostedExploration(Agent):
    """Any booster made a bandit agent by exploring with probability gamma.

    Problem: bandit multiclass, adversarial stream.

    Update rule (Algorithm 2 of Agarwal, Kale and Zimmert, a booster in the forecaster's place): toss a coin with
    probability gamma. Heads: play a uniform class and, if it was right, let the booster learn (x, y). Tails: play the
    booster's own draw and learn nothing. The probabilities reported are gamma/K + (1 - gamma) p.

    Guarantee: none proved; the booster sees the stream's rounds thinned by gamma/K whatever they are, so what holds for
    it in every round holds on the thinned stream. `bound` answers None.

    Cost: the booster's prediction in every round, its update in a gamma/K share of them.

    Parameters
    ----------
    booster
        Id of the booster.
    gamma
        Exploration rate in [0, 1].
    inner_settings
        Settings of the booster and its weak learners, by name; one that both have as `booster.NAME`.

    Raises
    ------
    UsageError
        gamma outside [0, 1], a booster or a setting that does not exist, or weak learners that are told the label.
    IncompatibleError
        The booster cannot meet the problem.

    References
    ----------
    N. Agarwal, S. Kale, J. Zimmert. Efficient methods for online multiclass logistic regression. ALT 2022, Algorithm 2.
    S.-T. Chen, H.-T. Lin, C.-J. Lu. Boosting with online binary learners for the multiclass bandit problem. ICML 2014.
    """

    id = "boosted-exploration"
    group = "practice"
    requires = ("river",)
    extra = "boosting"
    summary = "a booster that learns from explored hits only"
    reference = "Agarwal, Kale and Zimmert, ALT 2022, Algorithm 2, around a booster"
    expected_kind = "conditional"
    wraps = "booster"
    compiled = True  # play_block exists, though the loop over the learners is Python's

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        booster: str = "adaboost-olm",
        gamma: float = 0.1,
        **inner_settings: Any,
    ) -> None:
        super().__init__(problem, rng)
        self.booster = booster
        self.gamma = probability("gamma", gamma)
        cls = registry().load("boosters", booster)
        settings = {key.removeprefix("booster."): value for key, value in inner_settings.items()}
        if len(settings) < len(inner_settings):
            raise UsageError(f"a setting of {booster} is given twice, once as booster.NAME: {sorted(inner_settings)}")
        self._inner: Booster = cls(problem, self.rng.spawn(1)[0], **settings)
        if self._inner.inner.told_label:
            raise UsageError(
                f"weak_learner must be one that is not told the label before it predicts, got {self._inner.weak_learner!r}"
            )
        self.payload_size = self._inner.payload_size

    @property
    def inner(self) -> Booster:
        """The booster."""
        return self._inner

    def act(self, context: Floats) -> Decision:
        """Choose a class for `context` (d,).

        Raises
        ------
        UsageError
            A context of another shape.
        """
        x = as_context(context, self.problem.n_features)
        return self._decide(self._inner.view(x), self.rng.random(2))

    def _decide(self, view: Any, u: Floats) -> Decision:
        K, gamma = self.problem.n_classes, self.gamma
        p, payload = self._inner._respond(view)
        explored = bool(u[0] < gamma)
        action = draw_uniform(K, u[1]) if explored else draw(p, u[1])
        return Decision(int(action), gamma / K + (1.0 - gamma) * p, explored, payload)

    def learn(self, context: Floats, decision: Decision, correct: bool) -> None:
        """Let the booster learn (context, action) if the action was explored and right.

        Raises
        ------
        UsageError
            A context of another shape, or a decision that is none of this agent's: its action, probabilities, payload.
        """
        K, x = self.problem.n_classes, as_context(context, self.problem.n_features)
        action = as_class("the decision's action", decision.action, K)
        as_vector("the decision's probabilities", decision.probabilities, K)
        payload = as_vector("the decision's payload", decision.payload, self.payload_size)
        if decision.explored and correct:
            self._inner._absorb(self._inner.view(x), payload, action)

    def play_block(self, X: Floats, y: NDArray[np.int64], trace: Trace) -> None:
        """Play n rounds: X (n, d), y (n,); fills `trace`, each (n,). The booster learns the bit's explored hits only.

        Raises
        ------
        UsageError
            Contexts, labels or a trace of other shapes, or labels out of range.
        PlayerError
            The booster's probabilities are no distribution.
        """
        K, inner = self.problem.n_classes, self._inner
        X, y = as_block(X, y, self.problem.n_features, K)
        trace.holds(len(y))
        U = self.rng.random((len(y), 2))
        for t, label in enumerate(y.tolist()):
            view = inner.view(X[t])
            decision = checked(self._decide(view, U[t]), K, self)
            correct = decision.action == label
            trace.action[t], trace.correct[t], trace.explored[t] = decision.action, correct, decision.explored
            trace.p_true[t] = decision.probabilities[label]
            if decision.explored and correct:
                inner._absorb(view, decision.payload, decision.action)
