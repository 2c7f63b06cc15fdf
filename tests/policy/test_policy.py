"""A policy in memory: choices, late feedback, classes that come and go, its file."""

from __future__ import annotations

import copy
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from banditlab import Policy, Problem, make_agent
from banditlab.errors import HorizonRequiredError, PlayerError, UnknownDecisionError, UsageError
from banditlab.policy.choice import Record
from banditlab.policy.container import packed, read
from banditlab.policy.core import CHOSEN_IN_PAYLOAD, Core, _payload
from banditlab.policy.growing import GROWING, grown
from banditlab.policy.training import best_setting, summary_line
from tests.policy.customers import new_rows

ROW = {"plan": "pro", "age": 31, "visits": 2.0}


@pytest.fixture
def policy(policy_file: Path) -> Policy:
    return Policy.load(policy_file)


# --------------------------------------------------------------------------------------------------- decide and feedback


def test_a_choice_is_a_class_of_the_table_with_the_distribution_it_was_drawn_from(policy: Policy) -> None:
    choice = policy.decide(ROW)
    assert choice.action in ("call", "none", "upgrade")
    assert list(choice.scores) == policy.classes
    assert choice.probability == choice.scores[choice.action]
    assert sum(choice.scores.values()) == pytest.approx(1.0, abs=1e-9)
    assert json.loads(choice.to_json()) == {
        "id": choice.id,
        "action": choice.action,
        "probability": choice.probability,
        "scores": choice.scores,
    }
    assert policy.decide(json.dumps(ROW)).action in policy.classes


def test_late_feedback_out_of_order_is_what_the_agent_itself_would_learn(policy: Policy) -> None:
    twin = copy.deepcopy(policy._core.agent)
    rows, rng = new_rows(30), np.random.default_rng(5)
    choices = [policy.decide(row) for row in rows]
    decisions = [(x := policy._encoder.encode(row), twin.act(x)) for row in rows]
    for i in rng.permutation(30)[:20].tolist():
        bit = bool(rng.random() < 0.5)
        policy.feedback(choices[i].id, bit)
        twin.learn(*decisions[i], bit)
    assert policy._core.agent.to_bytes() == twin.to_bytes()
    assert policy.describe()["feedback"] == 20


def test_a_context_that_is_none_is_refused_by_the_core_itself(policy: Policy) -> None:
    before = policy._core.agent.to_bytes()
    for x in (np.full(6, np.nan), np.full(6, 1e200), np.zeros(5), np.eye(6)[0] * 1.001 * policy._encoder.radius):
        with pytest.raises(UsageError, match="context"):
            policy._core.choose(x, None)
    record = policy._core.choose(policy._encoder.encode(ROW), None)
    before = policy._core.agent.to_bytes()
    for odd in (
        {"context": np.zeros(5)},
        {"probabilities": np.full(2, 0.5)},
        {"payload": np.zeros(1)},
        {"payload": None},
        {"action": 3},
        {"action": -1},
    ):
        with pytest.raises(UsageError, match="not made by this stackcb"):
            policy._core.learn(record._replace(**odd), True)
    banditron = Core(
        make_agent("banditron", Problem(2, 3, 1.0), seed=0, gamma=0.1), ["a", "b", "c"], np.random.default_rng(0)
    )
    for place in (-1.0, 3.0, 1e300, np.nan):
        with pytest.raises(UsageError, match="not made by this banditron"):
            banditron.learn(Record(np.zeros(2), 0, np.full(3, 1 / 3), False, np.array([place]), 0), True)
    for place in (0.0, 2.0):
        banditron.learn(Record(np.zeros(2), 0, np.full(3, 1 / 3), False, np.array([place]), 0), True)
    assert policy._core.agent.to_bytes() == before


def test_feedback_counts_once_and_is_a_bit(policy: Policy) -> None:
    choice = policy.decide(ROW)
    before = policy._core.agent.to_bytes()
    for wrong in ("no", "1", None, 2, float("nan"), [True]):
        with pytest.raises(UsageError, match="correct must be True, False, 1 or 0"):
            policy.feedback(choice.id, wrong)  # type: ignore[arg-type]
    for unknown in ("", "f" * 32, None, 7, ["x"], {}):
        with pytest.raises(UnknownDecisionError, match="is open"):
            policy.feedback(unknown, True)  # type: ignore[arg-type]
    assert policy._core.agent.to_bytes() == before
    policy.feedback(choice.id, np.True_)  # type: ignore[arg-type]
    with pytest.raises(UnknownDecisionError, match="already has feedback"):
        policy.feedback(choice.id, True)


def test_many_rows_are_decided_or_none(policy: Policy) -> None:
    twin = copy.deepcopy(policy._core)
    with pytest.raises(UsageError, match="age"):
        policy.decide_many([ROW, {"plan": "pro", "age": "old", "visits": 1}])
    assert policy._core.decisions == twin.decisions
    choices = policy.decide_many([ROW] * 3)
    assert [c.action for c in choices] == [
        twin.classes[twin.choose(policy._encoder.encode(ROW), None).action] for _ in range(3)
    ]
    refused = policy.feedback_many([(choices[0].id, True), ("unknown", True), (choices[1].id, "no")])  # type: ignore[list-item]
    assert [why is None for why in refused] == [True, False, False]


@pytest.mark.parametrize(
    "row", ["no json", "[1]", 7, None, [("plan", "pro")], {"plan": "pro"}, {"age": 1, "visits": 2}]
)
def test_a_row_that_is_none_is_one_line(policy: Policy, row: Any) -> None:
    with pytest.raises(UsageError) as error:
        policy.decide(row)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("visits", [1e200, 1e300, -1e308, 5e-324])
def test_a_row_beyond_all_of_the_table_is_decided(policy: Policy, visits: float) -> None:
    choice = policy.decide({"plan": "never seen", "age": 10**6, "visits": visits})
    policy.feedback(choice.id, False)
    assert np.isfinite(list(policy.decide(ROW).scores.values())).all()


def test_the_oldest_open_decision_is_given_up(policy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITLAB_MAX_PENDING", "3")
    policy = Policy.load(policy_file)
    ids = [policy.decide(ROW).id for _ in range(4)]
    with pytest.raises(UnknownDecisionError, match="older than the last 3 open decisions"):
        policy.feedback(ids[0], True)
    for name in reversed(ids[1:]):
        policy.feedback(name, True)


def test_the_agent_s_own_verbs_decide_and_learn_the_same(policy: Policy) -> None:
    """Kernels are called on the state held, past `act` and `learn`: the numbers are theirs, whoever puts another state in."""
    core, rows = policy._core, new_rows(40, 11)
    twin = copy.deepcopy(core.agent)
    other = copy.deepcopy(core.agent).get_state()
    for i, row in enumerate(rows):
        x = policy._encoder.encode(row)
        mine, its = core.choose(x, None), twin.act(x)
        assert (mine.action, mine.explored) == (its.action, its.explored)
        assert mine.probabilities.tobytes() == its.probabilities.tobytes()
        assert mine.payload.tobytes() == its.payload.tobytes()
        core.learn(mine, i % 2 == 0)
        twin.learn(x, its, i % 2 == 0)
        assert mine.probabilities.tobytes() == its.probabilities.tobytes()
        if i == 20:
            for agent in (core.agent, twin):
                agent.set_state(copy.deepcopy(other))
    assert core.agent.to_bytes() == twin.to_bytes()


def test_an_agent_with_verbs_of_its_own_is_asked_by_them() -> None:
    from banditlab.agents import Banditron
    from banditlab.policy.direct import is_direct

    class Other(Banditron):
        def _decide(self, view: Any, u: Any) -> Any:
            return super()._decide(view, u)._replace(explored=True)

    problem, rng = Problem(2, 3, 1.0), np.random.default_rng
    assert is_direct(Banditron(problem, rng(0), gamma=0.1))
    odd = Other(problem, rng(0), gamma=0.1)
    assert not is_direct(odd)
    core = Core(odd, ["a", "b", "c"], rng(0))
    assert core.choose(np.zeros(2), None).explored is True
    with pytest.raises(UsageError, match="another class cannot replace it"):  # as far as is known of its payload
        core.mask(["a"])


def test_an_agent_that_checks_nothing_gets_no_context_outside_the_ball() -> None:
    class Careless:
        problem = Problem(2, 3, 1.0)

        def act(self, context: Any) -> Any:
            raise AssertionError

    core = Core(Careless(), ["a", "b", "c"], np.random.default_rng(0))  # type: ignore[arg-type]
    for context in ([0.8, 0.8], [0.1, 0.1, 0.1]):
        with pytest.raises(UsageError, match="context"):
            core.choose(np.array(context), None)


def test_a_choice_tells_the_classes_of_its_own_time(policy: Policy) -> None:
    choice = policy.decide(ROW)
    scores = choice.scores
    policy.feedback(choice.id, True)
    policy.add_class("gift")
    assert choice.scores == scores
    assert list(scores) == ["call", "none", "upgrade"]
    assert choice.id in repr(choice)
    with pytest.raises(AttributeError):
        choice.more = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "change",
    [
        {"context": np.full(6, 10.0)},
        {"context": np.full(6, np.nan)},
        {"probabilities": np.array([np.nan, 0.5, 0.5])},
        {"probabilities": np.array([5.0, 5.0, 5.0])},
        {"probabilities": np.array([0.0, 0.5, 0.5]), "action": 0},
        {"payload": np.zeros(1)},
        {"payload": None},
        {"generation": 1},
        {"probabilities": np.array([0.5, 0.5, 1.5e-4])},
        {"context": np.float32},
        {"payload": np.float32},
    ],
)
def test_an_open_decision_that_cannot_be_is_refused_with_the_file(
    policy: Policy, tmp_path: Path, change: dict[str, Any]
) -> None:
    choice = policy.decide(ROW)
    seq, at, record = policy._open[choice.id]
    values = {name: new(getattr(record, name)) if new is np.float32 else new for name, new in change.items()}
    policy._open[choice.id] = (seq, at, record._replace(**values))
    policy.save(tmp_path / "bad")
    with pytest.raises(UsageError, match=r"bad: not a policy's file: .*(the|open) (decision|context)") as error:
        Policy.load(tmp_path / "bad")
    assert "\n" not in str(error.value)


# ------------------------------------------------------------------------------------------------------------------ classes


def test_the_distribution_among_allowed_classes_is_the_one_reported_and_played(policy: Policy) -> None:
    core, x = policy._core, policy._encoder.encode(ROW)
    p = copy.deepcopy(core).choose(x, None).probabilities
    mask = core.mask(["call", "upgrade"])
    assert mask is not None
    twin, counts = copy.deepcopy(core), np.zeros(3)
    for _ in range(600):
        record = twin.choose(x, mask)
        np.testing.assert_allclose(record.probabilities, np.where(mask, p, 0) / p[mask].sum(), rtol=1e-12)
        counts[record.action] += 1
    q = record.probabilities
    assert (np.abs(counts - 600 * q) <= 4.5 * np.sqrt(600 * q * (1 - q))).all()
    choice = policy.decide(ROW, allowed=["upgrade"])
    assert (choice.action, choice.probability) == ("upgrade", 1.0)
    policy.feedback(choice.id, True)


def test_where_the_agent_gives_allowed_classes_nothing_they_are_equal() -> None:
    core = Core(make_agent("linucb", Problem(2, 3, 1.0), seed=0), ["a", "b", "c"], np.random.default_rng(0))
    actions = set()
    for _ in range(20):
        action, q = core._cut(0, np.array([1.0, 0.0, 0.0]), np.array([False, True, True]))
        assert q.tolist() == [0.0, 0.5, 0.5]
        actions.add(action)
    assert actions == {1, 2}
    tiny = np.array([1.0, 5e-324, 0.0])
    assert core._cut(0, tiny, np.array([False, True, True])) == (1, pytest.approx([0.0, 1.0, 0.0]))
    assert core._cut(2, tiny, np.array([False, True, True]))[0] == 1  # nor is a class of probability 0 chosen
    drawn = [core._cut(1, np.ones(3) / 3, np.array([False, True, True]))[0] for _ in range(20)]
    assert set(drawn) == {1}


def test_a_payload_is_an_array_of_numbers_or_none() -> None:
    agent, array = make_agent("uniform", Problem(2, 3, 1.0), seed=0), np.zeros(2)
    assert _payload(agent, None) is None
    assert _payload(agent, array) is array
    for odd in ({"a": 1}, [1.0], np.zeros((1, 2)), np.zeros(2, np.float32)):
        with pytest.raises(PlayerError, match="uniform: a logged payload must be an array of numbers"):
            _payload(agent, odd)


@pytest.mark.parametrize("allowed", [[], ["other"], "call", [None], [["call"]], 3, ["retired"]])
def test_allowed_must_name_classes(policy: Policy, allowed: Any) -> None:
    policy.add_class("retired")
    policy.retire_class("retired")
    with pytest.raises(UsageError):
        policy.decide(ROW, allowed=allowed)


@pytest.mark.parametrize("id_", CHOSEN_IN_PAYLOAD)
def test_an_agent_that_keeps_numbers_of_its_choice_cannot_be_overruled(id_: str) -> None:
    core = Core(make_agent(id_, Problem(2, 3, 1.0), seed=0, gamma=0.1), ["a", "b", "c"], np.random.default_rng(0))
    assert core.mask(["a", "b", "c"]) is None
    with pytest.raises(UsageError, match="another class cannot replace it"):
        core.mask(["a", "b"])
    with pytest.raises(UsageError, match="another class cannot replace it"):
        core.retire("a")
    with pytest.raises(UsageError, match="another class cannot replace it"):
        core.set_floor(0.1)
    core.set_floor(0.0)
    assert not core.retired


def test_a_class_comes_and_goes(policy: Policy) -> None:
    early = policy.decide(ROW)
    policy.add_class("gift")
    assert policy.classes == ["call", "none", "upgrade", "gift"]
    agent = policy._core.agent.to_bytes()
    policy.feedback(early.id, True)  # recorded: it was decided among three
    assert policy._core.agent.to_bytes() == agent
    for _ in range(30):
        choice = policy.decide(ROW, allowed=["gift", "call"])
        policy.feedback(choice.id, choice.action == "gift")
    assert policy.decide(ROW).scores["gift"] > 0.5
    late = policy.decide(ROW, allowed=["gift"])
    policy.retire_class("gift")
    assert policy.decide(ROW).scores["gift"] == 0.0
    before = policy._core.agent.to_bytes()
    policy.feedback(late.id, True)
    assert policy._core.agent.to_bytes() != before
    policy.add_class("gift")
    assert policy.classes[-1] == "gift"
    for name in ("gift", 7, None, float("nan")):
        with pytest.raises(UsageError):
            policy.add_class(name)  # type: ignore[arg-type]


def test_a_name_of_another_type_is_told_from_the_class() -> None:
    numbers = Core(make_agent("uniform", Problem(2, 3, 1.0), seed=0), [1, 2, 2.5], np.random.default_rng(0))
    texts = Core(make_agent("uniform", Problem(2, 2, 1.0), seed=0), [f"{10**57}", "True"], np.random.default_rng(0))
    for core, name, message in (
        (numbers, "1", "no class is called '1'; did you mean the number 1?"),
        (numbers, "2.5", "no class is called '2.5'; did you mean the number 2.5?"),
        (texts, 10**57, f"no class is called {10**57}; did you mean the text '{10**57}'?"),  # 60 characters
        (texts, True, "no class is called True; did you mean the text 'True'?"),
    ):
        with pytest.raises(UsageError) as error:
            core.place(name)
        assert str(error.value) == message


def test_the_last_class_stays(policy: Policy) -> None:
    policy.retire_class("call")
    policy.retire_class("none")
    with pytest.raises(UsageError, match="the last class"):
        policy.retire_class("upgrade")
    with pytest.raises(UsageError, match="is already retired"):
        policy.retire_class("none")
    with pytest.raises(UsageError, match="no class is called 'nonee'; did you mean 'none'"):
        policy.retire_class("nonee")


GAMMA = {"banditron": {"gamma": 0.1}}
SKETCH = {"second_order": "sketch", "sketch_size": 4}
CASES = [(id_, K, GAMMA.get(id_, {})) for id_ in GROWING for K in (3, 8, 9)]
CASES += [(id_, 3, SKETCH) for id_ in ("fastcb", "linucb", "lints")]
CASES += [(id_, 3, {"second_order": "diagonal"}) for id_ in ("fastcb", "linucb")] + [
    ("fastcb", 3, {"oracle": "b-grid"})
]


@pytest.mark.parametrize(
    ("id_", "K", "settings"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (case != ("fastcb", 3, {}))) for case in CASES],
)
def test_a_grown_agent_knows_what_it_knew_and_nothing_of_the_new_class(
    id_: str, K: int, settings: dict[str, Any]
) -> None:
    d, rng = 5, np.random.default_rng(K)
    agent, X = make_agent(id_, Problem(d, K, 1.0), seed=0, **settings), rng.uniform(-0.4, 0.4, (60, d))
    for x in X:
        decision = agent.act(x)
        agent.learn(x, decision, decision.action == int(x[0] > 0))
    wide = grown(agent)
    fresh = type(agent)(Problem(d, K + 1, 1.0), np.random.default_rng(0), **agent.params())
    for x in X[:10]:
        old, new, untaught = (copy.deepcopy(a) for a in (agent, wide, fresh))
        assert new.rng.bit_generator.state == old.rng.bit_generator.state
        a, b, c = old.act(x), new.act(x), untaught.act(x)
        z, w, v = (_scores(*each) for each in ((old, a), (new, b), (untaught, c)))
        np.testing.assert_allclose(w[:, :K], z[:, :K], rtol=1e-12, atol=1e-14)  # eight classes are read at a time
        if id_ != "stackcb":  # which stacks what experts say of the new class as of all others
            np.testing.assert_allclose(w[:, K], v[:, K], rtol=1e-12, atol=1e-14)
        best = np.argmax(b.probabilities)  # the new class, about which nothing is known, or whichever it was
        assert best in (K, np.argmax(a.probabilities)) or id_ in ("lints", "ovr-perceptron", "banditron", "uniform")
        new.learn(x, b, True)


def _scores(agent: Any, decision: Any) -> Any:
    """Return what the agent read of its classes in the last `act`, one row for each set of models."""
    state, K = agent.state, agent.problem.n_classes
    if hasattr(state, "oracle"):
        return decision.payload.reshape(-1, K)
    if hasattr(state, "scratch"):  # stackcb: every expert's margins
        return state.scratch.z[: (len(state.stack.theta) - 1) * K].reshape(-1, K)
    if hasattr(state, "q"):  # linucb, lints, confidit: the mean is overwritten by an index
        return state.q[None]
    return state.z[None] if hasattr(state, "z") else np.zeros((1, K))


@pytest.mark.slow
@pytest.mark.parametrize(("K", "settings"), [(2, {}), (3, {"second_order": "diagonal"})])
def test_stackcb_learns_its_memory_again_where_its_models_do_not_lie_class_by_class(
    K: int, settings: dict[str, Any]
) -> None:
    agent, rng = make_agent("stackcb", Problem(3, K, 1.0), seed=0, **settings), np.random.default_rng(0)
    for x in rng.uniform(-0.5, 0.5, (2600, 3)):
        decision = agent.act(x)
        agent.learn(x, decision, decision.action == int(x[0] > 0))
    wide = grown(agent)
    assert wide.diagnostics()["rounds_since"] == 2000
    X = rng.uniform(-0.5, 0.5, (300, 3))
    assert np.mean([np.argmax(wide.act(x).probabilities) == int(x[0] > 0) for x in X]) > 0.9
    assert grown(wide).problem.n_classes == K + 2


def test_other_agents_do_not_grow() -> None:
    for id_, settings in (("pnewtron", {"gamma": 0.1}), ("exploration", {"gamma": 0.1}), ("boosted-exploration", {})):
        with pytest.raises(UsageError, match="does not support another class"):
            grown(make_agent(id_, Problem(2, 3, 1.0), seed=0, **settings))


# ---------------------------------------------------------------------------------------------------------------- the file


def test_a_saved_policy_goes_on_where_it_stood(policy: Policy, tmp_path: Path) -> None:
    waiting = [policy.decide(row) for row in new_rows(5)]
    policy.add_class("gift")
    policy.retire_class("call")
    late = policy.decide(ROW)
    policy.save(tmp_path / "p")
    again = Policy.load(tmp_path / "p")
    again.save(tmp_path / "q")
    assert (tmp_path / "p").read_bytes() == (tmp_path / "q").read_bytes()
    for one in (policy, again):
        one.feedback(late.id, True)
        one.feedback(waiting[2].id, False)
    assert policy._core.agent.to_bytes() == again._core.agent.to_bytes()
    a, b = policy.decide(ROW), again.decide(ROW)
    assert (a.action, a.scores) == (b.action, b.scores)
    assert policy.describe() == again.describe()


def test_a_flipped_bit_is_one_line_or_changes_nothing(policy_file: Path, tmp_path: Path) -> None:
    data = bytearray(policy_file.read_bytes())
    bad, noticed = tmp_path / "bad.policy", list[str]()
    for at in range(0, len(data), len(data) // 150):
        data[at] ^= 1 << at % 8
        bad.write_bytes(data)
        data[at] ^= 1 << at % 8
        try:
            assert packed(read(bad)) == data  # a date of the zip's directory, for instance
        except UsageError as error:
            noticed.append(str(error))
    assert all(line.startswith(f"{bad}: ") and "\n" not in line for line in noticed)
    assert len(noticed) > 100
    for length in (0, 1, 100, len(data) // 2, len(data) - 1):
        bad.write_bytes(data[:length])
        with pytest.raises(UsageError, match=r"bad\.policy: "):
            Policy.load(bad)


def crafted(file: Path, **changes: Any) -> bytes:
    """Return a policy's file with arrays replaced, taken out (None) or changed (a function); `head` stands for the header."""
    with np.load(file) as members:
        arrays = {name: members[name] for name in members.files}
    for name, change in changes.items():
        key = {"head": "header"}.get(name, name)
        found = change(arrays[key].item()) if callable(change) else change
        arrays[key] = np.array(found) if isinstance(found, bytes) else found
    target = io.BytesIO()
    np.savez(target, **{name: array for name, array in arrays.items() if array is not None})
    return target.getvalue()


def head(**changes: Any) -> Any:
    return lambda data: json.dumps({**json.loads(data), **changes}).encode()


def trained(**changes: Any) -> Any:
    return lambda data: head(trained=json.loads(data)["trained"] | changes)(data)


@pytest.mark.parametrize(
    "changes",
    [
        {"head": b"{"},
        {"head": head(classes=["a", "b"])},
        {"head": head(classes=["a", "a", "b"])},
        {"head": head(classes=["a", "b", 3])},
        {"head": head(classes=["a", "b", None])},
        {"head": head(agent="uniform")},
        {"head": head(agent="perceptron")},
        {"head": head(agent="os.system")},
        {"head": head(retired=[0, 1, 2])},
        {"head": head(retired=[-1])},
        {"head": head(retired=[3])},
        {"head": head(generation=-1)},
        {"head": head(uid="../x")},
        {"head": head(rng={"value": 1})},
        {"head": head(more=1)},
        {"head": head(format=2)},
        {"head": trained(seed=float("inf"))},
        {"head": trained(expected_mistakes=float("nan"))},
        {"head": trained(settings={"gamma": [float("inf")]})},
        {"head": lambda data: trained(settings={"gamma": 77.5})(data).replace(b"77.5", b"1e999")},
        {"head": lambda data: trained(expected_mistakes=77.5)(data).replace(b"77.5", b"1e999")},
        {"head": trained(rows=-1)},
        {"head": trained(mistakes=-1)},
        {"head": trained(constant_mistakes="many")},
        {"head": trained(more=1)},
        {"head": head(trained={})},
        {"head": head(player={})},
        {"head": head(waiting=[{}])},
        {"head": head(waiting=[{"id": "a", "action": 0, "generation": 0, "explored": None, "payload": False}])},
        {"head": None},
        {"encoder": np.frombuffer(b"{}", np.uint8)},
        {"encoder": np.frombuffer(b"\x80\x04\x95", np.uint8)},
        {"encoder": None},
        {"state.more": np.zeros(2)},
        {"open.0.x": np.zeros(2)},
        {"evil": np.zeros(2)},
    ],
    ids=[f"crafted-{number}" for number in range(36)],
)
def test_a_crafted_file_is_one_line(policy_file: Path, tmp_path: Path, changes: Any) -> None:
    bad = tmp_path / "bad.policy"
    bad.write_bytes(crafted(policy_file, **changes))
    with pytest.raises(UsageError, match=r"bad\.policy: ") as error:
        Policy.load(bad)
    assert "\n" not in str(error.value)


def test_what_crafts_the_files_above_crafts_a_good_one(policy_file: Path, tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(crafted(policy_file))
    assert Policy.load(tmp_path / "good").decide(ROW).action in ("call", "none", "upgrade")


def test_a_file_that_cannot_be_written_leaves_the_old_one(policy: Policy, policy_file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        policy.save(tmp_path / "no" / "p")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="cannot be written"):
        policy.save(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]
    with pytest.raises(UsageError, match="cannot be read"):
        Policy.load(tmp_path / "none")


@pytest.mark.slow
def test_a_fresh_process_decides_with_the_package_alone(policy_file: Path) -> None:
    code = (
        f"from banditlab import Policy; p = Policy.load({str(policy_file)!r}); c = p.decide({ROW!r}); p.feedback(c.id, 1);"
        "import sys; print(c.action, sorted({'starlette', 'sqlalchemy', 'pickle5', 'skops'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split()[0] in ("call", "none", "upgrade")
    assert out.stdout.split()[1:] == ["[]"]


def test_the_parts_of_a_file_are_those_of_the_policy(policy: Policy, policy_file: Path) -> None:
    parts = read(policy_file)
    assert parts.trained["rows"] == 200
    assert parts.core.agent.to_bytes() == policy._core.agent.to_bytes()
    assert "K=3" in repr(policy)
    policy.close()
    with pytest.raises(UsageError, match="closed"):
        policy.decide(ROW)


# ---------------------------------------------------------------------------------------------------------------- training


def test_training_refuses_what_cannot_be(table: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'fastcb'"):
        Policy.train(table, "offer", agent="fastbc")
    with pytest.raises(UsageError, match="observes the label"):
        Policy.train(table, "offer", agent="perceptron")
    with pytest.raises(HorizonRequiredError):
        Policy.train(table, "offer", agent="gaptron", settings={"gamma": "theory"})
    with pytest.raises(UsageError, match="leave out agent"):
        Policy.train(table, "offer", agent="fastcb", best_of="results")
    with pytest.raises(UsageError, match="no column 'ofer'"):
        Policy.train(table, "ofer")
    with pytest.raises(UsageError, match="seed"):
        Policy.train(table, "offer", seed=-1)


def test_the_summary_is_what_was_played(policy: Policy, table: Path) -> None:
    trained = policy.describe()["trained"]
    assert (trained["rows"], trained["agent"], trained["label"], trained["classes"]) == (200, "stackcb", "offer", 3)
    assert trained["mistakes"] < trained["constant_mistakes"]
    again = Policy.train(table, "offer")
    assert again._core.agent.to_bytes() == policy._core.agent.to_bytes()
    frame = Policy.train(pandas.read_csv(table), "offer")
    assert frame._core.agent.to_bytes() == policy._core.agent.to_bytes()
    other = Policy.train(table, "offer", seed=1)
    assert other._core.agent.to_bytes() != policy._core.agent.to_bytes()
    by_chance = Policy.train(table, "offer", agent="uniform").describe()["trained"]
    wrong = f"{by_chance['mistakes']} mistakes ({by_chance['mistakes'] / 200:.1%}, expected 66.7%); always the most"
    assert f"uniform on my.csv: 200 rows in one pass, {wrong}" in summary_line(by_chance)
    assert summary_line(by_chance).endswith("; by chance: 66.7%")


def test_costs_of_actions_are_trained_spent_and_described() -> None:
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"kind": rng.choice(["code", "chat"], 60), "a": rng.random(60), "b": rng.random(60)})
    frame["usd_a"] = frame["usd_b"] = rng.random(60)
    arms = {"arms": ["a", "b"], "right_above": 0.5, "costs": ["usd_a", "usd_b"], "per": "kind"}
    policy, cost = Policy.train(frame, agent="beta-ts", **arms), pytest.approx(frame["usd_a"].mean())
    assert policy.describe()["settings"] == {"per": [0, 1]}
    trained = policy.describe()["trained"]
    assert (trained["costs"], trained["mean_cost"]) == ({"a": cost, "b": cost}, cost)
    assert summary_line(trained).endswith(f"by chance: 50.0%; mean cost {trained['mean_cost']:.4g}")
    choices = policy.decide_many([{"kind": "chat"}] * 5)
    assert sum(policy.spent.values()) == pytest.approx(sum(choice.cost for choice in choices))
    assert Policy.train(frame, **arms).describe()["settings"]["complement"] is False  # both may be right


def test_a_miss_of_one_class_of_two_is_a_hit_of_the_other(policy: Policy, table: Path) -> None:
    two = pandas.read_csv(table)
    two["offer"] = np.where(two["offer"] == "call", "call", "none")
    without = Policy.new({"age": [18, 80]}, ["call", "gift"])  # what is right is not known
    found = [each.describe()["settings"]["complement"] for each in (policy, Policy.train(two, "offer"), without)]
    assert found == [True, True, False]


def played(table: Path, folder: Path, *agents: dict[str, Any]) -> Path:
    from banditlab import Sweep, make_spec

    environment = {"id": "banditlab/Table-v0", "path": str(table), "label": "offer"}
    spec = {"name": "t", "rounds": 150, "norm_bounds": [], "environment": [environment], "agent": list(agents)}
    Sweep(make_spec({**spec, "repetitions": 2}, "t")).run(folder, jobs=1)
    return folder


def test_the_best_of_a_comparison_is_trained(table: Path, tmp_path: Path) -> None:
    plain = played(table, tmp_path / "plain", {"id": "linucb"}, {"id": "uniform"})
    assert best_setting(plain) == ("linucb", {})
    grid = played(table, tmp_path / "grid", {"id": "linucb", "grid": {"confidence": [0.1, 50.0]}}, {"id": "uniform"})
    told = Policy.train(table, "offer", best_of=grid).describe()
    assert (told["agent"], told["settings"]["confidence"]) == ("linucb", 0.1)
    with pytest.raises(UsageError, match="none"):
        Policy.train(table, "offer", best_of=tmp_path / "none")


def test_a_table_in_another_encoding_trains_the_same_policy(table: Path, tmp_path: Path) -> None:
    text = table.read_text("utf-8").replace("team", "Équipe").replace("plan", "größe")
    trained = []
    for encoding, declared in (("utf-8", {}), ("utf-16", {}), ("cp1252", {"encoding": "cp1252"})):
        (tmp_path / f"{encoding}.csv").write_bytes(text.encode(encoding))
        trained.append(Policy.train(tmp_path / f"{encoding}.csv", "offer", **declared))
    assert len({policy._core.agent.to_bytes() for policy in trained}) == 1
    assert trained[1].describe()["columns"]["größe"] == ["free", "pro", "Équipe"]
    with pytest.raises(UsageError, match=r"not UTF-8 text .*--encoding"):
        Policy.train(tmp_path / "cp1252.csv", "offer")


# ------------------------------------------------------------------------------------------------- without labelled rows


def test_a_policy_without_rows_may_have_as_many_actions_as_examples() -> None:
    actions = ["call", "gift", "none", "voucher"]
    policy = Policy.new({"plan": ["free", "pro", "team"], "age": [18, 80]}, actions, agent="uniform")
    assert policy.classes == actions


def test_a_policy_of_columns_and_actions_learns_from_its_first_decision(tmp_path: Path) -> None:
    columns = {"plan": ["free", "pro", "team"], "age": [18, 80], "paid": [False, True]}
    policy = Policy.new(columns, ["gift", "call"], agent="linucb", floor=0.05, unanswered="wrong", after="1 h")
    said = policy.describe()
    assert (said["classes"], said["agent"], said["floor"], said["unanswered"]) == (
        ["call", "gift"],
        "linucb",
        0.05,
        "wrong",
    )
    assert (said["trained"]["rows"], said["trained"]["mistakes"], said["decisions"]) == (0, 0, 0)
    row = {"plan": "pro", "age": 95, "paid": True}
    for _ in range(60):
        choice = policy.decide(row)
        policy.feedback(choice.id, choice.action == "call")
    assert policy.decide(row).scores["call"] == pytest.approx(0.95)
    policy.add_class("voucher")
    policy.save(tmp_path / "p")
    Policy.load(tmp_path / "p").save(tmp_path / "q")
    assert (tmp_path / "p").read_bytes() == (tmp_path / "q").read_bytes()


@pytest.mark.parametrize(
    ("columns", "actions"),
    [
        ({"age": [1, 2]}, "call"),
        ({"age": [1, 2]}, ["call"]),
        ({"age": [1, 2]}, ["call", "call"]),
        ({"age": [1, 2]}, ["call", ["gift"]]),
        ({"age": [1, 1]}, ["call", "gift"]),
        ({"age": []}, ["call", "gift"]),
        ({"action": [1, 2]}, ["call", "gift"]),
        ({"plan": [["free"], ["pro"]]}, ["call", "gift"]),
        ({}, ["call", "gift"]),
        (["age"], ["call", "gift"]),
    ],
)
def test_columns_and_actions_that_are_none_are_one_line(columns: Any, actions: Any) -> None:
    with pytest.raises(UsageError) as error:
        Policy.new(columns, actions)
    assert "\n" not in str(error.value)
    odd = not isinstance(columns, dict) or "action" in columns or isinstance(actions, str)
    assert str(error.value).startswith("columns must map names to examples") == odd


def test_what_makes_no_policy_says_what_does(policy_file: Path, tmp_path: Path) -> None:
    for given in ((), (str(policy_file),)):
        with pytest.raises(UsageError, match=r"create a policy with Policy\.train, Policy\.new, Policy\.load"):
            Policy(*given)  # type: ignore[arg-type]
    log = tmp_path / "e.db"
    Policy.open(policy_file, log).close()
    with pytest.raises(UsageError, match=r"e\.db: a policy's log, not its file; use Policy\.resume\(.*e\.db'\)"):
        Policy.load(log)
