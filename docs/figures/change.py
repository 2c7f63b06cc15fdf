"""What if the right actions change? After 3,000 rounds every digit gets another right action."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from banditlab import Problem, make_agent

X, y = load_digits(return_X_y=True)
X = np.hstack([np.ones((len(X), 1)), X / np.linalg.norm(X, axis=1, keepdims=True)])
rows = np.random.default_rng(0).integers(len(X), size=6_000)
for name in ("linucb", "fastcb", "stackcb"):
    agent, wrong = make_agent(name, Problem(n_features=65, n_classes=10, radius=2.0), seed=0), []
    for t, i in enumerate(rows):
        decision = agent.act(X[i])
        correct = bool(decision.action == (y[i] + (t >= 3_000)) % 10)
        agent.learn(X[i], decision, correct)
        wrong.append(not correct)
    plt.plot(np.arange(200, 6_001, 20), np.convolve(wrong, np.full(200, 0.5), mode="valid")[::20], label=name)
plt.xlabel("round")
plt.ylabel("mistake rate in the last 200 rounds, %")
plt.legend()
plt.savefig("change.svg")
