r"""One ridge regression per class that predicts the bit: the common part of `linucb`, `lints` and `confidit`.

A regression is stored as :math:`P_k = A_k^{-1}` and :math:`w_k`. Over the rounds in which k was played,
:math:`A_k = \text{regularization}\, I + \sum x x'`, and the Sherman-Morrison formula updates :math:`P_k`. An update
first projects :math:`w_k` in the norm of :math:`A_k` onto the slab :math:`\{w : \text{low} \le w'x \le \text{high}\}`,
in closed form:

.. math::

    v &= P x, \quad q = x'v, \quad m = w'x, \quad c = \mathrm{clip}(m, \text{low}, \text{high}) \\
    \text{projection:} \quad \tilde{w} &= w + ((c - m)/q) v \\
    \text{regression:} \quad w &\leftarrow (A + x x')^{-1} (A \tilde{w} + \text{target}\, x)
    = \tilde{w} + ((\text{target} - c)/(1 + q)) v

`linucb` and `lints` do not project (low and high are infinite). Then :math:`w = A^{-1} b` with
:math:`b = \sum \text{target}\, x`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.second_order import Form, least_bytes, sketch_diagnostics
from banditlab.numerics.class_inverses import prefetch
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.limits import COUNT, WORD, Limits
from banditlab.numerics.model_forms import read, read_one, update_one
from banditlab.numerics.own_sketch import OwnSketch
from banditlab.players.agent import KernelAgent
from banditlab.players.rounds import no_prefetch
from banditlab.problem import Problem

AUTO_REGULARIZATION = 0.1
"""`regularization = "auto"` in units of :math:`R^2`."""
WHOLE = Form()


class State(NamedTuple):
    """The state of the three agents, with one type so that numba compiles the shared kernels once.

    `inverses` holds :math:`P_k`, and :math:`w_k` as :math:`h_k`, in one of the forms of `model_forms`. `settings` holds
    the settings of the agent. `tally` (3,) holds the number of updates, the key from which the agent's random numbers
    are computed, and the number of decisions, which only agents that draw random numbers count. Work arrays for the
    current context: `z` (K,) for :math:`w_k'x`, `q` (K,) for :math:`x'P_k x`, and `noise` (K,).
    """

    inverses: Any
    settings: NDArray[np.float64]
    tally: NDArray[np.int64]
    z: NDArray[np.float64]
    q: NDArray[np.float64]
    noise: NDArray[np.float64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer in the state."""
        (least, most), (low, high) = COUNT, WORD
        return {"tally": (np.array([least, low, least]), np.array([most, high, most]))}


def ridge_state(
    problem: Problem,
    regularization: float,
    *settings: float,
    key: int = 0,
    form: Form = WHOLE,
) -> State:
    r"""Return the initial state: :math:`A_k = \text{regularization}\, I` and :math:`w_k = 0` for every class."""
    K = problem.n_classes
    return State(
        inverses=form.models(np.full(K, 1.0 / regularization), problem.n_features),
        settings=np.array(settings),
        tally=np.array([0, key, 0]),
        z=np.zeros(K),
        q=np.zeros(K),
        noise=np.zeros(K),
    )


@njit
def prefetch_kernel(state, X, t):
    prefetch(state.inverses, X, t, state.settings[:0])


@njit
def learn_kernel(state, x, action, p, payload, correct):
    regress(state, action, x, 1.0 if correct else 0.0, -math.inf, math.inf)  # LinUCB: lines 12 and 13 of Algorithm 1


class RidgeAgent(KernelAgent):
    """Base class of the three agents; with large matrices, the rounds of a block are prepared together (prefetched)."""

    learn_kernel = learn_kernel

    def prefetch(self) -> Any:
        """Return the kernel that prepares a block of rounds, for large problems."""
        return no_prefetch if getattr(self.state.inverses, "ahead", None) is None else prefetch_kernel

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return a lower bound on the size of the state in bytes for the form of the matrices."""
        return least_bytes(problem, WHOLE._asdict() | cls.completed(settings), problem.n_classes)

    def diagnostics(self) -> dict[str, Any]:
        r"""Return, for a sketch, the number of basis rotations and the share of :math:`\|x\|^2` outside the sketch."""
        return sketch_diagnostics(self.state.inverses.sketch) if isinstance(self.state.inverses, OwnSketch) else {}


@inline
def predict(state, x):
    """Write the means :math:`z_k = w_k'x` and the variances :math:`q_k = x'P_k x`."""
    read(state.inverses, x, state.z, state.q)
    for k in range(state.q.shape[0]):
        state.q[k] = max(state.q[k], 0.0)


@inline
def regress(state, k, x, target, low, high):
    """Update class k with the outcome `target` at x, after projecting :math:`w_k` onto the slab [low, high]."""
    state.tally[0] += 1
    m, q = read_one(state.inverses, x, k)
    if q <= 0.0:  # x = 0: w'x is 0 for every w
        return
    c = min(max(m, low), high)
    down = 1.0 / (1.0 + q)
    update_one(state.inverses, x, k, (c - m) / q + (target - c) * down, 1.0, down)


@njit
def highest(z, p, u):
    r"""Return the index of the largest of :math:`z_0, \dots, z_{K-1}`; ties are broken by the uniform u.

    Write the uniform distribution over the ties into p (K,).
    """
    K = p.shape[0]
    top, ties = z[0], 0
    for k in range(1, K):
        top = max(top, z[k])
    for k in range(K):
        ties += z[k] == top
    skip, action = min(int(u * ties), ties - 1), 0
    for k in range(K):
        p[k] = 0.0
        if z[k] == top:
            p[k] = 1.0 / ties
            if skip == 0:
                action = k
            skip -= 1
    return action
