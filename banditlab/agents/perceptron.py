"""The multiclass perceptron with full information, a reference for Banditron."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.linear import LinearScores
from banditlab.numerics.argmax import argmax
from banditlab.numerics.jit import inline
from banditlab.numerics.vectors import add, matrix, scores
from banditlab.players.label_agent import KernelLabelAgent
from banditlab.problem import Problem


class State(NamedTuple):
    """The state: W (K, d), padded, and the scores z (K,), a work array."""

    W: NDArray[np.float64]
    z: NDArray[np.float64]


@inline
def act_kernel(state, x, u, p, payload):
    scores(state.W, x, state.z)
    y_hat = argmax(state.z, p.shape[0])  # argmax_k (W x)_k
    p[:] = 0.0
    p[y_hat] = 1.0
    return y_hat


@inline
def learn_kernel(state, x, action, p, payload, label):
    if action == label:
        return
    # W += (e_y - e_yhat) x'
    add(state.W, label, 1.0, x)
    add(state.W, action, -1.0, x)


class Perceptron(LinearScores, KernelLabelAgent):
    r"""The multiclass perceptron with full information.

    Problem: online multiclass classification, adversarial stream; the label is revealed after each round. The agent
    serves as a reference and is never ranked with agents that observe one bit.

    Update rule: :math:`\hat{y} = \arg\max_k (W x)_k` is played; ties go to the first class. On a mistake
    :math:`W_y \mathrel{+}= x` and :math:`W_{\hat{y}} \mathrel{-}= x`. The scale of W is irrelevant, so there is no step
    size.

    Guarantee (adversarial, :math:`\|x\| \le R`): :math:`M \le L + D + \sqrt{L D}` for every U, with
    :math:`D = 2 R^2 \|U\|_F^2` and L the multiclass hinge loss
    :math:`\sum_t \max(0, 1 - (U x)_y + \max_{k \ne y} (U x)_k)`. The comparator's loss is the hinge loss, not the
    logistic loss, so `bound` returns None; `banditlab.bounds` has the formula as "perceptron".

    Cost: :math:`O(K\, \mathrm{nnz}(x))` per round for sparse contexts, :math:`O(K d)` for dense ones. Memory:
    :math:`K d` numbers.

    Raises
    ------
    UsageError
        rng is None.

    References
    ----------
    K. Crammer, Y. Singer. Ultraconservative online algorithms for multiclass problems. JMLR 3, 2003.
    S. Kakade, S. Shalev-Shwartz, A. Tewari. Efficient bandit algorithms for online multiclass prediction. ICML 2008.
    """

    id = "perceptron"
    summary = "the multiclass perceptron, full information"
    reference = "Crammer and Singer, JMLR 2003; Kakade, Shalev-Shwartz and Tewari, ICML 2008, Section 2"
    act_kernel = act_kernel
    learn_kernel = learn_kernel
    sparse = True

    def __init__(self, problem: Problem, rng: np.random.Generator | None) -> None:
        super().__init__(problem, rng)
        K, d = problem.n_classes, problem.n_features
        self.state = State(matrix(K, d), np.zeros(K))
