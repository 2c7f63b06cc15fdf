"""Nothing in the working folder is imported in the place of the standard library or of a package, by any command."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest

import banditlab
from banditlab.distributions import NAME

ROOT = Path(banditlab.__file__).parents[1]
INSTALLED = {name for name in packages_distributions() if name.isidentifier()}
TRAPS = {*sys.stdlib_module_names, *INSTALLED, "sitecustomize", "usercustomize"} - set(sys.builtin_module_names)
TRAP = "with open({log!r}, 'a') as log:\n    log.write({name!r} + ' ')\nraise SystemExit(3)\n"
SPEC = """
name = "small"
rounds = 40
repetitions = 2
norm_bounds = []
[[environment]]
id = "banditlab/Logistic-v0"
n_features = 2
n_classes = 2
[[agent]]
id = "uniform"
"""
FOREIGN = """
import numpy as np
from banditlab.agents import Agent
from banditlab.problem import Decision

class Mine(Agent):
    id = "mine"
    summary = "always plays the first class"
    reference = "ours"

    def act(self, context):
        self.rng.random(2)
        return Decision(0, np.eye(self.problem.n_classes)[0], False)

    def learn(self, context, decision, correct):
        pass
"""


class Folder:
    """A folder full of traps, and the `banditlab` script to be run in it."""

    def __init__(self, place: Path) -> None:
        self.place, self.log, script = place / "work", place / "sprung", place / "bin" / "banditlab"
        for folder in (self.place, script.parent):
            folder.mkdir()
        script.write_text("from banditlab.cli.main import main\nif __name__ == '__main__':\n    main()\n")
        for name in TRAPS:
            (self.place / f"{name}.py").write_text(TRAP.format(log=str(self.log), name=name))
        (self.place / "small.toml").write_text(SPEC)
        rows = [f"{i % 7},{i % 3},{'yes' if i % 7 > 3 else 'no'}" for i in range(60)]
        (self.place / "table.csv").write_text("\n".join(["a,b,offer", *rows]) + "\n")
        self.command = [sys.executable, str(script)]
        self.environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [*self.command, *words], cwd=self.place, capture_output=True, text=True, timeout=300, env=self.environment
        )
        assert self.sprung() == "", words
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def sprung(self) -> str:
        return self.log.read_text() if self.log.exists() else ""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_the_traps_work(folder: Folder) -> None:
    subprocess.run([sys.executable, "-c", "import json"], cwd=folder.place, capture_output=True, check=False)
    assert folder.sprung() == "json "


@pytest.mark.slow
def test_commands_of_one_process(folder: Folder) -> None:
    folder.run("list", "agents")
    folder.run("check", "uniform")


@pytest.mark.slow
def test_more_commands_of_one_process(folder: Folder) -> None:
    folder.run("--version")
    folder.run("describe", "uniform")
    folder.run("new", "lab", "lab")
    (folder.place / "lab.toml").touch()
    for name in ("agents", "envs"):
        (folder.place / name).mkdir()
    folder.run("new", "agent", "other")
    folder.run("new", "env", "stream")


@pytest.mark.slow
def test_worker_processes(folder: Folder) -> None:
    folder.run("run", "small.toml", "-j", "2", "-o", "out", "--no-report")


@pytest.mark.slow
def test_worker_processes_that_a_lab_and_a_time_limit_need(folder: Folder) -> None:
    (folder.place / "lab" / "agents").mkdir(parents=True)
    (folder.place / "lab" / "agents" / "mine.py").write_text(FOREIGN)
    (folder.place / "mine.toml").write_text("run_timeout = 60\n" + SPEC.replace('"uniform"', '"mine"'))
    folder.run("run", "mine.toml", "-j", "2", "-o", "mine", "--lab", "lab", "--no-report")


@pytest.mark.slow
def test_a_script_that_ignores_the_environment(folder: Folder) -> None:
    """As those are that begin with `#!python -Es`."""
    try:
        distribution(NAME)
    except PackageNotFoundError:
        pytest.skip("not installed here, and without PYTHONPATH it is not found")
    folder.command[1:1] = ["-W", "ignore", "-Es"]
    folder.run("run", "small.toml", "-j", "2", "-o", "out", "--no-report")


@pytest.mark.slow
def test_commands_that_compare_and_report(folder: Folder) -> None:
    for i in (1, 2):
        folder.run("run", "small.toml", "-j", "1", "-o", f"part-{i}", "--shard", f"{i}/2")
    folder.run("merge", "part-1", "part-2", "-o", "out")
    for words in (("status", "out"), ("report", "out"), ("board", "out", "-o", "board.html"), ("export", "out")):
        folder.run(*words)
    folder.run("compare", "table.csv", "--label", "offer", "--agents", "uniform,banditron", "-j", "2", "-o", "compared")


@pytest.mark.slow
def test_policies(folder: Folder) -> None:
    for module in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module)
    folder.run("train", "table.csv", "--label", "offer", "--agent", "epsilon-greedy", "-o", "a.policy")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    server = subprocess.Popen(
        [*folder.command, "serve", "a.policy", "--log", "events.db", "--port", port],
        cwd=folder.place,
        env=folder.environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    health = ""
    while not health and server.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            health = urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).read().decode()
        time.sleep(0.1)
    server.send_signal(signal.SIGTERM)
    said = server.communicate(timeout=60)
    assert health, said
    assert folder.sprung() == ""
    folder.run("status", "events.db")


@pytest.mark.slow
def test_a_notebook(folder: Folder) -> None:
    for module in ("jupytext", "nbclient", "ipykernel"):
        pytest.importorskip(module)
    folder.run("notebook", "quickstart", "--no-open")


@pytest.mark.slow
def test_a_cluster_of_this_machine(folder: Folder) -> None:
    pytest.importorskip("distributed")
    folder.run("run", "small.toml", "--cluster", "local:2", "-o", "out", "--no-report")


@pytest.mark.slow
def test_a_module_beside_the_users_script_still_loads_in_children(tmp_path: Path) -> None:
    """In a script's children, too: a plug-in may import what stands beside the script."""
    lab = tmp_path / "lab" / "agents"
    lab.mkdir(parents=True)
    (lab / "mine.py").write_text("import beside_the_script\n" + FOREIGN)
    (tmp_path / "beside_the_script.py").write_text("")
    (tmp_path / "small.toml").write_text(SPEC.replace('"uniform"', '"mine"'))
    code = (
        "import sys\nfrom banditlab import Sweep, read_spec\nfrom banditlab.registry import registry\n"
        "if __name__ == '__main__':\n"
        "    registry().open_lab('lab')\n"
        "    result = Sweep(read_spec('small.toml')).run('out', jobs=2)\n"
        "    print(len(result.plan.runs), len(result.failures))\n"
    )
    (tmp_path / "script.py").write_text(code)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, env=environment
    )
    assert (done.returncode, done.stdout.strip()) == (0, "2 0"), done.stderr
