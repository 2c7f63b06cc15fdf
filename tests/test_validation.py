"""Settings: what is stored, and the one line that refuses the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from banditlab.envs import Logistic
from banditlab.errors import UsageError
from banditlab.validation import at_least, loss_unit, nonnegative, number, positive, probability


@pytest.mark.parametrize("check", [positive, nonnegative, probability, number])
def test_numbers_of_every_kind_become_floats(check: Any) -> None:
    for value in (1, 0.5, np.float64(0.5), np.float32(0.5), np.int64(1)):
        assert type(check("x", value)) is float
        assert check("x", value) == value


@pytest.mark.parametrize("check", [positive, nonnegative, probability, number])
@pytest.mark.parametrize("value", ["0.5", "abc", None, True, np.True_, [0.5], np.array([0.5]), 1j])
def test_what_is_no_number_is_refused(check: Any, value: Any) -> None:
    with pytest.raises(UsageError, match=r"^beta must be a number") as refusal:
        check("beta", value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("check", "values", "message"),
    [
        (positive, (0, -1.0, float("inf"), float("nan")), "must be a number above 0, got"),
        (nonnegative, (-1e-9, float("inf"), float("nan")), "must be a number that is 0 or above, got"),
        (probability, (-0.1, 1.1, float("nan")), r"must lie in \[0, 1\], got"),
    ],
)
def test_numbers_out_of_range(check: Any, values: Any, message: str) -> None:
    for value in values:
        with pytest.raises(UsageError, match=message):
            check("beta", value)
    assert probability("p", 0) == nonnegative("n", 0) == 0.0


def test_the_units_of_bounds() -> None:
    bit = 1 / 0.6931471805599453
    units = {"nats": 1.0, "bits": bit, "1 bits": bit, "0.5 bits": 0.5 * bit}
    assert [loss_unit(unit) for unit in units] == pytest.approx(list(units.values()), rel=1e-15)


@pytest.mark.parametrize(
    "unit", ["", "bit", "half bits", "0 bits", "2 bits", "nan bits", "0.5 nats", "0.5  bits", "-1 bits", None, 3]
)
def test_no_other_unit(unit: Any) -> None:
    with pytest.raises(UsageError, match=r"^a bound's unit must be 'nats', 'bits' or a part such as '0.5 bits', got"):
        loss_unit(unit)


def test_integers() -> None:
    assert [at_least("n", value, 2) for value in (2, np.int32(5), np.uint8(3))] == [2, 5, 3]
    assert type(at_least("n", np.int64(3), 2)) is int
    for value in (2.5, 3.0, np.float64(3), "3", None, True, np.True_):
        with pytest.raises(UsageError, match=r"^n_features must be an integer, got"):
            at_least("n_features", value, 0)
    with pytest.raises(UsageError, match="n must be at least 2, got 1"):
        at_least("n", 1, 2)


def test_an_environment_refuses_half_a_feature() -> None:
    with pytest.raises(UsageError, match=r"n_features must be an integer, got 2\.5"):
        Logistic(n_features=2.5)  # type: ignore[arg-type]
