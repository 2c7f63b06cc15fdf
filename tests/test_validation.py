"""Settings: what is stored, and the one line that refuses the others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from banditlab.envs import Logistic
from banditlab.errors import UsageError
from banditlab.validation import (
    Size,
    at_least,
    limit,
    loss_unit,
    nonnegative,
    number,
    one_of,
    positive,
    probability,
    refuse_beyond,
    resolve,
)


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


@pytest.mark.parametrize(
    ("check", "allowed", "refused"),
    [
        (positive, (5e-324, 1, 1e308), (0.0, -1.0, math.inf, math.nan)),
        (nonnegative, (0.0, 5e-324, 1e308), (-5e-324, math.inf, math.nan)),
        (probability, (0.0, 0.5, 1.0), (-5e-324, math.nextafter(1.0, 2.0), math.nan)),
    ],
)
def test_numbers_reach_their_limits_and_do_not_pass_them(check, allowed, refused):
    for value in allowed:
        assert check("it", value) == value
    for value in (*refused, True, "1"):
        with pytest.raises(UsageError, match="it must"):
            check("it", value)


def test_units_of_a_bound():
    found = [loss_unit(unit) for unit in ("nats", "bits", "1 bits", "0.5 bits")]
    assert found == pytest.approx([1.0, 1.4426950408889634, 1.4426950408889634, 0.7213475204444817])
    for unit in ("0 bits", "-1 bits", "1.0001 bits", "nan bits", "half bits", "1 nats", "a b bits", "", None, 1.0):
        with pytest.raises(UsageError, match=r"a bound's unit must be"):
            loss_unit(unit)


def test_a_limit_is_a_whole_number_from_its_variable(monkeypatch):
    size = Size("BANDITLAB_TEST_SIZE", 70, "things")
    assert limit(size) == 70
    for text, most in (("1", 1), ("007", 7), ("1" * 19, int("1" * 19)), ("1" * 19 + "2", int("1" * 19))):
        monkeypatch.setenv(size.variable, text)
        assert limit(size) == most
    for text in ("0", "-1", "1.5", "one", "²", "0" * 19 + "1"):
        monkeypatch.setenv(size.variable, text)
        with pytest.raises(UsageError, match="BANDITLAB_TEST_SIZE must be a whole number of at least 1, got"):
            limit(size)
    monkeypatch.setenv(size.variable, "1234")
    refuse_beyond(size, 1234, "1,234 things")
    with pytest.raises(UsageError) as caught:
        refuse_beyond(size, 1235, "1,235 things")
    assert str(caught.value) == "1,235 things, above the limit of 1,234: set BANDITLAB_TEST_SIZE to raise it"


def test_words_in_the_place_of_a_number():
    words = {"theory": 0.25, "wide": 8.0}
    assert [resolve("step", value, words) for value in ("theory", "wide", 3, 0.5)] == [0.25, 8.0, 3.0, 0.5]
    for value, message in (
        ("narrow", "step must be one of 'theory', 'wide' or a number above 0, got 'narrow'"),
        (0.0, "step must be a number above 0, got 0"),
        (None, "step must be a number or 'theory' or 'wide', got None"),
    ):
        with pytest.raises(UsageError) as caught:
            resolve("step", value, words)
        assert str(caught.value) == message
    assert one_of("scaling", "none", ("radius", "none")) == "none"
    with pytest.raises(UsageError, match=r"^scaling must be one of 'radius', 'none', got 'non'$"):
        one_of("scaling", "non", ("radius", "none"))
