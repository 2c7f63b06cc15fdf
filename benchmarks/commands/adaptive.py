"""A bound that an adaptive adversary exceeds: docs/results/adaptive.md.

    python -m benchmarks adaptive --keep

plays `exploration` with half-log around a Bayes mixture of experts, K = 2, against an adversary that sees past actions only,
and then agents with other coins on the same streams: there the bound holds. --keep writes docs/results/adaptive.csv and the
page's table.

The label is class 0 in every round, and a context is each expert's probability of it. The adversary keeps the mixture's
forecast of the label at 1/4 or below, where half-log never chooses the label: every hit is then an explored one, an update
of the mixture. Until the third update a fifth of the experts, drawn anew in each round, gives the label a probability of
1/500. After it the expert with the largest loss on the updates gives the label probability 1: it becomes the best expert.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from analysis.result_pages.adaptive import Line, parts, ratios, table, text_of, write
from banditlab import Problem, play
from banditlab.agents.exploration import Exploration
from banditlab.analysis.pages import fill_page
from banditlab.bounds.aggregating import aggregating_net
from banditlab.bounds.decoding import mistakes_per_nat
from banditlab.envs import AdaptiveEnv, Streams
from banditlab.players.forecaster import Floats, Forecaster
from banditlab.validation import at_least

PLACE = Path(__file__).parents[2] / "docs" / "results"
VISIBLE = 0.25
"""The largest forecast of the label at which half-log never chooses it, K = 2."""
EARLY, WRONG, SHARE = 3, 0.002, 0.2
"""Updates before the adversary turns, the probability of the label that a wrong expert gives, the share of wrong ones."""


def main(
    *,
    runs: int = 20,
    coins: int = 50,
    experts: int = 1000,
    gamma: float = 0.004,
    rounds: int = 16_000,
    keep: bool = False,
) -> None:
    """Play so many adversaries, and on each one's stream so many agents with other coins; print the table."""
    at_least("runs", runs, 2)
    at_least("coins", coins, 1)
    lines = [measured(seed, coins, experts, gamma, rounds) for seed in range(runs)]
    if keep:
        write(PLACE / "adaptive.csv", lines)
        fill_page(PLACE / "adaptive.md", parts(PLACE))
    print(text_of(lines), table(lines), ratios(lines), sep="\n")


def measured(seed: int, coins: int, experts: int, gamma: float, rounds: int) -> Line:
    """Return expected mistakes against an adversary, their mean over other coins on its stream, and loss + bound of both."""
    adversary = Turncoat(n_experts=experts, horizon=rounds)
    agent = mixing_agent(adversary.problem, gamma, seed)
    mistakes = play(adversary, agent, seed=seed).expected_mistakes[-1]
    loss, bound = mistakes_per_nat("half-log", 2) * float(adversary.losses.min()), agent.bound(rounds)
    assert bound is not None
    stream = Turncoat(n_experts=experts, horizon=rounds, updates=frozenset(adversary.updated))
    replayed = with_other_coins(stream, coins, gamma, seed)
    return Line(seed, experts, gamma, rounds, len(adversary.updated), mistakes, replayed, loss, bound)


def mixing_agent(problem: Problem, gamma: float, seed: int) -> Exploration:
    """Return `exploration` with half-log around the mixture, which no registry has."""
    agent = Exploration(problem, np.random.default_rng(seed), forecaster="ogd", gamma=gamma, decoding="half-log")
    agent._inner = BayesMixture(problem, None)
    return agent


def with_other_coins(stream: Turncoat, coins: int, gamma: float, seed: int) -> float:
    """Return the mean expected mistakes of so many such agents, which play a given stream side by side."""
    rng, mistakes = np.random.default_rng([seed, 1]), 0.0
    weights = np.full((coins, stream.n_experts), 1.0 / stream.n_experts)
    context, _ = stream.reset(seed=seed)
    for _ in range(stream.horizon):
        p = np.minimum(weights @ context, 1.0 - 1e-12)
        q = np.where(p < 0.5, half_log(p), 1.0 - half_log(1.0 - p))
        mistakes += float(np.mean(1.0 - gamma / 2 - (1.0 - gamma) * q))
        updated = rng.random(coins) < gamma / 2
        weights[updated] *= context / (weights[updated] @ context)[:, None]
        context = stream.step(0)[0]
    return mistakes


def half_log(u: Floats) -> Floats:
    """Return max(0, 1 + (1/2) log2 u)."""
    return np.maximum(0.0, 1.0 + 0.5 * np.log2(u))


class BayesMixture(Forecaster):
    """The mixture of N experts with the uniform prior: its regret against the best is at most ln N on every sequence.

    A context (N,) is each expert's probability of class 0.
    """

    bound_unit = "nats"
    bound_adversary = "adaptive"

    def __init__(self, problem: Problem, rng: np.random.Generator | None) -> None:
        super().__init__(problem, rng)
        self.weights = np.full(problem.n_features, 1.0 / problem.n_features)

    def predict(self, context: Floats) -> Floats:
        """Return the logits (2,) of the mean probabilities."""
        p = min(float(self.weights @ context), 1.0 - 1e-12)
        return np.log([p, 1.0 - p])

    def update(self, context: Floats, label: int) -> None:
        """Weigh each expert by its probability of the label."""
        self.weights = self.weights * (context if label == 0 else 1.0 - context)
        self.weights /= self.weights.sum()

    def bound(self, rounds: int) -> float:
        """Return ln N."""
        return aggregating_net(rounds, self.problem.n_features)


class Turncoat(AdaptiveEnv):
    """The adversary of the module's docstring: it updates a mixture of its own at every hit that it knows to be explored.

    Parameters
    ----------
    n_experts, horizon
        N and T.
    updates
        The rounds of the updates, where they are those of an earlier run: the stream is then that run's, whatever is played.
    """

    id = "study/Turncoat-v0"
    summary = "keeps updates visible, then makes the expert that was worst on them the best"
    reference = "made for this study"

    def __init__(self, *, n_experts: int, horizon: int, updates: frozenset[int] | None = None) -> None:
        self.n_experts, self.updates = n_experts, updates
        super().__init__(Problem(n_experts, 2, math.sqrt(n_experts), horizon))

    def _begin(self, streams: Streams) -> None:
        self._drawn, self._mixture = streams.contexts, BayesMixture(self.problem, None)
        self.losses, self.updated, self._turned, self._t = np.zeros(self.n_experts), list[int](), 0, 0

    def _next(self) -> tuple[Floats, int]:
        w = self._mixture.weights
        if len(self.updated) < EARLY:
            wrong = self._drawn.random(self.n_experts) < SHARE
            p = np.where(wrong, WRONG, (VISIBLE - WRONG * w[wrong].sum()) / w[~wrong].sum())
        else:
            best = w[self._turned]  # once it weighs 1/4 a hit shows nothing, and all experts are right
            p = np.full(self.n_experts, (VISIBLE - best) / (1.0 - best) if best < VISIBLE else 1.0)
            p[self._turned] = 1.0
        p = np.clip(p, 1e-6, 1.0)
        self.losses -= np.log(p)
        return p, 0

    def _played(self, context: Floats, action: int, label: int) -> None:
        explored = action == label and float(self._mixture.weights @ context) <= VISIBLE * (1.0 + 1e-9)
        if explored if self.updates is None else self._t in self.updates:
            self._mixture.update(context, label)
            self.updated.append(self._t)
            if len(self.updated) == EARLY:
                self._turned = int(np.argmin(self._mixture.weights))
        self._t += 1
