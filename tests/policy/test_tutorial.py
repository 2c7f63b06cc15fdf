"""The commands of docs/tutorials/from-table-to-production.md do what the page says, in its order, in an empty folder."""

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
PAGE = ROOT / "docs" / "tutorials" / "from-table-to-production.md"


def blocks() -> list[str]:
    """Return the page's commands, but for the installation."""
    found = re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return [block for block in found if not block.startswith("pip install")]


def test_the_page_has_a_command_for_every_step() -> None:
    text = "\n".join(blocks())
    for word in ("banditlab compare", "banditlab train", "Policy.open", "banditlab serve", "curl", "banditlab status"):
        assert word in text


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("bash") and shutil.which("curl")), reason="the page's commands are bash and curl")
def test_the_commands_run(tmp_path: Path) -> None:
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
    script = "set -euo pipefail\n" + stop + "\n".join(blocks()).replace("8080", port)
    done = subprocess.run(
        ["bash", "-c", script], cwd=here, env=os.environ | path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    choice = json.loads((here / "choice.json").read_text())
    assert choice["action"] in ("upgrade", "nothing", "call")
    assert '{"accepted":1}' in done.stdout
    assert "banditlab_decisions_total 1.0" in done.stdout
    assert "drawn: status.svg" in done.stdout
    status = status_of_log(here / "events.db")
    assert (status.decisions, status.feedback) == (3, 3)
