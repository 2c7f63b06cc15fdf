"""SOBAdiag: SOBA with a diagonal matrix (Beygelzimer, Orabona and Zhang, ICML 2017)."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.linear import LinearScores
from banditlab.agents.soba import accepts, act_kernel, resolved_gamma
from banditlab.numerics.argmax import runner_up
from banditlab.numerics.contexts import sum_over_entries
from banditlab.numerics.jit import inline, njit, stand_alone
from banditlab.numerics.vectors import entry, matrix, size
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import positive


class State(NamedTuple):
    r"""The state: W, :math:`C = 1/A` and :math:`\theta` (K, d), padded; the other arrays are as in SOBA."""

    W: NDArray[np.float64]
    C: NDArray[np.float64]
    theta: NDArray[np.float64]
    z: NDArray[np.float64]
    gamma: NDArray[np.float64]
    tally: NDArray[np.float64]


@sum_over_entries
def quadratic_form(C, y, yb, x):
    r"""Return :math:`x'(C_{\bar{y}} + C_y)x` for diagonal :math:`C_k`."""
    stand_alone()
    total = 0.0
    for i in range(size(x)):
        j, xj = entry(x, i)
        total += xj * xj * (C[yb, j] + C[y, j])
    return total


@njit
def update_row(W, C, theta, k, x, inverse, step):
    r"""Update row k, with :math:`z^2 = \text{inverse}\, x^2` and :math:`-g = \text{step}\, x`."""
    for i in range(size(x)):
        j, xj = entry(x, i)
        C[k, j] /= 1.0 + inverse * xj * xj * C[k, j]  # A += z^2
        theta[k, j] += step * xj  # theta -= g
        W[k, j] = C[k, j] * theta[k, j]  # W = A^{-1} theta


@inline
def learn_kernel(state, x, action, p, payload, correct):
    state.tally[2] += 1.0
    if not correct:
        return
    y, inverse = action, 1.0 / p[action]
    yb = runner_up(payload, y, payload.shape[0])  # g = (e_yb - e_y) (x) x / p_y, z^2 = x^2 / p_y in the rows yb and y
    quadratic = inverse * quadratic_form(state.C, y, yb, x)  # z'A^{-1}z
    if not accepts(state.tally, payload[yb] - payload[y], p[action], quadratic):
        return
    update_row(state.W, state.C, state.theta, y, x, inverse, inverse)
    update_row(state.W, state.C, state.theta, yb, x, inverse, -inverse)


class SOBAdiag(LinearScores, KernelAgent):
    r"""SOBA with only the diagonal of its matrix, as in the experiments of its paper; costs as much as a perceptron.

    Problem: bandit multiclass, adversarial stream.

    Update rule (:math:`W = 0, A = a, \theta = 0, S = 0`, all of shape :math:`K \times d`, squares and quotients element
    by element): let :math:`\hat y = \arg\max W x_t`; ties go to the first class. The agent draws its action from
    :math:`p = (1 - \gamma) e_{\hat y} + \gamma/K`: a uniform class with probability :math:`\gamma`, otherwise
    :math:`\hat y`. Only if the played class y is right:

    .. math::

        \bar y = \arg\max_{i \ne y} (W x_t)_i, \quad g = (e_{\bar y} - e_y) \otimes x_t / p_y, \quad
        z = \sqrt{p_y} g

        m = (\langle W, z \rangle^2 + 2 \langle W, g \rangle) / (1 + \langle z, z/A \rangle)

        \text{if } S + m \ge 0: \quad S \mathrel{+}= m, \quad A \mathrel{+}= z^2, \quad
        \theta \mathrel{-}= g, \quad W = \theta/A

    The authors' public code has two errors in its exploration branch (:math:`\sqrt{p}` for p in the quadratic form,
    and `diff = 0`). They affect only the diagnostics of that code, because that branch always updates.

    Guarantee: none for the diagonal, so `bound` returns None; for the full matrix, see `soba`. A very small
    :math:`\gamma` harms the agent: updates in rounds whose argmax is right use up the budget S, and hits on other
    classes, which only exploration makes, replenish it. Results vary between runs: on SynSep at :math:`\gamma = .014`
    and :math:`T = 10^6`, twenty runs made mistakes in 1.4 % to 2.1 % of the rounds (1.77 % on average), and most of the
    differences arose in the first 200,000 rounds.

    Cost: :math:`O(K d)` per round for the scores, :math:`O(d)` on a hit, with :math:`\mathrm{nnz}(x)` instead of d for
    sparse contexts. Memory: :math:`3 K d` numbers.

    Parameters
    ----------
    gamma
        Exploration rate in [0, 1] (:math:`\gamma` in the paper), or "adaptive" as described at `soba`.
    ridge
        a in the paper, above 0: A starts as a.

    Raises
    ------
    UsageError
        `gamma` is outside [0, 1], or ridge is not above 0.

    References
    ----------
    A. Beygelzimer, F. Orabona, C. Zhang. Efficient online bandit multiclass learning with
    :math:`\tilde{O}(\sqrt{T})` regret. ICML 2017.
    """

    id = "soba-diag"
    group = "practice"
    summary = "second-order Banditron, diagonal matrix"
    reference = "Beygelzimer, Orabona and Zhang, ICML 2017, the diagonal variant of the experiments"
    act_kernel = act_kernel
    learn_kernel = learn_kernel
    sparse = True

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
            C=matrix(K, d, 1.0 / self.ridge),
            theta=matrix(K, d),
            z=np.zeros(K),
            gamma=np.array([1.0 if self.gamma == "adaptive" else float(self.gamma)]),
            tally=np.array([0.0, 0.0, 0.0, float(self.gamma == "adaptive")]),
        )
