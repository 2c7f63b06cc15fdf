"""Comparators refuse arguments of the wrong shape and numbers that are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from banditlab.comparators import best_in_ball, best_in_frobenius_ball
from banditlab.errors import UsageError


@pytest.mark.parametrize("best", [best_in_ball, best_in_frobenius_ball])
@pytest.mark.parametrize(
    ("contexts", "labels", "said"),
    [
        ((3,), (3, 2), r"U must be \(m, d\)"),
        ((3, 1, 1), (3, 2), r"U must be \(m, d\)"),
        ((3, 1), (3,), r"counts \(m, K\) with K >= 2"),
        ((3, 1), (3, 2, 2), r"counts \(m, K\) with K >= 2"),
        ((3, 1), (3, 1), r"K >= 2, got \(3, 1\) and \(3, 1\)"),
        ((3, 1), (4, 2), r"got \(3, 1\) and \(4, 2\)"),
        ((2, 3), (3, 2), r"got \(2, 3\) and \(3, 2\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(best: Any, contexts: Any, labels: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        best(np.ones(contexts), np.ones(labels), 1.0)


@pytest.mark.parametrize("best", [best_in_ball, best_in_frobenius_ball])
@pytest.mark.parametrize("place", ["contexts", "labels"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_one_number_that_is_none_is_refused(best: Any, place: str, value: float) -> None:
    given = {"contexts": np.ones((3, 2)), "labels": np.ones((3, 2))}
    given[place][1, 1] = value
    with pytest.raises(UsageError, match="U must be finite, and counts must be finite and 0 or above"):
        best(given["contexts"], given["labels"], 1.0)


@pytest.mark.parametrize("best", [best_in_ball, best_in_frobenius_ball])
def test_contexts_whose_squares_are_no_numbers_are_refused(best: Any) -> None:
    with pytest.raises(UsageError, match=r"entries of U must be at most 1e\+150 in absolute value, got 1e\+200"):
        best(np.full((3, 2), -1e200), np.ones((3, 2)), 1.0)


def test_a_start_is_finite_and_of_the_weights_shape() -> None:
    U, C = np.eye(3), np.eye(3)
    for start in (np.ones((3, 2)), np.ones(9)):
        with pytest.raises(UsageError, match=r"start must have shape \(3, 3\), got"):
            best_in_ball(U, C, 1.0, start=start)
    with pytest.raises(UsageError, match="start must be finite, got NaN or infinite entries"):
        best_in_ball(U, C, 1.0, start=np.full((3, 3), np.nan))
    assert best_in_ball(U, C, 1.0, start=np.eye(3)).gap <= 1e-6 * 3
