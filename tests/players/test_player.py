"""What a player remembers: saved and loaded without pickle, pickled, set by hand."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest

from banditlab.errors import UsageError
from banditlab.players import player as player_module
from banditlab.players.player import Player
from banditlab.problem import Problem


class Inner(NamedTuple):
    counts: np.ndarray
    total: np.ndarray


class State(NamedTuple):
    W: np.ndarray
    inner: Inner


class Counter(Player):
    """A player of every kind of state that can be saved."""

    id = "test-counter"

    def __init__(
        self, problem: Problem, rng: np.random.Generator | None, *, rate: float = 0.5, mode: Literal["a", "b"] = "a"
    ) -> None:
        super().__init__(problem, rng)
        self.rate, self.mode = rate, mode
        self.state = State(np.zeros((2, 3)), Inner(np.zeros(3, np.int64), np.zeros(1)))
        self.child = rng.spawn(1)[0] if rng is not None else None
        self.rounds, self.name, self.best = 0, "none", -1.5
        self.history: list[Any] = []
        self.table: dict[str, Any] = {"streams": [np.random.default_rng(3)], "pair": (1, 2)}

    def step(self) -> list[float]:
        """Change all of it and return some numbers drawn."""
        assert self.rng is not None
        assert self.child is not None
        draws = [self.rng.random(), self.child.random(), self.table["streams"][0].random()]
        self.state.W[0] += draws[0]
        self.state.inner.counts[self.rounds % 3] += 1
        self.state.inner.total[0] += draws[1]
        self.rounds += 1
        self.name, self.best = f"round {self.rounds}", max(self.best, draws[2])
        self.history = [*self.history, self.rounds][-2:]
        self.table["last"] = np.array(draws)
        return [*draws, self.state.W.sum(), float(self.state.inner.counts.sum()), self.best]


class Outer(Player):
    """A wrapper whose state shares arrays with the player inside it, as compiled reductions do."""

    id = "test-outer"
    wraps = "counter"

    def __init__(self, problem: Problem, rng: np.random.Generator, *, counter: str = "test-counter", rate: float = 0.1,
                 **settings: Any) -> None:  # fmt: skip
        super().__init__(problem, rng)
        self.counter, self.rate = counter, rate
        given = {name.removeprefix("counter."): value for name, value in settings.items()}
        self._inner = Counter(problem, rng, **given)
        self.state = (self._inner.state, np.zeros(1))

    @property
    def inner(self) -> Player:
        return self._inner


@pytest.fixture
def problem() -> Problem:
    return Problem(3, 2, 1.5, horizon=10)


def make(problem: Problem, **settings: Any) -> Counter:
    return Counter(problem, np.random.default_rng(11), **settings)


def by_file(player: Any, tmp_path: Any) -> Any:
    player.save(tmp_path / "player.npz")
    return type(player).load(tmp_path / "player.npz")


def by_pickle(player: Any, tmp_path: Any) -> Any:
    return pickle.loads(pickle.dumps(player))


@pytest.mark.parametrize("carry", [by_file, by_pickle])
@pytest.mark.parametrize("rounds", [0, 1, 7])
def test_a_carried_player_continues(problem: Problem, tmp_path: Any, carry: Any, rounds: int) -> None:
    expected = make(problem)
    whole = [expected.step() for _ in range(rounds + 5)]
    player = make(problem)
    for _ in range(rounds):
        player.step()
    carried = carry(player, tmp_path)
    assert [carried.step() for _ in range(5)] == whole[rounds:]
    assert (carried.rounds, carried.name, carried.history) == (expected.rounds, expected.name, expected.history)
    assert carried.problem == problem


def test_loading_restores_types(problem: Problem, tmp_path: Any) -> None:
    player = make(problem, rate=0.25, mode="b")
    player.step()
    loaded = by_file(player, tmp_path)
    assert isinstance(loaded.state, State)
    assert isinstance(loaded.state.inner, Inner)
    assert loaded.state.inner.counts.dtype == np.int64
    assert (loaded.rate, loaded.mode) == (0.25, "b")
    assert loaded.table["pair"] == (1, 2)
    assert isinstance(loaded.table["streams"][0], np.random.Generator)


def test_the_file_holds_no_pickle(problem: Problem, tmp_path: Any) -> None:
    player = make(problem)
    player.step()
    player.save(tmp_path / "player.npz")
    with np.load(tmp_path / "player.npz", allow_pickle=False) as file:
        head = json.loads(file["header"].item())
        assert np.array_equal(file["state.state.W"], player.state.W)
    assert (head["format"], head["settings"]) == (1, {"rate": 0.5, "mode": "a"})
    assert head["problem"] == {"n_features": 3, "n_classes": 2, "radius": 1.5, "horizon": 10}


def test_a_wrapper_is_saved_with_what_it_wraps(problem: Problem, tmp_path: Any) -> None:
    outer = Outer(problem, np.random.default_rng(2), **{"counter.rate": 0.9, "mode": "b"})
    assert outer.params() == {"counter": "test-counter", "rate": 0.1, "counter.rate": 0.9, "mode": "b"}
    outer._inner.step()
    loaded = by_file(outer, tmp_path)
    assert loaded.params() == outer.params()
    assert loaded._inner.rounds == 1
    assert np.shares_memory(loaded.state[0].W, loaded._inner.state.W)
    assert np.array_equal(loaded.state[0].W, outer.state[0].W)


def test_a_player_without_a_generator_is_saved(problem: Problem, tmp_path: Any) -> None:
    assert by_file(Counter(problem, None), tmp_path).rng is None


def test_set_state_takes_what_get_state_returns_and_shares_nothing(problem: Problem) -> None:
    player, other = make(problem), make(problem)
    for _ in range(3):
        player.step()
    other.set_state(player.get_state())
    expected = [other.step() for _ in range(2)]
    assert [player.step() for _ in range(2)] == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "state.odd: a object cannot be saved; override get_state and set_state"),
        ({1: 2.0}, "state.odd: a dict cannot be saved; override get_state and set_state"),
        ([1, {2}], "state.odd.1: a set cannot be saved; override get_state and set_state"),
        (np.array([None]), "state.odd: an array of objects cannot be saved; override get_state and set_state"),
    ],
)
def test_what_cannot_be_saved_is_refused(problem: Problem, tmp_path: Any, value: Any, message: str) -> None:
    player = make(problem)
    player.odd = value  # type: ignore[attr-defined]
    with pytest.raises(TypeError) as caught:
        player.save(tmp_path / "player.npz")
    assert str(caught.value) == message
    assert not (tmp_path / "player.npz").exists()


class Late(Player):
    """Its state comes into being after the constructor: nothing says what to rebuild."""

    id = "test-late"

    def __init__(self, problem: Problem, rng: np.random.Generator | None) -> None:
        super().__init__(problem, rng)
        self.state: Any = None


def test_a_state_made_after_the_constructor_is_refused(problem: Problem, tmp_path: Any) -> None:
    player = Late(problem, None)
    player.state = Inner(np.zeros(1), np.zeros(1))
    player.save(tmp_path / "player.npz")
    with pytest.raises(UsageError, match="must be created in the constructor"):
        Late.load(tmp_path / "player.npz")


def test_another_class_is_refused(problem: Problem, tmp_path: Any) -> None:
    make(problem).save(tmp_path / "player.npz")
    with pytest.raises(UsageError) as caught:
        Outer.load(tmp_path / "player.npz")
    expected = "has (id, version) ('test-counter', 1), expected ('test-outer', 1)"
    assert str(caught.value) == f"{tmp_path / 'player.npz'}: {expected}"


def test_another_format_is_refused(problem: Problem, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as other:
        other.setattr(player_module, "STATE_FORMAT", 4)
        make(problem).save(tmp_path / "player.npz")
    with pytest.raises(UsageError) as caught:
        Counter.load(tmp_path / "player.npz")
    assert str(caught.value) == (
        f"{tmp_path / 'player.npz'}: saved in format 4; this version of banditlab reads format "
        f"{player_module.STATE_FORMAT}"
    )


def test_another_version_is_refused(problem: Problem, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    make(problem).save(tmp_path / "player.npz")
    monkeypatch.setattr(Counter, "version", 2)
    with pytest.raises(UsageError, match=r"has .*'test-counter', 1\), expected .*'test-counter', 2\)"):
        Counter.load(tmp_path / "player.npz")


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04cut"])
def test_a_file_that_is_none_of_ours_is_refused(tmp_path: Any, content: bytes) -> None:
    file = tmp_path / "player.npz"
    file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        Counter.load(file)
    assert str(caught.value).startswith(f"{file}: not a saved player: ")


def test_a_missing_file_is_named(tmp_path: Any) -> None:
    with pytest.raises(UsageError) as caught:
        Counter.load(tmp_path / "nowhere.npz")
    assert str(caught.value) == f"{tmp_path / 'nowhere.npz'}: cannot be read (No such file or directory)"


def test_defaults(problem: Problem) -> None:
    player = make(problem)
    assert player.bound(10) is None
    assert np.isnan(player.certificate())
    assert (player.bound_late, player.plays_blocks, player.sparse) == (0, False, False)
    assert type("Third", (Counter,), {"state_order": (3, 2)}).least_bytes(problem, {}) == 4.0 * 2**3 * 3**2
    with pytest.raises(AttributeError, match="Counter wraps no player"):
        _ = player.inner


def test_a_deep_copy_of_the_state_is_a_snapshot() -> None:
    """What get_state returns goes on changing with the player; a copy of it does not."""
    player = Counter(Problem(3, 2, 1.0), np.random.default_rng(3))
    live, snapshot = player.get_state(), copy.deepcopy(player.get_state())
    player.state.W[:] = 7.0
    drawn = player.rng.random(4)
    assert live["state"].W is player.state.W
    player.set_state(snapshot)
    assert not player.state.W.any()
    assert np.array_equal(player.rng.random(4), drawn)


def test_a_wrapper_shows_and_answers_with_what_it_wraps(problem: Problem) -> None:
    outer = Outer(problem, np.random.default_rng(2), **{"counter.rate": 0.9})
    assert repr(outer) == "Outer('test-outer', K=2, d=3, inner=Counter('test-counter', K=2, d=3, rate=0.9))"
    assert repr(Outer.__new__(Outer)) == "Outer('test-outer')"
    outer._inner.diagnostics = lambda: {"seen": 3}  # type: ignore[method-assign]
    assert outer.diagnostics() == {"seen": 3}
    assert Counter(problem, None).diagnostics() == {}


class Bounded(Counter):
    """A player whose numbers have limits, and one that the settings make."""

    id = "test-bounded"
    state_constants = ("norm",)

    def __init__(self, problem: Problem, rng: np.random.Generator | None) -> None:
        super().__init__(problem, rng)
        self.norm, self.listeners = 2.5, len

    def limits(self) -> Any:
        return {"rounds": (0, 10), "best": (-2, 2), "state.inner.counts": (0, 6, 3)}


def test_a_state_is_whole_within_its_limits_and_agrees_with_the_settings(problem: Problem) -> None:
    player = Bounded(problem, None)
    state = copy.deepcopy(player.get_state())
    assert "listeners" not in state
    assert "problem" not in state
    state["state"].inner.counts[:] = 0, 3, 6
    player.set_state(state | {"rounds": 10, "norm": 2.5 * (1 + 9e-10)})
    assert player.rounds == 10
    for change, said in (
        ({"rounds": 11}, "state.rounds must lie in 0 ... 10, got 11"),
        ({"rounds": -1}, "state.rounds must lie in 0 ... 10, got -1"),
        ({"norm": 2.5 * (1 - 9e-10)}, "state.norm must be 2.5"),  # it is 2.5 * (1 + 9e-10)
        ({"odd": 1}, "the state of test-bounded must not have 'odd'"),
    ):
        with pytest.raises(UsageError) as refusal:
            player.set_state(state | change)
        assert str(refusal.value).startswith(said)
    counts = copy.deepcopy(state)
    for wrong in (5, 9):
        counts["state"].inner.counts[:] = 0, 0, wrong
        said = f"state.state.inner.counts must lie in 0 ... 6, multiples of 3, got an entry outside it: 0 ... {wrong}"
        with pytest.raises(UsageError, match=said):
            player.set_state(counts)
    with pytest.raises(UsageError, match=r"^the state of test-bounded lacks 'state'$"):
        player.set_state({name: value for name, value in state.items() if name != "state"})
    assert player.rounds == 10
    Bounded.id = ""
    try:
        with pytest.raises(UsageError, match=r"^the state of Bounded must not have 'odd'$"):
            player.set_state(state | {"odd": 1})
    finally:
        Bounded.id = "test-bounded"


def test_errors_and_settings_are_shown_in_one_short_line() -> None:
    one_line, short = player_module.one_line, player_module._short
    assert one_line(ValueError("a\n  b")) == "a b"
    assert one_line(ValueError()) == "ValueError"
    assert one_line(ValueError("x" * 300)) == "x" * 300
    assert one_line(ValueError("x" * 301)) == "x" * 297 + "..."
    assert short(0.123456789) == "0.123457"
    assert short("x" * 38) == repr("x" * 38)
    assert short("x" * 39) == "'" + "x" * 36 + "..."
