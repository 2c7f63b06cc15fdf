"""Kills of a policy with a log, and of its server, under load: is all that was acknowledged there, and the state the same?"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from banditlab import Policy
from banditlab.policy.container import read
from banditlab.policy.events import Answered, Decided
from banditlab.policy.log import EventLog

Rows = list[dict[str, Any]]
Acknowledged = tuple[list[str], dict[str, bool]]
"""Ids of decisions; answers by id."""


def kill_policy(file: Path, log: Path, rows: Rows, after: float, seed: int) -> Acknowledged:
    """Return what a forked process acknowledged until it was killed, `after` seconds from its first decision on."""
    heard, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _work(file, log, rows, seed, told)
        finally:
            os._exit(1)
    os.close(told)
    with open(heard, encoding="ascii") as words:
        lines = [words.readline()]
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
        lines += words.readlines()
    os.waitpid(child, 0)
    decided, answered = [], {}
    for word, name, *bit in (line.split() for line in lines if line.endswith("\n")):
        if word == "decided":
            decided.append(name)
        else:
            answered[name] = bit == ["1"]
    return decided, answered


def _work(file: Path, log: Path, rows: Rows, seed: int, told: int) -> None:
    policy, rng, waiting = Policy.open(file, log, snapshot_every=200), np.random.default_rng(seed), []
    while True:
        for row in rows:
            waiting.append(policy.decide(row).id)
            os.write(told, f"decided {waiting[-1]}\n".encode())
            if rng.random() < 0.7:
                name, bit = waiting.pop(int(rng.integers(len(waiting)))), bool(rng.random() < 0.5)
                policy.feedback(name, bit)
                os.write(told, f"answered {name} {int(bit)}\n".encode())


def kill_server(file: Path, log: Path, rows: Rows, after: float, seed: int) -> Acknowledged:
    """Return what a forked server acknowledged to four clients until it was killed."""
    heard, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.dup2(told, 1)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            from banditlab.policy.server import serve

            serve(Policy.open(file, log, snapshot_every=200), port=0)
        finally:
            os._exit(1)
    os.close(told)
    with open(heard, encoding="utf-8") as words:
        url = words.readline().split()[-1]
        decided: list[str] = []
        answered: dict[str, bool] = {}
        clients = [threading.Thread(target=_ask, args=(url, rows, seed * 10 + i, decided, answered)) for i in range(4)]
        for client in clients:
            client.start()
        while not decided:
            time.sleep(0.001)
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for client in clients:
            client.join()
    return decided, answered


def _ask(url: str, rows: Rows, seed: int, decided: list[str], answered: dict[str, bool]) -> None:
    rng, waiting = random.Random(seed), []
    with httpx.Client(base_url=url) as client:
        try:
            while True:
                found = client.post("/decide", json={"row": rng.choice(rows)}).raise_for_status().json()
                decided.append(found["id"])
                waiting.append(found["id"])
                if rng.random() < 0.7:
                    name, bit = waiting.pop(rng.randrange(len(waiting))), rng.random() < 0.5
                    client.post("/feedback", json={"id": name, "correct": bit}).raise_for_status()
                    answered[name] = bit
        except httpx.TransportError:  # the server is gone
            return


def lost(log: Path, decided: list[str], answered: dict[str, bool]) -> int:
    """Return how many acknowledged events are not in the log as they were."""
    db = sqlite3.connect(log)
    ids = {name for (name,) in db.execute("SELECT id FROM events WHERE kind = 'decision'")}
    bits = dict(db.execute("SELECT d.id, f.correct FROM events f JOIN events d ON d.seq = f.decision"))
    db.close()
    gone = sum(name not in ids for name in decided)
    return gone + sum(name not in bits or bool(bits[name]) != bit for name, bit in answered.items())


def same_state(file: Path, log: Path) -> bool:
    """Return whether the policy that is opened again is that of all events played once, from the first on, bit for bit."""
    with Policy.open(file, log) as policy:
        found = policy._core.agent.to_bytes(), policy._core.rng.bit_generator.state
    core, records, store = read(file).core, {}, EventLog(str(log))
    for event in store.events(0):
        if isinstance(event, Decided):
            records[event.seq] = core.choose(event.record.context, event.mask)
        elif isinstance(event, Answered):
            core.learn(records.pop(event.decision), event.correct)
    store.close()
    return found == (core.agent.to_bytes(), core.rng.bit_generator.state)
