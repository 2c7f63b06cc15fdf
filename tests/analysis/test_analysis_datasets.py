"""A run's environment gives the name of its data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from banditlab.analysis.datasets import OPENML, data_name

RUNS = Path(__file__).parents[2] / "runs"


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ("banditlab/OpenML-v0(data_id=54)", "vehicle"),
        ("banditlab/OpenML-v0(data_id=40966, missing=zero)", "mice"),
        ("banditlab/OpenML-v0(data_id=61)", "OpenML 61"),
        ("banditlab/Table-v0(path=/a/rows/shuttle-train.csv.gz, label=8)", "shuttle"),
        ("banditlab/Table-v0(label=kind, path=C:\\rows\\made-up.csv)", "made-up"),
        ('id="banditlab/Table-v0" path="shuttle-train.csv.gz" label="8"', "shuttle"),
        ("banditlab/Digits-v0", "digits"),
        ('id="banditlab/Digits-v0" reshuffle=True', "digits"),
        ("lab/SynSepSmall-v0(noise_rate=0.05)", "synsepsmall"),
    ],
)
def test_names(environment: str, name: str) -> None:
    assert data_name(environment) == name


def test_the_specs_number_their_sets_so() -> None:
    """Every comment "data_id = 54   # vehicle: ..." in runs/ agrees."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(RUNS.glob("*.toml")))
    said = set(re.findall(r"^data_id = (\d+) +# ([a-z-]+):", text, re.MULTILINE))
    assert {name for _, name in said} >= {"vehicle", "segment", "car", "nursery", "mushroom", "balance-scale"}
    assert {int(number): name for number, name in said}.items() <= {n: name for name, n in OPENML.items()}.items()
