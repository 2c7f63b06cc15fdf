"""Forecasters on random Fourier features of the Gaussian kernel (Rahimi and Recht, NIPS 2007)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.numerics.jit import bind, borrow, njit, read_only
from banditlab.numerics.packed_symmetric import width, zeros
from banditlab.numerics.row_products import times
from banditlab.players.forecaster import Floats, KernelForecaster, Kernels
from banditlab.problem import Problem
from banditlab.validation import at_least, positive


class State(NamedTuple):
    r"""The state: frequencies :math:`\omega` (D/2, d), padded, features :math:`\phi` (D,) of a context, and the inner
    forecaster's state.

    :math:`\phi` is a work array.
    """

    omega: NDArray[np.float64]
    phi: NDArray[np.float64]
    inner: Any


@njit
def features(omega, x, phi):
    r"""Write :math:`\sqrt{2/D} (\cos \omega x, \sin \omega x)` into :math:`\phi` (D,).

    :math:`\phi(x)'\phi(y)` is the mean of :math:`\cos \omega'(x - y)`.
    """
    # D/2 frequencies, D = 2 half: sqrt(2/D) = sqrt(1/half); cosines first, sines after them.
    half = omega.shape[0]
    scale = math.sqrt(1.0 / half)
    times(omega, x, phi)  # the angles
    for i in range(half):
        phi[i], phi[half + i] = scale * math.cos(phi[i]), scale * math.sin(phi[i])


def predict_on_features(state, x, z):
    r"""Write the inner forecaster's forecast at :math:`\phi(x)` into z."""
    state, x, z = borrow(state), borrow(x), borrow(z)
    features(state.omega, x, state.phi)
    predict_kernel(state.inner, read_only(state.phi), z)  # type: ignore[name-defined]  # noqa: F821


def update_on_features(state, x, y, z):
    r"""Update the inner forecaster at :math:`\phi(x)`."""
    state, x, z = borrow(state), borrow(x), borrow(z)
    features(state.omega, x, state.phi)
    update_kernel(state.inner, read_only(state.phi), y, z)  # type: ignore[name-defined]  # noqa: F821


@cache
def on_features(inner: Kernels) -> Kernels:
    """Return kernels that apply the inner forecaster's kernels to the features; they are compiled on first use."""
    owner = f"{inner.owner} on Fourier features"
    predict = bind(predict_on_features, owner, predict_kernel=inner.predict)
    return Kernels(predict, bind(update_on_features, owner, update_kernel=inner.update), None, owner)


class FourierForecaster(KernelForecaster):
    """A forecaster on D random features whose inner products approximate the Gaussian kernel, with a state of fixed size.

    A subclass names the inner forecaster. Its constructor passes the settings to `_begin`.
    """

    bound_unit = "nats"
    forecaster: ClassVar[type[AIOLI | FOLKLORE]]

    def _begin(self, bandwidth: float, features: int, **settings: Any) -> None:
        """Draw the frequencies and build the inner forecaster, whose `settings` become those of this object."""
        if self.rng is None:
            raise UsageError(f"{self.id} draws its features: rng must be a numpy Generator, got None")
        self.bandwidth = positive("bandwidth", bandwidth)
        self.features = D = at_least("features", features, 2)
        if D % 2:
            raise UsageError(f"features must be even (a cosine and a sine of each frequency), got {D}")
        inner = Problem(D, self.problem.n_classes, 1.0, self.problem.horizon)
        self._inner = self.forecaster(inner, None, **settings)
        for name in set(settings) & set(self.own_settings()):
            setattr(self, name, getattr(self._inner, name))
        # From a child stream, so the caller's own draws do not depend on D.
        omega = self.rng.spawn(1)[0].standard_normal((D // 2, self.problem.n_features)) / self.bandwidth
        self._omega = zeros(D // 2, width(self.problem.n_features))
        self._omega[:, : omega.shape[1]] = omega
        self._phi = np.zeros(D)

    @property
    def state(self) -> State:
        """The state, which is the first argument of the kernels."""
        return State(self._omega, self._phi, self._inner.state)

    @property
    def kernels(self) -> Kernels:
        """The inner forecaster's kernels on features."""
        return on_features(self._inner.kernels)

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return a lower bound on the size of the state in bytes.

        It is the bound for the inner forecaster or that for the frequencies, whichever is larger.
        """
        D = settings.get("features", cls.own_settings()["features"].default)
        inner = cls.forecaster.least_bytes(Problem(D, problem.n_classes, 1.0), {"form": "primal"})
        return max(inner, 4.0 * D * problem.n_features)

    def phi(self, X: Floats) -> Floats:
        """Return the features (n, D) of contexts (n, d)."""
        angles = X @ self._omega[:, : self.problem.n_features].T
        return np.hstack([np.cos(angles), np.sin(angles)]) * math.sqrt(2.0 / self.features)

    def space_bound(self, rounds: float) -> float | None:
        """Return the theorem's regret bound against the ball of the feature space after `rounds` rounds, in nats, or None."""
        return self._inner.bound(rounds)

    def space_certificate(self) -> float:
        """Return the bound on the regret so far against the ball of the feature space, in nats, or NaN."""
        return self._inner.certificate()


class FourierAIOLI(FourierForecaster):
    r"""AIOLI on D random features whose inner products approximate the Gaussian kernel.

    Problem: full-information binary prediction, logistic loss, adversarial stream. Class 0 is the label +1 of the
    paper; the forecast logits are :math:`(z, 0)`.

    Update rule: the constructor draws :math:`D/2` frequencies :math:`\omega_i \sim N(0, I / \text{bandwidth}^2)` once.
    The features :math:`\phi(x) = \sqrt{2/D} (\cos \omega_i'x, \sin \omega_i'x)_i` have norm 1, and
    :math:`\phi(x)'\phi(y)` has mean :math:`\exp(-\|x - y\|^2 / (2\,\text{bandwidth}^2))`. AIOLI's rule is then applied
    to :math:`\phi(x)` instead of x.

    Guarantee: AIOLI's Theorem 1 in D dimensions with :math:`R = 1`, against the functions :math:`\theta'\phi(x)` with
    :math:`\|\theta\| \le 2 B`. Linear functions are not among them, so `bound` is None and `certificate` NaN.
    `space_certificate` bounds the regret against that ball, and `space_bound` is the theorem's bound. How well this
    ball approximates a ball in the kernel's Hilbert space is not bounded here.

    Cost: :math:`O(D d + D^2)` per round. Memory: :math:`D^2 + D d / 2` numbers.

    Parameters
    ----------
    norm_bound
        B: the comparator is :math:`\theta'\phi` with :math:`\|\theta\| \le 2 B`.
    bandwidth
        Bandwidth of the Gaussian kernel, in the units of the contexts.
    features
        D, the number of features; even.
    regularization, virtual_weight, curvature
        As for `aioli`, with :math:`R = 1`.

    Raises
    ------
    IncompatibleError
        The number of classes is above two.
    UsageError
        A setting is outside its range, or there is no generator.

    References
    ----------
    A. Rahimi, B. Recht. Random features for large-scale kernel machines. NIPS 2007.
    R. Jézéquel, P. Gaillard, A. Rudi. Efficient improper learning for online logistic regression. COLT 2020.
    """

    id = "fourier-aioli"
    group = "practice"
    summary = "binary: AIOLI on random Fourier features of the Gaussian kernel, with a state of fixed size"
    reference = "Jézéquel, Gaillard and Rudi, COLT 2020, Section 4.1, with Rahimi and Recht, NIPS 2007"
    forecaster = AIOLI

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        bandwidth: float = 1.0,
        features: int = 100,
        regularization: float | Literal["theory"] = "theory",
        virtual_weight: float = 1.0,
        curvature: float | Literal["simple", "tight"] = "simple",
    ) -> None:
        super().__init__(problem, rng)
        self._begin(
            bandwidth,
            features,
            norm_bound=norm_bound,
            regularization=regularization,
            virtual_weight=virtual_weight,
            curvature=curvature,
        )


class FourierFOLKLORE(FourierForecaster):
    r"""FOLKLORE on D random features whose inner products approximate the Gaussian kernel.

    Problem: full-information multiclass prediction, logistic loss, adversarial stream.

    Update rule: the constructor draws :math:`D/2` frequencies :math:`\omega_i \sim N(0, I / \text{bandwidth}^2)` once.
    The features :math:`\phi(x) = \sqrt{2/D} (\cos \omega_i'x, \sin \omega_i'x)_i` have norm 1, and
    :math:`\phi(x)'\phi(y)` has mean :math:`\exp(-\|x - y\|^2 / (2\,\text{bandwidth}^2))`. FOLKLORE's rule is then
    applied to :math:`\phi(x)` instead of x.

    Guarantee: FOLKLORE's Theorem 3 in D dimensions with :math:`R = 1`, against :math:`W \phi(x)` with
    :math:`\|W_k\| \le B`. Linear functions are not among them, so `bound` is None and `certificate` NaN.
    `space_certificate` bounds the regret against that ball, and `space_bound` is the theorem's bound. How well this
    ball approximates a ball in the kernel's Hilbert space is not bounded here.

    Cost: :math:`D d` for the features, and FOLKLORE's round in D dimensions.

    Parameters
    ----------
    norm_bound
        B: the comparator is :math:`W \phi` with :math:`\|W_k\| \le B`.
    bandwidth
        Bandwidth of the Gaussian kernel, in the units of the contexts.
    features
        D, the number of features; even.
    regularization, curvature
        As for `folklore`, with :math:`R = 1`.

    Raises
    ------
    UsageError
        A setting is outside its range, or there is no generator.

    References
    ----------
    A. Rahimi, B. Recht. Random features for large-scale kernel machines. NIPS 2007.
    N. Agarwal, S. Kale, J. Zimmert. Efficient methods for online multiclass logistic regression. ALT 2022.
    """

    id = "fourier-folklore"
    group = "practice"
    summary = "any K: FOLKLORE on random Fourier features of the Gaussian kernel, with a state of fixed size"
    reference = "Agarwal, Kale and Zimmert, ALT 2022, with Rahimi and Recht, NIPS 2007"
    forecaster = FOLKLORE

    def __init__(
        self,
        problem: Problem,
        rng: np.random.Generator | None,
        *,
        norm_bound: float = 1.0,
        bandwidth: float = 1.0,
        features: int = 100,
        regularization: float | Literal["theory"] = "theory",
        curvature: float | Literal["simple", "tight"] = "simple",
    ) -> None:
        super().__init__(problem, rng)
        settings: dict[str, Any] = {"norm_bound": norm_bound, "regularization": regularization, "curvature": curvature}
        self._begin(bandwidth, features, **settings, form="primal")
