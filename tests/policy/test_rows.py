"""Rows as clients send them: keys that are no column, spellings of the same value, what is filled in and counted."""

from __future__ import annotations

import unicodedata
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from banditlab import Policy
from banditlab.errors import UsageError
from banditlab.policy import status_of_log

ROW = {"plan": "pro", "age": 31, "visits": 2.0}


@pytest.fixture(scope="module")
def imputing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy whose recipe fills in what is missing, with texts that Unicode writes in two ways and truth values."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"größe": rng.choice(["klein", "gr\u00f6\u00dfer"], 80), "age": rng.normal(size=80)})
    table["paid"], table["y"] = rng.choice(["true", "false"], 80), rng.choice(["a", "b"], 80)
    table.loc[3, "age"] = np.nan
    file = tmp_path_factory.mktemp("policy") / "my.policy"
    Policy.train(table, "y", agent="banditron", missing="mean", seed=0).save(file)
    return file


def context(policy: Policy, row: dict[str, Any]) -> bytes:
    return policy._context(row).x.tobytes()


@pytest.mark.parametrize("row", [{**ROW, "Plan": "pro"}, {"Plan": "pro", "age": 31, "visits": 2.0}])
def test_a_key_that_is_no_column_is_refused(policy_file: Path, row: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"key 'Plan' is not a column; did you mean 'plan'\?"):
        Policy.load(policy_file).decide(row)


def test_a_key_that_stands_twice_in_json_is_refused(policy_file: Path) -> None:
    with pytest.raises(UsageError, match="the key 'age' occurs twice in one object"):
        Policy.load(policy_file).decide('{"plan": "pro", "age": 31, "visits": 2.0, "age": 99}')


def test_such_keys_are_left_aside_where_that_is_asked_for(policy_file: Path) -> None:
    policy = Policy.load(policy_file, extra="ignore")
    assert context(policy, {**ROW, "Plan": 1}) == context(policy, ROW)
    with pytest.raises(UsageError, match="extra must be one of 'refuse', 'ignore'"):
        Policy.load(policy_file, extra="take")


@pytest.mark.parametrize("row", [{}, {"Größe": "klein"}])
def test_a_row_without_a_column_is_refused_where_gaps_are_filled(imputing: Path, row: dict[str, Any]) -> None:
    for extra in ("refuse", "ignore"):
        with pytest.raises(UsageError, match=r"is not a column|none of the columns"):
            Policy.load(imputing, extra=extra).decide(row)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_either_normal_form_of_unicode_is_the_same_key_and_value(imputing: Path, form: Any) -> None:
    policy = Policy.load(imputing)
    row = {"größe": "gr\u00f6\u00dfer", "age": 1.0, "paid": "true"}
    other = {unicodedata.normalize(form, key): value for key, value in row.items()}
    other[unicodedata.normalize(form, "größe")] = unicodedata.normalize(form, "gr\u00f6\u00dfer")
    assert context(policy, other) == context(policy, row)
    assert not policy._context(other).unknown
    twice = {**row, unicodedata.normalize("NFD", "größe"): "klein"}
    with pytest.raises(UsageError, match="the same key twice"):
        policy.decide(twice)


def test_a_value_counts_as_what_it_spells(imputing: Path) -> None:
    policy = Policy.load(imputing)
    row = {"größe": "klein", "age": 31, "paid": "true"}
    for same in (
        {**row, "age": "31"},
        {**row, "age": "31.0"},
        {**row, "age": "3.1e1"},
        {**row, "paid": True},
        {**row, "paid": 1},
    ):
        assert context(policy, same) == context(policy, row)
        assert policy._context(same)[2:] == ([], [])
    for odd in ("31 years", "0x1f", "1_000", "nan", "inf", "", "३१"):
        with pytest.raises(UsageError, match="key 'age' must be a number"):
            policy.decide({**row, "age": odd})


def test_what_is_filled_in_unknown_or_refused_is_counted(imputing: Path, tmp_path: Path) -> None:
    log = tmp_path / "events.db"
    with Policy.open(imputing, log) as policy:
        policy.decide({"größe": "klein", "age": None, "paid": "true"})
        policy.decide({"größe": "riesig", "paid": "vielleicht"})
        policy.decide({"größe": "klein", "age": 1, "paid": "true"})
        policy.count_refused()
        assert (policy.imputed, policy.unknown) == ({"age": 2}, {"größe": 1, "paid": 1})
    found = status_of_log(log)
    assert (found.imputed, found.unknown, found.refused) == (2, 2, 1)
    assert "input: 2 fields imputed, 2 with unknown categories, 1 request refused" in found.lines()
    with Policy.open(imputing, log) as policy:  # a log that is replayed has the same numbers
        policy.count_refused()
    assert status_of_log(log).refused == 2


def test_the_description_names_columns_types_and_categories(imputing: Path, policy_file: Path) -> None:
    from banditlab.policy.openapi import schema

    post = schema(Policy.load(imputing).describe(), 10, False)["paths"]["/decide"]["post"]
    forms = [each["content"]["application/json"]["schema"] for each in (post["requestBody"], post["responses"]["200"])]
    row, choice = forms[0]["properties"]["row"], forms[1]["properties"]
    assert (post["requestBody"]["required"], choice["cost"]["minimum"]) == (True, 0)
    assert choice["probability"] == {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
    assert row["properties"]["größe"]["examples"] == ["größer", "klein"]
    assert "number" in row["properties"]["age"]["type"]
    assert (row["required"], row["additionalProperties"]) == ([], False)
    strict = schema(Policy.load(policy_file, extra="ignore").describe(), 10, False)["paths"]["/decide"]["post"]
    row = strict["requestBody"]["content"]["application/json"]["schema"]["properties"]["row"]
    assert (row["required"], row["additionalProperties"]) == (["plan", "age", "visits"], True)


def test_metrics_count_by_column(imputing: Path) -> None:
    pytest.importorskip("prometheus_client", reason="the extra serve")
    from banditlab.policy.metrics import Metrics

    policy = Policy.load(imputing)
    metrics = Metrics(policy.imputed, policy.unknown, {}, {})
    policy.decide({"größe": "riesig", "paid": "true"})
    text = metrics.text().decode()
    assert 'banditlab_imputed_fields_total{column="age"} 1.0' in text
    assert 'banditlab_unknown_categories_total{column="größe"} 1.0' in text


def test_a_key_that_says_whose_row_it_is_is_known_and_no_column(imputing: Path, tmp_path: Path) -> None:
    row = {"größe": "klein", "age": 1.0, "paid": "true"}
    with Policy.open(imputing, tmp_path / "events.db", person="customer") as policy:
        assert context(policy, {**row, "customer": 7}) == context(policy, row)
        assert [policy._context(each).person for each in (row, {**row, "customer": 7})] == [None, "customer=7"]
        with pytest.raises(UsageError, match="none of the columns"):
            policy.decide({"customer": 7})


@pytest.mark.parametrize(
    "row",
    [
        pd.Series({"plan": "pro", "age": 31, "visits": 2.0}),
        {"plan": np.str_("pro"), "age": np.int32(31), "visits": np.float16(2.0)},
        {"plan": "pro", "age": Decimal(31), "visits": Decimal("2.00")},
    ],
    ids=["series", "numpy", "decimal"],
)
def test_a_row_s_values_may_be_other_libraries_numbers(policy_file: Path, row: Any) -> None:
    assert context(Policy.load(policy_file), row) == context(Policy.load(policy_file), ROW)


@pytest.mark.parametrize(
    "gap", [Decimal("nan"), Decimal("sNaN"), Decimal("-inf"), np.float32("nan"), np.datetime64("NaT"), pd.NA]
)
def test_their_missing_values_are_missing(imputing: Path, gap: Any) -> None:
    x = Policy.load(imputing)._context({"größe": "klein", "age": gap, "paid": gap})
    assert x.imputed == ["age", "paid"]


def test_dates_and_categories_may_be_other_libraries_values() -> None:
    times = pd.to_datetime(["2024-05-30", "2024-06-02"] * 10)
    table = pd.DataFrame({"day": times, "zone": [1, 2, 3, 4] * 5, "y": ["a", "b", "a", "c"] * 5})
    policy = Policy.train(table, "y", agent="banditron", roles={"day": "time", "zone": "nominal"})
    expected = context(policy, {"day": "2024-05-31", "zone": "3"})
    for day in (np.datetime64("2024-05-31"), np.datetime64("2024-05-31", "ns"), pd.Timestamp("2024-05-31")):
        for zone in (Decimal("3.0"), np.uint8(3)):
            assert context(policy, {"day": day, "zone": zone}) == expected


def test_lists_are_refused_in_a_table_and_in_a_row(policy_file: Path) -> None:
    tags = [["a"], ["b"], ["a", "b"], None] * 5
    for values in (tags, [np.array(tag) if tag else None for tag in tags]):
        table = pd.DataFrame({"tags": values, "age": range(20), "y": ["u", "v"] * 10})
        for roles in (None, {"tags": "nominal"}):
            with pytest.raises(UsageError, match="column 'tags' has lists, which cannot be encoded"):
                Policy.train(table, "y", roles=roles, missing="indicator")
    for value in (["a"], np.array(["a", "b"])):
        with pytest.raises(UsageError, match="'plan' must be text, a number or a truth value"):
            Policy.load(policy_file).decide({**ROW, "plan": value})
