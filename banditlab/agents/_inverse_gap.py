"""Inverse-gap weighting over a per-class probabilistic oracle: what `fastcb` and `squarecb` share.

Oracle and weighting are two axes: each pair is bound into kernels of its own, compiled when first used. Only the class
that was played learns, from hits and from misses alike.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents._base import KernelAgent
from banditlab.agents._oracles import ORACLES
from banditlab.errors import UsageError
from banditlab.kernels import bind, draw, inline
from banditlab.problem import Problem
from banditlab.validation import nonnegative, one_of, positive


class State(NamedTuple):
    """oracle, its own state; x (d or d + 1,), the context with the intercept; rounds (1,) learnt; schedule (2,)."""

    oracle: Any
    x: NDArray[np.float64]
    rounds: NDArray[np.int64]
    schedule: NDArray[np.float64]


@inline
def fill(state, x):  # type: ignore[no-untyped-def]
    """Copy x (d,) before the intercept, which stands in the state's x where there is one."""
    for j in range(x.shape[0]):
        state.x[j] = x[j]


@inline
def sharpness(state):  # type: ignore[no-untyped-def]
    """Return g_t = K sharpness t^growth, t - 1 the number of outcomes learnt so far."""
    return state.schedule[0] * (state.rounds[0] + 1.0) ** state.schedule[1]


def act(state, x, u, p, payload):  # type: ignore[no-untyped-def]
    """Template: play from the weights of the oracle's margins, which travel in the payload."""
    fill(state, x)
    margins_kernel(state.oracle, state.x, payload)  # type: ignore[name-defined]  # noqa: F821
    weights_kernel(payload, sharpness(state), p)  # type: ignore[name-defined]  # noqa: F821
    return draw(p, u[1]), False


def learn(state, x, action, p, payload, correct):  # type: ignore[no-untyped-def]
    """Template: teach the played class's model the outcome, at the margin it was played at."""
    fill(state, x)
    learn_class_kernel(state.oracle, state.x, action, payload[action], 1.0 if correct else -1.0)  # type: ignore[name-defined]  # noqa: F821
    state.rounds[0] += 1


class InverseGapAgent(KernelAgent):
    """Base of the two: settings, state, kernels; a subclass names its weights_kernel(z, g, p) and its defaults."""

    explores = False
    weights_kernel: ClassVar[Any]

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        oracle: Literal["aioli", "logistic", "b-grid"],
        sharpness: float,
        growth: float,
        intercept: float,
        **of_oracle: Any,
    ) -> None:
        super().__init__(problem, rng)
        K, R = problem.n_classes, problem.radius
        self.oracle = one_of("oracle", oracle, tuple(ORACLES))
        self.sharpness = positive("sharpness", sharpness)
        self.growth = nonnegative("growth", growth)
        self.intercept = nonnegative("intercept", intercept)
        kind = ORACLES[self.oracle]
        self._refuse_unread(kind.reads, of_oracle)
        resolved = kind.resolved(of_oracle, R)
        vars(self).update(of_oracle | resolved)
        d = problem.n_features + (self.intercept > 0.0)
        x = np.zeros(d)
        x[problem.n_features :] = self.intercept * R
        self.payload_size = K
        self.state = State(
            oracle=kind.state(K, d, R, resolved),
            x=x,
            rounds=np.zeros(1, np.int64),
            schedule=np.array([self.sharpness * K, self.growth]),
        )

    def _refuse_unread(self, reads: tuple[str, ...], given: dict[str, Any]) -> None:
        """Refuse a setting of another oracle: it would change nothing."""
        own = self.own_settings()
        for name, value in given.items():
            if name not in reads and value != own[name].default:
                readers = " or ".join(repr(word) for word, kind in ORACLES.items() if name in kind.reads)
                raise UsageError(f"{name} is read by oracle = {readers} only, and this one is {self.oracle!r}")

    def kernels(self) -> tuple[Any, Any]:
        """Return the kernels of this weighting over this oracle."""
        return _bound(type(self), self.oracle)

    def kernel_owner(self) -> str:
        """Return a name unique to these kernels, for the disk cache."""
        return f"{super().kernel_owner()} over {self.oracle}"


@cache
def _bound(agent: type[InverseGapAgent], oracle: str) -> tuple[Any, Any]:
    kind, owner = ORACLES[oracle], f"{agent.__module__}.{agent.__qualname__} over {oracle}"
    return (
        bind(act, owner, margins_kernel=kind.margins_kernel, weights_kernel=agent.weights_kernel),
        bind(learn, owner, learn_class_kernel=kind.learn_kernel),
    )
