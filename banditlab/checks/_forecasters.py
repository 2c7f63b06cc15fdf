"""Checks of a forecaster: predict, update with the label, and the compiled path."""

from __future__ import annotations

import numpy as np

from banditlab.checks._core import CheckExcluded, fail
from banditlab.checks._players import AFTER, BEFORE
from banditlab.checks._probe import ROUNDS, PlayerProbe, forecast
from banditlab.losses import softmax
from banditlab.numerics.read_only import read_only

SYMMETRY = 1e-6
"""Tolerance of forecasts after a renaming of the labels, because inner solvers stop at a tolerance."""
ROUNDING = 1e-9
"""Tolerance of logits in batches, relative to the largest logit."""


def logits(probe: PlayerProbe) -> None:
    """predict returns finite logits (K,); the second logit of a binary learner is 0."""
    forecaster = probe.make()
    K = probe.problem.n_classes
    for t in range(ROUNDS):
        z = forecaster.predict(read_only(probe.contexts[t]))
        if not isinstance(z, np.ndarray) or z.shape != (K,) or z.dtype != np.float64:
            fail(f"predict returned {_what(z)} at round {t}: it must return a float64 array of shape ({K},)")
        if not np.isfinite(z).all():
            fail(f"predict returned {z} at round {t}: logits must be finite")
        forecaster.update(read_only(probe.contexts[t]), int(probe.labels[t]))


def _what(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"a {value.dtype} array of shape {value.shape}"
    return f"a {type(value).__name__}"


def predict_is_pure(probe: PlayerProbe) -> None:
    """predict does not change the state: repeated calls, or calls with other contexts, change no later result."""
    X, y = probe.contexts[:ROUNDS], probe.labels[:ROUNDS]
    expected = forecast(probe.make(), X, y)
    forecaster = probe.make()
    for t in range(ROUNDS):
        forecaster.predict(read_only(X[-1 - t]))
        forecaster.predict_many(read_only(X))
        z = forecaster.predict(read_only(X[t]))
        if not np.array_equal(z, expected[t]):
            fail(f"other calls of predict changed the prediction at round {t}: predict must not change the state")
        forecaster.predict(
            read_only(X[-1 - t])
        )  # between predict and update, so update must not reuse values of the wrong context
        forecaster.update(read_only(X[t]), int(y[t]))


def predict_many(probe: PlayerProbe) -> None:
    """predict_many(X) equals predict(x) for each row, with the same state."""
    forecaster = probe.make()
    X = probe.contexts[:ROUNDS]
    forecast(forecaster, X, probe.labels[:ROUNDS])
    many = np.asarray(forecaster.predict_many(read_only(X)))
    one = np.stack([forecaster.predict(read_only(x)) for x in X])
    if many.shape != one.shape:
        fail(f"predict_many of {ROUNDS} contexts has shape {many.shape}: it must be {one.shape}")
    gap = np.abs(many - one).max()
    if gap > ROUNDING * max(1.0, np.abs(one).max()):
        fail(f"predict_many differs from predict by {gap:.1e}: both must return the same values")


def forecast_paths(probe: PlayerProbe) -> None:
    """The compiled path returns the same forecasts as predict and update in each round."""
    forecaster = probe.make()
    if not forecaster.plays_blocks:
        raise CheckExcluded("has no compiled path")
    X, y = probe.contexts[:ROUNDS], probe.labels[:ROUNDS]
    expected = forecast(probe.make(), X, y)
    out = np.empty_like(expected)
    cut = ROUNDS // 3
    forecaster.forecast_block(read_only(X[:cut]), y[:cut], out[:cut])
    forecaster.forecast_block(read_only(X[cut:]), y[cut:], out[cut:])
    gaps = np.abs(out - expected).max(axis=1) > ROUNDING * max(1.0, np.abs(expected).max())
    if gaps.any():
        fail(f"forecast_block and predict/update differ at round {int(np.argmax(gaps))}: both paths must agree")


def learns(probe: PlayerProbe) -> None:
    """Other labels lead to other forecasts."""
    X, y = probe.contexts[:ROUNDS], probe.labels[:ROUNDS]
    other = (y + 1) % probe.problem.n_classes
    if np.array_equal(forecast(probe.make(), X, y), forecast(probe.make(), X, other)):
        fail(f"other labels left all {ROUNDS} forecasts unchanged: update must learn from the label")


def label_symmetry(probe: PlayerProbe) -> None:
    """Renaming the labels permutes a deterministic forecaster's forecasts."""
    X, y = probe.contexts[:ROUNDS], probe.labels[:ROUNDS]
    expected = softmax(forecast(probe.make(1), X, y))
    if not np.array_equal(expected, softmax(forecast(probe.make(2), X, y))):
        raise CheckExcluded("its forecasts depend on the seed")
    new_name = np.roll(np.arange(probe.problem.n_classes), 1)
    renamed = softmax(forecast(probe.make(1), X, new_name[y]))
    gaps = np.abs(renamed[:, new_name] - expected).max(axis=1)
    if gaps.max() > SYMMETRY:
        t = int(np.argmax(gaps > SYMMETRY))
        fail(
            f"renaming the labels changed the forecast at round {t} by {gaps[t]:.1e}: forecasts must be permuted in "
            "the same way"
        )


FORECASTER = (
    *BEFORE,
    logits,
    *AFTER,
    predict_is_pure,
    predict_many,
    forecast_paths,
    learns,
    label_symmetry,
)
