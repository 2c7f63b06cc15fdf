"""Confidit (Crammer and Gentile, ICML 2011; Machine Learning 2013)."""

from __future__ import annotations

import math

import numpy as np

from banditlab.agents.ridge.ridge_agent import RidgeAgent, predict, regress, ridge_state
from banditlab.errors import UsageError
from banditlab.numerics.argmax import argmax
from banditlab.numerics.jit import njit
from banditlab.problem import Problem
from banditlab.validation import nonnegative, number


@njit
def act_kernel(state, x, u, p, payload):
    alpha, eta = state.settings[0], state.settings[1]
    K = p.shape[0]
    predict(state, x)
    for k in range(K):
        state.z[k] = min(max(state.z[k], -alpha), 1.0) + math.sqrt(eta * state.q[k])  # clip(w_k'x) + eps_k
        p[k] = 0.0
    best = argmax(state.z, K)
    p[best] = 1.0
    return best, False


@njit
def learn_kernel(state, x, action, p, payload, correct):
    alpha = state.settings[0]
    regress(state, action, x, 1.0 if correct else -alpha, -alpha, 1.0)


class Confidit(RidgeAgent):
    r"""Choose the class with the highest upper confidence bound. Each class has a ridge regression, whose estimate is
    clipped to the possible range.

    Problem: bandit multiclass, contexts chosen by an adversary, labels drawn from the linear model
    :math:`P(y = i \mid x) = (\alpha + u_i'x) / (1 + \alpha)`, :math:`\alpha` in (-1, 1], so
    :math:`-\alpha \le u_i'x \le 1`.

    Update rule: initially :math:`A_i = (1 + \alpha)^2 I` and :math:`w_i = 0`. The agent plays
    :math:`\arg\max_i\, \mathrm{clip}(w_i'x) + \epsilon_i`; ties go to the first class. The clip interval is
    :math:`[-\alpha, 1]`, and :math:`\epsilon_i = \sqrt{\eta x'A_i^{-1}x}`. Only the played class i is updated. First
    :math:`w_i` is projected in the norm of :math:`A_i` onto the slab :math:`\{w : -\alpha \le w'x \le 1\}`, in closed
    form; let :math:`w'_i` be the result. Then :math:`A_i \mathrel{+}= x x'` and
    :math:`w_i = A_i^{-1}(A_i^{\text{old}} w'_i + s x)` with :math:`s = +1` (right) or :math:`-\alpha` (wrong). At
    :math:`\alpha = 1`, the choice of the paper's experiments, s is 1 or -1 as in the paper. At another :math:`\alpha`,
    :math:`-\alpha` makes the regression unbiased, :math:`\mathbb{E}[s \mid x] = u_i'x`.

    Contexts of another norm: the paper assumes :math:`\|x\| = 1`. Here x stands for :math:`x/R`, with R the problem's
    radius, and hence has a norm of at most 1. (This is equivalent to a ridge of :math:`(1 + \alpha)^2 R^2`.) Rescaling
    all x changes no action.

    Guarantee: regret :math:`O(\sqrt{T} \log T)` against the classes of highest probability, in the model above. The
    theorem prescribes an :math:`\epsilon_i` that is far wider than the practical one used here, so `bound` returns
    None. The algorithm is deterministic: probabilities are one-hot, so a run's expected mistakes equal its mistakes.

    Cost: K quadratic forms of size d (:math:`K d^2 / 2` multiplications) and one rank-one update per round. Memory:
    :math:`K d^2 / 2` numbers. If all matrices take at least 1.5 MiB, a class with :math:`r < d / 2` updates takes
    :math:`2 r d` operations and :math:`r d` numbers instead (`numerics.low_rank`). The matrices are then read once per
    :math:`m = 32` or 64 rounds (`numerics.lookahead`), which takes :math:`m K d` more numbers. Decisions are the same
    up to rounding.

    Parameters
    ----------
    alpha
        :math:`\alpha` in the paper, above -1 and at most 1: the smallest possible value of :math:`u_i'x` is
        :math:`-\alpha`.
    eta
        Width of the confidence bounds, 0 or above (:math:`\eta` in the paper); 0 is greedy. The papers tune it over
        powers of ten. The default 3 is ours, chosen by measurement: 10 is better on digits, 1 or less on noisy labels.

    Raises
    ------
    UsageError
        `alpha` is outside (-1, 1], or eta is below 0.

    References
    ----------
    K. Crammer, C. Gentile. Multiclass classification with bandit feedback using adaptive regularization. ICML 2011;
    Machine Learning 90, 2013.
    """

    id = "confidit"
    group = "practice"
    summary = "second-order perceptron per class with upper confidence bounds"
    reference = "Crammer and Gentile, ICML 2011"
    state_order = (1, 2)
    explores = False
    expected_kind = "conditional"
    act_kernel = act_kernel
    learn_kernel = learn_kernel

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        alpha: float = 1.0,
        eta: float = 3.0,
    ) -> None:
        super().__init__(problem, rng)
        self.alpha = number("alpha", alpha)
        if not -1.0 < self.alpha <= 1.0:
            raise UsageError(f"alpha must be above -1 and at most 1, got {self.alpha:g}")
        self.eta = nonnegative("eta", eta)
        ridge = (1.0 + self.alpha) ** 2 * problem.radius**2
        self.state = ridge_state(problem, ridge, self.alpha, self.eta)
