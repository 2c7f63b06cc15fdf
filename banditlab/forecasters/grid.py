"""FOLKLORE or AIOLI on a grid of norm bounds, mixed by the aggregating algorithm, so no norm bound needs tuning."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.grid import grid
from banditlab.errors import UsageError
from banditlab.forecasters import aioli, folklore
from banditlab.forecasters.primal_dual import GIB, MOST, refuse_primal
from banditlab.numerics.dense import overwrite
from banditlab.numerics.jit import borrow, njit
from banditlab.numerics.joint_inverse import Blocks
from banditlab.numerics.log_mixture import mix, reweigh
from banditlab.numerics.softmax import log_softmax
from banditlab.numerics.stacked_states import member, stack, view
from banditlab.players.forecaster import KernelForecaster
from banditlab.problem import Problem
from banditlab.validation import at_least, one_of, positive

BATCH = 128
"""The number of contexts for which each member forecasts in one batch."""

# Separate names, because the compiler reads globals but not attributes of modules.
_folklore_predict, _aioli_predict = folklore.predict_kernel, aioli.predict_kernel
_folklore_update, _aioli_update = folklore.update_kernel, aioli.update_kernel
_folklore_predict_many = folklore.predict_many_kernel


class State(NamedTuple):
    """The log weights w (N,), and the members' stacked states.

    The members' states are in `aioli` if `binary` is set, and otherwise in `folklore`. The other of these two fields is
    a placeholder. Z (N, K) and `many` (N, BATCH, K) are work arrays.
    """

    w: NDArray[np.float64]
    folklore: folklore.State
    aioli: aioli.State
    binary: bool
    Z: NDArray[np.float64]
    many: NDArray[np.float64]


@njit
def predict_kernel(state, x, z):
    state, x, z = borrow(state), borrow(x), borrow(z)
    for i in range(state.w.shape[0]):
        if state.binary:
            _aioli_predict(member(state.aioli, i), x, state.Z[i])
        else:
            _folklore_predict(member(state.folklore, i), x, state.Z[i])
        log_softmax(state.Z[i])  # ln q_i
    mix(state.w, state.Z, z)  # ln sum_i w_i q_i


@njit
def predict_many_kernel(state, X, Z):
    state, X, Z = borrow(state), borrow(X), borrow(Z)
    many = state.many
    for start in range(0, X.shape[0], BATCH):
        part = X[start : start + BATCH]
        n = part.shape[0]
        # All members' forecasts for the batch
        for i in range(state.w.shape[0]):
            if state.binary:
                for t in range(n):
                    _aioli_predict(member(state.aioli, i), part[t], many[i, t])
            else:
                _folklore_predict_many(member(state.folklore, i), part, many[i, :n])
        # Mix them, context by context, with the current weights.
        for t in range(n):
            for i in range(state.w.shape[0]):
                overwrite(state.Z[i], many[i, t])
                log_softmax(state.Z[i])
            mix(state.w, state.Z, Z[start + t])


@njit
def update_kernel(state, x, y, z):
    state, x, z = borrow(state), borrow(x), borrow(z)
    for i in range(state.w.shape[0]):
        if state.binary:
            _aioli_update(member(state.aioli, i), x, y, state.Z[i])
        else:
            _folklore_update(member(state.folklore, i), x, y, state.Z[i])
        log_softmax(state.Z[i])
    mix(state.w, state.Z, z)  # ln sum_i w_i q_i
    reweigh(state.w, state.Z, y)  # w_i q_i(y), normalised


class _Member(folklore.FOLKLORE):
    r"""FOLKLORE with any :math:`\lambda`. If its rounding error is large, it has no certificate; other members may have one."""

    most_ratio = math.inf


class BGrid(KernelForecaster):
    r"""Mix learners that have different norm bounds, by the aggregating algorithm.

    Problem: full-information multiclass prediction, logistic loss, adversarial stream, with a comparator of unknown
    norm.

    Update rule: members :math:`i = 1` ... N are FOLKLORE (or AIOLI) with
    :math:`B_i = \text{smallest}\,\text{ratio}^{i-1}` and their theory settings. With :math:`q_i` their forecasts, the
    forecast is :math:`\ln \sum_i w_i q_i`, and :math:`w_i` is multiplied by :math:`q_i(y_t)` after the round. (At
    learning rate 1 the loss is 1-mixable with equality: the mixture's loss is the mix loss.)

    Guarantee: against every W in the ball of :math:`B_i` the regret is at most member i's bound plus :math:`\ln N`. The
    running certificate is member i's plus :math:`\ln(N w_i)`. `bound` and `certificate` are the least of these over the
    members whose ball contains that of `norm_bound`. Doubling N raises the bound by only :math:`\ln 2` nats.

    Cost: the time and memory of N members.

    Parameters
    ----------
    norm_bound
        B, the radius of the comparators in the bound and the certificate, at most the grid's largest. Forecasts do not
        depend on it.
    member
        "folklore", or "aioli" for :math:`K = 2`.
    smallest
        :math:`B_1`, the smallest norm bound of the grid.
    ratio
        Ratio of neighbouring norm bounds, above 1.
    size
        N, the number of members. The default grid is 1/4, 1/2, ..., 64.
    curvature
        The members' curvature, "simple" or "tight".

    Raises
    ------
    UsageError
        A setting is outside its range, or `norm_bound` is above the grid's largest.
    IncompatibleError
        member = "aioli" with more than two classes, or the members need more than 4 GiB in total.

    References
    ----------
    V. Vovk. Aggregating strategies. COLT 1990.
    J. Mayo, H. Hadiji, T. van Erven. Scale-free unconstrained online learning for curved losses. COLT 2022.
    """

    id = "b-grid"
    group = "theory"
    summary = "FOLKLORE or AIOLI mixed over a geometric grid of norm bounds, which needs no tuning and costs ln N nats"
    reference = "Vovk, COLT 1990, over the members of Agarwal, Kale and Zimmert, ALT 2022"
    bound_unit = "nats"
    bound_adversary = "adaptive"
    predict_kernel = predict_kernel
    update_kernel = update_kernel
    predict_many_kernel = predict_many_kernel

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        member: Literal["folklore", "aioli"] = "folklore",
        smallest: float = 0.25,
        ratio: float = 2.0,
        size: int = 9,
        curvature: Literal["simple", "tight"] = "simple",
    ) -> None:
        super().__init__(problem, rng)
        self.member = one_of("member", member, ("folklore", "aioli"))
        self.smallest = positive("smallest", smallest)
        self.ratio = positive("ratio", ratio)
        if self.ratio <= 1.0:
            raise UsageError(f"ratio must be a number above 1, got {self.ratio:g}")
        self.size = at_least("size", size, 1)
        self.curvature = one_of("curvature", curvature, ("simple", "tight"))
        self.norm_bound = positive("norm_bound", norm_bound)
        largest = self.norm_bounds[-1]
        if self.norm_bound > largest * (1.0 + 1e-12):
            raise UsageError(f"norm_bound must lie within the grid, at most {largest:g}, got {self.norm_bound:g}")
        self._refuse_size()
        cls: Any = aioli.AIOLI if self.member == "aioli" else _Member
        # members of equal shapes, which can be stacked
        settings = {"curvature": curvature} if self.member == "aioli" else {"curvature": curvature, "form": "primal"}
        self._members = [cls(problem, None, norm_bound=B, **settings) for B in self.norm_bounds]
        self.state = self._stacked()

    @classmethod
    def settings_at(cls, norm_bound: float, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the default settings, with a larger size if the grid would not include `norm_bound`."""
        settings = super().settings_at(norm_bound, given)
        if set(given) & {"norm_bound", "smallest", "ratio", "size"}:
            return settings
        smallest, ratio, size = (cls.own_settings()[name].default for name in ("smallest", "ratio", "size"))
        B = positive("norm_bound", norm_bound)
        return settings | {"size": max(size, 1 + math.ceil(math.log(B / smallest) / math.log(ratio) - 1e-9))}

    def _refuse_size(self) -> None:
        K, d = self.problem.n_classes, self.problem.n_features
        # The bytes of a member: A^{-1} of AIOLI or of FOLKLORE.
        each = 8.0 * d * d if self.member == "aioli" else Blocks.size(K, d)
        fit = int(MOST * GIB / each)
        advice = f"use a size of {fit} or less" if fit else "use fewer features"
        if self.member == "folklore":
            advice += ", or folklore, whose dual form only stores the span of the updates' contexts"
        members = f"its {self.size} members need" if self.size > 1 else "its member needs"
        refuse_primal(f"b-grid: {members}", self.size * each, self.problem, advice)

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return a lower bound on the size of the state in bytes: the sum over the members."""
        size = settings.get("size", cls.own_settings()["size"].default)
        member = settings.get("member", cls.own_settings()["member"].default)
        order = (2, 2) if member == "folklore" else (1, 2)
        return 4.0 * size * problem.n_classes ** order[0] * problem.n_features ** order[1]

    @property
    def norm_bounds(self) -> list[float]:
        r"""The norm bounds :math:`B_1, \dots, B_N`."""
        return [self.smallest * self.ratio**i for i in range(self.size)]

    def _stacked(self) -> State:
        states = stack([player.state for player in self._members])
        for player in self._members:
            player.state = None  # from here on the stack is the state
        nothing = Problem(1, 2, 1.0)
        binary = self.member == "aioli"
        N, K = self.size, self.problem.n_classes
        return State(
            w=np.full(N, -math.log(N)),
            folklore=stack([folklore.FOLKLORE(nothing, None).state]) if binary else states,
            aioli=states if binary else stack([aioli.AIOLI(nothing, None).state]),
            binary=binary,
            Z=np.zeros((N, K)),
            many=np.zeros((N, BATCH, K)),
        )

    def get_state(self) -> dict[str, Any]:
        """Return the state, which includes the members' states."""
        return {"rng": self.rng, "state": self.state}

    def weights(self) -> NDArray[np.float64]:
        """Return the members' weights (N,), which sum to 1."""
        return np.exp(self.state.w)

    def _members_of_ball(self) -> range:
        """The members whose ball contains the ball of `norm_bound`."""
        return range(sum(self.norm_bound > B * (1.0 + 1e-12) for B in self.norm_bounds), self.size)

    def bound(self, rounds: int) -> float:
        """Return the regret bound over the ball of `norm_bound` after `rounds` rounds, in nats."""
        return min(grid(self._members[i].bound(rounds), self.size) for i in self._members_of_ball())

    def certificate(self) -> float:
        """Return the data-dependent bound on the regret so far over the ball of `norm_bound`, in nats, or NaN.

        Members whose own certificate is NaN are left out; the other members' bounds remain valid.
        """
        states = self.state.aioli if self.member == "aioli" else self.state.folklore
        found = []
        for i in self._members_of_ball():
            # Member i's own certificate, on its part of the stack, plus ln(N w_i).
            player = self._members[i]
            player.state = view(states, i)
            found.append(player.certificate() + float(self.state.w[i]) + math.log(self.size))
            player.state = None
        return min((value for value in found if not math.isnan(value)), default=math.nan)
