# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Your own agent
#
# An agent is a class with two methods. `act(context)` returns an action with the probabilities from which it was drawn.
# `learn(context, decision, correct)` receives the feedback: `correct` is True if the action was right.
#
# The agent below has a weight vector for each class. It chooses the class with the largest score, and with probability
# $\gamma$ a random class. It updates the weights by the perceptron's rule.

# %%
from collections import Counter

import numpy as np

from banditlab import play
from banditlab.agents import Agent, Decision, FastCB
from banditlab.checks import run_checks
from banditlab.envs import Digits
from banditlab.validation import probability


class MyFirst(Agent):
    """A perceptron for each class, with epsilon-greedy exploration.

    Problem: bandit multiclass. Update rule: draw the action from (1 - gamma) e_best + gamma/K with
    best = argmax_k W_k . x. If the action is right and W_action . x <= 0, add x to W_action. If it is wrong and
    W_action . x >= 0, subtract x. Cost O(K d) per round.

    Parameters
    ----------
    gamma
        Exploration rate in [0, 1].
    """

    id = "my-first"
    group = "practice"
    summary = "a perceptron for each class, with epsilon-greedy exploration"
    reference = "own work"
    version = 1
    explores = False

    def __init__(self, problem, rng, *, gamma: float = 0.05):
        super().__init__(problem, rng)
        self.gamma = probability("gamma", gamma)
        self.W = np.zeros((problem.n_classes, problem.n_features))

    def act(self, context):
        K = self.problem.n_classes
        p = np.full(K, self.gamma / K)
        p[np.argmax(self.W @ context)] += 1.0 - self.gamma
        u = self.rng.random(2)
        action = min(int(np.searchsorted(np.cumsum(p), u[1], side="right")), K - 1)
        return Decision(action, p)

    def learn(self, context, decision, correct):
        k = decision.action
        sign = 1.0 if correct else -1.0
        if sign * (self.W[k] @ context) <= 0.0:
            self.W[k] += sign * context


# %% [markdown]
# `run_checks` runs the conformance suite and yields the outcome of each check.

# %%
print(Counter(result.status for result in run_checks(MyFirst)))

# %% [markdown]
# This cell compares the agent with a built-in one on the same streams:

# %%
env = Digits(horizon=2_000)
for make in (MyFirst, FastCB):
    shares = []
    for seed in range(5):
        played = play(env, make(env.problem, np.random.default_rng(seed)), seed=seed)
        shares.append(played.mistakes[-1] / played.rounds[-1])
    print(f"{make.id:10} {np.mean(shares):.1%} mistakes, {np.std(shares, ddof=1) / np.sqrt(5):.1%} standard error")
