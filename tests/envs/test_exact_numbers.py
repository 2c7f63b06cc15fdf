"""Columns of a file that stay text because a number would lose something."""

from __future__ import annotations

import pandas as pd
import pytest

from banditlab.envs._reading import exact


@pytest.mark.parametrize(
    ("column", "is_exact"),
    [
        (["1", "2.5", "-3e4"], True),
        (["01", "2"], False),  # codes
        (["01", "2.5"], True),  # not whole numbers
        (["9007199254740992", "9007199254740994"], True),
        (["9007199254740992", "9007199254740993"], False),  # equal as floats
        (["01", "9007199254740994"], False),
    ],
)
def test_numbers_replace_their_strings_only_without_loss(column: list[str], is_exact: bool) -> None:
    text = pd.Series(column)
    assert exact(text, text.astype(float)) == is_exact
