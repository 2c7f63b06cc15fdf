"""Kernel caches that others could write: what was planted there is never unpickled, and nothing is made so."""

from __future__ import annotations

import os
import pickle
import stat
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numba

from audits.attacks.crafted import Touch
from audits.attacks.lines import Line, line

TITLE = "Kernel caches"
WORDS = """A process compiles two kernels under umask 0. It uses its own cache folder, or a folder with planted pickles
to which others may write. An outcome is `right` if the kernels work and only this user can access their files. It is
`named` if a one-line message says that the folder is not used."""
COUNT = 24
CODE = """
import os
os.umask(0)
import numpy as np
from banditlab.numerics.argmax import argmax
from banditlab.numerics.draws import draw
assert argmax(np.array([1.0, 2.0]), 2) == 1 and draw(np.array([0.5, 0.5]), 0.7) == 1
"""
KINDS = (
    ("own folder, umask 0", 0o700, 0o600),
    ("planted files that others may write", 0o700, 0o666),
    ("folder that others may write, pickles planted", 0o777, 0o600),
    ("folder above it that others may write", 0o700, 0o600),
)


def attack(count: int, seed: int) -> list[Line]:
    """Return a line for every kind of folder; nothing is drawn, `seed` is not used."""
    return [_tried(number, kind, -(-count // len(KINDS))) for number, kind in enumerate(KINDS)]


def _tried(number: int, kind: tuple[str, int, int], times: int) -> Line:
    words, mode, file_mode = kind
    counts: Counter[str] = Counter()
    for _ in range(times):
        with tempfile.TemporaryDirectory() as home:
            cache, mark = Path(home) / "above" / "cache", Path(home) / "mark"
            cache.mkdir(parents=True, mode=0o700)
            _run(cache)  # leaves entries
            for entry in cache.rglob("*.nbe") if number else ():
                entry.write_bytes(pickle.dumps(numba.__version__) + pickle.dumps(Touch(str(mark))))
                entry.chmod(file_mode)
            cache.chmod(mode)
            cache.parent.chmod(0o777 if number == 3 else 0o700)
            done = _run(cache)
            made = [path for path in cache.rglob("*") if number == 0 and stat.S_IMODE(path.stat().st_mode) & 0o077]
            told = [line for line in done.stderr.splitlines() if line.startswith("banditlab: kernels are not kept")]
            counts["code_run"] += mark.exists()
            if done.returncode or "Traceback" in done.stderr:
                counts["tracebacks"] += 1
            elif made or len(told) != (number >= 2):
                counts["wrong"] += 1
            elif not mark.exists():
                counts["named" if told else "right"] += 1
    return line(words, counts, times)


def _run(cache: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    env.pop("BANDITLAB_CACHE_REFUSED", None)
    return subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True, text=True, check=False)
