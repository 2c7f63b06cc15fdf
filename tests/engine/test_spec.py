"""Bad input gets one clear line that names the file, the key and what is allowed."""

from __future__ import annotations

import tomllib

import pytest

from banditlab.engine import Sweep, make_spec, read_spec
from banditlab.engine.describe import _canonical, describe_player, written_names
from banditlab.engine.spec_text import spec_to_toml, toml_value
from banditlab.engine.work import facts
from banditlab.errors import UsageError

GOOD = """
name = "small"
rounds = 100
repetitions = 2
norm_bounds = [1, 3]

[[environment]]
id = "banditlab/Logistic-v0"

[[agent]]
id = "banditron"
grid = { gamma = [0.1, 0.3] }
"""


def write(tmp_path, text):
    file = tmp_path / "spec.toml"
    file.write_text(text)
    return file


def one_line(tmp_path, text, overrides=None):
    """Return the error of reading and planning a spec: one line that names the file."""
    file = write(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        Sweep(read_spec(file, overrides), where=str(file))
    message = str(caught.value)
    assert "\n" not in message
    assert str(file) in message
    return message


def test_good_spec_plans_every_run(tmp_path):
    plan = Sweep(read_spec(write(tmp_path, GOOD))).plan
    assert len(plan.runs) == 4
    assert len({run.run_id for run in plan.runs}) == 4
    assert len(plan.streams()) == 2
    assert plan.spec.checkpoint_rounds() == [1, 2, 5, 10, 20, 50, 100]


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (("rounds = 100", "rouns = 100"), "did you mean 'rounds'"),
        (('id = "banditron"', 'id = "banditrom"'), "did you mean 'banditron'"),
        (("Logistic-v0", "Logistics-v0"), "did you mean 'banditlab/Logistic-v0'"),
        (("gamma = [0.1, 0.3]", "gama = [0.1]"), "did you mean 'gamma'"),
        (("rounds = 100", "rounds = = 3"), "not TOML"),
        (("gamma = [0.1, 0.3]", "gamma = [-0.1]"), "gamma must lie in [0, 1], got -0.1"),
        (("gamma = [0.1, 0.3]", "gamma = [1.5]"), "gamma must lie in [0, 1], got 1.5"),
        (("gamma = [0.1, 0.3]", 'gamma = ["0.1"]'), "gamma = '0.1' is not allowed; it must be float"),
        (("gamma = [0.1, 0.3]", "gamma = []"), "empty list"),
        (("gamma = [0.1, 0.3]", "gamma = 0.1"), "must be a list of values, for instance [0.1]"),
        (("gamma = [0.1, 0.3]", "gamma = [nan]"), "it must be finite (float)"),
        (("repetitions = 2", "checkpoints = [50, 500]"), "500 is beyond rounds = 100"),
        (("rounds = 100", "rounds = 0"), "rounds = 0"),
        (("repetitions = 2", "repetitions = 0"), "repetitions = 0"),
        (("norm_bounds = [1, 3]", "norm_bounds = [0]"), "greater than 0"),
        (("norm_bounds = [1, 3]", "norm_bounds = [-2.0]"), "greater than 0"),
        (("repetitions = 2", "checkpoints = [0, 5]"), 'must be "log" or a list of rounds'),
        (("repetitions = 2", 'checkpoints = "linear"'), 'must be "log" or a list of rounds'),
        (("repetitions = 2", "base_seed = -1"), "base_seed = -1: must be greater than or equal to 0"),
        (("repetitions = 2", "passes = 0"), "passes = 0: must be greater than or equal to 1"),
        (("repetitions = 2", "run_timeout = -1"), "run_timeout = -1: must be greater than or equal to 0"),
        (('name = "small"', 'name = "a/b"'), "names the results folder"),
        (("[[agent]]", "[[booster]]"), "no booster is called 'banditron'"),
        (('id = "banditron"', 'id = "banditron"\ngamma = 0.2'), "given twice"),
        (('id = "banditlab/Logistic-v0"', ""), "'environment.0.id' is missing"),
    ],
)
def test_bad_specs(tmp_path, edit, expected):
    assert edit[0] in GOOD
    assert expected in one_line(tmp_path, GOOD.replace(*edit))


def test_no_player(tmp_path):
    assert "nothing to run; add" in one_line(tmp_path, GOOD.split("[[agent]]")[0])


def test_the_same_run_twice(tmp_path):
    twice = GOOD.replace("[0.1, 0.3]", "[0.1, 0.1]")
    assert "requested twice" in one_line(tmp_path, twice)


@pytest.mark.parametrize("text", ["missing.toml", "."])
def test_no_such_file(tmp_path, text):
    with pytest.raises(UsageError, match=r"no such file|cannot be read"):
        read_spec(tmp_path / text)


def test_overrides(tmp_path):
    file = write(tmp_path, GOOD)
    spec = read_spec(file, ["rounds=7", "agent.0.grid.gamma=[0.5]", "name=other"])
    assert (spec.rounds, spec.agent[0].grid, spec.name) == (7, {"gamma": [0.5]}, "other")


@pytest.mark.parametrize("text", ["rounds", "=3", "agent.1.id=x", "agent.one.id=x", "rounds.deep=1"])
def test_bad_overrides(tmp_path, text):
    with pytest.raises(UsageError, match="--set"):
        read_spec(write(tmp_path, GOOD), [text])


def test_one_value_has_one_identity():
    def ids(gamma, norm_bounds):
        spec = make_spec(
            {
                "rounds": 50,
                "environment": [{"id": "banditlab/Logistic-v0", "norm_bound": norm_bounds}],
                "agent": [{"id": "banditron", "gamma": gamma}],
            },
            "test",
        )
        return [run.run_id for run in Sweep(spec).plan.runs]

    assert ids(1, 2) == ids(1.0, 2.0)
    assert ids(1, 2) != ids(0.5, 2)
    assert ids(1, 2) != ids(1, 3)


def test_minus_zero_is_zero():
    def run(gamma):
        spec = {
            "rounds": 5,
            "environment": [{"id": "banditlab/Logistic-v0"}],
            "agent": [{"id": "banditron", "gamma": gamma}],
        }
        return Sweep(make_spec(spec, "test")).plan.runs[0].run_id

    assert run(-0.0) == run(0.0) == run(0)


def exploration(**settings):
    agent = {"id": "exploration", "forecaster": "ogd", "gamma": 0.1} | settings
    spec = make_spec({"rounds": 50, "environment": [{"id": "banditlab/Logistic-v0"}], "agent": [agent]}, "test")
    return Sweep(spec).plan.runs[0]


def test_settings_pass_through_to_the_wrapped_player():
    plain, prefixed = exploration(norm_bound=3), exploration(**{"forecaster.norm_bound": 3})
    assert plain.run_id == prefixed.run_id != exploration(norm_bound=4).run_id
    assert plain.label == "exploration(ogd)"
    with pytest.raises(UsageError, match=r"'norm_bound' is given twice, once as forecaster\.norm_bound"):
        exploration(**{"norm_bound": 1, "forecaster.norm_bound": 3})
    with pytest.raises(UsageError, match="did you mean 'norm_bound'"):
        exploration(norm_bond=3)
    with pytest.raises(UsageError, match="did you mean 'folklore'"):
        exploration(forecaster="folklor")


def test_settings_of_an_inner_player_reach_it():
    run = exploration(forecaster="b-grid", member="folklore", size=3)
    assert run.label == "exploration(b-grid)"
    params = run.build_player(run.build_environment()).params()
    assert (params["member"], params["size"], params["gamma"]) == ("folklore", 3, 0.1)


def test_balls_join_every_players_own_norm_bound():
    spec = {
        "rounds": 50,
        "norm_bounds": [2],
        "environment": [{"id": "banditlab/Logistic-v0"}],
        "agent": [
            {"id": "exploration", "forecaster": "ogd", "gamma": 0.1, "grid": {"forecaster.norm_bound": [3, 30]}},
            {"id": "gaptron", "gamma": 0.1},
            {"id": "fastcb"},
        ],
    }
    assert Sweep(make_spec(spec, "test")).balls == (1.0, 2.0, 3.0, 30.0)  # Gaptron's default is 1, FastCB's a word
    assert Sweep(make_spec(spec | {"norm_bounds": []}, "test")).balls == ()


def test_a_default_written_down_is_the_same_run():
    def ids(**settings):
        spec = make_spec(
            {
                "rounds": 50,
                "environment": [{"id": "banditlab/Logistic-v0"}],
                "agent": [{"id": "banditron", **settings}],
            },
            "test",
        )
        return [run.run_id for run in Sweep(spec).plan.runs]

    assert ids() == ids(gamma=0.05)


def test_stream_id_ignores_rounds_and_players_seeds_ignore_each_other():
    def plan(**keys):
        base = {
            "rounds": 50,
            "environment": [{"id": "banditlab/Logistic-v0"}],
            "agent": [{"id": "banditron", "gamma": 0.1}],
        }
        return Sweep(make_spec(base | keys, "test")).plan.runs

    short, long = plan()[0], plan(rounds=500)[0]
    assert short.run_id != long.run_id
    assert short.stream_id == long.stream_id
    assert short.environment_seed() == long.environment_seed()
    more = plan(agent=[{"id": "uniform"}, {"id": "banditron", "gamma": 0.1}])
    assert short.run_id in {run.run_id for run in more}
    assert len({run.stream_id for run in more}) == 1
    draws = [run.player_generator().random() for run in more]
    assert draws[0] != draws[1]


def test_the_resolved_spec_can_be_run_again(tmp_path):
    spec = read_spec(write(tmp_path, GOOD))
    again = read_spec(write(tmp_path, spec_to_toml(spec, facts())))
    assert [r.run_id for r in Sweep(again).plan.runs] == [r.run_id for r in Sweep(spec).plan.runs]


@pytest.mark.parametrize(
    "value", ["😀 ä", 1, 1.5, True, 'a "quoted" \\ ü \n text', [1, [2.0, "x"]], {"a b": {"c": [1]}}, 1e-20]
)
def test_toml_value_reads_back(value):
    assert tomllib.loads(f"v = {toml_value(value)}")["v"] == value


SMALLEST = {"name": "s", "rounds": 1, "environment": [{"id": "banditlab/Logistic-v0"}], "agent": [{"id": "uniform"}]}


def test_what_a_spec_leaves_out() -> None:
    spec = make_spec(SMALLEST, "test")
    assert (spec.repetitions, spec.base_seed, spec.horizon_known, spec.run_timeout) == (1, 0, True, None)
    assert make_spec(SMALLEST | {"rounds": 100}, "test").checkpoint_rounds() == [1, 2, 5, 10, 20, 50, 100]


def test_b_and_gamma_name_settings_as_papers_do() -> None:
    """An alias gives the run its name would; what a player calls so itself is no alias; both are one too many."""
    named = {"norm_bound": 3.0, "gamma": 0.1, "forecaster": "ogd"}
    short = {"B": 3.0, "γ": 0.1, "forecaster": "ogd"}
    wanted = describe_player("agents", "exploration", named, "here")
    assert named.items() <= wanted["settings"].items()
    assert describe_player("agents", "exploration", short, "here") == wanted
    inner = {"forecaster.B": 3.0, "γ": 0.1, "forecaster": "ogd"}
    assert describe_player("agents", "exploration", inner, "here") == wanted
    assert written_names(short, wanted["settings"]) == named
    with pytest.raises(UsageError, match=r"here: 'norm_bound' is given twice, once as an alias \(B, γ\)"):
        describe_player("agents", "fastcb", {"B": 3.0, "norm_bound": 1.0}, "here")
    with pytest.raises(UsageError, match="unknown setting 'B'"):
        describe_player("agents", "linucb", {"B": 3.0}, "here")
    assert _canonical({"B": 1, "gamma": 2}, {"B": None, "norm_bound": None, "gamma": None}, "here") == {
        "B": 1,
        "gamma": 2,
    }
