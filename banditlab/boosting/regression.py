"""The boosting regression (Agarwal, Kale and Zimmert, ALT 2022, Definition 11 and Algorithm 3)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.boosting.compiled_rounds import Steps
from banditlab.bounds.boosting import boosting_regression
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.tanh_root import aioli_root_and_sigmoids
from banditlab.problem import Problem
from banditlab.validation import nonnegative, one_of, positive

FORECASTERS: dict[str, type[AIOLI] | type[FOLKLORE]] = {"folklore": FOLKLORE, "aioli": AIOLI}


CURVATURE, VIRTUAL_WEIGHT, CLIP = range(3)
"""Indices of the constants."""
Q11, Q12, Q22 = range(3)
"""Indices of the entries of a symmetric 2 x 2 inverse."""
HALF, ROOT, M, QUAD, V1, V2, LARGER, BELOW = range(8)
"""Indices of `RuleScratch.seen`."""


class Regressions(NamedTuple):
    r"""The states of N binary forecasters with two features and :math:`\theta = W_1 - W_2`: Q (N, 3), h (N, 2) and
    constants (3,).

    Q has :math:`(A^{-1})_{11}, (A^{-1})_{12}, (A^{-1})_{22}`, and h is :math:`A^{-1} b`, in AIOLI's notation. The
    constants are the curvature c, the virtual weight w, and the clip.
    """

    Q: NDArray[np.float64]
    h: NDArray[np.float64]
    constants: NDArray[np.float64]

    @classmethod
    def of(cls, n: int, forecaster: AIOLI | FOLKLORE, clip: float) -> Regressions:
        r"""Return n forecasters with the given settings.

        For two classes FOLKLORE has :math:`W_1 = -W_2`. It then needs the inverse of one matrix of order d and a scalar
        root (Appendix D), which equal those of AIOLI with :math:`\lambda/2` and :math:`w = 1/2`.
        """
        lam, weight = 0.5 * forecaster.regularization, 0.5
        if isinstance(forecaster, AIOLI):
            lam, weight = forecaster.regularization, forecaster.virtual_weight
        constants = np.array([forecaster.curvature, weight, clip])
        return cls(np.tile([1.0 / lam, 0.0, 1.0 / lam], (n, 1)), np.zeros((n, 2)), constants)


class RuleScratch(NamedTuple):
    r"""Work arrays of a round: `shares` (K,), the softmax of the current votes :math:`s^i`, and `seen` (N, 8), the
    values of each regression's last forecast.

    A row of `seen` contains the clipped half-margin, the root t, :math:`m = h'x`, :math:`q = x'A^{-1}x`,
    :math:`A^{-1}x`, :math:`\mathrm{sigmoid}(|t|)` and :math:`\mathrm{sigmoid}(-|t|)`, where
    :math:`x = (\text{half}, -1)`.
    """

    shares: NDArray[np.float64]
    seen: NDArray[np.float64]

    @classmethod
    def of(cls, N: int, K: int) -> RuleScratch:
        """Return arrays for N learners and K classes."""
        return cls(np.zeros(K), np.zeros((N, 8)))


# ------------------------------------------------------------------------------------ Algorithm 3: forecast and update


@inline
def forecast(states, i, half, seen):
    r"""Write regression i's forecast at a half-margin, which is clipped here, into seen (8,).

    Returns :math:`\mathrm{sigmoid}(t)` and :math:`\mathrm{sigmoid}(-t)`.
    """
    Q, h, clip = states.Q[i], states.h[i], states.constants[CLIP]
    half = min(clip, max(-clip, half))  # x = (half, -1)
    v1, v2 = Q[Q11] * half - Q[Q12], Q[Q12] * half - Q[Q22]
    m, q = h[0] * half - h[1], v1 * half - v2
    t, larger, below = aioli_root_and_sigmoids(m, q, states.constants[VIRTUAL_WEIGHT])
    seen[HALF], seen[ROOT], seen[M], seen[QUAD] = half, t, m, q
    seen[V1], seen[V2], seen[LARGER], seen[BELOW] = v1, v2, larger, below
    return (larger if t >= 0.0 else below), (below if t >= 0.0 else larger)


@inline
def update_kernel(states, i, right, seen):
    """Update regression i with the binary label `right`, as AIOLI does; `seen` contains the values of its forecast."""
    Q, h = states.Q[i], states.h[i]
    t, m, q, v1, v2, larger, below = seen[ROOT], seen[M], seen[QUAD], seen[V1], seen[V2], seen[LARGER], seen[BELOW]
    sign = 1.0 if right else -1.0
    # AIOLI's (2), (9): (eta_t / 2) g g' = kappa x x', g = gam x
    kappa, gam = states.constants[CURVATURE] * larger * below, -sign * (below if right == (t > 0.0) else larger)
    beta = kappa * t - 0.5 * gam  # (5): b += beta x; and A += kappa x x', its inverse by Sherman and Morrison
    shrink = 1.0 / (1.0 + kappa * q)
    step, down = (beta - kappa * m) * shrink, kappa * shrink
    h[0] += step * v1
    h[1] += step * v2
    Q[Q11] -= down * v1 * v1
    Q[Q12] -= down * v1 * v2
    Q[Q22] -= down * v2 * v2


# ----------------------------------------------------------------- the steps of a round, on the softmax p of the votes


@inline
def put_mass(scratch, i):
    r"""Write :math:`\sum_{k \ne r} p_k` of the stored softmax p into `mass[i, r]`."""
    p, mass = scratch.own.shares, scratch.mass[i]
    K = p.shape[0]
    mass[:] = 0.0
    for k in range(K):
        for r in range(K):
            mass[r] += p[k] if k != r else 0.0


@inline
def begin(states, scratch):
    """Set the stored softmax to the uniform distribution, and write `mass` at :math:`s^0`."""
    scratch.own.shares[:] = 1.0 / scratch.own.shares.shape[0]
    put_mass(scratch, 0)


@inline
def costs(states, scratch, i, C):
    """Write the costs :math:`C^i` (K, K) of (C.1).

    They are the rows of the gradient, shifted to 0 at the label and divided by K. No cost is negative, and a row's sum
    is at most 1, as FOLKLORE's paper requires.
    """
    K = C.shape[0]
    share = 1.0 / K
    for r in range(K):
        for l in range(K):
            C[r, l] = (scratch.own.shares[l] + scratch.mass[i, r]) * share
        C[r, r] = 0.0


@inline
def vote(states, scratch, i, l, S):
    r"""Step to :math:`\mathrm{softmax}(s^{i+1})` with :math:`s^{i+1} = \mathrm{BoostReg}^i(s^i, l)`.

    The class l gets :math:`\mathrm{sigmoid}(t)`, and the other classes share the rest in their former proportions.
    """
    p, K, others = scratch.own.shares, scratch.own.shares.shape[0], scratch.mass[i, l]
    scratch.before[i] = p[l]
    own, rest = forecast(states, i, 0.5 * math.log(p[l] / others), scratch.own.seen[i])
    for k in range(K):
        # where the others underflow, their proportions are unknown
        p[k] = p[k] / others * rest if others > 0.0 else rest / (K - 1)
    p[l] = own
    for k in range(K):
        S[i, k] = p[k]
    put_mass(scratch, i + 1)


@inline
def adapt(states, scratch, i, l, y, root, S):
    r"""Apply :math:`\mathrm{BoostReg}^i.\mathrm{Update}`, whose binary label is whether l is y."""
    update_kernel(states, i, y == l, scratch.own.seen[i])


@njit
def recall(states, scratch, i, l, p):
    """Recompute row i of `seen` from the weak prediction l and the softmax p (K,) of the votes."""
    others = 0.0
    for k in range(p.shape[0]):
        if k != l:
            others += p[k]
    # its context (1/2) ln(p_l / sum_{k != l} p_k), as in `vote`
    forecast(states, i, 0.5 * math.log(p[l] / others), scratch.own.seen[i])


STEPS = Steps(RuleScratch, begin, costs, vote, adapt, recall)


class BoostingRegression:
    r"""Predict votes from votes s and a weak prediction l by Algorithm 3, which competes with the best
    :math:`s + \alpha e_l`.

    An object has N copies of the algorithm.

    Problem (Definition 11): given s (K,) and l, return :math:`\hat{s}` (K,); then observe the label y, and incur the
    loss :math:`-\ln \mathrm{softmax}(\hat{s})_y`. The comparators are :math:`s + \alpha e_l` with one :math:`\alpha` in
    [-2, 2] for all rounds.

    Update rule (Algorithm 3): whether l is right is a binary problem with the margin
    :math:`s_l - \ln \sum_{k \ne l} e^{s_k} + \alpha`. The context of a binary forecaster (:math:`d = 2`) consists of
    half of the margin without :math:`\alpha`, clipped, and -1. Its two logits :math:`\zeta` replace :math:`s_l` and the
    log mass of all other classes: :math:`\hat{s}_l = \zeta_1`,
    :math:`\hat{s}_k = s_k + \zeta_2 - \ln \sum_{k' \ne l} e^{s_{k'}}`. The forecaster is AIOLI, or
    FOLKLORE with the corrections of entries 1 and 2 of docs/errata.md.

    Guarantee (Theorem 13): the regret is at most that of the forecaster plus
    :math:`T \ln(1 + e^{2 - 2\, \text{clip}})`, in nats; it is :math:`O((\ln T)^2)` for :math:`\text{clip} = \ln T`. See
    `bound`.

    Both forecasters store a 2 x 2 matrix and a vector, and solve one scalar equation per forecast (see `Regressions`).
    The steps of a round (`STEPS`) store the softmax of the votes instead of the votes.

    Cost: :math:`O(K)` per round, with an exponential, a logarithm and the solution of a scalar equation. Memory: five
    floats per copy.

    Parameters
    ----------
    n_copies
        N, the number of independent copies of the algorithm.
    clip
        Largest half-margin, :math:`\ln T` in the paper; 0 or above.
    forecaster
        "folklore" or "aioli".
    norm_bound
        B of the binary problem, the largest norm of a row of :math:`W_\alpha`; 2 in the paper, and :math:`\sqrt{2}`
        suffices.

    Raises
    ------
    UsageError
        A setting is outside its range.

    References
    ----------
    N. Agarwal, S. Kale, J. Zimmert. Efficient methods for online multiclass logistic regression. ALT 2022.
    """

    def __init__(self, n_copies: int, *, clip: float, forecaster: str = "folklore", norm_bound: float = 2.0) -> None:
        self.clip = nonnegative("clip", clip)
        self.norm_bound = positive("norm_bound", norm_bound)
        # R = 1 + clip as in the paper, at least the norm of every context
        make = FORECASTERS[one_of("forecaster", forecaster, tuple(FORECASTERS))]
        self._one = make(Problem(2, 2, 1.0 + self.clip), None, norm_bound=self.norm_bound)
        self.states = Regressions.of(n_copies, self._one, self.clip)

    def bound(self, rounds: int) -> float | None:
        r"""Return a bound on a copy's regret after `rounds` rounds over :math:`\alpha` in [-2, 2], in nats.

        Returns None if the theorem does not cover :math:`W_\alpha`.
        """
        regret = self._one.bound(rounds)
        if regret is None or self.norm_bound < math.sqrt(2.0):
            return None
        return boosting_regression(rounds, self.clip, regret)
