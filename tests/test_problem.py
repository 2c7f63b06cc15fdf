"""The limits of a problem on both sides, and a decision in one line."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.errors import HorizonRequiredError, UsageError
from banditlab.problem import Decision, Problem


def test_a_problem_at_its_limits() -> None:
    for radius in (1e-100, 1.0, 1e100):
        assert Problem(1, 2, radius, 1).radius == radius
    assert Problem(1, 2, 1.0, 7).known_horizon("gamma", "give gamma") == 7
    with pytest.raises(
        HorizonRequiredError, match="gamma needs the horizon, which is unknown in this problem; give it"
    ):
        Problem(1, 2, 1.0).known_horizon("gamma", "give it")
    for wrong, message in (
        ({"n_features": 0}, "n_features must be at least 1, got 0"),
        ({"n_classes": 1}, "n_classes must be at least 2, got 1"),
        ({"radius": 0.99e-100}, "radius must lie between 1e-100 and 1e[+]100, got 9.9e-101"),
        ({"radius": 1.01e100}, "radius must lie between 1e-100 and 1e[+]100, got 1.01e[+]100"),
        ({"radius": float("nan")}, "radius must lie between 1e-100 and 1e[+]100, got nan"),
        ({"horizon": 0}, "horizon must be at least 1 or None, got 0"),
    ):
        with pytest.raises(UsageError, match=message):
            Problem(**({"n_features": 1, "n_classes": 2, "radius": 1.0} | wrong))


def test_a_problem_cannot_be_given_what_it_has_not() -> None:
    assert not hasattr(Problem(1, 2, 1.0), "__dict__")
    with pytest.raises((AttributeError, TypeError)):
        Problem(1, 2, 1.0).rounds = 3  # type: ignore[attr-defined]


def test_a_decision_shows_ten_probabilities_and_of_more_the_outer_three() -> None:
    ten, eleven = Decision(3, np.arange(10) / 45.0, True), Decision(0, np.arange(11) / 55.0, None, np.zeros((2, 3)))
    assert repr(ten) == (
        "Decision(action=3, probabilities=[0.     0.0222 0.0444 0.0667 0.0889 0.1111 0.1333 0.1556 0.1778 0.2   ], "
        "explored=True, payload=None)"
    )
    assert repr(eleven) == (
        "Decision(action=0, probabilities=[0.     0.0182 0.0364 ... 0.1455 0.1636 0.1818], "
        "explored=None, payload=array of shape (2, 3))"
    )
