"""river's adaptive random forest on one bit: a binary forest per class, epsilon-greedy, as `river-logistic` plays.

Class k's forest forecasts whether k would be right, and learns whenever k was played. One that has learnt nothing says 1/2.
"""

from __future__ import annotations

import numpy as np

from benchmarks.measure.rivals.tables import Stream

EPSILON = 0.05


def play(stream: Stream, trees: int, seed: int) -> float:
    """Return the share of mistakes of one pass, with `trees` trees a class and river's defaults otherwise."""
    from river.forest import ARFClassifier

    rng, K, mistakes = np.random.default_rng([seed, 4]), stream.n_classes, 0
    forests = [ARFClassifier(n_models=trees, seed=int(rng.integers(2**31))) for _ in range(K)]
    for x, label in zip(stream.X, stream.y.tolist(), strict=True):
        features = dict(enumerate(x.tolist()))
        said = np.array([forest.predict_proba_one(features).get(True, np.nan) for forest in forests])
        said[np.isnan(said)] = 0.5
        best = np.flatnonzero(said == said.max())
        action = int(rng.integers(K)) if rng.random() < EPSILON else int(rng.choice(best))
        forests[action].learn_one(features, action == label)
        mistakes += action != label
    return mistakes / len(stream.y)
