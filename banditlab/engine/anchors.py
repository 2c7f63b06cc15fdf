"""Baselines in hindsight for tables with several right actions, for reports."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditlab.comparators import best_actions, one_against_rest
from banditlab.numerics.right_actions import are_right
from banditlab.numerics.sparse_rows import is_sparse

BALL = 10.0
"""The norm bound of the logistic models."""
MOST = 2**32
"""The largest n d^2 K for which the logistic models are computed, which takes about a minute."""


def anchors(env: Any) -> dict[str, float]:
    """Return the mistake rates `anchor.NAME` and, if known, the mean costs `cost.NAME` of baselines on a table's rows.

    `gap` is the largest certified optimality gap of the logistic models, in nats. The oracle chooses the cheapest right
    action.
    """
    rows = env.ranked_rows
    X, right = rows.X, rows.y
    n, K = right.shape
    costs = np.zeros((n, K)) if rows.costs is None else rows.costs
    actions: dict[str, NDArray[np.int64]] = {"best single action": best_actions(right, np.zeros(n))}
    if getattr(env, "per_features", None) is not None:
        first, last = env.per_features
        ones = X[:, first : last + 1] > 0.0
        values = np.where(ones.any(axis=1), ones.argmax(axis=1), -1)
        actions[f"best action per value of {env.per}"] = best_actions(right, values)
    gap = {}
    if not is_sparse(X) and n * K * X.shape[1] ** 2 <= MOST:
        models = one_against_rest(X, right, BALL)
        actions["a logistic model per action"] = models.actions
        gap = {"gap": float(models.gaps.max())}
    cheapest = np.where(right | ~right.any(axis=1)[:, None], costs, np.inf).argmin(axis=1)
    actions["oracle"] = cheapest
    shares = {f"anchor.{name}": float(1.0 - are_right(right, each).mean()) for name, each in actions.items()}
    if rows.costs is not None:
        shares |= {f"cost.{name}": float(costs[np.arange(n), each].mean()) for name, each in actions.items()}
    return shares | gap
