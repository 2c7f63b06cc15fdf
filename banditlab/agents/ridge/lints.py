"""Disjoint linear Thompson sampling (Agrawal and Goyal, ICML 2013) on one bit of feedback."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from banditlab.agents.ridge.ridge_agent import AUTO_REGULARIZATION, RidgeAgent, highest, predict, ridge_state
from banditlab.agents.second_order import SKETCH_SIZE, SecondOrder, form_of
from banditlab.numerics.jit import njit
from banditlab.numerics.philox import digest, normals
from banditlab.problem import Problem
from banditlab.validation import nonnegative, resolve


@njit
def sample_scores(state, x):
    r"""Write into z a draw of :math:`x'\theta_k \sim N(x'\mu_k, v^2 x'B_k^{-1}x)`, independent over the classes."""
    n, v = state.noise, state.settings[0]
    predict(state, x)
    normals(state.tally[1], state.tally[2], digest(x), n)
    for k in range(n.shape[0]):
        state.z[k] += v * math.sqrt(state.q[k]) * n[k]


@njit
def act_kernel(state, x, u, p, payload):
    sample_scores(state, x)
    state.tally[2] += 1
    return highest(state.z, p, u[1]), False


class LinTS(RidgeAgent):
    r"""One ridge regression of the bit per class; play the best class of a draw from their Gaussian posteriors.

    Problem: bandit multiclass. The agent believes :math:`P(\text{class } k \text{ is right} \mid x)` to be linear in x,
    :math:`\theta_k'x`.

    Update rule (Algorithm 1, a separate regression for every class): draw
    :math:`\theta_k \sim N(\mu_k, v^2 B_k^{-1})` and play :math:`\arg\max_k \theta_k'x`; for the class played
    :math:`B_k \mathrel{+}= x x'`, :math:`f_k \mathrel{+}= r x` with :math:`r = 1` (right) or 0 (wrong),
    :math:`\mu_k = B_k^{-1} f_k`. :math:`B_k` starts at `regularization` times the identity.

    Nothing but :math:`\theta_k'x` is ever used of the draw, and the classes' posteriors are independent, so the
    scores themselves are drawn: :math:`\theta_k'x = x'\mu_k + v \sqrt{x'B_k^{-1}x} n_k` with independent standard
    normal :math:`n_k` is the same law exactly, in :math:`d^2` instead of :math:`d^3` operations. The :math:`n_k` are
    a function (Philox4x32-10, Box and Muller) of a key drawn from a child stream in the constructor, of the number of
    rounds acted on before, and of the context. Draws of two rounds are therefore independent, however late feedback
    is and though a context comes back unchanged.

    Guarantee: Theorem 1 (one shared :math:`\theta`, contexts per arm; linear rewards,
    :math:`v = R \sqrt{9 d \ln(t/\delta)}` growing with t, adaptive adversary): regret
    :math:`O(d^{3/2} \sqrt{T} (\ln(Td))^{1/2} \ln(1/\delta))` up to logarithms with probability :math:`1 - \delta`. It
    does not cover the fixed v of practice used here, nor labels that are not linear in x, so `bound` returns None.

    The probabilities are those given the :math:`n_k`: one-hot, and expected mistakes carry no more information than mistakes.

    Cost: a round K quadratic forms of size d (:math:`K d^2 / 2` multiplications), K normals, one rank-one update;
    :math:`K d^2 / 2` numbers. From 1.5 MiB on a class that has learnt :math:`r < d / 2` rounds takes :math:`2 r d`
    operations and :math:`r d` numbers instead (`numerics.low_rank`), and a block reads all once in :math:`m = 32` or
    64 rounds (`numerics.lookahead`), with :math:`m K d` numbers more: the same play, to rounding. Diagonals take
    :math:`O(K d)` and :math:`2 K d` numbers, a sketch of m rows :math:`O((K + m) d + K m^2)` in the mean and
    :math:`K (d + m^2 / 2) + 3 m d` numbers.

    Parameters
    ----------
    deviation
        v, the posterior's standard deviation in units of :math:`\sqrt{x'B_k^{-1}x}`, 0 or above; 0 is greedy. Other
        libraries start from 1, which explores far too much here (16 to 22 % mistakes on digits, 0.1 makes 3 to 4 %).
    regularization
        Weight of the ridge, above 0 (1 in the paper: B starts at the identity, for :math:`\|x\| \le 1`). "auto" is
        :math:`0.1 R^2`, so that contexts in other units give the same play; a tenth of the paper's, because rewards
        of one class among many are sparse: on digits 1 makes half again to three times as many mistakes, and noisy
        streams hardly care. On tables of few columns :math:`0.01 R^2` makes 14 % fewer; on hundreds of dense ones far
        more.
    second_order
        What is stored of each class's :math:`d \times d` matrix: "full", its "diagonal", or a block in a "sketch",
        frequent directions of the updates' contexts, shared by all classes (`numerics.sketched_inverses`); while
        contexts span at most sketch_size directions that is "full", to rounding. "auto" is "full" where :math:`K d^2`
        is at most 4,194,304, else "sketch".
    sketch_size
        m, directions of the sketch, 1 or more. Of `second_order = "sketch"`.

    Raises
    ------
    UsageError
        deviation below 0, regularization not above 0 or an unknown word, an unknown second_order, or a sketch_size
        below 1 or without a sketch.

    References
    ----------
    S. Agrawal, N. Goyal. Thompson sampling for contextual bandits with linear payoffs. ICML 2013.
    """

    id = "lints"
    group = "practice"
    summary = "one ridge regression of the bit per class and Thompson sampling"
    reference = "Agrawal and Goyal, ICML 2013, Algorithm 1, one regression per class"
    state_order = (1, 2)
    explores = False
    expected_kind = "conditional"
    act_kernel = act_kernel

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        deviation: float = 0.1,
        regularization: float | Literal["auto"] = "auto",
        second_order: SecondOrder = "auto",
        sketch_size: int = SKETCH_SIZE,
    ) -> None:
        super().__init__(problem, rng)
        self.deviation = nonnegative("deviation", deviation)
        self.second_order, self.sketch_size = form = form_of(second_order, sketch_size, problem)
        auto = AUTO_REGULARIZATION * problem.radius**2
        self.regularization = resolve("regularization", regularization, {"auto": auto})
        key = int(self.rng.spawn(1)[0].integers(2**63 - 1))
        self.state = ridge_state(problem, self.regularization, self.deviation, key=key, form=form)
