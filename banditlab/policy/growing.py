"""Add a class to an agent with one model per class, without changing the other models.

The new state is found by comparing two untrained agents, with K and with K + 1 classes. An array that is longer in the
second agent begins with the trained agent's array. A number that differs (a factor K, the size of a payload) is that of
the second agent. Everything else is copied from the trained agent.
"""

from __future__ import annotations

import copy
from typing import Any, cast

import numpy as np

from banditlab.errors import UsageError
from banditlab.numerics.sketched_inverses import SketchedInverses
from banditlab.players.agent import Agent
from banditlab.problem import Problem

GROWING = (
    *("fastcb", "squarecb", "stackcb", "linucb", "lints", "confidit", "epsilon-greedy", "epsilon-greedy-direct"),
    *("banditron", "soba", "soba-diag", "ovr-perceptron", "uniform"),
)
"""Agents for which tests verify that scores of old classes do not change, and the new class starts as in a new agent."""


def grown(agent: Any) -> Agent:
    """Return an agent with the same random generator and one more class, which is last and has no data.

    If the models of `stackcb` are not stored by class, a new agent learns from the rounds in the old agent's memory, at
    most the last 2,000.

    Raises
    ------
    UsageError
        The agent has no separate model per class.
    """
    if agent.id not in GROWING:
        raise UsageError(
            f"{agent.id} does not support another class, because its state is not one model per class; train a new policy, "
            f"or use one of {', '.join(GROWING)}"
        )
    p, settings = agent.problem, agent.params()
    wider = Problem(p.n_features, p.n_classes + 1, p.radius, p.horizon)
    if agent.id == "stackcb" and not agent.has_models_by_class:
        relearnt = type(agent)(wider, copy.deepcopy(agent.rng), **settings)
        relearnt.learn_memory_of(agent)
        return cast(Agent, relearnt)
    untaught = type(agent)(p, np.random.default_rng(0), **settings)
    new = type(agent)(wider, np.random.default_rng(0), **settings)
    new.set_state(_merged(agent.get_state(), untaught.get_state(), new.get_state(), agent.id))
    return cast(Agent, new)


def _merged(old: Any, untaught: Any, new: Any, path: str) -> Any:
    """Return `new` with all changes that led from the untrained state `untaught` to `old`."""
    if isinstance(old, np.ndarray):
        return _array(old, untaught, new, path)
    if isinstance(old, np.random.Generator):
        return old
    if isinstance(old, tuple) and hasattr(old, "_fields"):
        names = old._fields
        new = new.in_form_of(old) if hasattr(new, "in_form_of") else new
        parts = (_merged(getattr(old, n), getattr(untaught, n), getattr(new, n), f"{path}.{n}") for n in names)
        return _on_basis(type(old)(*parts), old)
    if isinstance(old, dict):
        return {n: _merged(value, untaught[n], new[n], f"{path}.{n}") for n, value in old.items()}
    if untaught == new:
        return old
    if old != untaught:
        raise UsageError(
            f"{path} stores a value computed from the number of classes and past updates: no class can be added"
        )
    return new


def _on_basis(merged: Any, old: Any) -> Any:
    r"""Return `merged`; if it is a sketch, first set its new models to :math:`p I` in the directions found so far."""
    if isinstance(merged, SketchedInverses):
        B, places, known = merged.B, merged.places, len(old.p)
        found = B[0, places] != 0.0  # elsewhere the sketch has no direction yet
        B[known:, places] = 0.5 * merged.p[known:, None] * found  # diagonal blocks are stored halved
    return merged


def _array(old: np.ndarray, untaught: np.ndarray, new: np.ndarray, path: str) -> np.ndarray:
    place = tuple(slice(length) for length in old.shape)
    if old.ndim != new.ndim or any(a > b for a, b in zip(old.shape, new.shape, strict=True)):
        raise UsageError(f"{path} has a different layout with one more class, so no class can be added")
    merged = new.copy(order="K")
    moved = old != untaught
    if np.any(moved & (untaught != new[place])):
        raise UsageError(
            f"{path} stores a value computed from the number of classes and past updates: no class can be added"
        )
    merged[place] = np.where(moved, old, new[place])
    return merged
