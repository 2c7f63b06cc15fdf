"""Thompson sampling with a Beta posterior per action (Agrawal and Goyal, COLT 2012), without context."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError
from banditlab.numerics.jit import inline, njit
from banditlab.numerics.limits import COUNT, WORD, Limits, constant
from banditlab.numerics.philox import gamma
from banditlab.numerics.vectors import entry, size
from banditlab.players.agent import KernelAgent
from banditlab.problem import Problem


class State(NamedTuple):
    """The state: counts (V, K, 2), the misses and hits of each action for each result v of `value_of`.

    `block` (2,) contains the index of the first feature of the column that the setting `per` selects, and 1 plus the
    index of its last feature.
    `tally` (2,) contains the key of the agent's draws and the number of decisions.
    """

    counts: NDArray[np.int64]
    block: NDArray[np.int64]
    tally: NDArray[np.int64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer in the state."""
        (least, most), (low, high) = COUNT, WORD
        tally = np.array([low, least]), np.array([high, most])
        return {"counts": COUNT, "block": constant(self.block), "tally": tally}


@inline
def value_of(block, x):
    """Return 1 plus the index in the block of the first positive feature of x, or 0 if there is none."""
    first, stop = block[0], block[1]
    for i in range(size(x) if first < stop else 0):
        j, xj = entry(x, i)
        if first <= j < stop and xj > 0.0:
            return j - first + 1
    return 0


@njit
def act_kernel(state, x, u, p, payload):
    v, key, acted = value_of(state.block, x), state.tally[0], state.tally[1]
    state.tally[1] += 1
    best, top = 0, -1.0
    for k in range(p.shape[0]):
        # Beta(1 + hits, 1 + misses) as a ratio of two Gamma draws
        hit = gamma(1.0 + state.counts[v, k, 1], key, acted, 2 * k)
        miss = gamma(1.0 + state.counts[v, k, 0], key, acted, 2 * k + 1)
        p[k] = 0.0
        if hit / (hit + miss) > top:
            best, top = k, hit / (hit + miss)
    p[best] = 1.0
    return best, False


@njit
def learn_kernel(state, x, action, p, payload, correct):
    state.counts[value_of(state.block, x), action, 1 if correct else 0] += 1


class BetaTS(KernelAgent):
    r"""Play the action with the largest draw from the Beta posterior of its success rate; the context is not used.

    Problem: bandit with one bit of feedback; any number of actions may be right in a round. This agent is a control: an
    agent that uses contexts should make fewer mistakes.

    Update rule (Algorithm 1): draw :math:`\theta_k \sim \mathrm{Beta}(1 + h_k, 1 + m_k)` and play
    :math:`\arg\max_k \theta_k`. Here :math:`h_k` and :math:`m_k` are the hits and misses of action k so far, and the
    prior is uniform. With `per`, each value of one column has separate counts.

    The draws are a function (Philox4x32-10; Marsaglia and Tsang) of a key and of the number of earlier decisions. The
    constructor draws the key from a child generator. The draws of different rounds are therefore independent, even if
    feedback is delayed.

    Guarantee: if the bits of action k are independent with mean :math:`\mu_k`, the expected regret against the action
    with the largest mean is :math:`O(\sqrt{K T \ln T})` (Agrawal and Goyal, AISTATS 2013). The theorem does not cover
    bits that depend on the context, and its constants are not stated, so `bound` returns None.

    The reported probabilities are conditional on the draws, hence one-hot. A run's expected mistakes therefore equal
    its mistakes.

    Cost: 2 K Gamma draws per round, and with `per` :math:`O(d)` to find the value. Memory: 2 K numbers for each value
    of the column.

    Parameters
    ----------
    per
        The indices of the first and the last one-hot feature of a nominal column (see `feature_names` of a table's
        encoder). Each of these features has separate counts; a context uses the counts of its first positive one.
        Contexts in which none is positive share another set of counts. By default (None) there is one set of counts.

    Raises
    ------
    UsageError
        `per` is not a pair of feature indices in ascending order.

    References
    ----------
    S. Agrawal, N. Goyal. Analysis of Thompson sampling for the multi-armed bandit problem. COLT 2012.
    S. Agrawal, N. Goyal. Further optimal regret bounds for Thompson sampling. AISTATS 2013.
    """

    id = "beta-ts"
    group = "practice"
    summary = "Thompson sampling with a Beta posterior per action, or per action and value of one column"
    reference = "Agrawal and Goyal, COLT 2012, Algorithm 1"
    state_order = (1, 0)
    explores = False
    expected_kind = "conditional"
    sparse = True
    act_kernel = act_kernel
    learn_kernel = learn_kernel

    def __init__(self, problem: Problem, rng: np.random.Generator | None, *, per: list[int] | None = None) -> None:
        super().__init__(problem, rng)
        self.per = None if per is None else list(per)
        first, last = (0, -1) if self.per is None else self._block(self.per)
        key = int(self.rng.spawn(1)[0].integers(2**63 - 1))
        self.state = State(
            counts=np.zeros((last - first + 2, problem.n_classes, 2), np.int64),
            block=np.array([first, last + 1]),
            tally=np.array([key, 0]),
        )

    def _block(self, per: list[int]) -> tuple[int, int]:
        """Return the first and the last feature of the block, or raise a UsageError."""
        d = self.problem.n_features
        if len(per) != 2 or not all(isinstance(j, int) for j in per) or not 0 <= per[0] <= per[1] < d:
            raise UsageError(
                f"per must be the indices of the first and the last feature of a block, in 0 ... {d - 1}, got {per!r}"
            )
        return per[0], per[1]
