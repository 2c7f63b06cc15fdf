"""FOLKLORE (Agarwal, Kale and Zimmert, ALT 2022)."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.bounds.curvature import margin_range, simple_curvature, tight_curvature
from banditlab.bounds.folklore import folklore, folklore_any_regularization
from banditlab.forecasters.primal_dual import QuadraticForecaster, prediction_kernels
from banditlab.forecasters.soft_labels import as_distribution, soften, vertex
from banditlab.numerics.jit import borrow, njit
from banditlab.numerics.joint_inverse import Blocks, add_hessian, form_and_complete, rounding_doubt
from banditlab.numerics.limits import COUNT, Limits
from banditlab.numerics.softmax_root import (
    TOLERANCE,
    RootScratch,
    half_solve,
    half_solve_transposed,
    root,
    times_Y,
    times_Yt,
)
from banditlab.players.inputs import as_context
from banditlab.problem import Problem
from banditlab.validation import one_of, positive, resolve


class State(NamedTuple):
    r"""The state: `blocks` holds :math:`A^{-1}`, and `h` (K, d) holds :math:`A^{-1} G`.

    `constants` (3,) are c, whether the printed linear term is used (1 or 0), and :math:`\lambda`. `spent` (1,) is the
    sum in the certificate, `doubt` (1,) is a bound on its rounding error, and `longest` (1,) is the largest
    :math:`\|x\|^2` of an update. `unsolved` (1,) counts updates whose root did not reach its tolerance. g, u (K,) and
    `root` are work arrays.
    """

    blocks: Blocks
    h: NDArray[np.float64]
    constants: NDArray[np.float64]
    spent: NDArray[np.float64]
    doubt: NDArray[np.float64]
    longest: NDArray[np.float64]
    unsolved: NDArray[np.int64]
    g: NDArray[np.float64]
    u: NDArray[np.float64]
    root: RootScratch

    def limits(self) -> Limits:
        """Return the allowed range of every integer of the state."""
        return {"unsolved": COUNT}


@njit
def solve_at(state, x, z):
    """Write the logits z (K,) of the minimiser of (3.3) at x, from `state.blocks.At`. Return the result of `root`."""
    At, g, h = state.blocks.At, state.g, state.h
    for k in range(z.shape[0]):
        g[k] = 0.5 * (At[k, k] - np.dot(h[k], x))  # B_t of Lemma 8 enters as the diagonal of At
    return root(g, At, z, state.root)


predict_kernel, predict_many_kernel = prediction_kernels(solve_at, __name__)


@njit
def learn_coefficients(state, y, z):
    r"""Write :math:`(s - e_y) + Q_c u`, with :math:`u = 2 \tilde{A} e_y - \mathrm{diag}(\tilde{A})`, over u in `state.u`.

    With the printed linear term, u has the additional term :math:`2 z`. Returns
    :math:`\mathrm{tr}(A^{-1} H) - u'Q_c u`, which is the round's term of the certificate with the corrected linear
    term, and :math:`\mathrm{tr}(A^{-1} H) + u'Q_c u`, from which its rounding error is bounded.
    """
    At, u = state.blocks.At, state.u
    s, q, a, L = state.root.s, state.root.q, state.root.a, state.root.L
    c, printed = state.constants[0], state.constants[1]
    trace = 0.0
    for k in range(u.shape[0]):
        u[k] = 2.0 * At[k, y] - At[k, k] + 2.0 * printed * z[k]
        trace += s[k] * (At[k, k] - a[k])  # 2 sum_ij S_ij At_ij = 2 sum_k s_k (At_kk - (At s)_k)
    times_Yt(s, q, u)
    half_solve(L, u)
    gain = c * np.dot(u, u)
    half_solve_transposed(L, u)
    times_Y(s, q, u)
    for k in range(u.shape[0]):
        u[k] = s[k] + c * u[k]
    u[y] -= 1.0
    return 2.0 * trace - gain, 2.0 * trace + gain


@njit
def sizes(g, At, residual):
    r"""Return the root's absolute residual and :math:`|\sum_k m_k|`, where :math:`m = g - \mathrm{diag}(\tilde{A})/2`.

    g has shape (K,). The argument `residual` is the residual divided by :math:`1 + \max |g|`.
    """
    top, shared = 0.0, 0.0
    for k in range(g.shape[0]):
        top = max(top, abs(g[k]))
        shared += g[k] - 0.5 * At[k, k]
    return residual * (1.0 + top), abs(shared)


@njit(arrays="new")
def update_kernel(state, x, y, z):
    state, x, z = borrow(state), borrow(x), borrow(z)
    V, h, u = state.blocks.V, state.h, state.u
    K, d = h.shape
    form_and_complete(state.blocks, x)
    residual = solve_at(state, x, z)
    state.unsolved[0] += not residual <= TOLERANCE
    residual, centre = sizes(state.g, state.blocks.At, residual)
    add_hessian(state.blocks, state.constants[0], state.root)  # A_t = A_{t-1} + c H_t
    term, terms = learn_coefficients(state, y, z)
    state.spent[0] += 0.25 * term
    state.doubt[0] += rounding_doubt(state.blocks.At, x, state.constants[2], centre, u, residual, terms)
    state.longest[0] = max(state.longest[0], np.dot(x, x))
    for k in range(K):  # h = A_t^{-1} G_t, G_t = G_{t-1} + (s - e_y) (x) x - 2c (S z) (x) x
        for l in range(K):
            for j in range(d):
                h[k, j] += u[l] * V[k, l, j]


class FOLKLORE(QuadraticForecaster):
    r"""Follow the regularised leader on quadratic surrogates, with a minimax improper regulariser, for any K.

    Problem: full-information multiclass prediction, logistic loss, adversarial stream.

    Update rule: :math:`W_t` minimises (3.3),

    .. math::

        \mathrm{vec}(W)' A_{t-1}\, \mathrm{vec}(W) + \langle G_{t-1}, W \rangle + \phi_t(W),

    with :math:`\phi_t` of (3.1): the mean of the losses of the K labels at :math:`x_t` plus the linear term :math:`B_t`
    of Lemma 8. Then :math:`A_t = A_{t-1} + c H_t` and
    :math:`G_t = G_{t-1} + \mathrm{grad} - 2c H_t\, \mathrm{vec}(W_t)`, where :math:`H_t` and grad are the loss's
    Hessian and gradient at :math:`W_t`. A round is computed in K dimensions. Let
    :math:`\tilde A = (1/2)(I \otimes x)' A^{-1} (I \otimes x)` and
    :math:`g = (1/2)\, \mathrm{diag}(\tilde A) - (1/2)(I \otimes x)' A^{-1} G`. The logits are the root of
    :math:`z = g - \tilde A\, \mathrm{softmax}(z)` (Newton's method with step halving), and :math:`A^{-1}` changes by
    rank :math:`K - 1`.

    Errata. The paper's surrogate (3.2) has the constant :math:`1/(B R + \ln(K)/2)`, for which the surrogate is not a
    lower bound: at :math:`K = 2`, :math:`B R = 1` it exceeds the loss by .38. Its Algorithm 1 omits
    :math:`-2c H_t\, \mathrm{vec}(W_t)`, without which the two sides of (3.3) differ. The printed forms are available
    (`curvature = "printed"`, `linear_term = "printed"`), without a guarantee.

    Guarantee (Theorem 3 with corrected constants): the regret over :math:`\{W : \|W_k\| \le B\}` is at most
    :math:`\lambda K B^2 + (1/(4c)) (K-1) d \ln(1 + 2 c R^2 T / (K d \lambda))` if :math:`c R^2 \le \lambda`; a variant
    covers other :math:`\lambda`. With A before round t, the running certificate is
    :math:`\lambda K B^2 + (1/4) \sum_t [\mathrm{tr}(A^{-1} H_t) - u'Q_c u]`. Here
    :math:`u = 2 \tilde A e_y - \mathrm{diag}(\tilde A)`, and :math:`V Q_c V'` is the decrease of :math:`A^{-1}` in the
    round. The first term bounds :math:`\lambda \|W - 1 \bar w'\|_F^2` over the ball, where :math:`\bar w` is the mean
    row of W. The terms of the sum are Lemma 6's for one-hot labels. The rounding error of the sum is bounded as well.
    The certificate is NaN if that error is not small, or if a context was longer than R.

    Rounding: forecasts lose digits as :math:`R^2 / \lambda` grows. Compared with 45-digit arithmetic, the errors of
    logits were 6e-9 at 1e4, 1e-7 at 1e5 and 3e-3 at 1e8. The constructor therefore raises an error if
    :math:`R^2 / \lambda` is above 20,000 (with "theory": if :math:`B R` is above 40,000). In the dual form with nearly
    dependent contexts, logits have an error of about 1e-7.

    Cost: :math:`K^2 d^2 / 2` multiplications per forecast, as matrix products in batches, and :math:`K^3 d^2 / 2` per
    update, as matrix products over up to 8 updates at a time. Memory: :math:`K^2 d^2 / 2` numbers, and :math:`K^2 d`
    for every pending update.

    Parameters
    ----------
    norm_bound
        B, the largest norm of a row of W.
    regularization
        :math:`\lambda` in the paper; "theory" is :math:`2 R / B`.
    curvature
        c, the factor of the Hessian in the surrogate. "simple" is :math:`1/(2 B R + \ln K + 2)`. "tight" is
        :math:`1/(1 + \cosh b)` with :math:`b + \sinh b = 2 B R + \ln(K - 1)`, within 4 % of the largest admissible
        constant. "printed" is the paper's :math:`1/(B R + \ln(K)/2)`. A number sets c directly. Above "tight" there is
        no bound and no certificate.
    linear_term
        "corrected", or "printed" for Algorithm 1 as in the paper, without a bound or a certificate.
    form
        "primal" stores :math:`A^{-1}` in d coordinates. "dual" stores it in coordinates of the span of the updates'
        contexts, and stores these contexts as well. The forecasts are the same up to rounding, or to about 1e-8 if
        contexts are nearly dependent. "auto" is primal if that takes at most 64 MiB (d up to 379 at :math:`K = 10`).
        Larger problems begin in the dual form. They switch once to the primal form, when the span's dimension exceeds
        seven eighths of d, if `max_memory` allows. The dual form accepts sparse blocks and then stays dual. The cost
        of storing a context, or of an inner product with it, is then its number of stored entries, whatever d is.
    max_memory
        Largest memory in GiB, for each form.

    Raises
    ------
    UsageError
        A setting is outside its range, :math:`R^2/\lambda` is above 20,000, or the dual form has no memory left for an
        update.

    References
    ----------
    N. Agarwal, S. Kale, J. Zimmert. Efficient methods for online multiclass logistic regression. ALT 2022.
    """

    id = "folklore"
    group = "theory"
    summary = "any K: quadratic surrogates and a minimax regulariser, regret linear in B, logarithmic in T"
    reference = "Agarwal, Kale and Zimmert, ALT 2022, Algorithm 1 (corrected)"
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
        regularization: float | Literal["theory"] = "theory",
        curvature: float | Literal["simple", "tight", "printed"] = "simple",
        linear_term: Literal["corrected", "printed"] = "corrected",
        form: Literal["auto", "primal", "dual"] = "auto",
        max_memory: float = 4.0,
    ) -> None:
        super().__init__(problem, rng)
        K, R = problem.n_classes, problem.radius
        self.norm_bound = B = positive("norm_bound", norm_bound)
        words = {
            "simple": simple_curvature(K, B, R),
            "tight": tight_curvature(margin_range(K, B, R)),
            "printed": 1.0 / (B * R + 0.5 * math.log(K)),
        }
        self.regularization = resolve("regularization", regularization, {"theory": 2.0 * R / B})
        self.curvature = resolve("curvature", curvature, words)
        self.linear_term = one_of("linear_term", linear_term, ("corrected", "printed"))
        n = self._coordinates(form, max_memory)
        state = State(
            Blocks.initial(K, n, self.regularization),
            np.zeros((K, n)),
            np.array([self.curvature, float(self.linear_term == "printed"), self.regularization]),
            np.zeros(1),
            np.zeros(1),
            np.zeros(1),
            np.zeros(1, np.int64),
            np.zeros(K),
            np.zeros(K),
            RootScratch.empty(K),
        )
        self._begin(state)

    def bound(self, rounds: float) -> float | None:
        """Return the regret bound of the corrected Theorem 3 after `rounds` rounds, in nats, or None for printed constants."""
        if not self.proved(self.norm_bound):
            return None
        K, d, R = self.problem.n_classes, self.problem.n_features, self.problem.radius
        lam, c = self.regularization, self.curvature
        theorem = folklore if c * R**2 <= lam else folklore_any_regularization
        return theorem(rounds, d, K, self.norm_bound, R, lam, c)

    def update_soft(self, context: Any, label: Any) -> None:
        """Update with the distribution `label` (K,) at `context` (d,).

        Bound and certificate hold as for classes, because the loss is a mixture of the classes' losses. A one-hot label
        gives the same state, to the last bit, as `update`.
        """
        y, K = as_distribution(label, self.problem.n_classes), self.problem.n_classes
        hard = int(np.argmax(y))
        if vertex(y) is not None:
            self.update(context, hard)
            return
        spent, z = float(self.learner.spent[0]), np.empty(K)
        x = as_context(context, self.problem)
        self.play_in_parts(x[None], lambda: np.ones(1, bool), lambda part: self._softly(x, z, hard, y, spent))

    def _softly(self, x: Any, z: Any, hard: int, y: Any, spent: float) -> None:
        self.kernels.update(self.state, x, hard, z)
        soften(self.learner, z, hard, y, spent)
