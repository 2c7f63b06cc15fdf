"""FOLKLORE (ALT 2022) with :math:`A^{-1}` stored as one matrix. Forecasts are computed by Newton's method or gradient
descent, and Lemma 7 is applied with :math:`A_{t-1}` or :math:`A_t`.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.curvature import is_admissible_on_ball, margin_range, simple_curvature, tight_curvature
from banditlab.bounds.folklore import (
    folklore,
    folklore_after,
    folklore_any_regularization,
    folklore_error,
    folklore_inexact,
)
from banditlab.errors import HorizonRequiredError
from banditlab.forecasters.primal_dual import BEYOND, refuse_primal
from banditlab.forecasters.soft_labels import as_distribution, softmax_hessian, surrogate_term
from banditlab.losses import softmax
from banditlab.numerics.descended_root import descended, descent_steps, newton_root
from banditlab.numerics.limits import COUNT, Limits
from banditlab.players.forecaster import Floats, Forecaster
from banditlab.players.inputs import as_class, as_context
from banditlab.problem import Problem
from banditlab.validation import one_of, positive, resolve

UNSOLVED = 1e-9
r"""A fixed point counts as unsolved if its residual, relative to :math:`1 + \max |z|`, is above this."""
DIGITS = 1e6
r""":math:`R^2/\lambda` above which :math:`A^{-1}` is too inexact for a certificate."""


class State(NamedTuple):
    r"""The state: :math:`P = A^{-1}` (K, d, K, d) and :math:`h = A^{-1} G` (K, d).

    `spent` (1,) is the sum of the certificate's terms :math:`T_t`, and `longest` (1,) is the largest :math:`\|x\|^2` of
    an update. `unsolved` (1,) counts fixed points that were not reached.
    """

    P: NDArray[np.float64]
    h: NDArray[np.float64]
    spent: NDArray[np.float64]
    longest: NDArray[np.float64]
    unsolved: NDArray[np.int64]

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        return {"unsolved": COUNT}


class FolkloreDirect(Forecaster):
    r"""FOLKLORE with :math:`A^{-1}` stored as one matrix, for labels that may be distributions.

    Two options of the paper are available: forecasts by gradient descent, and Lemma 7 with :math:`A_t`.

    Problem: full-information multiclass prediction, logistic loss, adversarial stream; labels are classes or
    distributions over them.

    Update rule: that of `folklore` (corrected), for any forecast logits. With
    :math:`\tilde A = (1/2) \Phi'A_{t-1}^{-1} \Phi` and :math:`\text{mean} = -(1/2) \Phi'A_{t-1}^{-1} G`, the forecast
    is the root of :math:`z = g - \tilde A\, \mathrm{softmax}(z)`, where g depends on `linear_term`:

    * "before" (the paper's, Lemma 8): :math:`g = \text{mean} + \mathrm{diag}(\tilde A) / 2`.
    * "after" (Lemma 7 with :math:`A = A_t`, which the paper leaves as a fixed point):
      :math:`g = \text{mean} + (1/2)(I + 2c \tilde A S)\, \mathrm{diag}(\tilde A')` with
      :math:`\tilde A' = (I + 2c \tilde A S)^{-1} \tilde A` and S the softmax's Hessian at the root itself. A fixed
      point exists by Brouwer's theorem, because the right side is bounded. Newton's method with finite differences
      starts from the root of "before".

    `solver = "gradient"` is Appendix E's descent, with enough steps for
    :math:`|z - \text{root}|^2 \le \text{accuracy}` (Theorem 4). The surrogate is then expanded at the forecast logits.

    Guarantee: the regret against rows of norm at most B is at most the certificate :math:`\lambda K B^2 + \sum_t T_t`
    for any logits (`surrogate_term`). For the exact root of "before",
    :math:`T_t \le (1/4)\, \mathrm{tr}(A_{t-1}^{-1} H_t)`. For the fixed point of "after",
    :math:`T_t \le (1/4)\, \mathrm{tr}(A_t^{-1} H_t)`, which telescopes for every :math:`\lambda`. The bounds are that
    of Theorem 3 for "before", `folklore_after` for "after", and `folklore_inexact` for gradient descent.

    Cost: :math:`K^2 d^2` multiplications per forecast and :math:`K^3 d^2` per update, in Python. Memory:
    :math:`K^2 d^2` numbers.

    Parameters
    ----------
    norm_bound, regularization, curvature
        As for `folklore`.
    linear_term
        "before" or "after", as described above; "after" needs `solver = "newton"`.
    solver
        "newton", which solves up to rounding, or "gradient".
    accuracy
        :math:`\epsilon` of Theorem 4, in squared logits; "theory" is the value that adds one nat to the bound over the
        horizon.

    Raises
    ------
    UsageError
        A setting is outside its range.
    HorizonRequiredError
        `accuracy = "theory"` with `solver = "gradient"`, and the horizon is unknown.
    IncompatibleError
        :math:`A^{-1}` needs more than 4 GiB.

    References
    ----------
    N. Agarwal, S. Kale, J. Zimmert. Efficient methods for online multiclass logistic regression. ALT 2022, Theorem 4, Remark
    5, Lemma 7 and Appendix E.
    """

    id = "folklore-direct"
    group = "theory"
    summary = (
        "FOLKLORE with matrices as printed: gradient descent for the root, soft labels, Lemma 7 with $A_t$; interpreted"
    )
    reference = "Agarwal, Kale and Zimmert, ALT 2022, Theorem 4, Lemma 7 and Appendix E"
    state_order = (2, 2)
    bound_unit = "nats"
    bound_adversary = "adaptive"

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        regularization: float | Literal["theory"] = "theory",
        curvature: float | Literal["simple", "tight"] = "simple",
        linear_term: Literal["before", "after"] = "before",
        solver: Literal["newton", "gradient"] = "newton",
        accuracy: float | Literal["theory"] = 1e-6,
    ) -> None:
        super().__init__(problem, rng)
        K, d, R = problem.n_classes, problem.n_features, problem.radius
        self.norm_bound = B = positive("norm_bound", norm_bound)
        words = {"simple": simple_curvature(K, B, R), "tight": tight_curvature(margin_range(K, B, R))}
        self.regularization = lam = resolve("regularization", regularization, {"theory": 2.0 * R / B})
        self.curvature = resolve("curvature", curvature, words)
        self.linear_term = one_of("linear_term", linear_term, ("before", "after"))
        self.solver = one_of("solver", solver, ("newton", "gradient"))
        if self.linear_term == "after":
            one_of('solver with linear_term = "after"', self.solver, ("newton",))
        self.accuracy = self._accuracy(accuracy)
        self._largest = 0.5 * R**2 / lam
        self._steps = descent_steps(self._largest, self.accuracy) if self.solver == "gradient" else 0
        refuse_primal(f"{self.id}: its inverse needs", 8.0 * (K * d) ** 2, problem, "use fewer features, or folklore")
        P = np.einsum("kl,ij->kilj", np.eye(K), np.eye(d) / lam)
        P = np.ascontiguousarray(P)
        self.state = State(P, np.zeros((K, d)), np.zeros(1), np.zeros(1), np.zeros(1, np.int64))

    def _accuracy(self, given: float | str) -> float:
        r"""Return :math:`\epsilon`; "theory" is the square of the error that costs one nat over the horizon."""
        n, R = self.problem.horizon, self.problem.radius
        if given != "theory":
            return positive("accuracy", given)
        if n is None:
            if self.solver == "newton":
                return 0.0
            raise HorizonRequiredError(f"{self.id}: accuracy = 'theory' needs the horizon T; give a number instead")
        return folklore_error(float(n), R, self.regularization, self.curvature) ** 2

    def get_state(self) -> dict[str, Any]:
        """Return the state."""
        return {"rng": self.rng, "state": self.state}

    # ------------------------------------------------------------------------------------------------------- the root

    def _at(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        r"""Return the rows of :math:`\Phi'A^{-1}`, V (K, d, K), :math:`\tilde{A}` (K, K) and the mean logits (K,) at x."""
        V = self.state.P @ x  # V[k, i, l] = (A^{-1} (e_l (x) x))_{ki}
        At = 0.5 * np.einsum("kil,i->kl", V, x)
        return V, 0.5 * (At + At.T), -0.5 * (self.state.h @ x)

    def _logits(self, At: Floats, mean: Floats) -> tuple[Floats, bool]:
        """Return the forecast and whether the root was reached."""
        g = mean + 0.5 * np.diag(At)
        if self.solver == "gradient":
            return descended(g, At, self._largest, self._steps), True
        z, residual = newton_root(g, At)
        return (z, residual <= UNSOLVED) if self.linear_term == "before" else self._fixed_point(z, At, mean)

    def _off(self, z: Floats, At: Floats, mean: Floats) -> Floats:
        """Return the amount by which z violates Lemma 7's condition with :math:`A = A_t`."""
        s = softmax(z)
        M = np.eye(len(z)) + 2.0 * self.curvature * At @ softmax_hessian(s)
        after = np.linalg.solve(M, At)
        off: Floats = z - mean - 0.5 * M @ np.diag(after) + At @ s
        return off

    def _fixed_point(self, z: Floats, At: Floats, mean: Floats) -> tuple[Floats, bool]:
        """Return a root of `_off` near z, by Newton's method with finite differences and step halving."""
        K, off = len(z), self._off(z, At, mean)
        scale = 1.0 + float(np.abs(z).max())
        for _ in range(60):
            if np.abs(off).max() <= 1e-13 * scale:
                break
            h = 1e-6 * scale
            J = np.stack(
                [(self._off(z + h * e, At, mean) - self._off(z - h * e, At, mean)) / (2 * h) for e in np.eye(K)]
            )
            step, size = np.linalg.lstsq(J.T, off, rcond=None)[0], 1.0
            moved = self._off(z - step, At, mean)
            while not float(moved @ moved) < float(off @ off) and size > 1e-8:
                size *= 0.5
                moved = self._off(z - size * step, At, mean)
            if not float(moved @ moved) < float(off @ off):
                break
            z, off = z - size * step, moved
        return z, float(np.abs(off).max()) <= UNSOLVED * scale

    def predict(self, context: Floats) -> Floats:
        """Return the logits (K,) for `context` (d,)."""
        _, At, mean = self._at(as_context(context, self.problem))
        return self._logits(At, mean)[0]

    # ---------------------------------------------------------------------------------------------------------- learning

    def update(self, context: Floats, label: int) -> None:
        """Update with the class `label` of `context` (d,)."""
        y = np.zeros(self.problem.n_classes)
        y[as_class("the label", label, self.problem.n_classes)] = 1.0
        self._learn(context, y)

    def update_soft(self, context: Floats, label: Floats) -> None:
        """Update with the distribution `label` (K,) at `context` (d,)."""
        self._learn(context, as_distribution(label, self.problem.n_classes))

    def _learn(self, context: Floats, y: Floats) -> None:
        x, state, c = as_context(context, self.problem), self.state, self.curvature
        V, At, mean = self._at(x)
        z, reached = self._logits(At, mean)
        s, r = softmax(z), z - mean
        S, g = softmax_hessian(s), softmax(z) - y
        state.spent[0] += surrogate_term(At, s, r, g, c)
        state.unsolved[0] += not reached
        state.longest[0] = max(state.longest[0], float(x @ x))
        Qc = np.linalg.solve(np.eye(len(s)) + 2.0 * c * S @ At, c * S)
        Qc = 0.5 * (Qc + Qc.T)
        # A_t^{-1} = A^{-1} - V Qc V'; h = A_t^{-1} G_t, G_t = G_{t-1} + g (x) x - 2c (S z) (x) x
        W = V.reshape(-1, len(s))
        b = g - 2.0 * c * S @ z
        u = b - Qc @ (2.0 * At @ b) + Qc @ (2.0 * mean)  # V'G = Phi'A^{-1}G = -2 mean
        state.h[...] += (W @ u).reshape(state.h.shape)
        n = W.shape[0]
        state.P.reshape(n, n)[...] -= W @ Qc @ W.T

    # ---------------------------------------------------------------------------------------------------------- promises

    def bound(self, rounds: float) -> float | None:
        """Return the theorem's regret bound after `rounds` rounds, in nats, or None if the curvature is not admissible."""
        if not self._proved():
            return None
        K, d, R = self.problem.n_classes, self.problem.n_features, self.problem.radius
        lam, c = self.regularization, self.curvature
        numbers = (rounds, d, K, self.norm_bound, R, lam, c)
        if self.linear_term == "after":
            return folklore_after(*numbers)
        if self.solver == "gradient":
            return folklore_inexact(*numbers, error=math.sqrt(self.accuracy))
        return (folklore if c * R**2 <= lam else folklore_any_regularization)(*numbers)

    def certificate(self) -> float:
        """Return the data-dependent bound on the regret so far, in nats, against rows of norm at most B; NaN if none holds."""
        R, lam = self.problem.radius, self.regularization
        doubtful = DIGITS * lam < R**2 or not self.state.longest[0] <= (BEYOND * R) ** 2
        if doubtful or not self._proved():
            return math.nan
        return lam * self.problem.n_classes * self.norm_bound**2 + float(self.state.spent[0])

    def diagnostics(self) -> dict[str, Any]:
        """Return the number of roots or fixed points that were not reached. The certificate holds nevertheless."""
        return {"unsolved_roots": int(self.state.unsolved[0])}

    def _proved(self) -> bool:
        return is_admissible_on_ball(self.curvature, self.problem.n_classes, self.norm_bound, self.problem.radius)
