"""Newtron (Hazan and Kale, NIPS 2011) with an exact solution, :math:`O(K d^2)` per round."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError
from banditlab.numerics.argmax import argmax
from banditlab.numerics.draws import draw, draw_uniform
from banditlab.numerics.frobenius_programme import WORST_DRIFT, Programme, programme_state
from banditlab.numerics.jit import njit
from banditlab.numerics.unbounded_programme import learn, scores
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import nonnegative, number, positive, probability


class State(NamedTuple):
    r"""The state: the quadratic programme with :math:`W'`, work arrays `z`, `s` (K,), and `rates` (3,).

    The rates are :math:`\gamma`, :math:`\beta` and :math:`\alpha`.
    """

    programme: Programme
    z: NDArray[np.float64]
    s: NDArray[np.float64]
    rates: NDArray[np.float64]


@njit
def act_kernel(state, x, u, p, payload):
    z, s = state.z, state.s
    gamma, alpha = state.rates[0], state.rates[2]
    K = p.shape[0]
    scores(state.programme, x, z)
    top, total = z[argmax(z, K)], 0.0
    for k in range(K):
        s[k] = math.exp(alpha * (z[k] - top))
        total += s[k]
    for k in range(K):
        s[k] /= total
        p[k] = (1.0 - gamma) * s[k] + gamma / K  # p' = (1 - gamma) p + gamma/K
    explored = u[0] < gamma
    action = draw_uniform(K, u[1]) if explored else draw(s, u[1])
    payload[0] = s[action]
    payload[1] = z[action]
    return action, explored


@njit
def learn_kernel(state, x, action, p, payload, correct):
    beta = state.rates[1]
    played, z = p[action], payload[1]
    if correct:  # dlt = c (e_i - 1/K) (x) x, i the played class
        c, kappa = -(1.0 - payload[0]) / played, played
    else:
        c, kappa = payload[0] / played, 1.0
    if c != 0.0:
        weight = kappa * beta * c * c  # A_t = A_{t-1} + kappa beta dlt dlt'
        learn(
            state.programme, action, x, weight, (1.0 - kappa * beta * c * z) * c
        )  # b_t = b_{t-1} + (1 - kappa beta <dlt, W'_t>) dlt


class Newtron(KernelAgent):
    r"""Newtron: online Newton steps on gradient estimates, after hits and after mistakes.

    Problem: bandit multiclass, adversarial stream. Loss with a temperature :math:`\alpha > 0`:
    :math:`l_t(W) = -(1/\alpha) \ln \mathrm{softmax}(\alpha W x_t)_{y_t}`; :math:`\alpha = 1` is the logistic loss.
    Comparators: the Frobenius ball of radius :math:`D = \sqrt{K} B`, which contains
    :math:`\{\|W_k\| \le B\,\text{ for all }k\}`.

    Update rule: :math:`p = \mathrm{softmax}(\alpha W'_t x_t)` and :math:`p' = (1 - \gamma) p + \gamma/K`. The agent
    draws :math:`\hat y` from :math:`p'`: a coin flip of probability :math:`\gamma` selects a uniform draw instead of a
    draw from p.

    .. math::

        \text{right: } \delta = ((1 - p_{\hat y})/p'_{\hat y}) (1/K - e_{\hat y}) \otimes x_t, \quad
        \kappa = p'_{\hat y}

        \text{wrong: } \delta = (p_{\hat y}/p'_{\hat y}) (e_{\hat y} - 1/K) \otimes x_t, \quad \kappa = 1

        f_t(W) = \langle \delta, W - W'_t \rangle + (\kappa \beta/2) \langle \delta, W - W'_t \rangle^2

        W'_{t+1} = \arg\min_{\|W\|_F \le D} \sum_{s \le t} f_s(W) + \|W\|_F^2/(2D)

    :math:`\mathbb{E}[\delta]` is the gradient of :math:`l_t` at :math:`W'_t`, whatever :math:`\gamma`. Every
    :math:`\delta` is :math:`c (e_i - 1/K) \otimes x`, so the rows of :math:`W'` add up to zero. On that subspace the
    quadratic is block diagonal, with one :math:`d \times d` block per class. Rank-one updates cost :math:`O(K d^2)` and
    give the results of the :math:`Kd \times Kd` form. The ball constraint is active in nearly every round;
    `numerics.frobenius_programme` solves that case exactly.

    Guarantee: the regret is :math:`\min\{O(e^{4 \alpha R D} \ln T), O(R D T^{2/3})\}`, and :math:`O(R D \sqrt{T})` if
    :math:`\alpha \le (\ln T)/(8 R D)`. The logarithmic bound needs :math:`\gamma = 0`, the second
    :math:`\gamma \sim T^{-1/3}`, and the last :math:`\gamma \sim T^{-1/2}`. `gamma = "theory"` is of the last form; at
    the default :math:`\alpha = 1` the theorem covers it only for :math:`T \ge e^{8 R D}`, which few runs reach. The
    constants are not published, so `bound` returns None. The theorem covers `ball=True` only. The value
    `beta = "theory"` is not from the paper. It makes :math:`f_t` a lower bound on :math:`l_t` in conditional
    expectation on the Frobenius ball (for :math:`\gamma = 0` and small steps; supported by a numerical search, not
    proved).

    Cost: :math:`O(K d^2)` per round, a few passes over K :math:`d \times d` matrices if the ball constraint is active.
    Memory: :math:`K d^2` numbers. If the matrices take 1.5 MiB or more, round t costs :math:`O(t d)` until the
    constraint is active for the first time (`numerics.low_rank`), with the same decisions up to rounding. `pnewtron`
    stores diagonals and costs :math:`O(K d)` per round.

    Parameters
    ----------
    norm_bound
        B, the row bound of the comparators (:math:`D = \sqrt{K} B` in the paper).
    gamma
        Exploration rate in [0, 1] (:math:`\gamma` in the paper); "theory" is :math:`\min(1, \sqrt{K/T})`.
    alpha
        Temperature of the loss, above 0 (:math:`\alpha` in the paper).
    beta
        Curvature of :math:`f_t`, 0 or above (:math:`\beta` in the paper); "theory" is
        :math:`\alpha e^{-\sqrt{2} \alpha D R}/K`.
    ball
        Whether :math:`W'` is constrained to the Frobenius ball. False is faster, and the theorem does not cover it.

    Raises
    ------
    UsageError
        A setting is outside its range.
    HorizonRequiredError
        `gamma = "theory"` and the horizon is unknown.

    References
    ----------
    E. Hazan, S. Kale. Newtron: an efficient bandit algorithm for online multiclass prediction. NIPS 2011.
    """

    id = "newtron"
    group = "theory"
    summary = "online Newton steps after hits and after mistakes, in a Frobenius ball"
    reference = "Hazan and Kale, NIPS 2011"
    state_order = (1, 2)
    act_kernel = act_kernel
    learn_kernel = learn_kernel
    payload_size = 2

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        gamma: float | Literal["theory"] = "theory",
        alpha: float = 1.0,
        beta: float | Literal["theory"] = "theory",
        ball: bool = True,
    ) -> None:
        super().__init__(problem, rng)
        K, R = problem.n_classes, problem.radius
        self.norm_bound = positive("norm_bound", number("norm_bound", norm_bound))
        self.alpha = positive("alpha", number("alpha", alpha))
        if not isinstance(ball, bool):
            raise UsageError(f"ball must be true or false, got {ball!r}")
        self.ball = ball
        D = math.sqrt(K) * self.norm_bound
        if gamma == "theory":
            T = problem.known_horizon("gamma = 'theory'", "give gamma as a number")
            self.gamma = min(1.0, math.sqrt(K / T))
        else:
            self.gamma = probability("gamma", number("gamma", gamma, "theory"))
        if beta == "theory":
            self.beta = self.alpha * math.exp(-math.sqrt(2.0) * self.alpha * D * R) / K
        else:
            self.beta = nonnegative("beta", number("beta", beta, "theory"))
        rates = np.array([self.gamma, self.beta, self.alpha])
        programme = programme_state(K, problem.n_features, 1.0 / D, D if self.ball else math.inf)
        self.state = State(programme, np.zeros(K), np.zeros(K), rates)

    @property
    def weights(self) -> NDArray[np.float64]:
        r"""The weights :math:`W'` (K, d), a view."""
        view: NDArray[np.float64] = self.state.programme.W[:, -self.problem.n_features :]
        return view

    def diagnostics(self) -> dict[str, Any]:
        """Return the solver's counts and the largest drift.

        solves: quadratic programmes solved. binding: those with an active ball constraint. applications: products with
        the solver's operator G. refactorisations: changes of the solver's reference multiplier. stalled: solves that
        ended at the limit on the number of these changes.
        """
        programme = self.state.programme
        solves, binding, applied, refactored, stalled, _ = (int(n) for n in programme.tally)
        return {
            "solves": solves,
            "binding": binding,
            "applications": applied,
            "refactorisations": refactored,
            "stalled": stalled,
            "drift": float(programme.nu[WORST_DRIFT]),
        }
