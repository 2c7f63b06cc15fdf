"""Every registered player and environment passes its checks; the doors to them answer as they say."""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from banditlab.agents.banditron import Banditron
from banditlab.checks import CheckFailed, CheckResult, check_agent, check_file, check_id, run_checks
from banditlab.errors import UsageError
from banditlab.registry import Registry, registry

NEEDS = {"banditlab/Table-v0": ["path"], "banditlab/OpenML-v0": ["data_id"], "banditlab/Gymnasium-v0": ["name"]}

MAY_BE_EXCLUDED = {
    "bad_settings": {"has neither a gamma nor a norm_bound"},
    "only_the_bit": {"with K = 2 there is no other wrong label"},
    "label_symmetry": {"its forecasts depend on the seed"},
    "actions_do_not_matter": {"adaptive: the label may depend on earlier actions"},
    "steps_are_blocks": {"adaptive: it has no blocks"},
    "block_sizes": {"adaptive: it has no blocks"},
    "prefixes": {"adaptive: it has no blocks"},
}
"""A built-in subject is left out of a check for these reasons only."""

NO_KERNELS = {
    "forecast_paths": {"has no compiled path"},
    "both_paths": {"has no compiled path"},
    "only_the_bit": {"no compiled path: the loop passes the bit"},
}
GROWS = {
    "ftrl": "the leader depends on all distinct contexts so far",
    "kernel-aioli": "stores all contexts and a factor of their Gram matrix",
    "kernel-folklore": "stores contexts and a factor of their Gram matrix",
    "kernel-gaf": "stores contexts and a factor of their Gram matrix",
}
WITHOUT_KERNELS = {
    "aggregating", "aioli-direct", "folklore-direct", "ftrl", "gaf-fresh", "kernel-aioli", "kernel-folklore", "kernel-gaf",
}  # fmt: skip
"""Forecasters whose state grows, or that draw or solve in Python: no compiled loop can hold them."""
WITHOUT_BOUND = {
    "aggregating", "fourier-aioli", "fourier-folklore", "gaf", "gaf-fresh", "kernel-aioli", "kernel-folklore", "kernel-gaf",
}  # fmt: skip
"""Forecasters without a proved bound at their defaults: gamma = "theory" is refused around them."""


def allowed(name: str, reason: str, forecaster: str) -> bool:
    if reason in MAY_BE_EXCLUDED.get(name, set()):
        return True
    if name == "bounded_memory" and forecaster in GROWS:
        return reason in (GROWS[forecaster], f"{forecaster} {GROWS[forecaster]}")
    return forecaster in WITHOUT_KERNELS and reason in NO_KERNELS.get(name, set())


def assert_all_pass(found: Iterable[CheckResult], forecaster: str = "") -> None:
    results = list(found)
    assert [str(result) for result in results if result.status == "failed"] == []
    assert sum(result.status == "passed" for result in results) >= 8
    for result in results:
        if result.status == "excluded":
            assert allowed(result.name, result.reason, forecaster), result


def ids(kind: str) -> list[str]:
    return [entry.id for entry in Registry().entries(kind) if entry.origin == "banditlab"]


SMALLER = {"boosted-exploration": {"n_learners": 2, "weak_learner": "forecaster"}}
"""Settings in place of defaults that take too long: a hundred trees."""


PEERS = ("contextualbandits", "mabwiser", "vw")
"""Libraries of others whose import and kernels take longest; every agent around one of them plays in tests/agents."""


@pytest.mark.parametrize(
    "id_", [pytest.param(id_, marks=pytest.mark.slow) if id_.startswith(PEERS) else id_ for id_ in ids("agents")]
)
@pytest.mark.few(9)
def test_every_agent_passes(id_: str) -> None:
    for module in Registry().load("agents", id_).requires:
        pytest.importorskip(module, reason=f'{module} is missing: pip install -e ".[peers]"')
    assert_all_pass(check_id(id_, **SMALLER.get(id_, {})))


HEAVY = {
    "gaf",
    "gaf-fresh",
    "ons",
    "b-grid",
    "kernel-gaf",
    "kernel-folklore",
    "fourier-folklore",
    "folklore-direct",
    "aioli-direct",
    "aggregating",
    "fourier-aioli",
    "ftrl",
    "kernel-aioli",
}
"""Forecasters that compile or solve for long, and once more in the reduction."""
ITSELF = {"aioli-direct", "b-grid", "gaf", "ons"}
"""Those of them whose own checks take longer than ten seconds."""


@pytest.mark.parametrize(
    "forecaster", [pytest.param(id_, marks=pytest.mark.slow) if id_ in HEAVY else id_ for id_ in ids("forecasters")]
)
def test_the_exploration_reduction_passes_around_every_forecaster(forecaster: str) -> None:
    if forecaster in WITHOUT_BOUND:
        [refused] = check_id("exploration", forecaster=forecaster)
        assert f"a proved bound in nats, which {forecaster} does not have at these settings" in refused.reason
        assert_all_pass(check_id("exploration", forecaster=forecaster, gamma=0.1), forecaster)
    else:
        assert_all_pass(check_id("exploration", forecaster=forecaster), forecaster)


@pytest.mark.parametrize(
    "id_", [pytest.param(id_, marks=pytest.mark.slow) if id_ in ITSELF else id_ for id_ in ids("forecasters")]
)
@pytest.mark.few(3)
def test_every_forecaster_passes(id_: str) -> None:
    assert_all_pass(check_id(id_), id_)


@pytest.mark.parametrize("id_", [id_ for id_ in ids("envs") if id_ not in NEEDS])
def test_every_environment_passes(id_: str) -> None:
    assert_all_pass(check_id(id_))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "table.csv"
    rows = [f"{i % 7},{(i * i) % 5 - 2.5},{'abc'[i % 3]}" for i in range(90)]
    file.write_text("\n".join(["a,b,label", *rows]))
    return file


def test_a_table_passes(table: Path) -> None:
    assert_all_pass(check_id("banditlab/Table-v0", path=str(table), label="label"))


@pytest.mark.parametrize("id_", NEEDS)
def test_what_needs_settings_is_excluded_with_their_names(id_: str) -> None:
    [result] = check_id(id_)
    assert (result.name, result.status) == ("construction", "excluded")
    assert result.reason == f"needs settings without a default: {', '.join(NEEDS[id_])}"


# ---------------------------------------------------------------------------------------------------------- the doors


def test_an_unknown_id_gets_the_nearest_right_one() -> None:
    with pytest.raises(UsageError, match=r"^nothing is called 'bandtron'; did you mean 'banditron'\?$"):
        check_id("bandtron")


def test_settings_reach_the_constructor() -> None:
    [result] = run_checks(Banditron, gamma=7.0)
    assert result == CheckResult(
        "banditron", "construction", "failed", "cannot be built: UsageError: gamma must lie in [0, 1], got 7"
    )


def test_a_partial_is_checked_at_its_settings() -> None:
    results = run_checks(functools.partial(Banditron, gamma=0.5))
    assert {result.status for result in results} == {"passed"}
    assert {result.subject for result in results} == {"banditron"}


def test_a_factory_needs_a_kind() -> None:
    with pytest.raises(UsageError, match="a factory needs kind = 'agents', 'boosters', 'forecasters' or 'envs'"):
        run_checks(lambda problem, rng: Banditron(problem, rng))
    assert {r.status for r in run_checks(lambda problem, rng: Banditron(problem, rng), "agents")} == {"passed"}


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no kind is called 'agent'; did you mean 'agents'\?"):
        run_checks(Banditron, "agent")


def test_a_factory_of_something_else_fails() -> None:
    [result] = run_checks(lambda problem, rng: 3, "agents")
    assert result.reason == "the factory returned a int: it must return an Agent or a Forecaster"


def test_a_check_raises_when_it_is_called() -> None:
    class Unsummarised(Banditron):
        summary = ""

    first = next(iter(check_agent(Unsummarised)))
    assert first.name == "metadata"
    with pytest.raises(CheckFailed, match="summary is ''"):
        first()


def test_a_result_prints_as_one_line() -> None:
    assert str(CheckResult("me", "seeds", "failed", "why")) == "failed    me: seeds (why)"
    assert str(CheckResult("me", "seeds", "passed")) == "passed    me: seeds"


# -------------------------------------------------------------------------------------------------------------- files


def test_a_file_that_is_no_python_is_refused(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text("rounds = 3")
    with pytest.raises(UsageError, match=r"base\.toml: is not a Python file$"):
        check_file(tmp_path / "base.toml")


def test_a_file_is_checked_class_by_class(tmp_path: Path) -> None:
    file = tmp_path / "two.py"
    file.write_text(
        "from banditlab.agents.banditron import Banditron\n"
        "from banditlab.envs.logistic import Logistic\n"
        "class A(Banditron):\n    id = 'test-a'\n"
        "class E(Logistic):\n    id = 'test/E-v0'\n    summary = ''\n"
    )
    results = list(check_file(file))
    assert {result.subject for result in results} == {"test-a", "test/E-v0"}
    assert [(r.subject, r.name) for r in results if r.status == "failed"] == [("test/E-v0", "env_metadata")]
    assert "test-a" not in {entry.id for entry in registry().entries("agents")}  # checking registers nothing


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "defines no agent, forecaster or environment with an id"),
        ("import no_such_thing\n", "cannot be imported: ModuleNotFoundError: No module named 'no_such_thing'"),
    ],
)
def test_a_file_without_anything_to_check_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "some.py"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        check_file(file)
    assert str(caught.value) == f"{file}: {message}"


def test_a_missing_file_is_named() -> None:
    with pytest.raises(UsageError, match=r"^nowhere\.py: no such file$"):
        check_file("nowhere.py")


def test_files_may_be_checked_in_a_thread_and_leave_no_alarm(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text(
        "from banditlab.agents.banditron import Banditron\nclass A(Banditron):\n    id = 'test-a'\n    summary = ''\n"
    )
    before = signal.getsignal(signal.SIGALRM)
    assert {result.subject for result in check_file(file)} == {"test-a"}
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(check_file(file)))
    thread.start()
    thread.join()
    assert {result.subject for result in found} == {"test-a"}


@pytest.mark.slow
def test_a_file_that_does_not_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITLAB_PLUGIN_SECONDS", "1")
    (tmp_path / "ever.py").write_text("while True:\n    pass\n")
    with pytest.raises(UsageError, match="its import did not end within 1 s"):
        check_file(tmp_path / "ever.py")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def act(): ...\nact.id = 'a'\n", "; act is a function: a plug-in is a class"),
        ("class A:\n    def act(self): ...\nclass B: ...\n", '; A has none: id = "..."'),
        ("from banditlab.agents.banditron import Banditron\n", ""),
    ],
)
def test_a_file_without_an_id_is_told_what_seems_to_be_meant(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "some.py").write_text(text)
    with pytest.raises(UsageError) as caught:
        check_file(tmp_path / "some.py")
    assert str(caught.value).endswith(f"defines no agent, forecaster or environment with an id{words}")


def test_a_class_with_methods_to_be_written_is_told_which(tmp_path: Path) -> None:
    text = "from banditlab.agents import Agent\nclass A(Agent):\n    id = 'test-a'\n    def act(self, context): ...\n"
    (tmp_path / "half.py").write_text(text)
    [result] = check_file(tmp_path / "half.py")
    assert (result.name, result.status) == ("construction", "failed")
    assert result.reason.startswith("does not define learn: write these methods")
