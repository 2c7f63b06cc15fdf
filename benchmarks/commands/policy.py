"""A policy that decides: microseconds a decision with its feedback, requests a second by wrk, kills: docs/results/policy.md.

One table of K = 10 classes and 63 numbers (d = 64). `--kills` and `--seconds` (of each load) make it shorter; the page is
written at the defaults only, or with `--keep`.
"""

from __future__ import annotations

import csv
import gc
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from banditlab import Policy
from banditlab.analysis.pages import markdown_table
from banditlab.errors import UsageError
from banditlab.policy import train
from benchmarks.measure.policy import kills as kills_
from benchmarks.measure.policy.kills import kill_policy, kill_server, lost, same_state

PAGE = Path(__file__).parents[2] / "docs" / "results" / "policy.md"
K, COLUMNS = 10, 63
KILLS, SECONDS = 100, 5


def main(*, kills: int = KILLS, seconds: int = SECONDS, keep: bool = False) -> None:
    """Measure and print; write the page."""
    if shutil.which("wrk") is None:
        raise UsageError("wrk is not installed (Debian: apt install wrk)")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        file, rows = trained(folder)
        parts = [
            head(),
            latency(file, folder, rows),
            loads(file, folder, rows, seconds),
            deaths(file, folder, rows, kills),
        ]
    text = "\n\n".join(parts) + "\n"
    print(text)
    if keep or (kills, seconds) == (KILLS, SECONDS):
        PAGE.write_text(text, "utf-8")
        print(f"written: {PAGE}")


def trained(folder: Path) -> tuple[Path, list[dict[str, Any]]]:
    """Return a policy's file, `fastcb` trained on 2,000 rows, and 500 further rows."""
    rng = np.random.default_rng(0)
    W, names = rng.normal(size=(K, COLUMNS)), [f"f{j}" for j in range(COLUMNS)]
    with open(folder / "table.csv", "w", newline="", encoding="ascii") as table:
        writer = csv.writer(table)
        writer.writerow([*names, "y"])
        for x in rng.normal(size=(2000, COLUMNS)).round(3):
            writer.writerow([*x.tolist(), int(np.argmax(W @ x))])
    train(folder / "table.csv", "y", out=folder / "p", agent="fastcb")
    return folder / "p", [dict(zip(names, x, strict=True)) for x in rng.normal(size=(500, COLUMNS)).round(3).tolist()]


def head() -> str:
    """Return what stands above the tables."""
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    return (
        "# A policy's latency, throughput and durability\n\nHow long does a decision take, and what does a crash lose?\n\n"
        f"`python -m benchmarks policy` writes this page. The agent is `fastcb` with K = {K} and d = {COLUMNS + 1}, on "
        f"{os.cpu_count()} cores. Load averages were {load} at the start, because of other work."
    )


# ----------------------------------------------------------------------------------------------------------------- latency


def latency(file: Path, folder: Path, rows: list[dict[str, Any]]) -> str:
    """Return the table of one process that decides and learns, one row at a time."""
    policy = Policy.load(file)
    logged = Policy.open(file, folder / "latency.db")
    lines = [
        timed("decide + feedback, no log", pairs(policy, rows), 10_000),
        timed("part of it: encoding the row", lambda i: policy._encoder.encode(rows[i % 500]), 5_000),
        timed("decide + feedback, SQLite log (two commits)", pairs(logged, rows), 300),
        timed("one fsync of 4 KiB on the same disk, a lower bound for a commit", synced(folder / "floor"), 300),
        timed("100 rows decided in one commit, per row", hundred(logged, rows), 20, per=100),
    ]
    logged.close()
    table = markdown_table(["", "p50, µs", "p90", "p99", "processor time, mean"], lines)
    return f"## In the process\n\n{table}"


def pairs(policy: Policy, rows: list[dict[str, Any]]) -> Callable[[int], Any]:
    """Return one decision with its feedback."""

    def pair(i: int) -> None:
        choice = policy.decide(rows[i % 500])
        policy.feedback(choice.id, choice.action == i % K)

    return pair


def hundred(policy: Policy, rows: list[dict[str, Any]]) -> Callable[[int], Any]:
    """Return a hundred decisions in one commit."""
    return lambda i: policy.decide_many(rows[:100])


def synced(file: Path) -> Callable[[int], Any]:
    """Return a write of 4 KiB that is on disk at its end."""
    number = os.open(file, os.O_CREAT | os.O_WRONLY)

    def write(_: int) -> None:
        os.write(number, bytes(4096))
        os.fsync(number)

    return write


def timed(name: str, call: Callable[[int], Any], n: int, per: int = 1) -> list[str]:
    """Return a line of the table: quantiles of the clock, the mean of processor time, in microseconds."""
    for i in range(50 if per == 1 else 1):
        call(i)
    gc.collect()
    gc.freeze()
    times, busy = np.empty(n), time.process_time()
    for i in range(n):
        begin = time.perf_counter()
        call(i)
        times[i] = time.perf_counter() - begin
    busy = (time.process_time() - busy) / n
    return [name, *(f"{1e6 * x / per:,.0f}" for x in (*np.quantile(times, [0.5, 0.9, 0.99]), busy))]


# -------------------------------------------------------------------------------------------------------------------- load

SCRIPT = """
local rows, ids, i = {%s}, {}, 0
local headers = {["Content-Type"] = "application/json"}
request = function()
  i = i + 1
  local id = table.remove(ids)
  if id then
    return wrk.format("POST", "/feedback", headers, '{"id": "' .. id .. '", "correct": ' .. tostring(i %% 3 == 0) .. '}')
  end
  return wrk.format("POST", "/decide", headers, '{"row": ' .. rows[i %% #rows + 1] .. '}')
end
response = function(status, headers, body)
  local id = string.match(body, '"id": ?"(%%x+)"')
  if id then table.insert(ids, id) end
end
"""


def loads(file: Path, folder: Path, rows: list[dict[str, Any]], seconds: int) -> str:
    """Return the table of servers under wrk's load, decisions and their feedback in turns."""
    import json

    script = folder / "load.lua"
    script.write_text(SCRIPT % ", ".join(f"'{json.dumps(row)}'" for row in rows[:100]))
    ours = [sys.executable, "-m", "banditlab", "serve", str(file), "--port"]
    vw = [sys.executable, "-m", "benchmarks.measure.policy.vw_server"]
    lines = []
    for connections in (1, 32):
        lines += [
            loaded("ours, no log", ours, [], script, seconds, connections),
            loaded(
                "ours, SQLite log",
                ours,
                ["--log", str(folder / f"load-{connections}.db")],
                script,
                seconds,
                connections,
            ),
            loaded("Vowpal Wabbit behind the same HTTP server, no log", vw, [], script, seconds, connections),
        ]
    table = markdown_table(["server", "connections", "requests/s", "p50, ms", "p99, ms", "refused"], lines)
    return (
        "## Served\n\nThe server is one process on one core, and the client `wrk` runs on another. Requests for decisions "
        "and for feedback alternate. Vowpal Wabbit's Python package has no server. In the comparison, starlette and uvicorn "
        "therefore serve its library (`--cb_explore 10 --squarecb`, first order)."
        f"\n\n{table}"
    )


def loaded(name: str, command: list[str], more: list[str], script: Path, seconds: int, connections: int) -> list[str]:
    """Return a line of the table: one server under load."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pin = ["taskset", "-c", "0"] if shutil.which("taskset") else []
    server = subprocess.Popen([*pin, *command, str(port), *more], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with socket.socket() as door:
                if door.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        pin = ["taskset", "-c", str((os.cpu_count() or 2) - 1)] if pin else []
        wrk = [*pin, "wrk", "-t1", f"-c{connections}", "--latency", "-s", str(script), f"http://127.0.0.1:{port}"]
        subprocess.run([*wrk, "-d1s"], check=True, capture_output=True)
        out = subprocess.run([*wrk, f"-d{seconds}s"], check=True, capture_output=True, text=True).stdout
    finally:
        server.terminate()
        server.wait()
    return [name, str(connections), *read_wrk(out)]


def read_wrk(out: str) -> list[str]:
    """Return requests a second, p50 and p99 in ms, and answers that were errors, of wrk's output."""
    found = dict(re.findall(r"^\s+(50|99)%\s+(\S+)$", out, re.MULTILINE))
    rate = float(re.findall(r"Requests/sec:\s+(\S+)", out)[0])
    refused = re.findall(r"Non-2xx or 3xx responses: (\d+)", out)
    return [f"{rate:,.0f}", *(f"{milliseconds(found[q]):.2f}" for q in ("50", "99")), refused[0] if refused else "0"]


def milliseconds(text: str) -> float:
    """Return a time as wrk writes it in ms."""
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()  # type: ignore[union-attr]
    return float(number) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]


# ------------------------------------------------------------------------------------------------------------------- kills


def deaths(file: Path, folder: Path, rows: list[dict[str, Any]], n: int) -> str:
    """Return the table of kills at random moments, a fifth of them of the server."""
    rng, lines = random.Random(1), []
    kinds: list[tuple[str, kills_.Rows, Any, int]] = [
        ("policy with log", rows, kill_policy, n - n // 5),
        ("server, four clients", rows, kill_server, n // 5),
    ]
    for name, given, kill, count in kinds:
        log, decided, answered, same = folder / f"{kill.__name__}.db", [], {}, 0
        for i in range(count):
            ids, bits = kill(file, log, given, rng.uniform(0.0, 0.5), i)
            decided += ids
            answered |= bits
            if i % 10 == 9 or i == count - 1:
                same += same_state(file, log)
        looks = -(-count // 10)
        gone = lost(log, decided, answered)
        lines.append([name, f"{count}", f"{len(decided):,}", f"{len(answered):,}", f"{gone}", f"{same} of {looks}"])
    columns = [
        "",
        "kills",
        "decisions acknowledged",
        "answers acknowledged",
        "lost",
        "state equal to an undisturbed replay",
    ]
    return f"## kill -9 at random moments under load\n\n{markdown_table(columns, lines)}"
