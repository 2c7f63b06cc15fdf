"""Every check of a forecaster fails on a subject broken in just that way, with just that message."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from banditlab.checks import CheckResult, check_forecaster, run_checks
from banditlab.errors import IncompatibleError
from banditlab.losses import logistic_gradient
from banditlab.players.forecaster import Forecaster
from banditlab.problem import Problem
from banditlab.validation import positive


class Good(Forecaster):
    """Online gradient descent in plain Python: keeps every promise."""

    id = "test-good-forecaster"
    group = "practice"
    summary = "keeps every promise"
    reference = "made here"

    def __init__(self, problem: Problem, rng: Any, *, step: float = 0.5) -> None:
        super().__init__(problem, rng)
        self.step = positive("step", step)
        self.W = np.zeros((problem.n_classes, problem.n_features))

    def predict(self, context: Any) -> Any:
        return self.W @ context

    def update(self, context: Any, label: int) -> None:
        self.W -= self.step * logistic_gradient(self.W, context, label)

    def forecast_block(self, X: Any, y: Any, logits: Any) -> None:
        for t, (x, label) in enumerate(zip(X, y, strict=True)):
            logits[t] = self.predict(x)
            self.update(x, label)


def outcome(subject: Any, name: str) -> CheckResult:
    [check] = [check for check in check_forecaster(subject) if check.name == name]
    return check.result()


def test_a_good_forecaster_passes() -> None:
    results = run_checks(Good)
    assert [(r.name, r.status, r.reason) for r in results if r.status != "passed"] == [
        ("bad_settings", "excluded", "has neither a gamma nor a norm_bound")
    ]


class WrongShape(Good):
    def predict(self, context: Any) -> Any:
        return np.zeros(2)


class ListOfLogits(Good):
    def predict(self, context: Any) -> Any:
        return [0.0, 0.0, 0.0]


class Infinite(Good):
    def predict(self, context: Any) -> Any:
        return np.array([0.0, -np.inf, 0.0])


class LearnsInPredict(Good):
    def predict(self, context: Any) -> Any:
        self.W[0] += 0.01 * context
        return super().predict(context)


class Stale(Good):
    """Updates with what the last predict computed, whatever it was asked for."""

    last: Any = None

    def __init__(self, problem: Problem, rng: Any) -> None:
        Forecaster.__init__(self, problem, rng)
        self.step, self.W, self.last = 0.5, np.zeros((problem.n_classes, problem.n_features)), np.zeros(5)

    def predict(self, context: Any) -> Any:
        self.last = np.array(context)
        return super().predict(context)

    def update(self, context: Any, label: int) -> None:
        super().update(self.last, label)


class OtherMany(Good):
    def predict_many(self, contexts: Any) -> Any:
        return super().predict_many(contexts) + 1e-3


class FewMany(Good):
    def predict_many(self, contexts: Any) -> Any:
        return super().predict_many(contexts)[:5]


class OtherPath(Good):
    def forecast_block(self, X: Any, y: Any, logits: Any) -> None:
        for t, (x, label) in enumerate(zip(X, y, strict=True)):
            self.update(x, label)
            logits[t] = self.predict(x)


class Deaf(Good):
    def update(self, context: Any, label: int) -> None:
        super().update(context, 0)


class Partial(Good):
    """Prefers class 0: a step of its own for it."""

    def update(self, context: Any, label: int) -> None:
        super().update(context, label)
        self.W[0] *= 0.9


class WritesOnPredict(Good):
    def predict(self, context: Any) -> Any:
        z = super().predict(context)
        if context.flags.writeable:
            context[0] += 1.0
        return z


class WritesOnUpdate(Good):
    def update(self, context: Any, label: int) -> None:
        super().update(context, label)
        if context.flags.writeable:
            context /= 2.0


BROKEN = [
    (
        WrongShape,
        "logits",
        "predict returned a float64 array of shape (2,) at round 0: it must return a float64 array of shape (3,)",
    ),
    (ListOfLogits, "logits", "predict returned a list at round 0: it must return a float64 array of shape (3,)"),
    (Infinite, "logits", "predict returned [  0. -inf   0.] at round 0: logits must be finite"),
    (
        LearnsInPredict,
        "predict_is_pure",
        "other calls of predict changed the prediction at round 0: predict must not change the state",
    ),
    (
        Stale,
        "predict_is_pure",
        "other calls of predict changed the prediction at round 1: predict must not change the state",
    ),
    (OtherMany, "predict_many", "predict_many differs from predict by 1.0e-03: both must return the same values"),
    (FewMany, "predict_many", "predict_many of 60 contexts has shape (5, 3): it must be (60, 3)"),
    (OtherPath, "forecast_paths", "forecast_block and predict/update differ at round 0: both paths must agree"),
    (Deaf, "learns", "other labels left all 60 forecasts unchanged: update must learn from the label"),
    (
        Partial,
        "label_symmetry",
        "renaming the labels changed the forecast at round 1 by 1.7e-03: forecasts must be permuted in the same way",
    ),
    (WritesOnPredict, "inputs", "predict changed the context at round 0: inputs must not be changed"),
    (WritesOnUpdate, "inputs", "update changed the context at round 0: inputs must not be changed"),
]


@pytest.mark.parametrize(("subject", "name", "message"), BROKEN, ids=lambda v: getattr(v, "__name__", None))
def test_a_broken_forecaster_is_told_what_is_wrong(subject: Any, name: str, message: str) -> None:
    result = outcome(subject, name)
    assert (result.status, result.reason) == ("failed", message)


def test_every_check_of_forecasters_alone_has_a_broken_subject() -> None:
    from banditlab.checks._players import AFTER, BEFORE

    shared = {function.__name__ for function in (*BEFORE, *AFTER)}  # tested on agents
    assert {check.name for check in check_forecaster(Good)} - shared == {name for _, name, _ in BROKEN} - {"inputs"}


# ------------------------------------------------------------------------------------------------ what does not concern


class Random(Good):
    def __init__(self, problem: Problem, rng: Any) -> None:
        super().__init__(problem, rng)
        self.W += 0.1 * rng.standard_normal(self.W.shape)


class Binary(Good):
    id = "test-binary"

    def __init__(self, problem: Problem, rng: Any) -> None:
        if problem.n_classes > 2:
            raise IncompatibleError("Binary needs K = 2")
        super().__init__(problem, rng)

    def predict(self, context: Any) -> Any:
        z = super().predict(context)
        return np.array([z[0] - z[1], 0.0])


class Nobody(Good):
    group: ClassVar[str] = "practice"

    def __init__(self, problem: Problem, rng: Any) -> None:
        raise IncompatibleError("no problem is good enough")


def test_symmetry_is_not_asked_of_a_random_forecaster() -> None:
    result = outcome(Random, "label_symmetry")
    assert (result.status, result.reason) == ("excluded", "its forecasts depend on the seed")


def test_a_forecaster_without_a_compiled_path_is_excluded_from_it() -> None:
    subject = type("Plain", (Good,), {"plays_blocks": False})
    result = outcome(subject, "forecast_paths")
    assert (result.status, result.reason) == ("excluded", "has no compiled path")


def test_a_binary_forecaster_is_probed_with_two_classes() -> None:
    results = run_checks(Binary)
    assert {r.status for r in results if r.name != "bad_settings"} == {"passed"}
    assert {r.reason for r in results if r.status == "passed"} == {"probed with K = 2: Binary needs K = 2"}


def test_a_forecaster_that_meets_nothing_fails() -> None:
    [result] = run_checks(Nobody)
    assert (result.name, result.status) == ("construction", "failed")
    assert result.reason == "cannot be built: IncompatibleError: no problem is good enough"
