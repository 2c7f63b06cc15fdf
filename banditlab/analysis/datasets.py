"""The data sets of the studies: their ids at openml.org, and which data set a run used."""

from __future__ import annotations

import re

OPENML = {
    "balance-scale": 11,
    "car": 21,
    "mushroom": 24,
    "nursery": 26,
    "segment": 36,
    "vehicle": 54,
    "mice": 40966,
}
"""The `data_id` of `banditlab/OpenML-v0` for each name in tables."""


def data_name(environment: str) -> str:
    """Return the short name of the data in an environment's label.

    "banditlab/OpenML-v0(data_id=54)" is "vehicle", "banditlab/Table-v0(path=rows/shuttle-train.csv, label=kind)" is
    "shuttle", and "banditlab/Digits-v0" is "digits". An id that is not in `OPENML` gives, for example, "OpenML 61".
    """
    if number := re.search(r"data_id=(\d+)", environment):
        known = {data_id: name for name, data_id in OPENML.items()}
        return known.get(int(number[1]), f"OpenML {number[1]}")
    if file := re.search(r"path=.*?([^/\\,)\"]+?)(-train)?\.\w", environment):
        return file[1]
    named = re.search(r"(?:.*/)?(\w+?)(?:-v\d+)?\b", environment)
    return named[1].lower() if named else environment
