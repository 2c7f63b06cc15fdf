"""Randomized decoding of a logistic model, full information (Sakaue, Bao, Tsuchiya and Oki, COLT 2024)."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.linear import InFrobeniusBall, ScaledScores
from banditlab.bounds.randomized_decoding import LN2, decoding_step, randomized_decoding
from banditlab.bounds.template import template_label_step
from banditlab.numerics.argmax import argmax
from banditlab.numerics.decoding import DECODINGS, RANDOMIZED, Decoding, decode
from banditlab.numerics.dense import overwrite
from banditlab.numerics.draws import draw
from banditlab.numerics.jit import inline
from banditlab.numerics.running_norm import Norms, descend_in_balls
from banditlab.numerics.simd_math import exponentials
from banditlab.numerics.vectors import matrix, scores
from banditlab.players.label_agent import KernelLabelAgent
from banditlab.problem import Problem
from banditlab.validation import number, one_of, positive


class State(NamedTuple):
    """The state: V (K, d), padded, which is W up to a scale; work arrays `z`, `r` (K,); `step` (1,).

    W is `norm.scale[0]` times V. `decoding` is the index in `DECODINGS`.
    """

    V: NDArray[np.float64]
    z: NDArray[np.float64]
    r: NDArray[np.float64]
    step: NDArray[np.float64]
    norm: Norms
    radius: float
    decoding: int


@inline
def act_kernel(state, x, u, p, payload):
    z, K = state.z, p.shape[0]
    scores(state.V, x, z)
    y_star = argmax(z, K)
    q_max = 1.0 / exponentials(z, state.norm.scale[0], z[y_star], K, payload)
    for k in range(K):
        payload[k] *= q_max  # q = softmax(W x)
    if state.decoding != RANDOMIZED:
        overwrite(p, payload)
        decode(state.decoding, y_star, p)
        return draw(p, u[1])
    r = min(1.0, 2.0 * (1.0 - payload[y_star]))
    for k in range(K):
        p[k] = r * payload[k]
    p[y_star] += 1.0 - r
    # a draw from q with probability r, otherwise the argmax
    return draw(payload, u[1]) if u[0] < r else y_star


@inline
def learn_kernel(state, x, action, p, payload, label):
    r, K = state.r, p.shape[0]
    factor = state.step[0] / LN2
    for k in range(K):  # step * grad l = r x', grad l = (q - e_y) x' / ln 2
        r[k] = factor * (payload[k] - 1.0 if k == label else payload[k])
    descend_in_balls(state.V, x, r, state.norm, state.radius, state.z)


class RandomizedDecoding(ScaledScores, InFrobeniusBall, KernelLabelAgent):
    r"""Gradient descent on the logistic loss; the less certain the forecast is, the more often the action is random.

    Problem: online multiclass classification, adversarial stream; the label is revealed after each round. The agent
    serves as a reference and is never ranked with agents that observe one bit. It shows the cost of the decoding under
    full information. The loss is the logistic loss in base 2, :math:`l(W) = -\log_2\, \mathrm{softmax}(W x)_y` (the
    base-2 Fenchel-Young loss of the scores :math:`W x / \ln 2`).

    Update rule (:math:`W_1 = 0`, :math:`D = \sqrt{K} B` the Frobenius radius): let
    :math:`q = \mathrm{softmax}(W_t x_t)`, :math:`y^* = \arg\max q` and :math:`r = \min\{1, 2 (1 - q_{y^*})\}`. The
    agent plays :math:`y^*` with probability :math:`1 - r`, otherwise a draw from q. Then

    .. math::

        W_{t+1} = \mathrm{Proj}_{\|W\|_F \le D}(W_t - \text{step}\, (q - e_y) x_t' / \ln 2).

    With a `decoding` other than the paper's, the action is a draw from that decoding of q.

    Guarantee (adaptive adversary, :math:`\|x_t\| \le R`):
    :math:`\mathbb{E}[M] \le \sum_t l_t(U) + D^2/(2\,\text{step})` for every :math:`\|U\|_F \le D`, hence for every U
    with rows of norm at most B. The bound holds after any number of rounds and for any
    :math:`\text{step} \le 2 (\ln 2) (1 - \ln 2) / R^2`. At the default step the additive term is
    :math:`K B^2 R^2 / (4 (\ln 2) (1 - \ln 2)) = 1.18 K B^2 R^2`. The paper states :math:`O(\|U\|_F^2)`; the constants
    are derived in `banditlab.bounds`. `bound` is None for a larger step. With another decoding, that rule's constant c
    replaces 1 - ln 2, for steps up to :math:`2 c (\ln 2) / R^2`. At that step the term is
    :math:`K B^2 R^2 / (4 c \ln 2)`, for half-log :math:`0.72 K B^2 R^2` (new: see docs/theory/half-log.md).

    Cost: :math:`O(K d)` and K exponentials per round. Memory: :math:`K d` numbers.

    Parameters
    ----------
    norm_bound
        B, the bound on each row's norm. W is projected into the Frobenius ball of radius :math:`D = \sqrt{K} B`.
    step
        Step size (:math:`\eta` in the paper, which scales W by 1/ln 2), or "theory":
        :math:`2 (\ln 2) (1 - \ln 2) / R^2`; with another decoding :math:`2 c (\ln 2) / R^2`. No horizon is needed.
    decoding
        Decoding rule: "randomized" as in the paper, "half-log", "sample", "sparsemax", "gap" or "thresholded"
        (`banditlab.numerics.decoding`).

    Raises
    ------
    UsageError
        `norm_bound` or `step` is not above 0, or the decoding is unknown.

    References
    ----------
    S. Sakaue, H. Bao, T. Tsuchiya, T. Oki. Online structured prediction with Fenchel-Young losses and improved surrogate
    regret for online multiclass classification with logistic loss. COLT 2024, arXiv 2402.08180.
    """

    id = "randomized-decoding"
    summary = "logistic gradient descent with randomized decoding, full information"
    reference = "Sakaue, Bao, Tsuchiya and Oki, COLT 2024, arXiv 2402.08180"
    bound_unit = "bits"
    bound_adversary = "adaptive"
    act_kernel = act_kernel
    learn_kernel = learn_kernel

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 10.0,
        step: float | Literal["theory"] = "theory",
        decoding: Decoding = "randomized",
    ) -> None:
        super().__init__(problem, rng)
        K, d = problem.n_classes, problem.n_features
        self.norm_bound = positive("norm_bound", norm_bound)
        self.decoding = one_of("decoding", decoding, DECODINGS)
        if step == "theory":
            self.step = self._largest_step()
        else:
            self.step = positive("step", number("step", step, "theory"))
        self.payload_size = K
        self.state = State(
            V=matrix(K, d),
            z=np.zeros(K),
            r=np.zeros(K),
            step=np.array([self.step]),
            norm=Norms.of(1),
            radius=self.frobenius_bound,
            decoding=DECODINGS.index(self.decoding),
        )

    def _largest_step(self) -> float:
        """Return the largest step that the theorem allows.

        For the paper's decoding it uses the paper's constant, 1 - ln 2; for another decoding, the exact constant c of
        that rule (`banditlab.bounds.decoding`).
        """
        if self.decoding == "randomized":
            return decoding_step(self.problem.radius)
        return template_label_step(self.problem.n_classes, self.problem.radius, self.decoding)

    def bound(self, rounds: int) -> float | None:
        r"""Return :math:`D^2/(2\, \text{step})`, a bound on :math:`\mathbb{E}[M]` minus the comparator's loss in bits.

        The bound holds for any number of rounds. The result is None if the step is above the theorem's largest.
        """
        if self.step > self._largest_step() * (1.0 + 1e-12):
            return None
        return randomized_decoding(self.frobenius_bound, self.step)
