"""The twins of the study of one bit observe every action's bit and change nothing else; its streams are what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from banditlab import make_agent
from banditlab.checks import run_checks
from banditlab.errors import UsageError
from banditlab.problem import Decision, Problem
from banditlab.registry import Registry, classes_of, load_file

LAB = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def AllBits() -> Any:
    known = Registry()
    known.open_lab(LAB)
    return known.load("agents", "lab-all-bits")


def environment(file: str) -> Any:
    [(_, cls)] = classes_of(load_file(LAB / "envs" / file))
    return cls


def stream(n: int = 150, d: int = 4, K: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * 1.001
    return X, np.argmax(X @ rng.standard_normal((d, K)) + 0.3 * rng.gumbel(size=(n, K)), axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fastcb", "squarecb", "linucb"])
def test_every_check_passes(AllBits: Any, name: str) -> None:
    results = run_checks(AllBits, agent=name)
    assert [(r.name, r.reason) for r in results if r.status == "failed"] == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings", "greedy"), [
    ("fastcb", {"challenger": 0.0}, False),
    ("squarecb", {"challenger": 0.0, "sharpness": 1e12}, True),
    ("linucb", {}, False),
    ("linucb", {"confidence": 0.0}, True),
])  # fmt: skip
def test_it_is_the_agent_taught_the_bit_of_each_class(AllBits: Any, name: str, settings: Any, greedy: bool) -> None:
    """The witness is the agent itself, taught one class after the other through its public method, at the same draws."""
    problem, (X, y) = Problem(4, 3, 1.0), stream()
    twin = AllBits(problem, np.random.default_rng(5), agent=name, greedy=greedy)
    agent: Any = make_agent(name, problem, seed=0, **settings)
    agent.rng = np.random.default_rng(5)
    for x, label in zip(X, y, strict=True):
        mine, theirs = twin.act(x), agent.act(x)
        assert mine.action == theirs.action
        np.testing.assert_array_equal(mine.probabilities, theirs.probabilities)
        twin.learn(x, mine, int(label))
        for k in range(3):
            agent.learn(x, Decision(k, theirs.probabilities, theirs.explored, theirs.payload), bool(k == label))
        if name != "linucb":
            agent.state.rounds[0] -= 2


def test_linucb_with_all_bits_is_one_ridge_regression_a_class(AllBits: Any) -> None:
    """Every class shares the matrix of all contexts, by np.linalg.solve; greedy plays the largest mean."""
    X, y = stream()
    twin = AllBits(Problem(4, 3, 1.0), np.random.default_rng(5), agent="linucb", greedy=True)
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        targets = np.equal.outer(y[:t], np.arange(3)).astype(float)
        theta = np.linalg.solve(0.1 * np.eye(4) + X[:t].T @ X[:t], X[:t].T @ targets)
        decision = twin.act(x)
        assert (x @ theta)[decision.action] >= (x @ theta).max() - 1e-10
        twin.learn(x, decision, int(label))


def test_merged_classes_are_a_function_of_the_old_ones(tmp_path: Path) -> None:
    Merged = environment("merged.py")
    file = tmp_path / "seven.csv"
    lines = [f"{i % 5}.5,{i},c{i % 7}" for i in range(70)]
    file.write_text("\n".join(["a,b,class", *lines]) + "\n", encoding="utf-8")
    whole = Merged(path=str(file), groups=7, horizon=70)
    for groups in (2, 3, 7):
        env = Merged(path=str(file), groups=groups, merge_seed=4, horizon=70)
        pairs = set()
        for each in (whole, env):
            each.reset(seed=1)
        [(X, old)], [(Z, new)] = whole.blocks(70, 70), env.blocks(70, 70)
        np.testing.assert_array_equal(X, Z)
        pairs = set(zip(old.tolist(), new.tolist(), strict=True))
        assert len(pairs) == 7
        sizes = np.bincount([group for _, group in pairs], minlength=groups)
        assert sizes.max() - sizes.min() <= 1
        assert env.problem.n_classes == groups
    with pytest.raises(UsageError, match="groups must be at most the table's 7 classes, got 8"):
        Merged(path=str(file), groups=8)


def test_remembering_attains_the_floors_of_memory() -> None:
    """The mean mistakes of whoever remembers the label, or tries one class after the other, over 200 streams."""
    Memory, d, K = environment("memory.py"), 5, 4
    label, one_bit = [], []
    for seed in range(200):
        env = Memory(n_features=d, n_classes=K, horizon=d * K)
        env.reset(seed=seed)
        [(X, y)] = env.blocks(d * K, d * K)
        places = X.argmax(axis=1)
        assert (np.bincount(places) == K).all()
        hidden = {place: int(each) for place, each in zip(places, y, strict=True)}
        assert all(hidden[place] == each for place, each in zip(places, y, strict=True))
        label.append(sum(hidden[place] != 0 for place in range(d)))
        one_bit.append(sum(hidden[place] for place in range(d)))
    for counts, floor in ((label, d * (1 - 1 / K)), (one_bit, d * (K - 1) / 2)):
        assert abs(np.mean(counts) - floor) < 4.0 * np.std(counts) / np.sqrt(200)


PLAY = """
import sys
from banditlab.registry import registry
registry().open_lab(sys.argv[1])
from banditlab.engine import Sweep, read_spec
for name, changed in {
    "memory": ["rounds=4000", "checkpoints=[1000, 4000]", "environment.0.grid={ n_classes = [2, 3, 4] }"],
    "planted": ["rounds=100", "checkpoints=[100]", "environment.0.grid={ n_classes = [2, 4], noise = [0.0, 0.3] }"],
    "theory": ["rounds=100", "checkpoints=[100]", "environment.0.grid={ n_classes = [2, 4] }"],
}.items():
    spec = read_spec(f"{sys.argv[1]}/runs/one-bit/{name}.toml", ["repetitions=1", *changed])
    result = Sweep(spec).run(f"one-bit-{name}")
    assert not result.failures, result.failures
"""


@pytest.mark.slow
def test_in_small(notebook: Any, tmp_path: Path) -> None:
    """Each cell is the mean of its own runs: the four ways to play are told apart by their settings."""
    subprocess.run([sys.executable, "-c", PLAY, str(LAB)], cwd=tmp_path, check=True)
    notebook("one_bit.py", tmp_path, results=tmp_path, figures=tmp_path)
    cells = pd.read_csv(tmp_path / "results" / "one-bit.csv")
    assert set(cells["study"]) == {"memory", "planted"}
    assert len(cells) == 3 * (3 * 2 + 4)
    stored = pd.read_parquet(tmp_path / "one-bit-memory" / "results.parquet")
    stored = stored[(stored["round"] == 4000) & stored["environment"].str.contains("n_classes=3")]
    mine = cells[(cells["study"] == "memory") & (cells["K"] == 3) & (cells["round"] == 4000)].set_index("agent")
    for agent, name, value, column in (
        ("linucb", "param.confidence", 1.0, "one"),
        ("linucb", "param.confidence", 0.0, "one greedy"),
        ("squarecb", "param.sharpness", 200.0, "one"),
        ("fastcb", "param.sharpness", 1e12, "one greedy"),
    ):
        [mistakes] = stored[(stored["label"] == agent) & (stored[name] == value)]["mistakes"]
        assert mine.loc[agent, column] == pytest.approx(100.0 * mistakes / 4000, rel=1e-3)
    twins = stored[(stored["label"] == "lab-all-bits") & (stored["param.agent"] == "linucb")]
    assert sorted(twins["mistakes"] / 40.0) == pytest.approx(
        sorted(mine.loc["linucb", ["all", "all greedy"]]), rel=1e-3
    )
    assert (tmp_path / "images" / "one-bit.png").stat().st_size > 10_000
