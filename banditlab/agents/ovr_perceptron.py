"""The one-vs-rest perceptron for strongly separable streams (Beygelzimer et al., ICML 2019)."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.linear import LinearScores
from banditlab.numerics.argmax import argmax
from banditlab.numerics.draws import draw_uniform
from banditlab.numerics.jit import inline
from banditlab.numerics.limits import Limits, constant
from banditlab.numerics.vectors import add, matrix, scores
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import one_of


class State(NamedTuple):
    """The state: W (K, d), padded, and the scores z (K,), a work array.

    `rules` (2,) contains two flags: whether the positive class with the largest score is played, and whether a hit
    corrects every class.
    """

    W: NDArray[np.float64]
    z: NDArray[np.float64]
    rules: NDArray[np.int64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer in the state."""
        return {"rules": constant(self.rules)}


@inline
def act_kernel(state, x, u, p, payload):
    z, K = state.z, p.shape[0]
    scores(state.W, x, z)
    yes = 0
    for k in range(K):
        payload[k] = z[k]
        yes += z[k] >= 0.0  # S_t, the classes whose perceptron is positive
    best = argmax(z, K)
    if yes > 0 and state.rules[0] == 1:
        p[:] = 0.0
        p[best] = 1.0
        return best, False
    share = draw_uniform(yes if yes > 0 else K, u[1])
    action = share
    seen = 0
    for k in range(K):
        member = yes == 0 or z[k] >= 0.0
        p[k] = 1.0 / (yes if yes > 0 else K) if member else 0.0
        if member:
            action = k if seen == share else action
            seen += 1
    return action, False


@inline
def learn_kernel(state, x, action, p, payload, correct):
    said_yes = payload[action] >= 0.0
    if said_yes != correct:
        add(state.W, action, 1.0 if correct else -1.0, x)
    if correct and state.rules[1] == 1:  # the label is known then
        for k in range(p.shape[0]):
            if k != action and payload[k] >= 0.0:
                add(state.W, k, -1.0, x)


class OvRPerceptron(LinearScores, KernelAgent):
    r"""K binary perceptrons, "class k or not", updated by the observed bit without importance weights.

    Problem: bandit multiclass, adversarial stream, strongly separable: some U has
    :math:`\langle U_y, x \rangle \ge \gamma/2` for the label y and :math:`\langle U_i, x \rangle \le -\gamma/2` for
    every other class, :math:`\sum_k \|U_k\|^2 \le 1`.

    Update rule (:math:`w_k = 0` at first): let :math:`S_t = \{k : \langle w_k, x_t \rangle \ge 0\}`. If :math:`S_t` is
    empty, play a uniform class, and if it was right :math:`w_y \mathrel{+}= x_t`. Otherwise play a class k of
    :math:`S_t` (the paper does not specify which), and if it was wrong :math:`w_k \mathrel{-}= x_t`.

    Guarantee: :math:`\mathbb{E}[M] \le (K-1)\, \mathrm{floor}(4 R^2 / \gamma^2)`, :math:`O(K / \gamma^2)`. The bound
    does not depend on T, and the agent does not explore on purpose. For any U of Frobenius norm F and one-vs-rest hinge
    loss L (margin 1, all classes and rounds) the same proof gives
    :math:`\mathbb{E}[M] \le (K-1) (L + R F \sqrt{L} + R^2 F^2)`. Noise therefore costs a factor :math:`K-1`: use the
    method for streams without noise. Both bounds are in `banditlab.bounds` as `ovr_perceptron_mistakes`, and hold for
    every setting below. The comparator's loss is not a logistic loss, so `bound` returns None.

    Cost: :math:`O(K\, \mathrm{nnz}(x))` per round for sparse contexts, :math:`O(K d)` for dense ones. Memory:
    :math:`K d` numbers.

    Parameters
    ----------
    choice
        Which class of :math:`S_t` is played: "uniform", or "largest", the class with the largest score, as in the
        authors' code.
    corrects
        Which perceptrons are updated: "played", as in the paper, or "all", as in the authors' code. With "all" a hit,
        which reveals the label, also corrects the perceptrons of the other classes in :math:`S_t`.

    Raises
    ------
    UsageError
        `choice` or `corrects` is unknown.

    References
    ----------
    A. Beygelzimer, D. Pal, B. Szorenyi, D. Thiruvenkatachari, C.-Y. Wei, C. Zhang. Bandit multiclass linear
    classification: efficient algorithms for the separable case. ICML 2019.
    """

    id = "ovr-perceptron"
    group = "theory"
    summary = "one perceptron per class; finitely many mistakes if every class is separable from the rest"
    reference = "Beygelzimer, Pal, Szorenyi, Thiruvenkatachari, Wei and Zhang, ICML 2019, strong separability"
    act_kernel = act_kernel
    learn_kernel = learn_kernel
    explores = False
    sparse = True

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        choice: Literal["uniform", "largest"] = "uniform",
        corrects: Literal["played", "all"] = "played",
    ) -> None:
        super().__init__(problem, rng)
        K, d = problem.n_classes, problem.n_features
        self.choice = one_of("choice", choice, ("uniform", "largest"))
        self.corrects = one_of("corrects", corrects, ("played", "all"))
        self.payload_size = K
        rules = np.array([int(self.choice == "largest"), int(self.corrects == "all")])
        self.state = State(matrix(K, d), np.zeros(K), rules)
