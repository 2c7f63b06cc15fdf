"""PNewtron: Newtron with a diagonal matrix (Hazan and Kale, NIPS 2011)."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError
from banditlab.numerics.argmax import argmax
from banditlab.numerics.contexts import sum_over_entries
from banditlab.numerics.draws import draw, draw_uniform
from banditlab.numerics.jit import inline, stand_alone
from banditlab.numerics.running_norm import Norms, add_gains
from banditlab.numerics.simd_math import exponentials
from banditlab.numerics.vectors import entry, matrix, scores, size
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem
from banditlab.validation import nonnegative, number, one_of, positive, probability

PAPER_RADIUS = math.sqrt(55.0)
r"""The largest :math:`\|x\|` of SynSep, the data on which the published :math:`D = 1` was used."""
LEAST_NORM, MOST_NORM = 1e-150, 1e150
"""The allowed range of norm_bound, because D is squared."""


class State(NamedTuple):
    """The state: A, b and :math:`V = -b/A` (K, d), padded, which is W before the rescaling, and the norm of V.

    `z` and `s` (K,) are work arrays. `greedy` is 1 if the exploitation draw is the argmax; the other arrays are
    settings.
    """

    A: NDArray[np.float64]
    b: NDArray[np.float64]
    V: NDArray[np.float64]
    norm: Norms
    z: NDArray[np.float64]
    s: NDArray[np.float64]
    D: float
    gamma: float
    alpha: float
    beta: float
    greedy: bool


# payload (2,) stores p_yh and <e_yh - 1/K (x) x, W>.


@inline
def act_kernel(state, x, u, p, payload):
    z, s, K, gamma = state.z, state.s, p.shape[0], state.gamma
    scores(state.V, x, z)
    norm = math.sqrt(state.norm.square[0])
    scale = state.D / norm if norm > state.D else 1.0  # W = scale V
    best = argmax(z, K)
    total = exponentials(z, state.alpha * scale, z[best], K, s)
    explored = u[0] < gamma
    if explored:
        action = draw_uniform(K, u[1])
    else:
        action = best if state.greedy else draw(s, u[1] * total)
    mean = 0.0
    for k in range(K):
        mean += z[k] / K
        exploit = (1.0 if k == best else 0.0) if state.greedy else s[k] / total
        p[k] = (1.0 - gamma) * exploit + gamma / K  # p' = (1 - gamma) p + gamma/K
    payload[0], payload[1] = s[action] / total, scale * (z[action] - mean)
    return action, explored


@inline
def learn_kernel(state, x, action, p, payload, correct):
    # dlt = c (e_yh - 1/K) (x) x
    c, kappa = (-(1.0 - payload[0]) / p[action], p[action]) if correct else (payload[0] / p[action], 1.0)
    if c != 0.0:
        weight = kappa * state.beta
        update(state.A, state.b, state.V, x, action, c, weight, 1.0 - weight * c * payload[1], state.s)
        add_gains(state.V, state.norm, state.s)


@sum_over_entries
def update(A, b, V, x, yh, c, weight, step, gains):
    r"""Update :math:`A \mathrel{+}= \text{weight}\, \delta^2`, :math:`b \mathrel{+}= \text{step}\, \delta` and
    :math:`V = -b/A`.

    The change of :math:`\|V_k\|^2` is written to :math:`\text{gains}_k`.
    """
    stand_alone()
    for k in range(gains.shape[0]):
        e, gain = (1.0 if k == yh else 0.0) - 1.0 / gains.shape[0], 0.0
        for i in range(size(x)):
            j, xj = entry(x, i)
            dlt, old = c * e * xj, V[k, j]
            A[k, j] += weight * dlt * dlt
            b[k, j] += step * dlt
            V[k, j] = -b[k, j] / A[k, j]
            gain += (V[k, j] - old) * (V[k, j] + old)
        gains[k] = gain


class PNewtron(KernelAgent):
    r"""The diagonal Newtron of the paper's experiments, updated by hits and by mistakes.

    Problem: bandit multiclass, adversarial stream. Loss with a temperature :math:`\alpha > 0`:
    :math:`l_t(W) = -(1/\alpha) \ln \mathrm{softmax}(\alpha W x_t)_{y_t}`, on a Frobenius ball of radius D.

    Update rule (:math:`A = 1/D, b = 0, W = 0`, all of shape :math:`K \times d`, products and quotients element by
    element): :math:`p = \mathrm{softmax}(\alpha W x_t)` and :math:`p' = (1 - \gamma) p + \gamma/K`. The agent draws
    :math:`\hat y` from :math:`p'`.

    .. math::

        \text{right: } \delta = ((1 - p_{\hat y})/p'_{\hat y}) (1/K - e_{\hat y}) \otimes x_t, \quad
        \kappa = p'_{\hat y}

        \text{wrong: } \delta = (p_{\hat y}/p'_{\hat y}) (e_{\hat y} - 1/K) \otimes x_t, \quad \kappa = 1

        A \mathrel{+}= \kappa \beta \delta^2, \quad
        b \mathrel{+}= (1 - \kappa \beta \langle \delta, W \rangle) \delta

        W = -b/A, \text{ rescaled to norm } D \text{ if } \|W\|_F > D

    :math:`\mathbb{E}[\delta]` is the gradient of :math:`l_t` at W if every class can be played. That holds at any
    :math:`\gamma` if the exploitation draw is a sample, and at :math:`\gamma` above 0 if it is the argmax.
    In :math:`\langle \delta, W \rangle`, W is the current matrix, in exploration rounds as well. Some public
    implementations replace the product by 0 in exploration rounds, a difference of order :math:`\gamma \beta`.

    This implementation avoids two errors of other implementations. The implementation used in the experiments of the
    SOBA paper adds :math:`\pm 1/K` in every row, including that of the played class, instead of
    :math:`e_{\hat y} - 1/K`. It also rescales W to norm D in every round, and another implementation rescales W to norm
    1. Here W is not rescaled if it lies inside the ball. Without any rescaling PNewtron diverges on features of norm 7.

    Guarantee: none. Newtron's theorem needs the full matrix and the exact projection. `bound` returns None. With the
    paper's :math:`\alpha` and a small :math:`\gamma`, one step can be larger than the ball. Rounding then changes
    actions within a thousand rounds, so two correct implementations agree in distribution only.

    Cost: :math:`O(K d)` per round, :math:`O(K\, \mathrm{nnz}(x))` for sparse contexts. This includes one division per
    updated entry of V, and K exponentials. Memory: :math:`3 K d` numbers.

    Parameters
    ----------
    norm_bound
        B in [1e-150, 1e150]; the radius of the ball is :math:`D = \sqrt{K} B`. "paper" sets :math:`D = 1`. The scale of
        the features must then match :math:`\alpha D`: if :math:`\|x\| = 1`, the agent stays nearly uniform. "scaled"
        sets :math:`D = \sqrt{55}/R`, so :math:`\alpha D R` is the same for all features. On SynSep, where
        :math:`R = \sqrt{55}`, this is :math:`D = 1` as in the paper.
    gamma
        Exploration rate in [0, 1] (:math:`\gamma` in the paper).
    alpha
        Temperature of the loss, above 0 (:math:`\alpha` in the paper).
    beta
        Curvature, 0 or above (:math:`\beta` in the paper).
    exploit
        How the agent plays in rounds without exploration. "sample" draws from :math:`\mathrm{softmax}(\alpha W x)`, as
        in the paper. "argmax" plays the most probable class, :math:`p' = (1 - \gamma) e_{\text{argmax}} + \gamma/K`, as
        in some public implementations. It makes fewer mistakes on noisy labels (SynNonSep at :math:`\gamma = .014`:
        6.8 % instead of 12.4 % at :math:`T = 10^6`).

    Raises
    ------
    UsageError
        A setting is outside its range.

    References
    ----------
    E. Hazan, S. Kale. Newtron: an efficient bandit algorithm for online multiclass prediction. NIPS 2011.
    """

    id = "pnewtron"
    group = "practice"
    summary = "Newtron with a diagonal matrix: updated after hits and after mistakes"
    reference = "Hazan and Kale, NIPS 2011, the variant of the experiments"
    act_kernel = act_kernel
    learn_kernel = learn_kernel
    payload_size = 2
    sparse = True

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float | Literal["scaled", "paper"] = "scaled",
        gamma: float = 0.05,
        alpha: float = 10.0,
        beta: float = 0.01,
        exploit: Literal["sample", "argmax"] = "sample",
    ) -> None:
        super().__init__(problem, rng)
        K, d = problem.n_classes, problem.n_features
        if norm_bound in ("scaled", "paper"):
            D = PAPER_RADIUS / problem.radius if norm_bound == "scaled" else 1.0
            self.norm_bound = D / math.sqrt(K)
        else:
            self.norm_bound = positive("norm_bound", number("norm_bound", norm_bound, "scaled", "paper"))
        self.gamma = probability("gamma", gamma)
        self.alpha = positive("alpha", alpha)
        self.beta = nonnegative("beta", beta)
        self.exploit = one_of("exploit", exploit, ("sample", "argmax"))
        if not LEAST_NORM <= self.norm_bound <= MOST_NORM:
            raise UsageError(f"norm_bound must lie between {LEAST_NORM:g} and {MOST_NORM:g}, got {self.norm_bound:g}")
        D = math.sqrt(K) * self.norm_bound
        self.state = State(
            A=matrix(K, d, 1.0 / D),
            b=matrix(K, d),
            V=matrix(K, d),
            norm=Norms.of(1),
            z=np.zeros(K),
            s=np.zeros(K),
            D=D,
            gamma=self.gamma,
            alpha=self.alpha,
            beta=self.beta,
            greedy=self.exploit == "argmax",
        )

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights W (K, d), rescaled into the ball."""
        norm = math.sqrt(self.state.norm.square[0])
        V = self.state.V[:, : self.problem.n_features]
        return V * (self.state.D / norm) if norm > self.state.D else V
