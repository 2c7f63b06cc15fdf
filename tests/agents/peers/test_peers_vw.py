"""Vowpal Wabbit under our interface against Vowpal Wabbit called as its users call it."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.agents.peers.vw import EXACT, VW, _known
from banditlab.errors import UsageError
from banditlab.problem import Problem

pyvw = pytest.importorskip("vowpalwabbit.pyvw", reason='Vowpal Wabbit is missing: pip install -e ".[peers]"')

EXPLORATIONS = ["epsilon", "bag", "cover", "squarecb", "regcb", "regcbopt"]


def make(K, d, **settings):
    return VW(Problem(d, K, 1.0), np.random.default_rng(7), **settings)


def lines(names, constant=""):
    """Return what writes a context as a line of text, and with a label in front of it."""

    def context(x):
        return "| " + " ".join(f"{name}:{value!r}" for name, value in zip(names, x.tolist()) if value) + constant

    return context


def own_loop(agent, X, y, workspace, line, right=0.0):
    """Play the agent, and Vowpal Wabbit beside it on lines of text; return both sequences of probabilities.

    The right class costs `right`, a wrong one 1 more.
    """
    ours, theirs = [], []
    for x, label in zip(X, y):
        decision = agent.act(x)
        p = np.array(workspace.predict(line(x)))
        a, cost = decision.action, right + float(decision.action != label)
        workspace.learn(f"{a + 1}:{cost}:{decision.probabilities[a]} {line(x)}")
        agent.learn(x, decision, decision.action == label)
        ours.append(decision.probabilities)
        theirs.append(p / p.sum())
    return np.array(ours), np.array(theirs)


@pytest.mark.parametrize(
    ("exploration", "costs"), [*((exploration, "0/1") for exploration in EXPLORATIONS), ("epsilon", "-1/0")]
)
def test_equals_the_library_s_own_loop(stream, exploration, costs):
    """The same indices, as text: only the parsing of decimals (single precision) may differ."""
    K, d = 5, 6
    X, y = stream(K, d, 300)
    agent = make(K, d, exploration=exploration, costs=costs)
    arguments = [*agent.arguments(), "--random_seed", str(agent._seed)]
    names = [str(8 * j) for j in range(d)]  # 8: the power of two above K
    ours, theirs = own_loop(
        agent, X, y, pyvw.Workspace(arg_list=arguments), lines(names, f" {8 * d}:1"), {"0/1": 0.0, "-1/0": -1.0}[costs]
    )
    agree = np.abs(ours - theirs).max(axis=1) < 1e-4
    assert agree.mean() > 0.98  # a near tie of two costs may be settled otherwise
    assert np.ptp(ours, axis=0).max() > 0.1


@pytest.mark.parametrize("K", [2, 3, 4, 5, 8, 9])
def test_equals_a_user_s_loop_with_hashed_names(stream, K):
    """`--cb_explore K --squarecb` on named features, Vowpal Wabbit's own constant, a table where few names collide."""
    d = 6
    X, y = stream(K, d, 200)
    workspace = pyvw.Workspace(f"--cb_explore {K} --squarecb -b 24 --quiet")
    names = [f"feature_{j}" for j in range(d)]
    ours, theirs = own_loop(make(K, d, exploration="squarecb"), X, y, workspace, lines(names))
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert np.ptp(ours, axis=0).max() > 0.1


def test_the_default_is_cb_explore_at_its_defaults(stream):
    K, d = 3, 5
    X, y = stream(K, d, 300)
    workspace = pyvw.Workspace(f"--cb_explore {K} -b 24 --quiet")
    names = [f"feature_{j}" for j in range(d)]
    ours, theirs = own_loop(make(K, d), X, y, workspace, lines(names))
    assert (np.abs(ours - theirs).max(axis=1) < 1e-6).mean() > 0.98
    extremes = [0.05 / K, 1 - 0.05 + 0.05 / K]  # between them: equal costs share
    np.testing.assert_allclose([ours.min(), ours.max()], extremes, atol=1e-6)


@pytest.mark.parametrize(
    ("exploration", "cost_type"),
    [*((e, "mtr") for e in EXPLORATIONS), ("epsilon", "dr"), ("bag", "dr"), ("cover", "dr")],
)
def test_no_two_weights_share_a_place(stream, play, exploration, cost_type):
    """A table 64 times as large gives the same probabilities to the last bit."""
    K, d = 4, 63  # d + 1 and S powers of two: the table has no room to spare

    class Large(VW):
        def arguments(self):
            words = super().arguments()
            at = words.index("--bit_precision") + 1
            words[at] = str(int(words[at]) + 6)
            return words

    X, y = stream(K, d, 150)
    traces = [
        play(cls(Problem(d, K, 1.0), np.random.default_rng(7), exploration=exploration, cost_type=cost_type), X, y)
        for cls in (VW, Large)
    ]
    np.testing.assert_array_equal(traces[0].p_true, traces[1].p_true)


def test_every_class_has_weights_of_its_own(stream, play):
    K, d = 5, 11
    X, y = stream(K, d, 400)
    agent = make(K, d, gamma=1.0)
    play(agent, X, y)
    bits = int(agent.arguments()[agent.arguments().index("--bit_precision") + 1])
    places = [i for i in range(2**bits) if agent._vw.get_weight(i) != 0.0]
    assert places == [8 * j + k for j in range(d + 1) for k in range(K)]


@pytest.mark.parametrize("exploration", ["regcb", "regcbopt"])
def test_regcb_gets_the_range_of_its_costs(exploration):
    def flags(costs):
        arguments = make(3, 2, exploration=exploration, costs=costs).arguments()
        return arguments[arguments.index("--mellowness") + 2 :][:4]

    assert flags("-1/0") == ["--cb_min_cost", "-1.0", "--cb_max_cost", "0.0"]
    assert "--cb_min_cost" not in flags("0/1")


@pytest.mark.parametrize("exploration", ["squarecb", "regcb", "regcbopt"])
def test_some_explorations_know_one_cost_type(exploration):
    with pytest.raises(UsageError, match=f"cost_type must be 'mtr' with exploration = '{exploration}', got 'dr'"):
        make(3, 5, exploration=exploration, cost_type="dr")


@pytest.mark.parametrize(
    ("settings", "changed"),
    [
        ({}, {"gamma": 0.3}),
        ({}, {"learning_rate": 0.05}),
        ({}, {"cost_type": "dm"}),
        ({"exploration": "bag"}, {"policies": 2}),
        ({"exploration": "cover"}, {"policies": 2}),
        ({"exploration": "cover"}, {"gamma": 0.5}),
        ({"exploration": "squarecb"}, {"sharpness": 100.0}),
        ({"exploration": "squarecb"}, {"growth": 0.25}),
        ({"exploration": "regcb"}, {"mellowness": 0.001}),
        ({"exploration": "regcbopt"}, {"mellowness": 10.0}),
    ],
)
def test_every_setting_reaches_the_library(stream, play, settings, changed):
    X, y = stream(3, 5, 300)
    one, other = (play(make(3, 5, **case), X, y) for case in (settings, settings | changed))
    assert not np.array_equal(one.p_true, other.p_true)


def test_learns(stream, play):
    X, y = stream(3, 8, 3000, noise=0.0)
    trace = play(make(3, 8), X, y)
    assert trace.correct[-1000:].mean() > 0.75


@pytest.mark.parametrize("exploration", EXACT)
def test_continues_exactly(continues, stream, exploration):
    X, y = stream(3, 5, 200)
    for cut in (0, 90):
        continues(lambda: make(3, 5, exploration=exploration), X, y, cut)


@pytest.mark.parametrize("settings", [{"exploration": "bag"}, {"exploration": "cover"}, {"cost_type": "dr"}])
def test_refuses_to_save_what_would_not_continue(tmp_path, settings):
    with pytest.raises(UsageError, match="vw: Vowpal Wabbit's model file does not contain the whole state"):
        make(3, 5, **settings).save(tmp_path / "player.npz")


def test_bag_s_bootstrap_is_seeded_from_the_generator(stream, play):
    X, y = stream(3, 5, 300)

    def p_true(seed):
        return play(VW(Problem(5, 3, 1.0), np.random.default_rng(seed), exploration="bag"), X, y).p_true

    assert np.array_equal(p_true(1), p_true(1))
    assert not np.array_equal(p_true(1), p_true(2))


@pytest.mark.parametrize(
    ("K", "d", "settings", "bits"),
    [
        (4, 6, {}, 10),
        (4, 63, {}, 10),  # (63 + 1) 8 2 = 2^10
        (4, 64, {}, 11),
        (5, 63, {}, 10),
        (7, 127, {}, 11),
        (8, 63, {}, 11),
        (4, 63, {"exploration": "cover", "policies": 3}, 13),  # (63 + 1) 8 4 (3 + 1)
        (4, 63, {"exploration": "cover", "policies": 4}, 14),
        (4, 63, {"exploration": "bag", "policies": 1}, 12),
        (4, 63, {"exploration": "squarecb"}, 10),
    ],
)
def test_the_table_is_the_least_power_of_two_that_has_room_for_every_weight(K, d, settings, bits):
    arguments = make(K, d, **settings).arguments()
    assert arguments[arguments.index("--bit_precision") + 1] == str(bits)


HEAD = b"\x07\x00\x00\x009.10.0\x00version\x00"[:17]
OWN = HEAD + b"costsxxx" + (4).to_bytes(4, "little") + b" --cb_explore 3 -b 4\x00zzzz"
"""A model file as vw writes it, in small: costs seen at the places 17 to 25, bits of the table behind them, 4 here."""


def weight(place: int) -> bytes:
    """One weight of a model file: its place and three numbers."""
    return place.to_bytes(4, "little") + bytes(12)


@pytest.mark.parametrize(
    ("model", "taken"),
    [
        (OWN, True),
        (OWN + weight(0) + weight(15), True),
        (OWN + weight(16), False),  # 2^4 places
        (OWN + weight(3) + b"1", False),
        (OWN + weight(3)[:-1], False),
        (OWN[:17] + b"COSTSYYY" + OWN[25:], True),
        (OWN[:16] + b"X" + OWN[17:], False),
        (OWN[:25] + b"\x05" + OWN[26:], False),
        (OWN[:-5] + b"!" + OWN[-4:], False),
        (OWN[:-1] + b"!", False),
        (OWN[:-1], False),
        (b"", False),
    ],
)
def test_a_model_file_differs_from_our_own_in_costs_and_weights_only(model, taken):
    if taken:
        assert _known(OWN, model) == model
        return
    with pytest.raises(UsageError, match=r"^state\.model is not a model file of vw at these settings$"):
        _known(OWN, model)


@pytest.mark.parametrize("own", [b"\x08" + OWN[1:], OWN[:28]])
def test_a_version_whose_files_are_laid_out_otherwise_is_said_to_be_so(own):
    with pytest.raises(
        UsageError, match="this version of Vowpal Wabbit writes model files that banditlab cannot check"
    ):
        _known(own, OWN)


@pytest.mark.parametrize("model", [b"bytes", np.zeros(3), np.zeros((3, 1), np.uint8), np.zeros(3, np.int8)])
def test_a_model_that_is_no_row_of_bytes_is_refused(model):
    agent = make(3, 5)
    with pytest.raises(UsageError, match=r"^state\.model must be the bytes of a model file$"):
        agent.set_state(agent.get_state() | {"model": model})
