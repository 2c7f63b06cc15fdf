"""What all kernels share: draws, contexts, and a disk cache that never serves stale code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from banditlab import kernels
from banditlab.errors import UsageError
from banditlab.numerics.contexts import as_contexts
from banditlab.numerics.draws import draw, draw_uniform, is_answer
from banditlab.numerics.jit import bind, njit
from banditlab.players.inputs import as_block, as_class, as_context, as_rows, as_vector
from banditlab.players.rounds import play_rounds

# --------------------------------------------------------------------------------------------------------------- draws


def test_draw_inverts_the_distribution_function() -> None:
    rng = np.random.default_rng(0)
    for K in (2, 3, 10):
        p = rng.dirichlet(np.ones(K))
        for u in rng.random(200):
            assert draw(p, u) == int(np.searchsorted(np.cumsum(p), u, side="right"))


def test_draw_at_the_boundaries() -> None:
    p = np.array([0.25, 0.5, 0.25])
    assert [draw(p, u) for u in (0.0, 0.25 - 2**-40, 0.25, 0.75 - 2**-40, 0.75, 1.0 - 2**-53)] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("p", [[0.0, 1.0, 0.0], [0.0, 0.5, 0.0, 0.5, 0.0], [1.0, 0.0]])
def test_draw_never_returns_a_class_of_probability_zero(p: list[float]) -> None:
    drawn = {draw(np.array(p), u) for u in [*np.linspace(0.0, 1.0, 101, endpoint=False), np.nextafter(1.0, 0.0)]}
    assert drawn == {k for k, value in enumerate(p) if value > 0}


def test_draw_survives_a_sum_that_falls_short_of_one() -> None:
    p = np.array([0.5, 0.5 - 1e-12, 0.0])
    assert draw(p, np.nextafter(1.0, 0.0)) == 1


def test_draw_uniform_covers_every_class_evenly() -> None:
    for K in (2, 3, 7):
        counts = np.bincount([draw_uniform(K, u) for u in (np.arange(K * 1000) + 0.5) / (K * 1000)], minlength=K)
        assert counts.tolist() == [1000] * K
        assert draw_uniform(K, np.nextafter(1.0, 0.0)) == K - 1


# ------------------------------------------------------------------------------------------------------------- contexts


def test_contexts_are_read_only_and_not_copied() -> None:
    X = np.arange(6.0).reshape(2, 3)
    view = as_contexts(X)
    assert np.shares_memory(view, X)
    assert not view.flags.writeable
    assert X.flags.writeable  # the caller's own array stays as it was


@pytest.mark.parametrize(
    "given",
    [np.arange(6).reshape(2, 3), np.arange(6.0, dtype=np.float32).reshape(2, 3), np.arange(6.0).reshape(3, 2).T],
)
def test_any_array_becomes_float64_in_c_order(given: Any) -> None:
    view = as_contexts(given)
    assert view.dtype == np.float64
    assert view.flags.c_contiguous
    assert np.array_equal(view, given)


def test_a_kernel_that_writes_to_a_context_does_not_compile() -> None:
    @njit(cache=False)
    def writes(x):  # type: ignore[no-untyped-def]
        x[0] = 1.0

    with pytest.raises(Exception, match=r"readonly|read-only|Cannot modify"):
        writes(as_contexts(np.zeros(2)))


# ----------------------------------------------------------------------------------------------- what callers hand over

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("a", "p", "expected"),
    [
        (0, [0.5, 0.5], True),
        (1, [0.0, 1.0], True),
        (1, [0.5 + 5e-10, 0.5], True),
        (0, [0.0, 1.0], False),
        (-1, [0.5, 0.5], False),
        (2, [0.5, 0.5], False),
        (0, [0.5 + 2e-9, 0.5], False),
        (0, [0.5 - 2e-9, 0.5], False),
        (0, [1.5, -0.5], False),
        (0, [0.5, NAN], False),
        (0, [NAN, 1.0], False),
        (0, [0.5, INF], False),
        (0, [INF, -INF], False),
    ],
)
def test_what_an_answer_is(a: int, p: list[float], expected: bool) -> None:
    assert is_answer(a, np.array(p)) == expected


@njit
def answers_from_the_stream(state, x, u, p, payload):  # type: ignore[no-untyped-def]
    p[0], p[1] = x[0], 1.0 - x[0]
    return int(x[1]), False


@njit
def counts(state, x, action, p, payload, correct):  # type: ignore[no-untyped-def]
    state[0] += 1


def test_the_loop_stops_before_it_learns_from_a_bad_answer() -> None:
    loop = bind(play_rounds, "test", act_kernel=answers_from_the_stream, learn_kernel=counts)
    for column, bad in ((0, 1.5), (0, NAN), (1, 2.0), (1, -1.0)):
        X = np.tile([0.5, 1.0], (9, 1))
        for at in (9, 8, 4, 0):
            X[at:, column] = bad
            learnt, p = np.zeros(1, np.int64), np.empty(2)
            trace = np.empty(9, np.int64), np.empty(9, np.bool_), np.empty(9), np.empty(9, np.bool_)
            stopped = loop(learnt, as_contexts(X), np.zeros(9, np.int64), np.zeros((9, 2)), p, np.empty(0), *trace)
            assert (stopped, learnt[0]) == (at, at)


def test_good_inputs_pass_as_kernels_take_them() -> None:
    assert as_context([1, 2], 2).dtype == np.float64
    assert as_rows(np.zeros((0, 2)), 2).shape == (0, 2)
    X, y = as_block(np.zeros((2, 3), np.float32), np.array([0, 3], np.uint8), 3, 4)
    assert (X.dtype, y.dtype, y.tolist()) == (np.float64, np.int64, [0, 3])
    assert [as_class("k", value, 3) for value in (0, 2, np.int32(1), np.uint8(2))] == [0, 2, 1, 2]
    assert as_vector("v", None, 0).shape == (0,)
    assert as_vector("v", [1, 2], 2).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: as_context(np.zeros(3), 2), r"the context must be of shape \(2,\), got \(3,\)"),
        (lambda: as_context(np.zeros((1, 2)), 2), r"the context must be of shape \(2,\), got \(1, 2\)"),
        (lambda: as_context("ab", 2), "the context must be an array of numbers, got a str"),
        (lambda: as_context([[1.0], [1.0, 2.0]], 2), "the context must be an array of numbers, got a list"),
        (lambda: as_rows(np.zeros(2), 2), r"the contexts must be of shape \(n, 2\), got \(2,\)"),
        (lambda: as_rows(np.zeros((4, 3)), 2), r"the contexts must be of shape \(n, 2\), got \(4, 3\)"),
        (lambda: as_block(np.zeros((2, 2)), [0], 2, 3), r"the labels must be of shape \(2,\)"),
        (lambda: as_block(np.zeros((1, 2)), [3], 2, 3), r"the labels must lie in 0 ... 2, got 3 ... 3"),
        (lambda: as_block(np.zeros((1, 2)), [-1], 2, 3), r"the labels must lie in 0 ... 2, got -1"),
        (
            lambda: as_block(np.zeros((1, 2)), [1.0], 2, 3),
            "the labels must be integers in 0 ... 2, got an array of float64",
        ),
        (lambda: as_block(np.zeros((1, 2)), [True], 2, 3), "the labels must be integers"),
        (lambda: as_class("the label", 3, 3), "the label must be an integer in 0 ... 2, got 3"),
        (lambda: as_class("the label", -1, 3), "the label must be an integer in 0 ... 2, got -1"),
        (lambda: as_class("the label", 1.0, 3), "the label must be an integer"),
        (lambda: as_class("the label", np.float64(1), 3), "the label must be an integer"),
        (lambda: as_class("the label", True, 3), "the label must be an integer in 0 ... 2, got True"),
        (lambda: as_class("the label", np.True_, 3), "the label must be an integer"),
        (lambda: as_class("the label", None, 3), "the label must be an integer in 0 ... 2, got None"),
        (lambda: as_vector("the payload", None, 1), r"the payload must be of shape \(1,\), got None"),
        (lambda: as_vector("the payload", np.zeros(2), 1), r"the payload must be of shape \(1,\), got \(2,\)"),
    ],
)
def test_bad_inputs_are_refused_in_one_line(call: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refusal:
        call()
    assert "\n" not in str(refusal.value)


# ---------------------------------------------------------------------------------------------------------- disk cache


def _twice(x):  # type: ignore[no-untyped-def]
    return inner(x) * 2  # type: ignore[name-defined]  # noqa: F821


@njit
def plus_one(x):  # type: ignore[no-untyped-def]
    return x + 1


@njit
def plus_two(x):  # type: ignore[no-untyped-def]
    return x + 2


def test_a_template_is_bound_to_each_kernel() -> None:
    one, two = bind(_twice, "one", inner=plus_one), bind(_twice, "two", inner=plus_two)
    assert (one(1), two(1), one(1)) == (4, 6, 4)


def test_the_bound_name_holds_owner_and_sources() -> None:
    name = bind(_twice, "me", inner=plus_one).py_func.__qualname__
    assert name.startswith(f"_twice@me@{kernels.source_digest()}@inner=")
    assert len(name.rpartition("=")[2]) == 16  # this test's file is no part of the package's digest


def test_package_kernels_are_covered_by_the_package_digest() -> None:
    assert bind(_twice, "me", inner=draw_uniform).py_func.__qualname__.endswith("@inner=")


def test_a_bound_kernel_passes_its_files_on() -> None:
    """A reduction binds a lab's forecaster and is bound to the loop itself: the lab's file must show there."""
    one, two = (bind(draw_uniform.py_func, "me", helper=kernel) for kernel in (plus_one, _plus_elsewhere()))
    names = [bind(_twice, "outer", inner=kernel).py_func.__qualname__ for kernel in (one, two, one)]
    assert names[0] == names[2] != names[1]


def _plus_elsewhere() -> Any:
    """Return a kernel without a file, as a notebook's cell defines one."""
    namespace: dict[str, Any] = {"njit": njit, "__name__": "elsewhere"}
    exec(compile("def plus(x):\n    return x + 3\n", "<cell>", "exec"), namespace)
    return njit(namespace["plus"], cache=False)


def test_the_digest_sees_every_kernel_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "kernels.py").write_text("a = 1\n")
    monkeypatch.setattr(kernels, "PACKAGE", tmp_path)
    digests = []
    for name, text in (("kernels.py", "a = 2\n"), ("agents/x.py", ""), ("agents/x.py", "b"), ("agents/y.py", "b")):
        (tmp_path / name).write_text(text)
        digests.append(kernels.source_digest.__wrapped__())
    (tmp_path / "agents" / "y.py").rename(tmp_path / "agents" / "z.py")
    digests.append(kernels.source_digest.__wrapped__())
    assert len(set(digests)) == 5
    (tmp_path / "unrelated.txt").write_text("c")
    assert kernels.source_digest.__wrapped__() == digests[-1]


LAB_AGENT = """
from typing import NamedTuple
import numpy as np
from banditlab.agents import KernelAgent
from banditlab.kernels import njit

class State(NamedTuple):
    n: np.ndarray

@njit
def act_kernel(state, x, u, p, payload):
    p[:] = 0.0
    p[{action}] = 1.0
    return {action}, False

@njit
def learn_kernel(state, x, action, p, payload, correct):
    state.n[0] += 1

class Constant(KernelAgent):
    id = "test-constant"
    explores = False
    act_kernel = act_kernel
    learn_kernel = learn_kernel
    def __init__(self, problem, rng):
        super().__init__(problem, rng)
        self.state = State(np.zeros(1))
"""

PLAY = """
import sys
import numpy as np
from banditlab.agents import Trace
from banditlab.kernels import as_contexts
from banditlab.problem import Problem
from banditlab.registry import classes_of, load_file
cls = classes_of(load_file(sys.argv[1]))[0][1]
trace = Trace.empty(3)
agent = cls(Problem(2, 3, 1.0), np.random.default_rng(0))
agent.play_block(as_contexts(np.zeros((3, 2))), np.zeros(3, np.int64), trace)
print(*trace.action)
"""


def test_an_edited_lab_kernel_is_played_as_it_is_now(tmp_path: Path) -> None:
    """The compiled loop stands in the package's file, which has not changed: only its name can tell the cache."""
    file = tmp_path / "constant.py"
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    played = []
    for action in (1, 2, 1):
        file.write_text(LAB_AGENT.format(action=action))
        out = subprocess.run(
            [sys.executable, "-c", PLAY, str(file)], env=env, capture_output=True, text=True, check=True
        )
        played.append(out.stdout.split())
    assert played == [["1"] * 3, ["2"] * 3, ["1"] * 3]


def cache_dir_of(env: dict[str, str]) -> list[str]:
    """Return numba's folder and the digest, as a fresh process sees them."""
    code = "from banditlab.kernels import source_digest; import numba; print(numba.config.CACHE_DIR, source_digest())"
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    ).stdout.split()


def test_the_cache_lies_in_a_folder_of_these_sources(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    place, digest = cache_dir_of(env | {"XDG_CACHE_HOME": str(tmp_path)})
    assert Path(place).name == digest
    assert Path(place).is_relative_to(tmp_path)


def test_a_users_cache_folder_is_respected(tmp_path: Path) -> None:
    assert cache_dir_of(os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)})[0] == str(tmp_path)
