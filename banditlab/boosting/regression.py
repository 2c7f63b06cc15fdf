"""The boosting regression (Agarwal, Kale and Zimmert, ALT 2022, Definition 11 and Algorithm 3)."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.boosting import boosting_regression
from banditlab.forecasters._base import KernelForecaster
from banditlab.forecasters._stack import member, stack
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.kernels import as_class, as_vector, bind, inline, njit
from banditlab.problem import Problem
from banditlab.validation import at_least, nonnegative, one_of, positive

FORECASTERS: dict[str, type[KernelForecaster]] = {"folklore": FOLKLORE, "aioli": AIOLI}


class Room(NamedTuple):
    """clip (1,); x (2,) = (half-margin clipped, -1), and x_read, the same memory as forecasters take it; z (2,)."""

    clip: NDArray[np.float64]
    x: NDArray[np.float64]
    x_read: NDArray[np.float64]
    z: NDArray[np.float64]

    @classmethod
    def of(cls, clip: float) -> Room:
        x = np.array([0.0, -1.0])
        x_read = x.view()
        x_read.flags.writeable = False
        return cls(np.array([clip]), x, x_read, np.zeros(2))


@inline
def log_mass(s, l):  # type: ignore[no-untyped-def]
    """Return ln sum_{k != l} e^{s_k}."""
    top = -math.inf
    for k in range(s.shape[0]):
        if k != l:
            top = max(top, s[k])
    mass = 0.0
    for k in range(s.shape[0]):
        if k != l:
            mass += math.exp(s[k] - top)
    return top + math.log(mass)


@njit
def collapse(s, l, room):  # type: ignore[no-untyped-def]
    """Write the binary context of Algorithm 3 for votes s (K,) and a prediction l; return the mass of the other classes."""
    others = log_mass(s, l)
    room.x[0] = min(room.clip[0], max(-room.clip[0], 0.5 * (s[l] - others)))
    return others


def predict_template(states, i, s, l, room, out):  # type: ignore[no-untyped-def]
    """Write the prediction of regression i at (s, l) into out (K,)."""
    others = collapse(s, l, room)
    predict_kernel(member(states, i), room.x_read, room.z)  # type: ignore[name-defined]  # noqa: F821
    for k in range(s.shape[0]):
        out[k] = s[k] + room.z[1] - others
    out[l] = room.z[0]


def learn_template(states, S, zero, votes, y, room):  # type: ignore[no-untyped-def]
    """Update every regression on (s^{i-1}, l^i, y): row i - 1 of S (N, K) is s^i, and `zero` (K,) is s^0."""
    for i in range(S.shape[0]):
        l = int(votes[i])
        collapse(S[i - 1] if i > 0 else zero, l, room)
        update_kernel(member(states, i), room.x_read, 0 if y == l else 1, room.z)  # type: ignore[name-defined]  # noqa: F821


@cache
def _bound(cls: type[KernelForecaster]) -> tuple[Any, Any]:
    owner = f"{__name__} of {cls.__module__}.{cls.__qualname__}"
    return (
        bind(predict_template, owner, predict_kernel=cls.predict_kernel),
        bind(learn_template, owner, update_kernel=cls.update_kernel),
    )


class BoostingRegression:
    """N copies of Algorithm 3: predict votes from votes s and a weak prediction l, as well as the best s + alpha e_l.

    Problem (Definition 11): see s (K,) and l, answer s_hat (K,), see the label y, pay -log softmax(s_hat)_y. The
    comparators are s + alpha e_l with one alpha in [-2, 2] for all rounds.

    Update rule (Algorithm 3): whether l is right is a binary problem with the margin s_l - ln sum_{k != l} e^{s_k} + alpha:
    half of it, clipped, and -1 are the context (d = 2) of a binary forecaster, whose two logits zeta replace s_l and the
    mass of the others: s_hat_l = zeta_1, s_hat_k = s_k + zeta_2 - ln sum_{k' != l} e^{s_k'}. The forecaster is this
    package's FOLKLORE, with the curvature that is a lower bound and the complete linear term, or AIOLI.

    Guarantee (Theorem 13): regret at most the forecaster's plus T ln(1 + e^(2 - 2 clip)), in nats; with clip = ln T,
    O(ln(T)^2). See `bound`.

    Cost: O(K) a round and the forecaster at K = d = 2; a fixed number of floats for each copy.

    Parameters
    ----------
    n_copies, n_classes
        N and K.
    clip
        Largest half-margin, ln T in the paper; 0 or above.
    forecaster
        "folklore" or "aioli".
    norm_bound
        B of the binary problem, the largest norm of a row of W_alpha; 2 in the paper, and sqrt(2) is enough.

    Raises
    ------
    UsageError
        A setting out of its range.

    References
    ----------
    N. Agarwal, S. Kale, J. Zimmert. Efficient methods for online multiclass logistic regression. ALT 2022.
    """

    def __init__(
        self, n_copies: int, n_classes: int, *, clip: float, forecaster: str = "folklore", norm_bound: float = 2.0
    ) -> None:
        self.n_copies, self.n_classes = at_least("n_copies", n_copies, 1), at_least("n_classes", n_classes, 2)
        self.clip = nonnegative("clip", clip)
        self.forecaster = one_of("forecaster", forecaster, tuple(FORECASTERS))
        self.norm_bound = positive("norm_bound", norm_bound)
        cls = FORECASTERS[forecaster]
        # R = 1 + clip as in the paper, at least the norm of every context
        self._one = cls(Problem(2, 2, 1.0 + self.clip), None, norm_bound=self.norm_bound)  # type: ignore[call-arg]
        self.states = stack([self._one.state] * self.n_copies)
        self._room, self._zero = Room.of(self.clip), np.zeros(self.n_classes)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_room"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._room = Room.of(self.clip)  # its two names for one memory would be parted by a copy

    def predict_into(self, i: int, s: NDArray[np.float64], l: int, out: NDArray[np.float64]) -> None:
        """Write copy i's prediction at votes s (K,) and class l into out (K,): arrays and range are not checked."""
        _bound(FORECASTERS[self.forecaster])[0](self.states, i, s, l, self._room, out)

    def predict(self, i: int, s: Any, l: int) -> NDArray[np.float64]:
        """Return copy i's prediction s_hat (K,) at votes s (K,) and class l; no copy changes."""
        out, votes = np.empty(self.n_classes), as_vector("the votes", s, self.n_classes)
        self.predict_into(i, votes, as_class("the class", l, self.n_classes), out)
        return out

    def update_all(self, S: NDArray[np.float64], votes: NDArray[np.float64], y: int) -> None:
        """Update copy i on votes S[i - 1] (0 for the first copy), class votes[i] and the label y, for every i."""
        _bound(FORECASTERS[self.forecaster])[1](self.states, S, self._zero, votes, y, self._room)

    def bound(self, rounds: int) -> float | None:
        """Return a copy's regret after `rounds` rounds over alpha in [-2, 2], in nats; None where W_alpha is not covered."""
        regret = self._one.bound(rounds)
        if regret is None or self.norm_bound < math.sqrt(2.0):
            return None
        return boosting_regression(rounds, self.clip, regret)
