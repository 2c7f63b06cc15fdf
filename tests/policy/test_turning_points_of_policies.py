"""Where a policy's rules turn, on both sides: its file, its core, its log, what is logged as bytes, pictures, the API."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import sqlite3
import struct
import time
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sqlalchemy import select

from banditlab import Policy, Problem, make_agent
from banditlab.agents.banditron import Banditron
from banditlab.agents.uniform import Uniform
from banditlab.errors import LogError, PlayerError, UsageError
from banditlab.players import saved
from banditlab.players.inputs import TOLERANCE
from banditlab.policy import container, core, training
from banditlab.policy.confidence import sequence
from banditlab.policy.core import Core
from banditlab.policy.events import COLUMNS, Decided, checksum, event_of, from_bytes, row_of, to_bytes
from banditlab.policy.log import SNAPSHOTS, EventLog
from banditlab.policy.openapi import schema
from banditlab.policy.picture import draw_status
from banditlab.policy.policy import SNAPSHOT_EVERY
from banditlab.policy.status import LogStatus, Plays, _bins, _plays
from tests.policy.customers import new_rows
from tests.policy.test_log import settle

ROW = {"plan": "pro", "age": 31, "visits": 2.0}


@pytest.fixture
def policy(policy_file: Path) -> Policy:
    return Policy.load(policy_file)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "events.db"


# ---------------------------------------------------------------------------------------------------------------- the file


def changed_head(file: Path, **changes: Any) -> bytes:
    """Return a policy's file whose header says something else."""
    with np.load(file) as members:
        arrays = {name: members[name] for name in members.files}
    head = json.loads(arrays.pop("header").item()) | changes
    return saved.packed(head, arrays)


@pytest.mark.parametrize(
    ("changes", "taken"),
    [
        ({}, True),
        ({"retired": [0, 2]}, True),
        ({"retired": [3]}, False),
        ({"retired": [0, 0]}, False),
        ({"classes": ["a", "b", "b"]}, False),
        ({"classes": [math.nan, 1.0, 2.0]}, False),
        ({"classes": [0.0, 1.0, 2.0]}, True),
        ({"decisions": "1"}, False),
        ({"decisions": -1}, False),
        ({"answered": -1}, False),
        ({"right": -1}, False),
        ({"decisions": 7, "answered": 5, "right": 3}, True),
    ],
)
def test_what_the_head_of_a_file_may_say(policy_file: Path, changes: dict[str, Any], taken: bool) -> None:
    data = changed_head(policy_file, **changes)
    if not taken:
        with pytest.raises(UsageError, match="not a policy's file"):
            container.unpacked(data, "t")
        return
    found = container.unpacked(data, "t").core
    assert sorted(found.retired) == changes.get("retired", [])
    assert (found.decisions, found.answered, found.right) == tuple(
        changes.get(name, 0) for name in ("decisions", "answered", "right")
    )


def test_a_file_says_nothing_of_the_hour(policy_file: Path) -> None:
    with zipfile.ZipFile(policy_file) as file:
        assert {info.date_time for info in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_two_classes_are_enough_for_a_policy(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0] * 5, "y": [0, 1] * 10})
    Policy.train(frame, "y", agent="uniform").save(tmp_path / "two")
    again = Policy.load(tmp_path / "two")
    assert again.classes == [0, 1]
    again.warm()
    assert again.describe()["decisions"] == 0


def open_decision(**change: Any) -> Any:
    """Return what is read of a file with one open decision at d = 2, K = 3, something of it changed."""
    one: dict[str, Any] = {"action": 1, "x": np.zeros(2), "p": np.full(3, 1 / 3), "payload": np.zeros(4)} | change
    arrays = {f"open.0.{name}": one[name] for name in ("x", "p", "payload") if one[name] is not None}
    waiting = container.Waiting(
        id="n", action=one["action"], generation=0, explored=None, payload=one["payload"] is not None
    )
    record = container._record(0, waiting, arrays, 2)
    assert arrays == {}
    return record


@pytest.mark.parametrize("change", [{}, {"action": 0}, {"action": 2}, {"payload": None}])
def test_open_decisions_that_can_be(change: dict[str, Any]) -> None:
    record = open_decision(**change)
    assert (record.action, record.generation, record.explored) == (change.get("action", 1), 0, None)
    assert (record.payload is None) == ("payload" in change)


@pytest.mark.parametrize(
    "change",
    [
        {"x": np.zeros(3)},
        {"x": np.zeros((1, 2))},
        {"x": np.zeros(2, np.float32)},
        {"p": np.full((1, 3), 1 / 3)},
        {"p": np.full(3, 1, np.int64)},
        {"payload": np.zeros((1, 4))},
        {"payload": np.zeros(4, np.float32)},
        {"action": -1},
        {"action": 3},
    ],
)
def test_open_decisions_that_cannot_be(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="its open decision 0 is none"):
        open_decision(**change)


@pytest.mark.parametrize("change", [{"action": 1.0}, {"action": True}, {"explored": "no"}, {"id": 3}])
def test_an_open_decision_has_its_types(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        container.Waiting(**{"id": "n", "action": 1, "generation": 0, "explored": None, "payload": False} | change)


def test_names_of_one_kind_stay_and_of_several_become_texts() -> None:
    assert container.class_names([np.int64(1), 2]) == [1, 2]
    assert container.class_names([np.str_("a"), "b"]) == ["a", "b"]
    assert container.class_names([1, "a"]) == ["1", "a"]
    assert container.class_names([1, 2.5, "a"]) == ["1", "2.5", "a"]


# ---------------------------------------------------------------------------------------------------------------- the core


def small(id_: str = "banditron", K: int = 3, d: int = 2, radius: float = 1.0) -> Core:
    settings = {"gamma": 0.1} if id_ == "banditron" else {}
    return Core(
        make_agent(id_, Problem(d, K, radius), seed=0, **settings), list("abcdefghijklm")[:K], np.random.default_rng(0)
    )


@pytest.mark.parametrize("radius", [1.0, 3.0])
def test_contexts_as_long_as_the_radius_are_decided_and_longer_ones_are_none(radius: float) -> None:
    one = small(radius=radius)
    for factor in (0.0, 1.0, 1.0 + 0.5 * TOLERANCE):
        assert one.choose(np.array([radius * factor, 0.0]), None).action in (0, 1, 2)
    for factor in (1.0 + 2.5 * TOLERANCE, 1.2, 2.9):
        with pytest.raises(UsageError, match="context"):
            one.choose(np.array([radius * factor, 0.0]), None)
    assert one.decisions == 3


@pytest.mark.parametrize(
    ("p", "is_one"),
    [
        ([1.0, 0.0], True),
        ([1.0 + 0.5e-4, -0.5e-4], True),
        ([1.0 + 1.5e-4, -1.5e-4], False),
        ([1.0 + 0.5e-4, 0.0], True),
        ([1.0 - 0.5e-4, 0.0], True),
        ([1.0 + 1.5e-4, 0.0], False),
        ([1.0 - 1.5e-4, 0.0], False),
        ([0.0, 1.0], False),
        ([0.5, 0.5], True),
    ],
)
def test_what_is_a_distribution_of_a_class_that_was_played(p: list[float], is_one: bool) -> None:
    assert core._is_distribution(np.array(p), 0) is is_one


def test_only_numbers_in_a_row_are_a_payload_that_is_logged() -> None:
    agent = small().agent
    assert core._payload(agent, None) is None
    row = np.zeros(2)
    assert core._payload(agent, row) is row
    for odd in (np.zeros((1, 2)), np.zeros(2, np.float32), [0.0], "x"):
        with pytest.raises(PlayerError, match="a payload that is logged is an array of numbers"):
            core._payload(agent, odd)


class Told:
    """A generator whose one uniform is given."""

    def __init__(self, u: float) -> None:
        self.u = u

    def random(self) -> float:
        return self.u


def test_another_class_is_drawn_where_the_agent_s_own_is_not_allowed() -> None:
    """By the cumulative shares; rounding of their sum makes the last allowed one of what is left."""
    one = small(K=4)
    p, mask = np.array([0.4, 0.2, 0.0, 0.4]), np.array([False, True, True, True])
    for u, action in ((0.0, 1), (0.33, 1), (0.34, 3), (0.99, 3), (1.0, 3)):
        one.rng = Told(u)  # type: ignore[assignment]
        found, q = one._cut(0, p, mask)
        assert found == action
        np.testing.assert_allclose(q, [0.0, 1 / 3, 0.0, 2 / 3])
    assert one._cut(3, p, mask)[0] == 3  # what the agent drew is kept where it may be
    assert one._cut(2, p, mask)[0] == 3  # but for a class of no probability


def test_classes_are_named_as_they_are_and_in_their_kind() -> None:
    one = small()
    assert one.place("b") == one.place(np.str_("b")) == 1
    for odd in ("d", 1, None, b"a", 1.0, True):
        with pytest.raises(UsageError, match="no class is called"):
            one.place(odd)
    assert one.mask(None) is one.mask(["a", "b", "c"]) is None
    mask = one.mask(["a"])
    assert mask is not None
    assert mask.tolist() == [True, False, False]
    truths = Core(make_agent("uniform", Problem(2, 2, 1.0), seed=0), [False, True], np.random.default_rng(0))
    assert truths.place(True) == 1
    for odd in (1, 1.0):
        with pytest.raises(UsageError, match="no class is called"):
            truths.place(odd)


def test_a_foreign_agent_s_choice_is_overruled_where_it_keeps_no_numbers_of_it() -> None:
    class Foreign(Banditron):
        """Written elsewhere: what its payload is nobody knows."""

    class Plain(Uniform):
        """Written elsewhere, without a payload."""

    generator = np.random.default_rng(0)
    kept = Core(Foreign(Problem(2, 3, 1.0), generator, gamma=0.1), ["a", "b", "c"], generator)
    with pytest.raises(UsageError, match="allowed: banditron keeps numbers of the class it chose"):
        kept.mask(["a"])
    free = Core(Plain(Problem(2, 3, 1.0), generator), ["a", "b", "c"], generator)
    assert free.choose(np.zeros(2), free.mask(["b"])).action == 1


def test_warming_teaches_nothing_in_one_feature_either() -> None:
    for one in (small(d=1), small("linucb", d=3, radius=0.01)):
        before = one.agent.to_bytes()
        one.warm()
        assert one.agent.to_bytes() == before
        assert (one.decisions, one.answered) == (0, 0)


def test_contexts_that_are_kept_cannot_be_written(policy: Policy) -> None:
    choice = policy.decide(ROW)
    [(_, record)] = policy._open.values()
    assert not record.context.flags.writeable
    assert len(choice.id) == 32
    assert policy.mark() == (0, 1, 0)


# ------------------------------------------------------------------------------------------------------------------- bytes


def test_numbers_beyond_a_gibibyte_are_refused() -> None:
    assert from_bytes(struct.pack("<BI", 1, 2**27)).shape == (2**27,)
    with pytest.raises(ValueError, match="no numbers"):
        from_bytes(struct.pack("<BI", 1, 2**27 + 1))
    places = struct.pack("<BI", 1, 4) + struct.pack("<I", 3) + struct.pack("<d", 2.5)
    assert from_bytes(places).tolist() == [0.0, 0.0, 0.0, 2.5]
    with pytest.raises(ValueError, match="no numbers"):
        from_bytes(places[:5] + struct.pack("<I", 4) + places[9:])


def test_a_checksum_is_that_of_the_values_in_a_row() -> None:
    assert checksum([3, "x", 0.5, None, b"\0\1", b"\2"]) == zlib.crc32(b"[3, 'x', 0.5, None, 2, 1]\0\1\2")


def test_an_action_that_is_no_class_is_damage(policy: Policy) -> None:
    record = policy._core.choose(policy._encoder.encode(ROW), None)
    for action, good in ((0, True), (2, True), (3, False), (-1, False)):
        row = row_of(Decided(1, "f" * 32, 0.0, record, None))
        row["action"] = action
        row["crc"] = checksum([row[name] for name in COLUMNS])
        if good:
            found = event_of(row, "t")
            assert isinstance(found, Decided)
            assert found.record.action == action
        else:
            with pytest.raises(LogError, match="its action is no class"):
                event_of(row, "t")


# --------------------------------------------------------------------------------------------------------------------- logs


def test_a_log_keeps_two_snapshots(policy_file: Path, log: Path) -> None:
    with Policy.open(policy_file, log, snapshot_every=3) as policy:
        assert policy._log is not None
        assert policy._log.last() == (0, 0.0)
        assert policy._log.head().uid == container.read(policy_file).uid
        for i in range(11):
            policy.decide(ROW)
            settle(policy)
            assert policy._kept == 3 * ((i + 1) // 3)
        assert policy._log.last()[0] == 11
        assert policy._log.rows(select(SNAPSHOTS.c.seq).order_by(SNAPSHOTS.c.place)) == [(6,), (9,)]
    db = sqlite3.connect(log)
    assert db.execute("SELECT format FROM head").fetchall() == [(1,)]
    assert db.execute("SELECT seq FROM snapshots ORDER BY seq").fetchall() == [(9,), (11,)]
    db.close()


def test_a_policy_that_did_nothing_writes_no_snapshot_when_it_is_closed(
    policy_file: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Policy.open(policy_file, log).close()
    policy, kept = Policy.open(policy_file, log), []
    monkeypatch.setattr(policy, "_keep", lambda seq, parts: kept.append(seq))
    policy.close()
    assert kept == []
    policy = Policy.open(policy_file, log)
    policy.decide(ROW)
    monkeypatch.setattr(policy, "_keep", lambda seq, parts: kept.append(seq))
    policy.close()
    assert kept == [1]


@pytest.mark.parametrize(("back", "told"), [(0.5, False), (1.0, False), (1.5, True)])
def test_a_clock_is_behind_by_more_than_a_second(
    policy_file: Path, log: Path, monkeypatch: pytest.MonkeyPatch, back: float, told: bool
) -> None:
    with Policy.open(policy_file, log) as policy, warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for now in (2.0**31, 2.0**31 - back):
            monkeypatch.setattr(time, "time", lambda now=now: now)
            policy.decide(ROW)
    assert [str(each.message).partition(": ")[2] for each in found] == (
        [f"the clock went back by {back:.0f} s; events keep the later time"] if told else []
    )


def test_defaults_of_logs_and_of_training(policy_file: Path, log: Path) -> None:
    assert SNAPSHOT_EVERY == 10_000
    assert inspect.signature(Policy.open).parameters["snapshot_every"].default == 10_000
    for function in (training.train, training.trained):
        assert inspect.signature(function).parameters["seed"].default == 0
    with Policy.open(policy_file, log) as policy:
        assert policy._most == 10_000
    with pytest.raises(UsageError, match="leave out agent"):
        Policy.train("t.csv", "y", settings={"sharpness": 3.0}, best_of="results")


def test_a_file_of_feedback_from_before_a_snapshot(policy_file: Path, log: Path) -> None:
    with Policy.open(policy_file, log, snapshot_every=4) as policy:
        ids = [policy.decide(row).id for row in new_rows(4)]
    with Policy.open(policy_file, log) as policy:
        policy.feedback(ids[1], True)
        later = policy.decide(ROW).id
        policy.feedback(later, False)
        before = policy._core.agent.to_bytes()
        log_file = log.parent / "copy.db"
        source = sqlite3.connect(log)
        target = sqlite3.connect(log_file)
        source.backup(target)
        source.close()
        target.close()
    with Policy.open(policy_file, log_file) as again:
        assert again._core.agent.to_bytes() == before
        assert again.describe()["right"] == 1


def test_the_summary_in_a_line() -> None:
    told = {
        "agent": "fastcb", "file": "my.csv", "rows": 1250, "classes": 4, "mistakes": 331, "expected_mistakes": 300.0,
        "constant_mistakes": 900,
    }  # fmt: skip
    assert training.summary_line(told) == (
        "fastcb on my.csv: 1,250 rows played once, 331 mistakes (26.5%, expected 24.0%); always the most frequent class: "
        "72.0%; by chance: 75.0%"
    )


# ------------------------------------------------------------------------------------------------------- status and picture


def status(n: int, **changes: Any) -> LogStatus:
    rng = np.random.default_rng(0)
    mistakes = (rng.random(n) < 0.3).astype(float)
    plain: dict[str, Any] = {
        "source": "log.db", "agent": "fastcb", "trained": {"rows": 1250, "mistakes": 331}, "decisions": 2 * n,
        "feedback": n, "left": 2 * n, "since": 0.0, "until": 10.0, "delays": np.append(rng.exponential(50.0, n - 1), 0.0),
        "mistakes": mistakes, "share": 0.3, "low": 0.2, "high": 0.4, "drift": 17, "plays": [Plays("a", 1, 1.0, 0.0)],
        "bins": _bins(np.array([0.1, 0.1, 0.96]), np.array([0.0, 1.0, 1.0])),
    }  # fmt: skip
    return LogStatus(**(plain | changes))


def test_plays_and_what_was_to_be_expected() -> None:
    halves = [(0, to_bytes(np.array([0.5, 0.5]))), (1, to_bytes(np.array([0.25, 0.75])))]
    one, two, three = _plays(halves, ["a", "b", "c"], "t")
    assert [(p.name, p.plays) for p in (one, two, three)] == [("a", 1), ("b", 1), ("c", 0)]
    assert (one.expected, two.expected, three.expected) == (0.75, 1.25, 0.0)
    assert one.deviation == two.deviation == pytest.approx(math.sqrt(0.25 + 0.1875))
    assert three.deviation == 0.0
    with pytest.raises(LogError, match="a decision is damaged"):
        _plays([(3, halves[0][1])], ["a", "b", "c"], "t")


def test_a_status_is_fixed_and_told_as_json() -> None:
    found = status(20, share=math.nan, drift=None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.decisions = 3  # type: ignore[misc]
    told = json.loads(json.dumps(found.to_dict()))
    assert (told["share"], told["decisions"], told["drift"]) == (None, 40, None)
    assert [(one["low"], one["n"]) for one in told["bins"]] == [(0.0, 2), (0.95, 1)]
    assert told["plays"] == [{"name": "a", "plays": 1, "expected": 1.0, "deviation": 0.0}]
    assert not {"delays", "mistakes"} & set(told)


def drawn(found: LogStatus, path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Figure, dict[str, Any]]:
    figures: list[tuple[Figure, dict[str, Any]]] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, to, **given: figures.append((self, given)))
    draw_status(found, path)
    return figures[0]


def test_the_picture_by_the_data_on_its_artists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = status(60)
    figure, given = drawn(found, tmp_path / "a.svg", monkeypatch)
    first, second, third = figure.axes
    assert given == {"dpi": 150}
    assert figure.get_size_inches().tolist() == [10.0, 3.4]
    grid = first.get_subplotspec().get_gridspec()  # type: ignore[union-attr]
    assert (grid.nrows, grid.ncols, list(grid.get_width_ratios())) == (1, 3, [2, 1, 1])
    for ax in figure.axes:
        assert ax.get_ylim() == (0.0, 1.0)
        assert not ax.spines["top"].get_visible()
        assert not ax.spines["right"].get_visible()
        assert ax.xaxis.label.get_fontsize() == 9.0
    mean, low, high = sequence(found.mistakes)
    curve, training_, rise = first.lines
    np.testing.assert_array_equal(curve.get_xdata(), np.arange(1, 61))
    np.testing.assert_array_equal(curve.get_ydata(), mean)
    assert list(np.asarray(training_.get_ydata())) == [331 / 1250] * 2
    assert list(np.asarray(rise.get_xdata())) == [17, 17]
    assert training_.get_linewidth() == rise.get_linewidth() == 1.0
    [band] = first.collections
    corners = band.get_paths()[0].vertices
    for values in (low, high):
        assert {(t + 1.0, v) for t, v in enumerate(values.tolist())} <= {
            (x, y) for x, y in np.asarray(corners).tolist()
        }
    assert (band.get_alpha(), band.get_linewidth()[0]) == (0.2, 0.0)
    assert not first.get_legend().get_frame_on()  # type: ignore[union-attr]
    [steps] = second.lines
    delays = np.sort(found.delays)
    delays[0] = 1e-3  # at once: a logarithm has no 0
    np.testing.assert_array_equal(steps.get_xdata(), delays)
    np.testing.assert_allclose(np.asarray(steps.get_ydata()), np.arange(1, 61) / 120)
    assert second.get_xscale() == "log"
    assert third.get_xlim() == (0.0, 1.0)
    bars = [(bar.get_x(), bar.get_width(), bar.get_height(), bar.get_alpha()) for bar in third.patches]  # type: ignore[attr-defined]
    np.testing.assert_allclose(bars, [(0.0, 0.2, 0.5, 0.6), (0.95, 0.05, 1.0, 0.6)])
    texts = [(*text.get_position(), text.get_text(), text.get_fontsize(), text.get_rotation()) for text in third.texts]
    assert texts == [(0.1, 0.5, "2", 6.0, 90.0), (pytest.approx(0.975), 1.0, "1", 6.0, 90.0)]


def test_a_long_log_is_drawn_by_two_thousand_points_from_its_first_answer_to_its_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure, _ = drawn(status(9000, drift=None, trained={}), tmp_path / "a.png", monkeypatch)
    [curve], [steps] = figure.axes[0].lines, figure.axes[1].lines
    for line in (curve, steps):
        assert len(np.asarray(line.get_xdata())) == 2000
    assert (np.asarray(curve.get_xdata())[0], np.asarray(curve.get_xdata())[-1]) == (1, 9000)
    assert np.asarray(steps.get_ydata())[[0, -1]].tolist() == [1 / 18000, 0.5]


# -------------------------------------------------------------------------------------------------------------- the schema


def test_the_schema_says_what_the_server_takes() -> None:
    about = {"agent": "fastcb", "classes": ["a", "b"], "columns": {"x": "numeric", "t": "time", "k": list("uvwxyz")}}
    plain, guarded = schema(about, 7, False), schema(about, 7, True)
    assert "security" not in plain
    assert guarded["security"] == [{"token": []}]
    post = plain["paths"]["/decide"]["post"]
    assert post["requestBody"]["required"] is True
    assert set(post["responses"]) == {"200", "400", "401", "404", "409", "413", "503"}
    choice = post["responses"]["200"]["content"]["application/json"]["schema"]["properties"]
    assert choice["probability"] == {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
    asked = post["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert (asked["rows"]["maxItems"], asked["allowed"]["maxItems"]) == (7, 2)
    assert asked["row"]["properties"] == {
        "x": {"type": ["number", "boolean", "null"]},
        "t": {"type": ["string", "null"]},
        "k": {"type": ["string", "number", "boolean", "null"], "examples": ["u", "v", "w", "x", "y"]},
    }
    answers = plain["paths"]["/feedback"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert answers["properties"]["feedback"]["maxItems"] == 7


def test_one_writer_s_log_is_closed_only_once(policy_file: Path, log: Path) -> None:
    policy = Policy.open(policy_file, log)
    policy.close()
    policy.close()
    with pytest.raises(UsageError, match="the policy is closed"):
        policy.feedback("f" * 32, True)
    with pytest.raises(UsageError, match="the policy is closed"):
        policy.decide(ROW)


def test_a_password_is_in_no_message() -> None:
    pytest.importorskip("psycopg", reason="the extra postgres")
    assert inspect.signature(EventLog).parameters["write"].default is True
    with pytest.raises(LogError, match="the log cannot be used") as error:
        EventLog("postgresql://tester:secret@127.0.0.1:9/postgres")  # where nobody listens
    assert "tester" in str(error.value)
    assert "secret" not in str(error.value)
