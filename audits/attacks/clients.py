"""Clients of `banditlab serve` that are many, slow or greedy, while an honest one asks."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from audits.attacks.lines import Line
from banditlab.policy import train

TITLE = "Greedy clients"
WORDS = """Many connections of one kind are opened to a server with a SQLite log and stay open. Meanwhile an honest
client asks for a decision every half second. The table counts the honest client's requests: `right` requests were
answered within 10 seconds, `lost` ones were not. `tracebacks` counts those on stderr. The first column also gives the
peak memory of the server. In the attack "half a head" (an incomplete request header) the server may open 128 files, in
the others 4,096."""
COUNT = 400
"""Connections of each kind."""
ROW = {"a": 1.0, "b": 2.0}
SECONDS = 40.0
"""How long an attack goes on."""


def request(body: bytes) -> bytes:
    """Return a POST to /decide."""
    head = "POST /decide HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
    return head.format(len(body)).encode() + body


HONEST = request(json.dumps({"row": ROW}).encode())
LISTS = request(b'{"rows":[' + b"[]," * 340_000 + b"[]]}")
KINDS = {
    "half a head": b"POST /dec",
    "a head of 60 KB": b"GET / HTTP/1.1\r\nA: " + b"x" * 60_000,
    "a body of 1 MB without its end": LISTS[:-10],
    "a body of 340,000 lists": LISTS,
    "1,000 empty rows": request(b'{"rows":[' + b"{}," * 999 + b"{}]}"),
    "1,000 rows, answer not read": request(json.dumps({"rows": [ROW] * 1000}).encode()),
    "400 requests at once, answers not read": HONEST * 400,
}


def attack(count: int, seed: int) -> list[Line]:
    """Return a line for each kind of client."""
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(seed)
        table = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
        train(table.assign(y=np.where(table["a"] > 0, "yes", "no")), "y", out=Path(folder) / "my.policy")
        return [_attack(Path(folder), name, data, count) for name, data in KINDS.items()]


def _attack(folder: Path, name: str, data: bytes, count: int) -> Line:
    files = 128 if name == "half a head" else 4096
    command = f"ulimit -n {files}; exec {sys.executable} -m banditlab serve my.policy --log {len(data)}.db --port 0"
    errors = folder / "stderr"
    with (
        errors.open("w") as said,
        subprocess.Popen(["bash", "-c", command], cwd=folder, stdout=subprocess.PIPE, stderr=said, text=True) as server,
    ):
        assert server.stdout is not None
        port = int(server.stdout.readline().rpartition(":")[2])
        held, answered, memory, begin = [], [], 0.0, time.monotonic()
        while len(held) < count or time.monotonic() - begin < SECONDS:
            held += [_opened(port, data) for _ in range(min(40, count - len(held)))]
            answered.append(_answered(port))
            memory = max(memory, _memory(server.pid))
            time.sleep(0.5)
        for one in held:
            one.close()
        server.terminate()
    right = sum(answered)
    tracebacks = errors.read_text().count("Traceback")
    return Line(f"{name} ({memory:.0f} MB)", len(answered), right, 0, len(answered) - right, 0, tracebacks, 0)


def _opened(port: int, data: bytes) -> socket.socket:
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.settimeout(5.0)
    try:
        one.connect(("127.0.0.1", port))
        one.sendall(data)
    except OSError:
        pass  # refused, closed or full: the attack goes on
    return one


def _answered(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 10.0) as one:
            one.sendall(HONEST)
            return one.recv(4096).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def _memory(pid: int) -> float:
    """Return a process's memory in MB, from Linux's /proc."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
