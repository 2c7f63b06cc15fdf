"""The hint at a name that was meant, and the list of those there are."""

from __future__ import annotations

import pytest

from banditlab.errors import CLOSE, nearest


@pytest.mark.parametrize(
    ("name", "known", "told"),
    [
        ("x", [], " (known: none)"),
        ("zzz", ["b", "a", "b"], " (known: a, b)"),
        ("fastbc", ["linucb", "fastcb"], "; did you mean 'fastcb'? (known: fastcb, linucb)"),
        ("abcxy", ["abcde"], "; did you mean 'abcde'? (known: abcde)"),  # twice 3 of 10 letters: just close enough
        ("abcxyz", ["abcde"], " (known: abcde)"),  # twice 3 of 11
        ("Sparse", ["banditlab/Dense-v0", "banditlab/Sparse-v0"],
         "; did you mean 'banditlab/Sparse-v0'? (known: banditlab/Dense-v0, banditlab/Sparse-v0)"),
        ("sparse-v12", ["banditlab/Sparse-v0"], "; did you mean 'banditlab/Sparse-v0'? (known: banditlab/Sparse-v0)"),
    ],
)  # fmt: skip
def test_the_nearest_name_is_suggested_from_six_tenths_on(name: str, known: list[str], told: str) -> None:
    assert CLOSE == 0.6
    assert nearest(name, known) == told


def test_an_order_that_means_something_is_kept() -> None:
    assert nearest("zzz", ["b", "a", "b"], keep_order=True) == " (known: b, a)"
