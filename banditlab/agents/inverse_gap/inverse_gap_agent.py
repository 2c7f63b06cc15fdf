r"""Inverse-gap weighting over a per-class probabilistic oracle: the common part of `fastcb` and `squarecb`.

The oracle and the weighting are independent choices. Each pair has its own kernels, which are compiled on first use.
Only the model of the played class is updated, whether the class was right (a hit) or wrong (a miss).

Two oracles may compete (a "duel"). During the duel, actions are drawn from the mean of the two distributions, and both
oracles are updated. In a round where their best classes differ, a hit is a point for the oracle whose best class was
right. The duel ends when an oracle leads by more than `DUEL_LEAD` :math:`\sqrt{\text{points} + 1}`. The other oracle is
no longer used or updated.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from banditlab.agents.inverse_gap.compact_oracles import PER_CLASS
from banditlab.agents.inverse_gap.oracles import ORACLES, Oracle
from banditlab.agents.second_order import SKETCH_SIZE, SecondOrder, resolved_order, sketch_diagnostics
from banditlab.errors import UsageError
from banditlab.numerics.argmax import argmax
from banditlab.numerics.draws import draw
from banditlab.numerics.frequent_directions import Directions
from banditlab.numerics.jit import bind, inline, njit
from banditlab.numerics.limits import COUNT, Limits
from banditlab.players.agent import KernelAgent
from banditlab.players.rounds import no_prefetch
from banditlab.problem import Problem
from banditlab.validation import nonnegative, one_of, positive

DUEL_LEAD = 2.5
"""The lead that ends a duel, in standard deviations of the lead between equally good oracles."""


class State(NamedTuple):
    """The state: `oracle` and `rival` are the states of the two oracles (a placeholder if there is no rival).

    `x` (d or d + 1,) is the context with the intercept, `rounds` (1,) the number of updates; `schedule` (2,) contains K
    times the sharpness, and the growth. `points` (2,) are the points of the two oracles. `winner` (1,) is 0 for the
    first, 1 for the rival, -1 while the duel is open. `both` (K,) is a work array.
    """

    oracle: Any
    rival: Any
    points: NDArray[np.int64]
    winner: NDArray[np.int64]
    both: NDArray[np.float64]
    x: NDArray[np.float64]
    rounds: NDArray[np.int64]
    schedule: NDArray[np.float64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer in the state."""
        return {"points": COUNT, "winner": (-1, 1), "rounds": COUNT}


class SketchState(NamedTuple):
    """A `State` whose oracles share a sketch of the contexts."""

    oracle: Any
    rival: Any
    points: NDArray[np.int64]
    winner: NDArray[np.int64]
    both: NDArray[np.float64]
    x: NDArray[np.float64]
    rounds: NDArray[np.int64]
    schedule: NDArray[np.float64]
    sketch: Directions

    def limits(self) -> Limits:
        """Return the allowed range of every integer in the state."""
        return {"points": COUNT, "winner": (-1, 1), "rounds": COUNT}


context_kernel: Any = None
begin_kernel: Any = None
close_kernel: Any = None
"""The names that `bind` replaces by an oracle's kernels (see `oracles.Oracle`)."""


@inline
def sharpness(schedule, rounds):
    r"""Return :math:`g_t = K\, \text{sharpness}\, t^{\text{growth}}`, where :math:`t - 1` is the number of updates so
    far.
    """
    return schedule[0] * (rounds[0] + 1.0) ** schedule[1]


def act(state, x, u, p, payload):
    """Draw an action by inverse-gap weighting of the oracles' margins.

    `payload` stores the K margins of the first oracle, then those of the second.
    """
    x_own, K, winner = context_kernel(state, x), p.shape[0], state.winner[0]
    g = sharpness(state.schedule, state.rounds)
    for k in range(payload.shape[0]):
        payload[k] = 0.0
    if winner != 1:
        margins_kernel(state.oracle, x_own, payload[:K])  # type: ignore[name-defined]  # noqa: F821
        weights_kernel(payload[:K], g, p)  # type: ignore[name-defined]  # noqa: F821
    if winner != 0:
        margins_kernel(state.rival, x_own, payload[K:])  # type: ignore[name-defined]  # noqa: F821
        weights_kernel(payload[K:], g, state.both)  # type: ignore[name-defined]  # noqa: F821
        for k in range(K):
            p[k] = state.both[k] if winner == 1 else 0.5 * (p[k] + state.both[k])  # the mean of both, in a duel
    return draw(p, u[1]), False


@njit
def score(points, winner, first, second, action):
    """If the oracles' best classes differ, give a point to the one that was right; end the duel if its lead is large.

    first and second (K,) are the margins of the two oracles.
    """
    K = first.shape[0]
    a, b = argmax(first, K), argmax(second, K)
    if a == b or (action != a and action != b):
        return
    points[0 if action == a else 1] += 1
    # The first oracle to lead by more than 2.5 sqrt(points + 1) wins.
    lead = points[1] - points[0]
    if abs(lead) > DUEL_LEAD * math.sqrt(points[0] + points[1] + 1.0):
        winner[0] = 1 if lead > 0 else 0


def learn(state, x, action, p, payload, correct):
    """Update the chosen class's model with the outcome, using the margin of the decision (stored in `payload`).

    While two oracles compete, both are updated.
    """
    x_own, K, winner, y = begin_kernel(state, x), state.both.shape[0], state.winner[0], 1.0 if correct else -1.0
    if winner != 1:
        learn_class_kernel(state.oracle, x_own, action, payload[action], y)  # type: ignore[name-defined]  # noqa: F821
    if winner != 0:
        learn_challenger_kernel(state.rival, x_own, action, payload[K:], y)  # type: ignore[name-defined]  # noqa: F821
    close_kernel(state)
    if winner < 0 and correct:
        score(state.points, state.winner, payload[:K], payload[K:], action)
    state.rounds[0] += 1


def prefetch(state, X, t):
    """Prefetch the contexts of the next block for both oracles. For an oracle that is no longer used, only complete the
    previous block's updates.
    """
    n, winner, behind = X.shape[0], state.winner[0], state.x[X.shape[1] :]
    oracle_prefetch_kernel(state.oracle, X, n if winner == 1 else t, behind)  # type: ignore[name-defined]  # noqa: F821
    oracle_prefetch_kernel(state.rival, X, n if winner == 0 else t, behind)  # type: ignore[name-defined]  # noqa: F821


Constructor = TypeVar("Constructor", bound=Callable[..., None])


def with_defaults(constructor: Constructor, **defaults: Any) -> Constructor:
    """Return the constructor with other default values for keyword-only parameters."""
    given: Any = constructor
    copy = types.FunctionType(given.__code__, given.__globals__, given.__name__, given.__defaults__, given.__closure__)
    copy.__kwdefaults__ = given.__kwdefaults__ | defaults
    copy.__annotations__, copy.__module__, copy.__qualname__ = (
        given.__annotations__,
        given.__module__,
        given.__qualname__,
    )
    return cast(Constructor, copy)


class InverseGapAgent(KernelAgent):
    r"""Base of `fastcb` and `squarecb`; a subclass sets `weights_kernel(z, g, p)` and its defaults.

    Update: only the model of the played class is updated, with :math:`y = +1` (right) or -1 (wrong). The oracle's
    context is x with the constant `intercept` times R appended. Let s be the logistic function.

    * "aioli": the margin is :math:`z = m - (w/2) q \tanh(z/2)` with :math:`m = x'h_i` and :math:`q = x'P_i x`. Then
      :math:`A_i \mathrel{+}= c s(z) s(-z) x x'` and :math:`b_i \mathrel{+}= (c s(z) s(-z) z - g/2) x` with
      :math:`g = -y s(-y z)`, :math:`P_i = A_i^{-1}` and :math:`h_i = P_i b_i`. w is the weight of the two virtual
      labels. They move the estimate of an untried class to 1/2, well above its true rate of :math:`1/K`. This optimism
      leads to exploration.
    * "logistic": :math:`w_i \mathrel{-}= \text{step}\, g x / \sqrt{G_i}` entry by entry, where :math:`G_i` is the sum
      of :math:`(g x)^2` (AdaGrad).
    * "b-grid": each class has `grid_size` AIOLI models with
      :math:`B_j = \mathrm{norm\_bound}\,\mathrm{grid\_ratio}^{j-1}` and :math:`\lambda = 1 / B_j^2`. They are mixed
      with weights :math:`\exp(-\text{loss})`, where loss is a model's log loss so far.

    "aioli" has two sets of models that compete (a "duel"); the second has `challenger` times the :math:`\lambda` of the
    first. Both are updated, and actions are drawn from the mean of the two distributions. A hit in a round where the
    best classes differ is a point for the set whose best class was right. A lead of more than
    :math:`2.5 \sqrt{\text{points} + 1}` ends the duel. In the second set a hit also updates one other class, the class
    j with the next largest :math:`z_j`, with :math:`y = -1`, if :math:`q_j \le 1`. This extra update helps if no
    half-space separates a class from the rest. The duel is needed because these updates are biased: they count misses
    of j, but hits of j are not observed if another class is chosen.

    `second_order` selects the form in which "aioli" stores :math:`A_i`. "diagonal" stores its diagonal. "sketch" stores
    frequent directions Q (m, d) of the contexts of all updates, which all classes and both sets of models share. It
    approximates :math:`P_i` by :math:`Q'B_i Q + p_i (I - Q'Q)` with :math:`B_i \in \mathbb{R}^{m \times m}`. An update
    changes :math:`B_i` as it would change the block :math:`Q P_i Q'` of a full :math:`P_i`. The part of :math:`x x'`
    orthogonal to the rows of Q adds its mean eigenvalue to :math:`1/p_i` (`numerics.sketched_inverses`). While contexts
    span at most m directions, the result is that of "full" up to rounding. In both forms :math:`h_i` has all d entries.

    Cost of "aioli": a round takes K quadratic forms of size d (:math:`K d^2 / 2` multiplications, fewer for contexts
    with zeros), K scalar roots and one rank-one update. A round takes twice as long while a duel is open (on Digits the
    first set won after 150 rounds; on some data sets the duel stays open). Memory is :math:`K d^2` numbers. The
    matrices of a set are read only once per 32 or 64 rounds if they take 1.5 MiB or more (`numerics.lookahead`). A
    class with :math:`r < d / 2` updates stores and reads :math:`r d` numbers (`numerics.low_rank`). Both methods change
    decisions by rounding only. The first takes :math:`32 K d` or :math:`64 K d` more numbers. "diagonal" takes
    :math:`O(K d)` time and :math:`2 K d` numbers per set. "sketch" takes :math:`O((K + m) d + K m^2)` on average, with
    m the `sketch_size`; it stores :math:`K (d + m^2 / 2)` numbers per set and :math:`3 m d` for the sketch.

    Cost of the other oracles: "b-grid" takes `grid_size` times as long as a single set; "logistic" takes
    :math:`O(K d)`.

    Parameters
    ----------
    oracle
        "aioli" (one per class), "logistic" (first-order) or "b-grid" (AIOLI over a grid of norm bounds, mixed).
    sharpness
        :math:`g_t / (K t^{\text{growth}})`, above 0; a larger value explores less.
    growth
        The exponent of t in :math:`g_t`, 0 or above; with 0, g is constant.
    intercept
        The constant appended to each context, in units of R; 0 omits it.
    norm_bound
        B, with :math:`\|\theta_k\| \le B` for every class, which determines the curvature c. "auto" is :math:`1/R`. For
        "b-grid" it is the smallest B of the grid, and "auto" is :math:`4/R`. For "aioli" and "b-grid".
    regularization
        :math:`\lambda` of the models, :math:`A_0 = \lambda I`. "auto" is :math:`0.003 R^2`. For "aioli".
    curvature
        c, the factor of the term that an update adds to A. "simple" is :math:`1 / (2 (1 + B R))`, AIOLI's own; "tight"
        is :math:`1 / (1 + \cosh b)` with :math:`b + \sinh b = B R`; or a number. For "aioli" and "b-grid".
    virtual_weight
        w, the weight of the virtual labels; 1 in AIOLI's paper. For "aioli" and "b-grid".
    challenger
        The second set's :math:`\lambda` in units of the first's; 0 means a single set and no duel. A single set takes
        half the memory. Compared with two sets, it made 5 % fewer mistakes on tables with few columns, and a sixth more
        with hundreds of dense columns and noisy labels. For "aioli".
    second_order
        The stored form of each class's :math:`d \times d` matrix: "full", its "diagonal", or a block in a "sketch".
        "auto" is "full" if :math:`K d^2` is at most 4,194,304, else "sketch". For "aioli".
    sketch_size
        m, the number of directions of the sketch, 1 or more. Beyond d the result is that of "full", computed more
        slowly. `diagnostics` returns the share of :math:`|x|^2` outside the directions. For `second_order = "sketch"`.
    step
        AdaGrad's step in units of weights; "auto" is :math:`1/R`. For "logistic".
    grid_size, grid_ratio
        The number of norm bounds, and the ratio of each to the one before it, above 1. For "b-grid".

    Raises
    ------
    UsageError
        A setting is outside its range or is an unknown string, or the chosen oracle does not use a given setting.

    References
    ----------
    D. Foster, A. Krishnamurthy. Efficient first-order contextual bandits: prediction, allocation, and triangular
    discrimination. NeurIPS 2021.
    D. Foster, A. Rakhlin. Beyond UCB: optimal and efficient contextual bandits with regression oracles. ICML 2020.
    R. Jézéquel, P. Gaillard, A. Rudi. Efficient improper learning for online logistic regression. COLT 2020.
    J. Duchi, E. Hazan, Y. Singer. Adaptive subgradient methods. JMLR 2011.
    E. Liberty. Simple and deterministic matrix sketching. KDD 2013.
    H. Luo, A. Agarwal, N. Cesa-Bianchi, J. Langford. Efficient second order online learning by sketching. NeurIPS 2016.
    """

    group = "practice"
    state_order = (1, 2)
    explores = False
    weights_kernel: ClassVar[Any]
    second_order: str

    def __init_subclass__(cls, **options: Any) -> None:
        """Append the base's text on the oracles, the cost and the settings to the subclass's docstring."""
        super().__init_subclass__(**options)
        if cls.__doc__ is not None:  # as with python -OO
            cls.__doc__ += (InverseGapAgent.__doc__ or "").partition("\n")[2]

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        oracle: Literal["aioli", "logistic", "b-grid"] = "aioli",
        sharpness: float = 60.0,
        growth: float = 0.5,
        intercept: float = 0.5,
        norm_bound: float | Literal["auto"] = "auto",
        regularization: float | Literal["auto"] = "auto",
        curvature: float | Literal["simple", "tight"] = "simple",
        virtual_weight: float = 2.0,
        challenger: float = 10.0,
        second_order: SecondOrder = "auto",
        sketch_size: int = SKETCH_SIZE,
        step: float | Literal["auto"] = "auto",
        grid_size: int = 4,
        grid_ratio: float = 4.0,
    ) -> None:
        super().__init__(problem, rng)
        of_oracle: dict[str, Any] = {
            "norm_bound": norm_bound,
            "regularization": regularization,
            "curvature": curvature,
            "virtual_weight": virtual_weight,
            "challenger": challenger,
            "second_order": second_order,
            "sketch_size": sketch_size,
            "step": step,
            "grid_size": grid_size,
            "grid_ratio": grid_ratio,
        }
        K, R = problem.n_classes, problem.radius
        self.oracle = one_of("oracle", oracle, tuple(ORACLES))
        self.sharpness = positive("sharpness", sharpness)
        self.growth = nonnegative("growth", growth)
        self.intercept = nonnegative("intercept", intercept)
        self._refuse_unread(ORACLES[self.oracle].reads, of_oracle)
        resolved = ORACLES[self.oracle].resolved(of_oracle, problem)
        vars(self).update(of_oracle | resolved)
        kind = self.kind
        d = problem.n_features + (self.intercept > 0.0)
        x = np.zeros(d)
        x[problem.n_features :] = self.intercept * R
        rival = kind.rival(resolved)
        self.payload_size = K if rival is None else 2 * K
        own = State(
            oracle=kind.state(K, d, R, resolved),
            rival=kind.state(1, 1, R, resolved) if rival is None else kind.state(K, d, R, rival),
            points=np.zeros(2, np.int64),
            winner=np.full(1, 0 if rival is None else -1, np.int64),
            both=np.zeros(K),
            x=x,
            rounds=np.zeros(1, np.int64),
            schedule=np.array([self.sharpness * K, self.growth]),
        )
        sketch = kind.shared(d, resolved)
        self.state = own if sketch is None else SketchState(*own, sketch=sketch)

    def limits(self) -> Limits:
        """Return the range of `winner`: -1 to 1 with two oracles, and only 0 with one."""
        return {"state.winner": (-1, 1) if self.payload_size > self.problem.n_classes else (0, 0)}

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return a lower bound on the size of the state in bytes, for the oracle in the settings."""
        given = cls.completed(settings)
        oracle, second_order = given["oracle"], resolved_order(given["second_order"], problem)
        if oracle not in [*ORACLES] or second_order not in [*PER_CLASS]:  # the constructor refuses it
            return 4.0 * problem.n_classes * problem.n_features
        return oracle_of(oracle, second_order).least_bytes(problem, given)

    def _refuse_unread(self, reads: tuple[str, ...], given: dict[str, Any]) -> None:
        """Raise a UsageError for a setting of another oracle, which would have no effect."""
        own = self.own_settings()
        for name, value in given.items():
            if name not in reads and value != own[name].default:
                readers = " or ".join(repr(word) for word, kind in ORACLES.items() if name in kind.reads)
                raise UsageError(f"{name} applies to oracle = {readers} only, not to {self.oracle!r}")

    @property
    def kind(self) -> type[Oracle]:
        """The class of the oracle."""
        return oracle_of(self.oracle, self.second_order)

    def kernels(self) -> tuple[Any, Any]:
        """Return the act and learn kernels for this agent's weighting and oracle."""
        return _bound(type(self), self.kind)

    def prefetch(self) -> Any:
        """Return the kernel that prepares a block of rounds, if it makes the oracle faster."""
        return _bound_prefetch(self.kind) if self.kind.prefetches(self.state.oracle) else no_prefetch

    def diagnostics(self) -> dict[str, Any]:
        r"""Return the duel's winner (0 the first, 1 the challenger, -1 open) and the points of both.

        With a sketch, also return the number of basis rotations and the share of :math:`\|x\|^2` outside the sketch
        over all updates.
        """
        found: dict[str, Any] = {}
        if self.payload_size > self.problem.n_classes:
            first, rival = self.state.points.tolist()
            found = {"duel_winner": int(self.state.winner[0]), "duel_points": first, "duel_points_challenger": rival}
        return found | (sketch_diagnostics(self.state.sketch) if isinstance(self.state, SketchState) else {})

    def kernel_owner(self) -> str:
        """Return a name unique to these kernels, for the disk cache."""
        return f"{super().kernel_owner()} over {self.kind.__name__}"


def oracle_of(oracle: str, second_order: str) -> type[Oracle]:
    """Return the oracle class for these two settings; `second_order` applies to "aioli"."""
    return PER_CLASS[second_order] if oracle == "aioli" else ORACLES[oracle]


@cache
def _bound(agent: type[InverseGapAgent], kind: type[Oracle]) -> tuple[Any, Any]:
    """Return the compiled act and learn kernels; `fastcb` and `squarecb` share the learn kernel."""
    bound = bind(
        act,
        f"{agent.__module__}.{agent.__qualname__} over {kind.__name__}",
        context_kernel=kind.context_kernel,
        margins_kernel=kind.margins_kernel,
        weights_kernel=agent.weights_kernel,
    )
    return bound, _bound_learn(kind)


@cache
def _bound_learn(kind: type[Oracle]) -> Any:
    return bind(
        learn,
        f"{__name__} over {kind.__name__}",
        begin_kernel=kind.begin_kernel,
        learn_class_kernel=kind.learn_kernel,
        learn_challenger_kernel=kind.challenger_kernel,
        close_kernel=kind.close_kernel,
    )


@cache
def _bound_prefetch(kind: type[Oracle]) -> Any:
    return bind(prefetch, f"{__name__} over {kind.__name__}", oracle_prefetch_kernel=kind.prefetch_kernel)
