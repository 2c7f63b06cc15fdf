"""Saved players are data: whatever a file holds, nothing in it is run, and what kernels would trip over is refused."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from banditlab.agents.inverse_gap.fastcb import FastCB
from banditlab.agents.perceptron import Perceptron
from banditlab.agents.uniform import Uniform
from banditlab.errors import UsageError
from banditlab.forecasters.ftrl import FTRL
from banditlab.forecasters.kernel_aioli import KernelAIOLI
from banditlab.forecasters.ogd import OGD
from banditlab.numerics.limits import COUNT
from banditlab.players.player import Player
from banditlab.players.saved import Fields, Plain, decode, encode, fields_of, is_whole, packed, require, same, unpacked
from banditlab.problem import Problem
from banditlab.registry import Registry

PROBLEM = Problem(4, 3, 2.0, 400)


def made(cls: type[Player], K: int = 3, **settings: Any) -> Any:
    return cls(Problem(4, K, 2.0, 400), np.random.default_rng(1), **settings)


def opened(file: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    with np.load(file) as members:
        arrays = {name: members[name] for name in members.files}
    return json.loads(arrays.pop("header").item()), arrays


def refused(cls: type[Player], file: Path, head: Any, arrays: dict[str, Any]) -> str:
    """Return the one line, which names the file, by which it is refused."""
    text = head if isinstance(head, str) else json.dumps(head)
    np.savez(file, header=np.array(text.encode()), **arrays)
    with pytest.raises(UsageError) as caught:
        cls.load(file)
    said = str(caught.value)
    assert said.startswith(f"{file}: ")
    assert "\n" not in said
    return said


@pytest.fixture
def saved(tmp_path: Path) -> Callable[..., tuple[Path, dict[str, Any], dict[str, np.ndarray]]]:
    def save(cls: type[Player], K: int = 3, **settings: Any) -> tuple[Path, dict[str, Any], dict[str, np.ndarray]]:
        file = tmp_path / "player.npz"
        made(cls, K, **settings).save(file)
        return file, *opened(file)

    return save


# ------------------------------------------------------------------------------------------------- what came in, and does not


def test_a_generator_is_one_of_numpys(saved: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`np.random.test` runs pytest in the working folder, and with it a conftest.py that lies there."""
    file, head, arrays = saved(Perceptron)
    (tmp_path / "conftest.py").write_text("open('ran', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    for name in ("test", "seed", "Generator", "mtrand", "__loader__", "", None, ["PCG64"]):
        head["state"]["dict"]["rng"]["generator"]["bit_generator"] = name
        assert "state.rng is not a numpy generator" in refused(Perceptron, file, head, arrays)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "SFC64", "Philox", "MT19937"])
def test_every_generator_of_numpy_goes_on_where_it_stood(bits: str, tmp_path: Path) -> None:
    rng = np.random.Generator(getattr(np.random, bits)(3))
    rng.random(5), rng.integers(2**31, dtype=np.uint32)
    player = Perceptron(PROBLEM, rng)
    player.save(tmp_path / "p.npz")
    again = Perceptron.load(tmp_path / "p.npz")
    assert again.rng.random(700).tolist() == rng.random(700).tolist()


@pytest.mark.parametrize(
    ("bits", "path", "value"),
    [
        ("MT19937", ("state", "pos"), 625),  # numpy reads key[pos]
        ("MT19937", ("state", "pos"), -1),
        ("MT19937", ("state", "key"), [1] * 623),
        ("Philox", ("buffer_pos",), 5),
        ("Philox", ("buffer",), [0] * 3),
        ("PCG64", ("state", "state"), 2**128),
        ("PCG64", ("has_uint32",), 2),
        ("PCG64", ("has_uint32",), True),
        ("PCG64", ("state",), {"state": 1}),
        ("PCG64", ("state",), {"state": 1, "inc": 1, "more": 1}),
        ("PCG64", ("state",), [1, 1]),
        ("PCG64DXSM", ("uinteger",), 2**32),
        ("MT19937", ("state", "key"), [2**32] * 624),
        ("SFC64", ("state", "state"), [0.5] * 4),
        ("SFC64", ("state", "state"), [2**64] * 4),
    ],
)
def test_a_generators_state_is_one_it_can_have(bits: str, path: tuple[str, ...], value: Any, tmp_path: Path) -> None:
    file = tmp_path / "p.npz"
    Perceptron(PROBLEM, np.random.Generator(getattr(np.random, bits)(3))).save(file)
    head, arrays = opened(file)
    place = head["state"]["dict"]["rng"]["generator"]
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    assert f"{'.'.join(('state.rng', *path))} must " in refused(Perceptron, file, head, arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda A: A[:, :2],
        lambda A: A[:0],
        lambda A: A.astype(np.float32),
        lambda A: A.astype(A.dtype.newbyteorder()),
        lambda A: A[None],
        lambda A: A.astype(complex),
    ],
)
def test_arrays_are_as_the_constructor_makes_them(change: Any, saved: Any) -> None:
    file, head, arrays = saved(OGD)
    arrays["state.state.V"] = change(arrays["state.state.V"])
    refused(OGD, file, head, arrays)


@pytest.mark.parametrize("name", ["act", "learn", "problem", "norm_bound", "kernels", "_loop", "__class__", "state2"])
def test_nothing_but_the_state_is_replaced(name: str, saved: Any) -> None:
    file, head, arrays = saved(OGD)
    head["state"]["dict"][name] = {"value": 1.0}
    assert f"must not have {name!r}" in refused(OGD, file, head, arrays)
    player = made(OGD)
    with pytest.raises(UsageError, match=f"must not have '{name}'"):
        player.set_state({**player.get_state(), name: 1.0})


def test_the_state_is_whole_and_of_the_right_types(saved: Any) -> None:
    file, head, arrays = saved(Perceptron)
    state = head["state"]["dict"]
    for wrong in (
        {"rng": state["rng"]},
        {**state, "state": {"value": None}},
        {**state, "state": {"fields": {}}},
        {},
        [],
        None,
    ):
        refused(Perceptron, file, {**head, "state": {"dict": wrong}}, arrays)
    for odd in ({"fields": state}, {"items": []}):
        assert "the state is not a dict" in refused(Perceptron, file, {**head, "state": odd}, arrays)
    refused(Perceptron, file, head, {**arrays, "state.more": np.zeros(3)})
    refused(Perceptron, file, {**head, "more": 1}, arrays)
    refused(Perceptron, file, "[" * 100_000, arrays)
    refused(Perceptron, file, "9" * 100_000, arrays)


@pytest.mark.parametrize(
    "problem",
    [
        {"n_features": 10**9, "n_classes": 10**9},
        {"n_features": 10**6},
        {"n_features": 4.0},
        {"n_features": True},
        {"n_classes": 10**30},
        {"radius": "x"},
        {"radius": float("nan")},
        {"horizon": 0},
        {"horizon": 2.5},
    ],
)
def test_a_problem_is_one_and_not_larger_than_its_file(problem: dict[str, Any], saved: Any) -> None:
    file, head, arrays = saved(OGD)
    head["problem"] |= problem
    refused(OGD, file, head, arrays)


def test_a_file_is_plain_arrays_and_no_larger_than_it_is(saved: Any, tmp_path: Path) -> None:
    file, head, arrays = saved(Perceptron)
    mark = tmp_path / "ran"

    class Touch:
        def __reduce__(self) -> Any:
            return open, (str(mark), "w")

    pickled = io.BytesIO()
    np.save(pickled, np.array([Touch()], dtype=object), allow_pickle=True)
    huge = io.BytesIO()
    np.save(huge, np.zeros(3))
    members = {name: npy(array) for name, array in arrays.items()} | {
        "header": npy(np.array(json.dumps(head).encode()))
    }
    first = next(iter(arrays))
    for change, deflated in [
        ({first: pickled.getvalue()}, False),
        ({first: huge.getvalue().replace(b"(3,)", b"(9000000000000,)")}, False),
        ({first: huge.getvalue().replace(b"(3,)", b"(__import__('os').mkdir('ran'),)")}, False),
        ({first: npy(np.zeros(10**6))}, True),
        ({f"{first}.txt": b"x"}, False),
    ]:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED) as out:
            for name, content in (members | change).items():
                out.writestr(f"{name}.npy" if "." not in name[-4:] else name, content)
        with pytest.raises(UsageError, match="not a saved player"):
            Perceptron.load(file)
    assert not mark.exists()


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


# -------------------------------------------------------------------------------------------- what kernels index with


@pytest.mark.parametrize(
    "kind", ["agents", "forecasters", pytest.param("boosters", marks=pytest.mark.slow), "weak_learners"]
)
def test_every_integer_of_a_kernels_state_has_its_limits(kind: str) -> None:
    """Without one, a saved state could send compiled code anywhere."""
    looked_at = 0
    for entry in Registry().entries(kind):
        cls, trees = entry.load(), {"weak_learner": "hoeffding-tree", "n_learners": 2}
        if entry.origin != "banditlab" or cls.requires:
            continue
        for K in (3, 2):
            try:
                player = made(cls, K, **(trees if kind == "boosters" else {}))
            except Exception:
                continue
            looked_at += _looked_at(player)
            break
    assert looked_at >= {"agents": 20, "forecasters": 10, "boosters": 2, "weak_learners": 2}[kind]


def _looked_at(value: Any, above: dict[str, Any] | None = None) -> int:
    """Fail where a named tuple has an integer array without limits, or one that lies outside; return how many there are.

    `above` holds the limits that the tuple around it declares for its arrays.
    """
    if isinstance(value, Player):
        return sum(map(_looked_at, vars(value).values()))
    if isinstance(value, list):
        return sum(map(_looked_at, value))
    fields = fields_of(value)
    if fields is None:
        return 0
    integers = {name for name, array in fields.items() if isinstance(array, np.ndarray) and array.dtype.kind in "iu"}
    limits = (value.limits() if hasattr(value, "limits") else {}) | (above or {})
    assert integers <= set(limits), (type(value), integers)
    for name in integers:
        assert (fields[name] >= limits[name][0]).all(), (type(value), name)
        assert (fields[name] <= limits[name][1]).all(), (type(value), name)
    return len(integers) + sum(
        _looked_at(field, {k.removeprefix(f"{name}."): v for k, v in limits.items() if k.startswith(f"{name}.")})
        for name, field in fields.items()
    )


@pytest.mark.parametrize(
    ("cls", "K", "name", "value"),
    [
        (Uniform, 3, "state.state.K", 2**40),
        (Uniform, 3, "state.state.K", 4),
        (OGD, 3, "state.state.t", -1),
        (FastCB, 3, "state.state.winner", 2),
        (FastCB, 3, "state.state.oracle.inverses.point.place", 10**6),
        (FastCB, 3, "state.state.oracle.inverses.point.upto", -1),
        (KernelAIOLI, 2, "state.state.dual.n", 10**6),
        (KernelAIOLI, 2, "state.state.dual.n", -1),
    ],
)
def test_integers_out_of_range_are_refused(cls: type[Player], K: int, name: str, value: int, saved: Any) -> None:
    file, head, arrays = saved(cls, K)
    arrays[name][...] = value
    assert f"{name} must lie in" in refused(cls, file, head, arrays)


def test_arrays_that_grow_belong_together(saved: Any) -> None:
    file, head, arrays = saved(KernelAIOLI, 2)
    for name in ("s", "L", "X"):
        changed = {**arrays, f"state.state.dual.{name}": arrays[f"state.state.dual.{name}"][:-1]}
        refused(KernelAIOLI, file, head, changed)
    file, head, arrays = saved(FTRL)
    nan, one = np.full((1, 4), np.nan), np.zeros((1, 3))
    for X, C in [(np.zeros((2, 4)), np.zeros((3, 3))), (nan, one), (np.zeros((1, 5)), one)]:
        refused(FTRL, file, head, {**arrays, "state.past.X": X, "state.past.C": C})


# ------------------------------------------------------------------------------------------------------- saving, and labs


def test_an_earlier_file_stays_until_the_new_one_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "p.npz"
    made(Perceptron).save(file)
    before = file.read_bytes()

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match=r"p\.npz: cannot be written \(no space left\)"):
        made(Perceptron).save(file)
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == ["p.npz"]


class Notes(Player):
    """A lab's player whose Python state grows."""

    id = "notes"

    def __init__(self, problem: Problem, rng: np.random.Generator | None) -> None:
        super().__init__(problem, rng)
        self.seen: list[int] = []
        self.counts: dict[str, int] = {}
        self.last: Any = None
        self.sum, self.flag, self.word = 0, False, "a"


def test_a_labs_lists_and_tables_may_grow(tmp_path: Path) -> None:
    player = Notes(PROBLEM, None)
    player.seen, player.counts, player.last, player.sum = [1, 2], {"a": 3}, np.arange(3.0), 0.5  # type: ignore[assignment]
    player.save(tmp_path / "p.npz")
    again = Notes.load(tmp_path / "p.npz")
    assert (again.seen, again.counts, again.sum, again.rng) == ([1, 2], {"a": 3}, 0.5, None)
    assert again.last.tolist() == [0.0, 1.0, 2.0]
    require({"seen": [1, None], "sum": 1}, {"seen": ["x"], "sum": 2**63 - 1}, "state")


@pytest.mark.parametrize(
    ("name", "value"), [("sum", "x"), ("sum", True), ("sum", 2**63), ("flag", 1), ("word", 1), ("seen", "ab")]
)
def test_a_labs_numbers_texts_and_lists_stay_what_they_are(name: str, value: Any) -> None:
    player = Notes(PROBLEM, None)
    with pytest.raises(UsageError, match=f"^state.{name} must be "):
        player.set_state({**player.get_state(), name: value})
    assert getattr(player, name) == getattr(Notes(PROBLEM, None), name)


def test_what_is_encoded_is_decoded() -> None:
    arrays: dict[str, np.ndarray] = {}
    value = {"a": [1, 2.5, None, "x", True], "b": {"c": np.arange(3)}, "d": []}
    node = json.loads(json.dumps(encode(value, "state", arrays)))
    again = decode(node, "state", arrays)
    assert again["b"].pop("c").tolist() == [0, 1, 2]
    assert again == {"a": [1, 2.5, None, "x", True], "b": {}, "d": []}
    assert arrays == {}
    assert COUNT[1] == 2**53


def test_a_small_file_makes_no_player_of_more_than_16_mib_and_four_times_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = OGD(PROBLEM, None).to_bytes()
    for more, taken in ((0, True), (1, False)):
        least = 2**24 + 4 * len(data) + more
        monkeypatch.setattr(OGD, "least_bytes", classmethod(lambda cls, problem, settings, least=least: least))
        if taken:
            assert OGD.from_bytes(data).state.V.shape
        else:
            with pytest.raises(UsageError, match=rf"settings has at least 1\.68e\+07 bytes, the file has {len(data)}"):
                OGD.from_bytes(data)


# ------------------------------------------------------------------------------------------------ files, part by part


def zipped(members: dict[str, bytes]) -> bytearray:
    """Return a zip of members stored as they are."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return bytearray(out.getvalue())


class One(Plain):
    a: int


def refusal_of(data: bytes) -> str:
    """Return by which words a file is refused."""
    with pytest.raises((ValueError, zipfile.BadZipFile)) as caught:
        unpacked(bytes(data), One)
    return str(caught.value)


HEADER = npy(np.array(b'{"a": 1}'))


def test_members_that_are_packed_are_refused() -> None:
    data = zipped({"header.npy": HEADER})
    place = data.index(b"PK\x01\x02")
    for offset in (20, 24):  # sizes, stored and claimed
        changed = bytearray(data)
        changed[place + offset] -= 1
        assert refusal_of(changed) == "the members of the zip archive must be uncompressed and no larger than the file"
    large = bytearray(data)
    for offset in (20, 24):
        large[place + offset : place + offset + 4] = (len(data) + 1).to_bytes(4, "little")
    assert refusal_of(large) == "the members of the zip archive must be uncompressed and no larger than the file"


def test_arrays_are_numbers_of_this_machine_in_their_full_size() -> None:
    def refused_array(content: bytes) -> str:
        return refusal_of(zipped({"header.npy": HEADER, "x.npy": content}))

    plain = npy(np.zeros((2, 3)))
    for array in (np.zeros(2, ">f8"), np.zeros(2, complex), np.array("text"), np.zeros(2, "V3"), np.zeros(2, "M8[s]")):
        assert refused_array(npy(array)) == "the member 'x' is not an array of numbers"
    text = zipped({"header.npy": HEADER, "x.py": b"import os"})
    assert refusal_of(text) == "the member 'x.py' is not an array of numbers"
    for members in ({}, {"header.npy": npy(np.array([b'{"a": 1}']))}, {"header.npy": npy(np.array('{"a": 1}'))}):
        assert refusal_of(zipped(members)) == "it has no header"
    for shape in (b"(2, 4)", b"(-2,-3)", b"(-1, 6)", b"(9999999999999,)"):
        changed = plain.replace(b"(2, 3), ", shape + b",")
        assert changed != plain
        with pytest.raises((ValueError, MemoryError)):
            unpacked(bytes(zipped({"header.npy": HEADER, "x.npy": changed})), One)


def test_a_flipped_bit_is_noticed_or_changes_nothing() -> None:
    """Dates and marks of a zip's directory mean nothing here; all else has a checksum."""
    data = made(OGD).to_bytes()
    noticed = 0
    for at in range(0, 8 * len(data), 29):
        flipped = bytearray(data)
        flipped[at // 8] ^= 1 << at % 8
        try:
            assert OGD.from_bytes(bytes(flipped)).to_bytes() == data
        except UsageError:
            noticed += 1
    assert noticed > 0.8 * 8 * len(data) / 29
    assert is_whole(data)
    assert not any(is_whole(data[:length]) for length in range(0, len(data), 50))


def test_whatever_the_damage_a_file_is_whole_or_not() -> None:
    """Damage may claim that a member is locked, or that more bytes follow."""
    data, rng = packed({"a": 1}, {"x": np.arange(20.0)}), np.random.default_rng(0)
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= int(rng.integers(1, 256))
        assert is_whole(bytes(damaged)) in (True, False)
    locked = bytearray(data)
    for mark, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        locked[data.index(mark) + offset] |= 1
    assert is_whole(bytes(locked)) is False


class Pair(NamedTuple):
    """A named tuple as kernels have it: an array, a number that the settings make, something that may be None."""

    a: Any
    n: Any
    rest: Any = None


ARRAY, RNG = np.zeros(2), np.random.default_rng(0)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (ARRAY, 3.0, "an array float64 of shape"),
        (ARRAY, [0.0, 0.0], "an array float64 of shape"),
        (ARRAY, np.zeros(3), "an array float64 of shape"),
        (ARRAY, np.zeros(2, np.float32), "an array float64 of shape"),
        (RNG, 3, "a generator"),
        (3, RNG, "a number"),
        ({"a": 1}, [], "a table with the names 'a'"),
        ({}, [], "a table with the names ''"),
        ({"a": 1}, Fields(a=1), "a table with the names 'a'"),
        ({"a": 1, "b": 2}, {"a": 1}, "a table with the names 'a, b'"),
        ({"a": 1}, {"a": "x"}, "a number"),
        ([1.0], ["x"], "a number"),
        ([1, 2], Pair(1, 2), "a list of 2"),
        ([ARRAY], [ARRAY, ARRAY], "a list of 1"),
        ((1, 2), 3, "a list of 2"),
        ([1], "ab", "a list of 1"),
        (Pair(ARRAY, 2.0), Pair(ARRAY, 3.0), "2.0 for these settings"),
        (Pair(ARRAY, 2.0), Pair(ARRAY, 2.0, ARRAY), "None for these settings"),
        (Pair(ARRAY, "x"), Pair(ARRAY, "y"), "'x' for these settings"),
        (Pair(ARRAY, 2.0), Fields(a=ARRAY), "the fields a, n, rest"),
        (Pair(ARRAY, 2.0), Fields(a=ARRAY, n=2.0), "the fields a, n, rest"),  # a default stands for no field
        (Pair(ARRAY, 2.0), Fields(a=ARRAY, n=2.0, more=1), "the fields a, n, rest"),
        (Pair(ARRAY, 2.0), (ARRAY, 2.0, None), "the fields a, n, rest"),
        (None, Fields(a=1), "created in the constructor"),
        (True, 1, "True or False"),
        (1, True, "a number"),
        (1.0, "1", "a number"),
        (1.0, "x" * 58, f"a number, got {'x' * 58!r}"),
        (1.0, "x" * 59, f"a number, got '{'x' * 56}..."),
        ("a", 1, "a str"),
    ],
)
def test_what_may_not_stand_in_the_place_of_what_the_constructor_put_there(old: Any, new: Any, said: str) -> None:
    with pytest.raises(UsageError) as refusal:
        require(old, new, "state.x")
    assert f" must be {said}" in str(refusal.value)
    assert str(refusal.value).startswith("state.x")


def test_values_that_the_settings_make_are_the_same_up_to_rounding() -> None:
    equal = [(ARRAY, np.zeros(2)), ([1, "a"], (1, "a")), ({"a": 1}, {"a": 1}), (1.0, 1.0 + 9e-10), (np.nan, np.nan)]
    arrays = [(ARRAY, [0.0, 0.0]), (ARRAY, np.ones(2)), ([1, 2], [1, 3]), ([1, 2], [1]), ([1], {1})]
    tables = [({"a": 1}, {"a": 2}), ({"a": 1}, {"a": 1, "b": 2}), ({"a": 1}, [("a", 1)])]
    numbers = [(1, True), (1, 2), ("a", "b"), (1.0, 1.0 + 1.1e-9), (1.0, np.nan), (np.nan, 1.0)]
    assert [same(*pair) for pair in equal] == [True] * 5
    assert not any(same(*pair) for pair in [*arrays, *tables, *numbers])


ODD = [3, [1], {}, {"value": 1, "items": []}, {"array": "a"}, {"dict": 3}, {"items": 3}, {"value": [1]}, {"odd": 1}]


@pytest.mark.parametrize("node", ODD)
def test_a_node_that_is_no_encoded_value_is_a_value_error(node):
    with pytest.raises(ValueError, match="a is not an encoded value"):
        decode(node, "a", {})
