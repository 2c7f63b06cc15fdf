"""Disjoint LinUCB (Li, Chu, Langford and Schapire, WWW 2010) with one bit of feedback."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from banditlab.agents.ridge.ridge_agent import AUTO_REGULARIZATION, RidgeAgent, highest, predict, ridge_state
from banditlab.agents.second_order import SKETCH_SIZE, SecondOrder, form_of
from banditlab.numerics.jit import njit
from banditlab.problem import Problem
from banditlab.validation import nonnegative, resolve


@njit
def act_kernel(state, x, u, p, payload):
    alpha = state.settings[0]
    predict(state, x)
    for k in range(p.shape[0]):
        state.z[k] += alpha * math.sqrt(state.q[k])  # p_{t,a} of line 9
    return highest(state.z, p, u[1]), False  # line 11


class LinUCB(RidgeAgent):
    r"""Play the class with the highest upper confidence bound. For each class, a ridge regression predicts the bit.

    Problem: bandit multiclass. The agent models :math:`P(\text{class } k \text{ is right} \mid x)` as linear in x,
    :math:`\theta_k'x`.

    Update rule (Algorithm 1): play :math:`\arg\max_k \theta_k'x + \alpha \sqrt{x'A_k^{-1}x}`. Ties are broken at
    random, so the first rounds favour no class (the paper: "ties broken arbitrarily"). For the played class,
    :math:`A_k \mathrel{+}= x x'` and :math:`b_k \mathrel{+}= r x` with :math:`r = 1` (right) or 0 (wrong), and
    :math:`\theta_k = A_k^{-1} b_k`. :math:`A_k` starts at `regularization` times the identity.

    Guarantee: none is proved for this algorithm, so `bound` returns None. (Its master algorithm, SupLinUCB, has
    one under linear rewards and :math:`\|x\| \le 1`.) Except for ties, the agent is deterministic. The probabilities
    are therefore one-hot, or uniform over the tied classes. Without ties, a run's expected mistakes equal its mistakes.

    Cost: K quadratic forms of size d (:math:`K d^2 / 2` multiplications) and one rank-one update per round. Memory:
    :math:`K d^2 / 2` numbers. If all matrices take at least 1.5 MiB, a class with :math:`r < d / 2` updates takes
    :math:`2 r d` operations and :math:`r d` numbers instead (`numerics.low_rank`). The matrices are then read once per
    :math:`m = 32` or 64 rounds (`numerics.lookahead`), which takes :math:`m K d` more numbers. Decisions are the same
    up to rounding. Diagonals take :math:`O(K d)` time and :math:`2 K d` numbers. A sketch of m rows takes
    :math:`O((K + m) d + K m^2)` on average and :math:`K (d + m^2 / 2) + 3 m d` numbers.

    Parameters
    ----------
    confidence
        Width of the confidence bound, 0 or above (:math:`\alpha` in the paper; 1 is the usual default); 0 is greedy.
    regularization
        Weight of the ridge, above 0 (1 in the paper: :math:`A_k` starts at the identity, for :math:`\|x\| \le 1`).
        "auto" is :math:`0.1 R^2`, so contexts in other units give the same decisions. It is a tenth of the paper's
        weight because rewards of one class among many are sparse: on digits a weight of 1 makes 1.5 to 3 times as many
        mistakes.
    second_order
        The stored form of each class's :math:`d \times d` matrix: "full", its "diagonal", or a block in the coordinates
        of a "sketch". The sketch stores frequent directions of the updates' contexts and is shared by all classes
        (`numerics.sketched_inverses`). While contexts span at most `sketch_size` directions, "sketch" equals "full" up
        to rounding. "auto" is "full" if :math:`K d^2` is at most 4,194,304, else "sketch".
    sketch_size
        m, the number of directions of the sketch, 1 or more. For `second_order = "sketch"`.

    Raises
    ------
    UsageError
        `confidence` is below 0, `regularization` is not above 0 or an unknown string, `second_order` is unknown, or
        `sketch_size` is below 1 or given without a sketch.

    References
    ----------
    L. Li, W. Chu, J. Langford, R. E. Schapire. A contextual-bandit approach to personalized news article
    recommendation. WWW 2010.
    """

    id = "linucb"
    group = "practice"
    summary = "one ridge regression of the bit per class with upper confidence bounds"
    reference = "Li, Chu, Langford and Schapire, WWW 2010, Algorithm 1"
    state_order = (1, 2)
    explores = False
    expected_kind = "conditional"
    act_kernel = act_kernel

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        confidence: float = 1.0,
        regularization: float | Literal["auto"] = "auto",
        second_order: SecondOrder = "auto",
        sketch_size: int = SKETCH_SIZE,
    ) -> None:
        super().__init__(problem, rng)
        self.confidence = nonnegative("confidence", confidence)
        self.second_order, self.sketch_size = form = form_of(second_order, sketch_size, problem)
        auto = AUTO_REGULARIZATION * problem.radius**2
        self.regularization = resolve("regularization", regularization, {"auto": auto})
        self.state = ridge_state(problem, self.regularization, self.confidence, form=form)
