"""The primal form (K d dimensions) and dual form (K r dimensions, r the rank of the contexts) of quadratic learners."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.curvature import is_admissible_on_ball
from banditlab.errors import IncompatibleError, UsageError
from banditlab.numerics.contexts import stretch
from banditlab.numerics.gram_coordinates import Span, Spanned, extend, locate, locate_many, stands_out
from banditlab.numerics.jit import bind, borrow, read_only
from banditlab.numerics.joint_inverse import BATCH, Blocks, form, form_many, form_of
from banditlab.numerics.sparse_rows import CSR, is_sparse, n_rows
from banditlab.players.forecaster import Floats, KernelForecaster, Kernels
from banditlab.players.inputs import as_rows
from banditlab.players.saved import fields_of
from banditlab.problem import Problem
from banditlab.validation import one_of, positive

GIB = 2.0**30
SMALL = 2**26
"""The largest primal form, in bytes, with which "auto" begins."""
MOST = 4.0
"""The memory limit, in GiB, of a learner that has no setting for it."""
FIRST = 16
"""The initial number of coordinates."""
MOST_RATIO = 2e4
r"""The largest :math:`R^2/\lambda` allowed. The errors of logits are 6e-9 at 1e4, 1e-7 at 1e5, and 3e-3 at 1e8."""
NEGLIGIBLE, DOUBTFUL = 1e-9, 1e-3
"""Limits on a certificate's rounding error, relative to the larger of 1 and the certificate.

Above the first, the error is added to it; above the second, the certificate is NaN.
"""
BEYOND = 1.0 + 1e-9
"""The tolerance for contexts longer than R, as a factor of R."""


def certified(total: float, doubt: float) -> float:
    """Return a certificate that is valid despite a rounding error of at most `doubt`, or NaN if the error is not small."""
    scale = max(1.0, abs(total))
    if not doubt <= DOUBTFUL * scale:
        return math.nan
    return total if doubt <= NEGLIGIBLE * scale else total + doubt


def begins_dual(form: str, max_memory: float, problem: Problem) -> bool:
    """Return whether a learner with these settings begins in the dual form."""
    size = Blocks.size(problem.n_classes, problem.n_features)
    return form == "dual" or (form == "auto" and size > min(SMALL, max_memory * GIB))


def refuse_primal(who: str, size: float, problem: Problem, advice: str) -> None:
    """Raise an IncompatibleError if a learner that has only a primal form needs more than `MOST` GiB."""
    if size > MOST * GIB:
        at = f"K = {problem.n_classes}, d = {problem.n_features:,}"
        raise IncompatibleError(f"{who} {size / GIB:,.1f} GiB at {at}, above {MOST:g}: {advice}")


def predict_at(state, x, z):
    """Write the learner's forecast at x (d,)."""
    state, x, z = borrow(state), borrow(x), borrow(z)
    form(state.blocks, x)
    forecast_at(state, x, z)  # type: ignore[name-defined]  # noqa: F821


def predict_many_at(state, X, Z):
    """Write the learner's forecasts at the contexts X (n, d)."""
    state, X, Z = borrow(state), borrow(X), borrow(Z)
    for start in range(0, X.shape[0], BATCH):
        part = X[start : start + BATCH]
        form_many(state.blocks, part)
        for t in range(part.shape[0]):
            form_of(state.blocks, t)
            forecast_at(state, part[t], Z[start + t])  # type: ignore[name-defined]  # noqa: F821


def prediction_kernels(forecast_at: Callable[..., Any], owner: str) -> list[Any]:
    """Return `predict_kernel` and `predict_many_kernel` of a learner whose `forecast_at` reads `state.blocks.At`."""
    return [bind(predict_at, owner, forecast_at=forecast_at), bind(predict_many_at, owner, forecast_at=forecast_at)]


def predict_in_span(state, x, z):
    """Write the learner's forecast at x (d,), through its coordinates in the span."""
    locate(borrow(state.span), borrow(x))
    predict_kernel(state.learner, read_only(state.span.xi), z)  # type: ignore[name-defined]  # noqa: F821


def predict_many_in_span(state, X, Z):
    """Write the learner's forecasts at the contexts X (n, d), through their coordinates in the span."""
    state, X, Z = borrow(state), borrow(X), borrow(Z)
    for start in range(0, Z.shape[0], BATCH):
        stop = min(start + BATCH, Z.shape[0])
        locate_many(state.span, stretch(X, start, stop), stop - start)
        coordinates, logits = read_only(state.span.Xi[: stop - start]), Z[start:stop]
        predict_many_kernel(state.learner, coordinates, logits)  # type: ignore[name-defined]  # noqa: F821


def update_in_span(state, x, y, z):
    """Extend the span by x (d,), and update the learner at the coordinates of x."""
    extend(state.span, x)
    update_kernel(state.learner, read_only(state.span.xi), y, z)  # type: ignore[name-defined]  # noqa: F821


@cache
def in_span(plain: Kernels) -> Kernels:
    """Return the kernels of the dual form, which are compiled on first use like all kernels."""
    owner = f"{plain.owner} in the span"
    return Kernels(
        bind(predict_in_span, owner, predict_kernel=plain.predict),
        bind(update_in_span, owner, update_kernel=plain.update),
        bind(predict_many_in_span, owner, predict_many_kernel=plain.predict_many),
        owner,
    )


class QuadraticForecaster(KernelForecaster):
    """A forecaster with the matrix :math:`A^{-1}` as `Blocks`, in the primal or dual form.

    It must depend on contexts only through their inner products.

    A subclass has the settings `regularization`, `norm_bound`, `curvature` and `linear_term`. Its state is a NamedTuple
    with `blocks`, `h` (K, n), `spent`, `doubt`, `longest` and `unsolved`, in the n coordinates that `_coordinates`
    returns. Its constructor passes the state to `_begin`. In the dual form `state` is a `Spanned`.
    """

    regularization: float
    norm_bound: float
    curvature: float
    linear_term: str
    most_ratio: ClassVar[float] = MOST_RATIO

    def _coordinates(self, form: str, max_memory: float) -> int:
        """Set `form` and `max_memory`, and return the initial number of coordinates."""
        self._refuse_small_regularization()
        K, d = self.problem.n_classes, self.problem.n_features
        self.form = one_of("form", form, ("auto", "primal", "dual"))
        self.max_memory = positive("max_memory", max_memory)
        size = Blocks.size(K, d)
        if self.form == "primal" and size > self.max_memory * GIB:
            raise UsageError(
                f"{self.id}: form = 'primal' needs {size / GIB:,.1f} GiB at K = {K}, d = {d:,}, above max_memory = "
                f"{self.max_memory:g}: use 'auto' or 'dual', or raise max_memory"
            )
        return min(FIRST, d) if self._begins_dual() else d

    def _refuse_small_regularization(self) -> None:
        """Raise a UsageError if the regularization is so small that rounding errors of a forecast are too large."""
        R, most = self.problem.radius, self.most_ratio
        if most * self.regularization * BEYOND < R**2:
            raise UsageError(
                f"{self.id}: regularization must be at least R^2 / {most:,.0f} = {R**2 / most:g} at R = {R:g}, "
                f"got {self.regularization:g}: below that, rounding errors of a forecast are too large"
            )

    def _begins_dual(self) -> bool:
        K, d = self.problem.n_classes, self.problem.n_features
        full = self.form == "auto" and Blocks.size(K, d) > self.max_memory * GIB
        return full or begins_dual(self.form, self.max_memory, self.problem)

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return the bytes of the initial state."""
        if cls._would_begin_dual(problem, settings):
            return 8.0 * problem.n_features
        return float(Blocks.size(problem.n_classes, problem.n_features))

    @classmethod
    def needs_dense(cls, problem: Problem, settings: Mapping[str, Any]) -> bool:
        """Return whether the learner needs dense contexts: True in the primal form."""
        return not cls._would_begin_dual(problem, settings)

    @classmethod
    def _would_begin_dual(cls, problem: Problem, settings: Mapping[str, Any]) -> bool:
        form, most = (settings.get(name, cls.own_settings()[name].default) for name in ("form", "max_memory"))
        return begins_dual(form, most, problem)

    def _begin(self, state: Any) -> None:
        """Begin with the initial `state`, in the form that the settings imply."""
        capacity, d = state.h.shape[1], self.problem.n_features
        self.state = Spanned(Span.empty(capacity, d), state) if self._begins_dual() else state
        self.sparse = self.dual

    @property
    def dual(self) -> bool:
        """Whether the learner is in the dual form."""
        return isinstance(self.state, Spanned)

    @property
    def learner(self) -> Any:
        """The state of the learner itself, in the coordinates of the current form."""
        return self.state.learner if self.dual else self.state

    @property
    def kernels(self) -> Kernels:
        """The kernels of the current form."""
        return in_span(super().kernels) if self.dual else super().kernels

    def proved(self, norm_bound: float) -> bool:
        """Return whether the bound is proved for rows up to this norm.

        This needs an admissible `curvature` and the corrected `linear_term`.
        """
        K, R = self.problem.n_classes, self.problem.radius
        return self.linear_term == "corrected" and is_admissible_on_ball(self.curvature, K, norm_bound, R)

    def diagnostics(self) -> dict[str, Any]:
        r"""Return the number of updates whose equation has a residual above :math:`10^{-11} (1 + \max |g|)`."""
        return {"unsolved_roots": int(self.learner.unsolved[0])}

    def certificate(self) -> float:
        """Return the data-dependent bound on the regret so far, in nats, against rows of norm at most B; NaN if none holds."""
        return self._certified() if self.proved(self.norm_bound) else math.nan

    def _certified(self) -> float:
        r"""Return :math:`\lambda K B^2` plus the sum of the certificate's terms.

        The result is NaN if rounding errors are large or the norm of a context exceeded R. The dual form may drop the
        part of a context outside the span, which changes a loss by at most 2 B times the norm of that part.
        """
        learner = self.learner
        if not learner.longest[0] <= (BEYOND * self.problem.radius) ** 2:
            return math.nan
        lost = 2.0 * self.norm_bound * float(self.state.span.lost[0]) if self.dual else 0.0
        total = self.regularization * self.problem.n_classes * self.norm_bound**2 + float(learner.spent[0])
        return certified(total, float(learner.doubt[0]) + lost)

    def frobenius_certificate(self, frobenius_bound: float) -> float:
        r"""Return the bound on the regret so far over :math:`\{W : \|W\|_F \le D\}`, in nats, or NaN if none holds.

        Two rows then differ by at most :math:`\sqrt{2} D`, for which the curvature must be admissible. A `norm_bound`
        of :math:`D/\sqrt{2}` ensures this. :math:`\lambda \|W\|_F^2` is at most :math:`\lambda D^2`.
        """
        D = positive("frobenius_bound", frobenius_bound)
        if not self.proved(D / math.sqrt(2.0)):
            return math.nan
        return self._certified() + self.regularization * (D**2 - self.problem.n_classes * self.norm_bound**2)

    # ---------------------------------------------------------------------------------------------------- dual to primal

    def _free(self) -> int:
        """The number of further updates that the arrays can store; a forecast needs one spare coordinate."""
        span = self.state.span
        full = span.capacity == self.problem.n_features
        return np.iinfo(np.int64).max if full else int(span.capacity - 1 - span.rank[0])

    def _fit_rows(self, X: Floats | CSR) -> None:
        """From the first sparse block on, store contexts as sparse rows, with space for the longest row of X."""
        span = self.state.span
        if isinstance(X, CSR):
            width = int(np.diff(X.indptr).max(initial=1))
        elif span.width is not None:
            width = int(np.count_nonzero(X, axis=1).max(initial=1))
        else:
            return
        if span.width is None or width > span.width:
            if self._size(span.capacity, width) > self.max_memory * GIB:
                raise UsageError(self._full(span.capacity, width))
            self.state = self.state._replace(span=span.wider(span.capacity, width))

    def predict_many(self, contexts: Any) -> Floats:
        """Return the logits (n, K) for `contexts` (n, d), dense or CSR; the state does not change.

        Other shapes raise a UsageError.
        """
        if self.dual and is_sparse(contexts):
            self._fit_rows(as_rows(contexts, self.problem, sparse=True))
        return super().predict_many(contexts)

    def play_in_parts(
        self, X: Floats | CSR, learns: Callable[[], NDArray[np.bool_]], play: Callable[[slice], None]
    ) -> None:
        """Run a block in parts if the dual form has to grow; raise a UsageError if it would exceed `max_memory`."""
        rounds = n_rows(X)
        if not self.dual:
            if isinstance(X, CSR):
                raise UsageError(f"{self.id}: sparse contexts require form = 'dual', but the form is now primal")
            play(slice(0, rounds))
            return
        self._fit_rows(X)
        updates = np.flatnonzero(learns())
        start = 0
        while start < rounds:
            free, ahead = self._free() if self.dual else rounds, updates[updates >= start]
            stop = rounds if len(ahead) <= free else int(ahead[free])
            if stop == start:  # the arrays are full, but contexts within the span need no room
                stop = next((int(t) for t in ahead if stands_out(self.state.span, X, t)), rounds)
            if stop == start:
                raise UsageError(self._full(self._next_capacity(), self.state.span.width))
            play(slice(start, stop))
            self._make_space()
            start = stop

    def _make_space(self) -> None:
        """Grow full arrays before the next update, or switch to the primal form."""
        if not self.dual or self._free() > 0:
            return
        d, capacity, width = self.problem.n_features, self._next_capacity(), self.state.span.width
        primal = self.form == "auto" and width is None and 8 * capacity > 7 * d
        if primal and Blocks.size(self.problem.n_classes, d) <= self.max_memory * GIB:
            self.state, self.sparse = self._primal(), False
        elif self._size(capacity, width) <= self.max_memory * GIB:
            span, learner = self.state
            blocks, h = learner.blocks.wider(capacity, self.regularization), np.zeros((len(learner.h), capacity))
            h[:, : learner.h.shape[1]] = learner.h
            self.state = Spanned(span.wider(capacity, width), learner._replace(blocks=blocks, h=h))

    def _primal(self) -> Any:
        """Return the state in the original coordinates."""
        Q, learner = self.state.span.basis(), self.state.learner
        learner.doubt[0] += 2.0 * self.norm_bound * self.state.span.lost[0]
        blocks, h = learner.blocks.rotated(Q, self.regularization), learner.h[:, : len(Q)] @ Q
        return learner._replace(blocks=blocks, h=np.ascontiguousarray(h))

    def _next_capacity(self) -> int:
        return min(self.problem.n_features, self.state.span.capacity * 5 // 4 // 8 * 8 + 16)

    def _size(self, capacity: int, width: int | None) -> int:
        return Blocks.size(self.problem.n_classes, capacity) + Span.size(capacity, self.problem.n_features, width)

    def _full(self, capacity: int, width: int | None) -> str:
        return (
            f"{self.id}: the dual form has stored {int(self.state.span.rank[0]):,} independent contexts and needs "
            f"{self._size(capacity, width) / GIB:,.2f} GiB for {capacity:,}, above max_memory = {self.max_memory:g}: "
            "raise it, or use fewer rounds"
        )

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state, in either form, that `get_state` of a player with the same settings returned."""
        K, d, given = self.problem.n_classes, self.problem.n_features, fields_of(state["state"]) or {}
        dual = "span" in given
        if dual and self.form == "primal":
            raise UsageError("state.state is in the dual form, but form = 'primal'")
        if dual or self.dual:  # arrays of the given kinds, with the sizes to which they had grown
            n, width = self._sizes_of(given) if dual else (d, None)
            learner = self.learner._replace(blocks=Blocks.initial(K, n, self.regularization), h=np.zeros((K, n)))
            self.state = Spanned(Span.empty(n, d, width), learner) if dual else learner
        self.sparse = self.dual
        super().set_state(state)

    def _sizes_of(self, given: dict[str, Any]) -> tuple[int, int | None]:
        """Return the capacity of a dual state, and the width of its contexts if they are sparse."""
        K, d = self.problem.n_classes, self.problem.n_features
        span, learner = fields_of(given["span"]) or {}, fields_of(given["learner"]) or {}
        n, sparse = len(span["L"]), fields_of(span["X"])
        first = (fields_of(learner["blocks"]) or {})["M"]
        width = None if sparse is None else int(sparse["places"].shape[1])
        fits = first.shape == (K * (K + 1) // 2, n, n) and span["L"].shape == (n, n)
        if not (1 <= n <= d and fits and 1 <= (width or 1) <= d):
            raise UsageError(
                f"the sizes of M and L in state.state must agree and lie in 1 ... {d}, got shapes "
                f"{first.shape} and {span['L'].shape}"
            )
        return n, width
