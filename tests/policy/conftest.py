"""A small table, and a policy trained on it once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.policy.customers import write_table


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("table") / "my.csv")


@pytest.fixture(scope="session")
def policy_file(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from banditlab.policy import train

    file = tmp_path_factory.mktemp("policy") / "my.policy"
    train(table, "offer", out=file)
    return file
