"""Where the package stands on numba's inside: few files, and the versions of numba with which their tests were seen to pass."""

from __future__ import annotations

from pathlib import Path

import numba
import pytest

import banditlab
from banditlab.numerics.inner_kernels import KNOWN

PACKAGE = Path(banditlab.__file__).parent
INSIDE = {
    "numerics/contexts.py": "test_contexts.py",
    "numerics/inner_kernels.py": "test_inner_kernels.py",
    "numerics/jit_cache.py": "test_jit_cache.py",
    "numerics/simd.py": "test_simd.py",
    "numerics/stacked_states.py": "test_stacked_states.py",
}
"""The files that import `numba.core`, and what tests them."""


def test_at_most_five_files_import_numbas_inside() -> None:
    files = {file.relative_to(PACKAGE).as_posix(): file.read_text("utf-8") for file in PACKAGE.rglob("*.py")}
    assert {name for name, text in files.items() if "numba.core" in text} == set(INSIDE)
    assert len(INSIDE) <= 5


@pytest.mark.parametrize("name", INSIDE)
def test_this_numba_is_one_that_the_files_tests_were_seen_to_pass_with(name: str) -> None:
    assert (Path(__file__).parent / INSIDE[name]).is_file()
    first, last = KNOWN
    assert first <= numba.version_info[:2] <= last, (
        f"banditlab/{name} was tried with numba {first} to {last}, this is {numba.__version__}: run {INSIDE[name]} and "
        "tests/record, then raise KNOWN in banditlab/numerics/inner_kernels.py"
    )
