"""What kernels do with arrays: none is counted that is borrowed, none is lost that was made, and mistakes are told apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core import errors

from banditlab import Problem, make_agent
from banditlab.errors import UsageError
from banditlab.numerics import jit
from banditlab.numerics.contexts import as_contexts, by_context, row
from banditlab.numerics.inner_kernels import known
from banditlab.numerics.jit import borrow, inline, njit
from banditlab.players.actor import Trace
from banditlab.registry import registry

compiled = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT) or not known(), reason="references are counted as numba does it here"
)


class Two(NamedTuple):
    """Two arrays, in a state as agents have them."""

    a: Any
    b: Any


class Nested(NamedTuple):
    """Two pairs of them."""

    one: Two
    other: Two


@njit(cache=False, arrays="used")
def add_up(pair):
    total = 0.0
    for i in range(pair.a.shape[0]):
        total += pair.a[i] if pair.b[i] > 0.0 else -pair.b[i]
    return total


def sum_of(nested, n):
    total = 0.0
    for i in range(n):
        total += add_up(nested.one) if i % 2 == 0 else add_up(nested.other)
    return total


def nested() -> Nested:
    one, other, third, fourth = np.random.default_rng(0).standard_normal((4, 16))
    return Nested(Two(one, other), Two(third, fourth))


@compiled
def test_what_is_borrowed_is_not_counted() -> None:
    texts = {}
    for use in ("used", "new"):
        kernel = njit(sum_of, cache=False, arrays=use)
        assert kernel(nested(), 3) == pytest.approx(sum_of(nested(), 3), abs=1e-12)
        (text,) = kernel.inspect_llvm().values()
        texts[use] = text.count("call void @NRT_incref")
    assert texts["used"] == 0
    assert texts["new"] > 0  # else this test sees nothing


def part(A, t):
    return A[t]


def parts(A, t):
    return A[t], A[t + 1]


def new(n):
    return np.zeros(n)


def news(n):
    return Two(np.zeros(n), np.zeros(n))


@compiled
@pytest.mark.parametrize("function", [part, parts])
def test_a_function_that_lends_has_to_say_so(function: Any) -> None:
    with pytest.raises(errors.TypingError, match=r"returning of array passed|returns arrays: set arrays='views'"):
        njit(function, cache=False, arrays="used")(np.ones((3, 2)), 1)
    # Called from another, where the error has to be the same.
    inner = njit(function, cache=False, arrays="used")

    def outer(A):
        inner(A, 0)

    with pytest.raises(errors.TypingError, match=r"returning of array passed|returns arrays: set arrays='views'"):
        njit(outer, cache=False, arrays="used")(np.ones((3, 2)))
    lent = njit(function, cache=False, arrays="views")(np.ones((3, 2)), 1)
    np.testing.assert_array_equal(lent, np.ones_like(lent))


def test_a_word_that_means_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="arrays must be one of 'used', 'views', 'new', got 'mine'"):
        njit(part, arrays="mine")
    with pytest.raises(UsageError, match="got ''"):
        inline(arrays="")(part)


@compiled
@pytest.mark.parametrize("function", [new, news])
def test_a_function_that_makes_arrays_has_to_say_so(function: Any) -> None:
    with pytest.raises(errors.TypingError, match="Only accept returning of array passed into the function"):
        njit(function, cache=False, arrays="used")(3)


@compiled
@pytest.mark.parametrize("function", [new, news])
@pytest.mark.parametrize("chosen", [False, True], ids=["called", "chosen"])
def test_new_arrays_are_not_taken_by_a_function_that_would_never_let_go(function: Any, chosen: bool) -> None:
    made: Any = njit(function, cache=False, arrays="new")
    if chosen:
        made = by_context(function, function, name="n", arrays="new")

    def taken(n):
        made(n)
        return n

    borrowing = njit(taken, cache=False, arrays="used")
    for _ in range(2):  # nor is the compiled function kept
        with pytest.raises(errors.TypingError, match=f"it calls {function.__name__}, which may return new arrays"):
            borrowing(3)
    assert njit(taken, cache=False, arrays="new")(3) == 3


@pytest.fixture
def alive(allocations: Any) -> Any:
    """Say how many arrays that kernels made are still there."""

    def count() -> int:
        stats = allocations()
        return int(stats.mi_alloc - stats.mi_free)

    return count


@inline(arrays="views")
def second(pair):
    return borrow(pair.b)


@njit(cache=False)
def made_and_lent(n):
    """Make arrays and hand parts of them round, as a user's kernel may."""
    total = 0.0
    for i in range(n):
        A = np.full((4, 3), float(i))
        pair = Two(A[0], A[1])
        total += row(A, 2)[0] + second(pair)[1] + add_up(pair) + A[3, 2]
    return total


@compiled
def test_a_users_arrays_outlive_what_borrows_and_lends_them(alive: Any) -> None:
    made_and_lent(2)
    before = alive()
    n = 20_000
    assert made_and_lent(n) == pytest.approx(sum(6.0 * i for i in range(n)))
    assert alive() == before


@numba.njit
def drawn_up(i):
    return np.full(3, float(i)).sum()


def summed(n):
    total = 0.0
    for i in range(n):
        total += kernel(i)  # noqa: F821
    return total


@compiled
def test_a_users_plain_kernel_may_make_arrays_in_a_loop_of_ours(alive: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_is_own", lambda function: function.__code__ is summed.__code__)
    loop = jit.bind(summed, "a test", kernel=drawn_up)
    assert loop.use_of_arrays == "used"
    assert loop(3) == 9.0
    before = alive()
    assert loop(1000) == 3 * 999 * 500
    assert alive() == before


SETTINGS = {"boosted-exploration": {"n_learners": 2}}


@compiled
@pytest.mark.parametrize("id_", [e.id for e in registry().entries("agents") if e.load().group != "adapter"])
def test_playing_leaves_no_array_behind(id_: str, alive: Any) -> None:
    rng, K, d, n = np.random.default_rng(0), 2 if id_ == "apple-tasting" else 3, 20, 200
    X = rng.standard_normal((n, d))
    X = as_contexts(X / (np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-12)))
    y, trace = rng.integers(K, size=n), Trace.empty(n)
    agent = make_agent(id_, Problem(d, K, 1.0, horizon=4 * n), seed=0, **SETTINGS.get(id_, {}))
    agent.play_block(X, y, trace)
    before = alive()
    for _ in range(2):
        agent.play_block(X, y, trace)
    # What an agent keeps for good may be made once; what grows with the rounds is a leak.
    assert alive() - before <= 4
