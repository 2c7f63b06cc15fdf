"""The commands of from-table-to-production.md and which-model.md do what the page says, in its order, in an empty folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from banditlab.policy import status_of_log

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[str]:
    """Return a page's commands, but for the installation."""
    text = (ROOT / "docs" / "tutorials" / f"{page}.md").read_text("utf-8")
    found = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [block for block in found if not block.startswith("pip install")]


def test_the_page_has_a_command_for_every_step() -> None:
    text = "\n".join(blocks("from-table-to-production"))
    for word in ("banditlab compare", "banditlab train", "Policy.open", "banditlab serve", "curl", "banditlab status"):
        assert word in text


def run(page: str, tmp_path: Path) -> tuple[Path, str]:
    """Run a page's commands and return the folder and what they printed."""
    if not (shutil.which("bash") and shutil.which("curl")):
        pytest.skip("the page's commands are bash and curl")
    for module in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module, reason="the extra serve")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "banditlab").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m banditlab "$@"\n')
    (bin_ / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    for file in bin_.iterdir():
        file.chmod(0o755)
    path = {"PATH": f"{bin_}:{os.environ['PATH']}", "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    here = tmp_path / "here"
    here.mkdir()
    stop = "trap 'kill $(cat server.pid 2>/dev/null) 2>/dev/null || true' EXIT\n"
    script = "set -euo pipefail\n" + stop + "\n".join(blocks(page)).replace("8080", port)
    done = subprocess.run(
        ["bash", "-c", script], cwd=here, env=os.environ | path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return here, done.stdout


@pytest.mark.slow
def test_a_table_of_offers(tmp_path: Path) -> None:
    here, said = run("from-table-to-production", tmp_path)
    choice = json.loads((here / "choice.json").read_text())
    assert choice["action"] in ("upgrade", "nothing", "call")
    assert '{"accepted":1}' in said
    assert "banditlab_decisions_total 1.0" in said
    assert "written: status.svg" in said
    status = status_of_log(here / "events.db")
    assert (status.decisions, status.feedback) == (3, 3)


@pytest.mark.slow
def test_a_router_of_language_models(tmp_path: Path) -> None:
    here, said = run("which-model", tmp_path)
    compared = (here / "compared.txt").read_text()
    for name in (
        "best single action",
        "best action per value of source",
        "a logistic model per action",
        "oracle",
        "mean cost",
    ):
        assert name in compared
    choice = json.loads((here / "choice.json").read_text())
    assert choice["cost"] == pytest.approx({"small": 0.001, "large": 0.01}[choice["action"]])
    assert f'banditlab_cost_total{{action="{choice["action"]}"}}' in said
