"""SOBA, the second-order Banditron (Beygelzimer, Orabona and Zhang, ICML 2017)."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.linear import LinearScores
from banditlab.numerics.argmax import argmax, runner_up
from banditlab.numerics.draws import greedy_or_uniform
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.vectors import matrix, scores
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import number, positive, probability


class State(NamedTuple):
    r"""The state: W (K, d), padded; C (Kd, Kd), which is :math:`A^{-1}`, with entry (k, j) of W at :math:`k d + j`.

    z (K,) and v (Kd,) are work arrays; `gamma` has the shape (1,). `tally` (4,) contains S, the sum of
    :math:`z_t'A_t^{-1}z_t` over the updates (see `SOBA`), the number of rounds, and 1 if :math:`\gamma` is adaptive,
    otherwise 0.
    """

    W: NDArray[np.float64]
    C: NDArray[np.float64]
    z: NDArray[np.float64]
    v: NDArray[np.float64]
    gamma: NDArray[np.float64]
    tally: NDArray[np.float64]


@inline
def act_kernel(state, x, u, p, payload):
    z, tally, K = state.z, state.tally, p.shape[0]
    gamma = state.gamma[0]
    if tally[3] == 1.0:
        gamma = min(1.0, math.sqrt(K * (1.0 + tally[1]) / (tally[2] + 1.0)))
    scores(state.W, x, z)
    y_hat = argmax(z, K)
    for k in range(K):
        payload[k] = z[k]
    return greedy_or_uniform(y_hat, gamma, u, p)  # p = (1 - gamma) e_yhat + gamma/K


@njit
def accepts(tally, difference, p_y, quadratic):
    r"""If :math:`S + m \ge 0`, add m and :math:`z'A_t^{-1}z` to the tally and return True, otherwise return False.

    m is as in `SOBA`. The arguments are :math:`\text{difference} = z_{\bar{y}} - z_y` and
    :math:`\text{quadratic} = z'A^{-1}z`.
    """
    m = (difference * difference + 2.0 * difference) / (p_y * (1.0 + quadratic))
    if tally[0] + m < 0.0:
        return False
    tally[0] += m
    tally[1] += quadratic / (1.0 + quadratic)
    return True


@inline
def learn_kernel(state, x, action, p, payload, correct):
    W, C, v = state.W, state.C, state.v
    state.tally[2] += 1.0
    if not correct:
        return
    d, n, p_y, y = x.shape[0], C.shape[0], p[action], action
    yb = runner_up(payload, y, payload.shape[0])  # g = (e_yb - e_y) (x) x / p_y, z = sqrt(p_y) g
    quadratic = 0.0
    for i in range(d):
        if x[i] != 0.0:
            row = 0.0
            for j in range(d):
                row += (C[yb * d + i, yb * d + j] - 2.0 * C[yb * d + i, y * d + j] + C[y * d + i, y * d + j]) * x[j]
            quadratic += x[i] * row
    quadratic /= p_y
    if not accepts(state.tally, payload[yb] - payload[y], p_y, quadratic):
        return
    root = 1.0 / math.sqrt(p_y)
    v[:] = 0.0
    difference = 0.0
    for i in range(d):  # v = A^{-1} z: z has two nonzero blocks
        difference += (W[yb, i] - W[y, i]) * x[i]
        if x[i] != 0.0:
            xi = root * x[i]
            for j in range(n):
                v[j] += xi * (C[yb * d + i, j] - C[y * d + i, j])
    # W_{t+1} = A_t^{-1} (theta - g) = W - v (z'W + 1/sqrt(p_y)) / (1 + z'A^{-1}z)
    step = root * (difference + 1.0) / (1.0 + quadratic)
    for k in range(p.shape[0]):
        for j in range(d):
            W[k, j] -= step * v[k * d + j]
    for i in range(n):
        vi = v[i] / (1.0 + quadratic)
        if vi != 0.0:
            for j in range(n):
                C[i, j] -= vi * v[j]


class SOBA(LinearScores, KernelAgent):
    r"""The bandit perceptron with second-order steps; a budget limits the updates after right greedy actions.

    Problem: bandit multiclass, adversarial stream.

    Update rule (at the start :math:`W = 0`, :math:`\theta = 0` and :math:`S = 0`, and :math:`A = a I` is of size
    :math:`K d`; W is also read as a vector of length :math:`K d`): let :math:`\hat y = \arg\max W x_t`; ties go to the
    first class. The agent draws its action from :math:`p = (1 - \gamma) e_{\hat y} + \gamma/K`: a uniform class with
    probability :math:`\gamma`, otherwise :math:`\hat y`. Only if the played class y is right:

    .. math::

        \bar y = \arg\max_{i \ne y} (W x_t)_i, \quad g = (e_{\bar y} - e_y) \otimes x_t / p_y, \quad
        z = \sqrt{p_y} g

        m = (\langle W, z \rangle^2 + 2 \langle W, g \rangle) / (1 + z'A^{-1}z)

        \text{if } S + m \ge 0: \quad S \mathrel{+}= m, \quad A \mathrel{+}= z z', \quad
        \theta \mathrel{-}= g, \quad W = A^{-1} \theta

    :math:`\mathbb{E}[g] = (e_{\bar y} - e_y) \otimes x`, which is a subgradient of the multiclass hinge loss where that
    loss is positive. If a class other than :math:`\hat y` is played and right, then :math:`m \ge 0`: an update follows,
    and m is added to the budget S. If :math:`\hat y` is right, m may be negative, and an update follows only if
    :math:`S + m \ge 0`.

    Guarantee, for the family of losses :math:`l_{\eta}(s) = 1 - 2 s/(2 - \eta) + \eta s^2/(2 - \eta)` at margins
    :math:`s \le 1`, else 0, for all :math:`\eta` at once (:math:`\eta = 0` hinge, :math:`\eta = 1` squared hinge):
    :math:`\mathbb{E}[M]` exceeds the comparator's loss by :math:`O((1/\eta) \sqrt{d K^2 T \ln T})` at
    :math:`\gamma \sim \sqrt{d K^2 \ln T / T}`. The constants are not known, so `bound` returns None.

    Cost: :math:`O(K^2 d^2)` in a round with an update, :math:`O(d^2 + K d)` in another round with a right action,
    :math:`O(K d)` otherwise. Memory: :math:`(K d)^2` numbers. `soba-diag` is the :math:`O(K d)` form.

    Parameters
    ----------
    gamma
        Exploration rate in [0, 1] (:math:`\gamma` in the paper), or "adaptive":
        :math:`\min\{1, \sqrt{K (1 + \sum_{s<t} n_s z_s'A_s^{-1}z_s) / t}\}` with :math:`n_s = 1` in rounds with an
        update, otherwise 0. This formula is commented out in the authors' code. With it the agent explores a lot (about
        45 % mistakes at :math:`T = 10^6` on SynSep).
    ridge
        a in the paper, above 0: A starts as :math:`a I`.

    Raises
    ------
    UsageError
        `gamma` is outside [0, 1], or ridge is not above 0.

    References
    ----------
    A. Beygelzimer, F. Orabona, C. Zhang. Efficient online bandit multiclass learning with
    :math:`\tilde{O}(\sqrt{T})` regret. ICML 2017.
    """

    id = "soba"
    group = "practice"
    summary = "second-order Banditron, full matrix"
    reference = "Beygelzimer, Orabona and Zhang, ICML 2017"
    state_order = (2, 2)
    act_kernel = act_kernel
    learn_kernel = learn_kernel

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        gamma: float | Literal["adaptive"] = 0.05,
        ridge: float = 1.0,
    ) -> None:
        super().__init__(problem, rng)
        K, d = problem.n_classes, problem.n_features
        self.gamma = resolved_gamma(gamma)
        self.ridge = positive("ridge", ridge)
        self.payload_size = K
        self.state = State(
            W=matrix(K, d),
            C=np.eye(K * d) / self.ridge,
            z=np.zeros(K),
            v=np.zeros(K * d),
            gamma=np.array([1.0 if self.gamma == "adaptive" else float(self.gamma)]),
            tally=np.array([0.0, 0.0, 0.0, float(self.gamma == "adaptive")]),
        )


def resolved_gamma(gamma: float | str) -> float | str:
    """Return "adaptive", or gamma as a number in [0, 1]."""
    return gamma if gamma == "adaptive" else probability("gamma", number("gamma", gamma, "adaptive"))
