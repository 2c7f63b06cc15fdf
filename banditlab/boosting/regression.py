"""The boosting regression (Agarwal, Kale and Zimmert, ALT 2022, Definition 11 and Algorithm 3)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.boosting._compiled import Loops, loops, share_costs
from banditlab.bounds.boosting import boosting_regression
from banditlab.forecasters._quadratic import aioli_root
from banditlab.forecasters.aioli import AIOLI, surrogate
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.kernels import as_class, as_vector, inline, njit
from banditlab.problem import Problem
from banditlab.validation import at_least, nonnegative, one_of, positive

FORECASTERS: dict[str, type[AIOLI] | type[FOLKLORE]] = {"folklore": FOLKLORE, "aioli": AIOLI}


class Regressions(NamedTuple):
    """N binary forecasters of two features, theta = W_1 - W_2 each: Q (N, 3), h (N, 2) and four constants (4,).

    Q holds (A^{-1})_11, _12, _22 and h = A^{-1} b in AIOLI's letters; the constants are the curvature c, the virtual
    weight w, the reciprocal of FOLKLORE's lambda (0 for AIOLI), and the clip.
    """

    Q: NDArray[np.float64]
    h: NDArray[np.float64]
    constants: NDArray[np.float64]

    @classmethod
    def of(cls, n: int, forecaster: AIOLI | FOLKLORE, clip: float) -> Regressions:
        """Return n forecasters of the settings given.

        For two classes FOLKLORE keeps W_1 = -W_2, so that its inverse is that of one matrix of order d and its minimiser
        a root in one unknown (Appendix D): those of AIOLI with lambda/2 and w = 1/2.
        """
        lam, weight, reciprocal = forecaster.regularization, 0.5, 0.0
        if isinstance(forecaster, AIOLI):
            weight = forecaster.virtual_weight
        else:
            lam, reciprocal = 0.5 * lam, 1.0 / lam
        constants = np.array([forecaster.curvature, weight, reciprocal, clip])
        return cls(np.tile([1.0 / lam, 0.0, 1.0 / lam], (n, 1)), np.zeros((n, 2)), constants)


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


@inline
def look(states, i, half, seen):  # type: ignore[no-untyped-def]
    """Write what regression i makes of a half-margin, which is clipped, into seen (6,).

    seen: the half-margin, x = (half, -1), and at x the root t, m = h'x, q = x'A^{-1}x, A^{-1}x.
    """
    Q, h, clip = states.Q[i], states.h[i], states.constants[3]
    half = min(clip, max(-clip, half))
    v0, v1 = Q[0] * half - Q[1], Q[1] * half - Q[2]
    m, q = h[0] * half - h[1], v0 * half - v1
    seen[0], seen[1], seen[2], seen[3], seen[4], seen[5] = half, aioli_root(m, q, states.constants[1]), m, q, v0, v1


@njit
def votes_kernel(states, i, s, l, seen, out):  # type: ignore[no-untyped-def]
    """Write the prediction of regression i at votes s (K,) and a class l into out (K,): Algorithm 3 as it stands."""
    others = log_mass(s, l)
    look(states, i, 0.5 * (s[l] - others), seen)
    reciprocal, half, t, q = states.constants[2], seen[0], seen[1], seen[3]
    # FOLKLORE's two logits differ by t and their sum is minus the off-diagonal entry of its At
    zeta = 0.5 * (0.125 * q - 0.25 * (half * half + 1.0) * reciprocal - t) if reciprocal > 0.0 else 0.0
    for k in range(s.shape[0]):
        out[k] = s[k] + zeta - others
    out[l] = zeta + t


@inline
def look_kernel(states, i, p, l, seen):  # type: ignore[no-untyped-def]
    """Write what regression i makes of a class l and votes whose softmax is p (K,) into seen; return the others' share."""
    others = 0.0
    for k in range(p.shape[0]):
        if k != l:
            others += p[k]
    look(states, i, 0.5 * math.log(p[l] / others), seen)
    return others


@inline
def predict_kernel(states, i, p, l, seen, out):  # type: ignore[no-untyped-def]
    """Write the softmax of the prediction of regression i into out (K,), which may be p (K,), that of the votes before.

    The class l gets sigmoid(t), the others what is left, in the proportions they had.
    """
    others = look_kernel(states, i, p, l, seen)
    e = math.exp(-abs(seen[1]))
    larger = 1.0 / (1.0 + e)
    own, rest = (larger, e * larger) if seen[1] >= 0.0 else (e * larger, larger)
    K = p.shape[0]
    for k in range(K):  # where the others have vanished nothing is known of their proportions
        out[k] = rest / others * p[k] if others > 0.0 else rest / (K - 1)
    out[l] = own


@inline
def update_kernel(states, i, right, seen):  # type: ignore[no-untyped-def]
    """Update regression i on whether the prediction was right, at what `look_kernel` has seen."""
    Q, h = states.Q[i], states.h[i]
    t, m, q, v0, v1 = seen[1], seen[2], seen[3], seen[4], seen[5]
    kappa, _, beta = surrogate(t, 0 if right else 1, states.constants[0])
    shrink = 1.0 / (1.0 + kappa * q)
    step, down = (beta - kappa * m) * shrink, kappa * shrink
    h[0] += step * v0
    h[1] += step * v1
    Q[0] -= down * v0 * v0
    Q[1] -= down * v0 * v1
    Q[2] -= down * v1 * v1


@njit
def learn_kernel(states, P, zero, votes, y, seen):  # type: ignore[no-untyped-def]
    """Update every regression on (s^{i-1}, l^i, y): row i - 1 of P (N, K) is softmax(s^i), and `zero` (K,) that of s^0."""
    for i in range(P.shape[0]):
        l = int(votes[i])
        look_kernel(states, i, P[i - 1] if i > 0 else zero, l, seen)
        update_kernel(states, i, y == l, seen)


class Rule(NamedTuple):
    """The regressions' states, and seen (N, 6), what each has seen in the round."""

    states: Regressions
    seen: NDArray[np.float64]


@inline
def hand_costs(costs, room):  # type: ignore[no-untyped-def]
    """Write (C.1) into room (K, K): the gradients' rows shifted to 0 at the label and divided by K, as `class_costs`."""
    K = costs.shape[0]
    share = 1.0 / K
    for r in range(K):
        own = costs[r, r]
        for l in range(K):
            room[r, l] = (costs[r, l] - own) * share
    return room


@inline
def vote(rule, i, l, S, costs):  # type: ignore[no-untyped-def]
    if i == 0:
        for k in range(S.shape[1]):
            S[0, k] = 1.0 / S.shape[1]
    predict_kernel(rule.states, i, S[max(i - 1, 0)], l, rule.seen[i], S[i])
    if i + 1 < S.shape[0]:
        share_costs(S[i], costs[i + 1])


@inline
def adapt(rule, i, l, y, root, S, costs):  # type: ignore[no-untyped-def]
    update_kernel(rule.states, i, y == l, rule.seen[i])


@njit
def recall(rule, i, l, s):  # type: ignore[no-untyped-def]
    look_kernel(rule.states, i, s, l, rule.seen[i])


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

    Both forecasters are kept in the same form, one matrix of order two and a root in one unknown (see `Regressions`).

    Cost: O(K) a round, an exponential, a logarithm and a root; five floats for each copy.

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
        # R = 1 + clip as in the paper, at least the norm of every context
        one = FORECASTERS[forecaster](Problem(2, 2, 1.0 + self.clip), None, norm_bound=self.norm_bound)
        self._one = one
        self.states = Regressions.of(self.n_copies, one, self.clip)
        self._seen, self._even = np.zeros(6), np.full(self.n_classes, 1.0 / self.n_classes)

    def predict(self, i: int, s: Any, l: int) -> NDArray[np.float64]:
        """Return copy i's prediction s_hat (K,) at votes s (K,) and class l; no copy changes."""
        out, votes = np.empty(self.n_classes), as_vector("the votes", s, self.n_classes)
        votes_kernel(self.states, i, votes, as_class("the class", l, self.n_classes), self._seen, out)
        return out

    def predict_shares(self, i: int, p: NDArray[np.float64], l: int, out: NDArray[np.float64]) -> None:
        """Write softmax(s_hat) into out (K,) for votes whose softmax is p (K,): arrays and range are not checked."""
        predict_kernel(self.states, i, p, l, self._seen, out)

    def update_all(self, P: NDArray[np.float64], votes: NDArray[np.float64], y: int) -> None:
        """Update copy i on the votes whose softmax is P[i - 1], even ones for the first copy, class votes[i] and label y."""
        learn_kernel(self.states, P, self._even, votes, y, self._seen)

    def rule(self) -> tuple[Loops, Rule]:
        """Return what compiled rounds of AdaBoost.OLM++ are made of: its loops, and the regressions as they take them."""
        return loops(__name__, hand_costs, vote, adapt, recall), Rule(self.states, np.zeros((self.n_copies, 6)))

    def bound(self, rounds: int) -> float | None:
        """Return a copy's regret after `rounds` rounds over alpha in [-2, 2], in nats; None where W_alpha is not covered."""
        regret = self._one.bound(rounds)
        if regret is None or self.norm_bound < math.sqrt(2.0):
            return None
        return boosting_regression(rounds, self.clip, regret)
