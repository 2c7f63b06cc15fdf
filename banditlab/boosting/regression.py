"""The boosting regression (Agarwal, Kale and Zimmert, ALT 2022, Definition 11 and Algorithm 3)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.boosting.compiled_rounds import Loops, best_of, loops, put_votes
from banditlab.bounds.boosting import boosting_regression
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.simd import WIDTH, all_lanes, eight, lane, only, put
from banditlab.numerics.simd_math import exp, log, near_exp
from banditlab.players.inputs import as_class, as_vector
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
def log_mass(s, l):
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
def nearly(z, goal, half):
    """Return the root of z + half tanh(z/2) = goal to some 1e-3, z being near it: a step of Newton's, tanh a fraction n/d."""
    x = 0.25 * z * z
    d = 945.0 + x * (420.0 + x * 15.0)
    n = min(d, 0.5 * z * (945.0 + x * (105.0 + x)))
    return z + ((goal - z) * d - half * n) * d / (d * d + 0.5 * half * (d * d - n * n))


@inline
def root(m, q, w):
    """Return the root t of t = m - (w/2) q tanh(t/2), as `aioli_root`; sigmoid(|t|) and sigmoid(-|t|).

    It costs one exponential: with z near |t|, T = tanh(z/2) and its derivatives, which are polynomials in T, |t| - z is a
    series in Newton's step, and the sigmoids' change one in |t| - z. Where that is too long for four terms, Newton's step is
    taken itself, and z is nearer.
    """
    half, goal = 0.5 * w * q, abs(m)
    z = max(goal - half, goal / (1.0 + 0.5 * half))  # tanh(z/2) is at most 1, and z/2: the root lies above
    if z > 40.0:  # T is 1 to the last bit
        z = max(40.0, goal - half)
        return math.copysign(z, m), 1.0, lane(exp(all_lanes(-z)))
    z, smaller = nearly(z, goal, half), 0.0
    for _ in range(60):
        e = lane(near_exp(all_lanes(-z)))
        f = 1.0 + e
        share, straight = 1.0 / f, f * f / (f * f + 2.0 * half * e)
        tanh, smaller = (1.0 - e) * share, e * share
        rise = 2.0 * share * smaller  # the first derivative of T; the third is rise bent, the fourth rise turned
        bent, turned = tanh * tanh - rise, tanh * (4.0 * rise - tanh * tanh)
        step = (goal - z - half * tanh) * straight
        # z + d + half tanh((z + d)/2) = goal, over 1 + half rise: d + two d^2 + three d^3 + four d^4 = step
        bend, again = half * rise * straight, step * step
        two, three, four = -0.5 * bend * tanh, bend * bent * (1.0 / 6.0), bend * turned * (1.0 / 24.0)
        last = (5.0 * two * (three - two * two) - four) * (again * again)
        if abs(step) < 0.004 and abs(last) < 1e-13:
            d = (step - two * again) + ((2.0 * two * two - three) * (again * step) + last)
            change = (tanh * d - 2.0) - (d * d) * (bent * (1.0 / 3.0) + d * (turned * (1.0 / 12.0)))
            return (
                math.copysign(z + d, m),
                1.0 - (smaller + 0.25 * rise * d * change),
                smaller + 0.25 * rise * d * change,
            )
        z += step
    return math.copysign(z, m), 1.0 - smaller, smaller


@inline
def look(states, i, half, seen):
    """Write what regression i makes of a half-margin, which is clipped, into seen (8,); return sigmoid(t) and sigmoid(-t).

    seen: the half-margin, x = (half, -1), and at x the root t, m = h'x, q = x'A^{-1}x, A^{-1}x; sigmoid(|t|), sigmoid(-|t|).
    """
    Q, h, clip = states.Q[i], states.h[i], states.constants[3]
    half = min(clip, max(-clip, half))
    v0, v1 = Q[0] * half - Q[1], Q[1] * half - Q[2]
    m, q = h[0] * half - h[1], v0 * half - v1
    t, larger, smaller = root(m, q, states.constants[1])
    seen[0], seen[1], seen[2], seen[3], seen[4], seen[5], seen[6], seen[7] = half, t, m, q, v0, v1, larger, smaller
    return (larger if t >= 0.0 else smaller), (smaller if t >= 0.0 else larger)


@njit
def votes_kernel(states, i, s, l, seen, out):
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
def look_kernel(states, i, p, l, seen):
    """Write what regression i makes of a class l and votes whose softmax is p (K,) into seen.

    Returns the others' share before, the class's own share after and what is left then.
    """
    others = 0.0
    for k in range(p.shape[0]):
        if k != l:
            others += p[k]
    own, rest = look(states, i, 0.5 * lane(log(all_lanes(p[l] / others))), seen)
    return others, own, rest


@inline
def predict_kernel(states, i, p, l, seen, out):
    """Write the softmax of the prediction of regression i into out (K,), which may be p (K,), that of the votes before.

    The class l gets sigmoid(t), the others what is left, in the proportions they had.
    """
    others, own, rest = look_kernel(states, i, p, l, seen)
    K = p.shape[0]
    for k in range(K):  # where the others have vanished nothing is known of their proportions
        out[k] = p[k] / others * rest if others > 0.0 else rest / (K - 1)
    out[l] = own


@inline
def update_kernel(states, i, right, seen):
    """Update regression i on whether the prediction was right, at what `look_kernel` has seen: `aioli.surrogate` at t."""
    Q, h = states.Q[i], states.h[i]
    t, m, q, v0, v1, larger, smaller = seen[1], seen[2], seen[3], seen[4], seen[5], seen[6], seen[7]
    sign = 1.0 if right else -1.0
    kappa, gam = states.constants[0] * larger * smaller, -sign * (smaller if sign * t > 0.0 else larger)
    beta = kappa * t - 0.5 * gam
    shrink = 1.0 / (1.0 + kappa * q)
    step, down = (beta - kappa * m) * shrink, kappa * shrink
    h[0] += step * v0
    h[1] += step * v1
    Q[0] -= down * v0 * v0
    Q[1] -= down * v0 * v1
    Q[2] -= down * v1 * v1


@njit
def learn_kernel(states, P, zero, votes, y, seen):
    """Update every regression on (s^{i-1}, l^i, y): row i - 1 of P (N, K) is softmax(s^i), and `zero` (K,) that of s^0."""
    for i in range(P.shape[0]):
        l = int(votes[i])
        look_kernel(states, i, P[i - 1] if i > 0 else zero, l, seen)
        update_kernel(states, i, y == l, seen)


class Rule(NamedTuple):
    """The regressions' states, and seen (N, 8), what each has seen in the round."""

    states: Regressions
    seen: NDArray[np.float64]


@inline
def put_mass(room, i, P):
    """Write sum_{k != r} p_k of the shares kept into mass, row i."""
    for b in range(0, P, WIDTH):
        mass = all_lanes(0.0)
        for k in range(room.pairs.shape[0]):
            mass = mass + eight(room.others, k * P + b) * room.odds[k]
        put(room.mass, i * P + b, mass)


@inline
def begin(rule, room):
    """Write even shares, and what each class leaves to the others."""
    K, P = room.pairs.shape
    for b in range(0, P, WIDTH):
        shares = all_lanes(0.0)
        for r in range(K):
            shares = shares + eight(room.unit, r * P + b) * (1.0 / K)
        put(room.odds, b, shares)
    put_mass(room, 0, P)


@inline
def choose_shares(room, i, q, u, P):
    """Return the class that is cheapest under (C.1), as `class_costs` has it; every class's margin, too, for the step."""
    K = room.pairs.shape[0]
    share = 1.0 / K
    for b in range(0, P, WIDTH):
        p, gain = eight(room.odds, b), all_lanes(0.0)
        put(room.next, b, log(p / eight(room.mass, i * P + b)))
        for r in range(K):
            row = (p + all_lanes(room.mass[i, r])) * share * eight(room.others, r * P + b)
            gain = gain - row * q[r]
        put(room.gain, b, gain)
    return best_of(room.gain, 0, K, u)


@inline
def step_shares(rule, room, i, l, S, P):
    """Step to the shares that regression i makes of the class l."""
    K, seen, others, before = room.pairs.shape[0], rule.seen[i], room.mass[i, l], room.odds[l]
    own, rest = look(rule.states, i, 0.5 * room.next[l], seen)
    for b in range(0, P, WIDTH):
        put(room.before, i * P + b, all_lanes(before))
        p = eight(room.odds, b) / all_lanes(others) * rest
        if not others > 0.0:
            p = only(all_lanes(rest / (K - 1)), min(WIDTH, K - b), 0.0)
        p = p * eight(room.others, l * P + b) + eight(room.unit, l * P + b) * own
        put(room.odds, b, p)
        put_votes(S, i, b, p)
    put_mass(room, i + 1, P)


@inline
def choose(rule, room, i, q, u):
    if room.odds.shape[0] == WIDTH:  # loops over one block are none
        return choose_shares(room, i, q, u, WIDTH)
    return choose_shares(room, i, q, u, room.odds.shape[0])


@inline
def vote(rule, room, i, l, S):
    if room.odds.shape[0] == WIDTH:
        step_shares(rule, room, i, l, S, WIDTH)
    else:
        step_shares(rule, room, i, l, S, room.odds.shape[0])


@inline
def adapt(rule, room, i, l, y, root, S):
    update_kernel(rule.states, i, y == l, rule.seen[i])


@njit
def recall(rule, i, l, s):
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
        Largest half-margin, ln T in the paper; 0 or above. Shares that vanish count as a half-margin of 354.
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
        self._seen, self._even = np.zeros(8), np.full(self.n_classes, 1.0 / self.n_classes)

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
        return loops(__name__, begin, choose, vote, adapt, recall), Rule(self.states, np.zeros((self.n_copies, 8)))

    def bound(self, rounds: int) -> float | None:
        """Return a copy's regret after `rounds` rounds over alpha in [-2, 2], in nats; None where W_alpha is not covered."""
        regret = self._one.bound(rounds)
        if regret is None or self.norm_bound < math.sqrt(2.0):
            return None
        return boosting_regression(rounds, self.clip, regret)
