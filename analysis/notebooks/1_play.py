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
# # Play a round
#
# An environment shows a context $x_t$, a vector, and hides a label $y_t$. An agent chooses an action and observes one bit:
# was the action the label?

# %%
import numpy as np

from banditlab import make_agent, make_env, play

env = make_env("banditlab/Digits-v0", rounds=2_000)
print(env.problem)

# %% [markdown]
# The environment follows Gymnasium's interface, and an agent has two methods, `act` and `learn`. This cell plays three rounds
# by hand:

# %%
agent = make_agent("epsilon-greedy-direct", env.problem, seed=0)
context, _ = env.reset(seed=0)
for _ in range(3):
    decision = agent.act(context)
    next_context, reward, *_ = env.step(decision.action)
    agent.learn(context, decision, reward == 1.0)
    print(
        f"action {decision.action} with probability {decision.probabilities[decision.action]:.2f}, right: {reward == 1.0}"
    )
    context = next_context

# %% [markdown]
# `play` does the same for all rounds. With the same seed, all agents run on the same stream.

# %%
checkpoints = [200, 500, 1_000, 2_000]
for name in ("fastcb", "epsilon-greedy-direct", "uniform"):
    agent = make_agent(name, env.problem, seed=0)
    played = play(env, agent, seed=0, checkpoints=checkpoints)
    shares = np.array(played.mistakes) / np.array(played.rounds)
    print(f"{name:22}", "  ".join(f"{share:5.1%} in {rounds:,}" for share, rounds in zip(shares, checkpoints)))
