"""Contexts that kernels may not write to, one thread a task, and machine code called by its types."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from banditlab.numerics.draws import draw_uniform
from banditlab.numerics.entry import entry
from banditlab.numerics.read_only import as_contexts
from banditlab.numerics.threads import one_thread


def test_contexts_are_read_only_and_leave_what_they_are_made_of_alone() -> None:
    X = np.arange(6.0).reshape(2, 3)
    seen = as_contexts(X)
    with pytest.raises(ValueError, match="read-only"):
        seen[0, 0] = 1.0
    X[0, 0] = 5.0  # a view, and writable where it came from
    assert seen[0, 0] == 5.0
    for given in (X.T, [[1, 2], [3, 4]], np.float32([1.5])):
        made = as_contexts(given)
        assert (made.flags.c_contiguous, made.dtype, made.flags.writeable) == (True, np.float64, False)
        np.testing.assert_array_equal(made, given)


def test_inside_there_is_one_thread() -> None:
    before = numba.get_num_threads()
    try:
        with threadpool_limits(limits=2), one_thread():
            assert numba.get_num_threads() == 1
            assert {pool["num_threads"] for pool in threadpool_info()} <= {1}
    finally:
        numba.set_num_threads(before)


def test_an_entry_is_the_code_of_its_types_and_what_is_not_compiled_is_itself() -> None:
    def plain(a: int) -> int:
        return a

    assert entry(plain, 1) is plain
    assert entry(draw_uniform, 5, 0.5)(5, 0.99) == 4
