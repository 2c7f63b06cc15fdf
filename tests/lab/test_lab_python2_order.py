"""The order of a dictionary of Python 2.7: what Python 2.7.18 printed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def module():
    folder = str(Path(__file__).parents[2] / "analysis")
    sys.path.insert(0, folder)
    try:
        from parts import python2_order
    finally:
        sys.path.remove(folder)
    return python2_order


def test_the_hash_of_a_string(module):
    assert module.string_hash("a") == 12416037344


def test_few_names_and_names_that_make_the_table_grow_twice(module):
    columns = ["buying", "maint", "doors", "persons", "lug_boot", "safety"]
    assert module.dictionary_order(columns) == ["maint", "persons", "lug_boot", "safety", "doors", "buying"]
    places = [28, 29, 24, 25, 26, 27, 20, 21, 22, 23, 9, 8, 5, 4, 7, 6, 1, 0, 3, 2]
    places += [39, 38, 33, 32, 31, 30, 37, 36, 35, 34, 15, 14, 17, 16, 11, 10, 13, 12, 19, 18]
    assert module.dictionary_order([f"column-{i}" for i in range(40)]) == [f"column-{i}" for i in places]
