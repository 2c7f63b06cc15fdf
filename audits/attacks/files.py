"""Odd tables, odd specs, odd paths, and systems that refuse."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np

from audits.attacks.lines import Line, line
from banditlab.cli.main import main as command_line
from banditlab.results.reading import finished_runs

TITLE = "Odd files and surroundings"
WORDS = """The commands receive malformed tables, damaged specs, and paths that are too long or not UTF-8. They also run
on ASCII terminals, on systems without file locks, on full disks and under limits on file sizes. A command must do its
task (`right`) or say in one line why it cannot (`named`). It must preserve finished runs."""
COUNT = 240
SPEC = """
name = "odd"
rounds = 6
environment = [{ id = "banditlab/Table-v0", path = "table.csv", label = "y" }]
agent = [{ id = "uniform" }]
"""
PLAIN = """
name = "plain"
rounds = 6
norm_bounds = [1.0]
environment = [{ id = "banditlab/Logistic-v0", n_features = 2, n_classes = 2 }]
agent = [{ id = "uniform" }]
"""
CELLS = (
    *("", " ", "\x00", "\t", "\ufeff", "9" * 400, "x" * 5000),
    *["NaN", "nan", "inf", "-inf", "1e200", "-1e308", "1e-200", "1e999", "?", "0", "-0.0", "1,5", "a", '"', "=1+1"],
    *["é", "😀", "0x10", "1_000", "True", ";", "'", "None", "1e", "--1"],
)
"""Odd cells of a table."""


def odd_table(rng: np.random.Generator) -> bytes:
    """Return the bytes of a table with a column y, or of something that is hardly one."""
    rows, columns = int(rng.choice([0, 1, 2, 5, 40])), int(rng.choice([0, 1, 2, 30]))
    names = [
        str(rng.choice(["a", "b", "y", "", "é", "a.1"])) if rng.random() < 0.2 else f"c{j}" for j in range(columns)
    ]
    odd, classes = float(rng.choice([0.0, 0.02, 0.5])), int(rng.choice([1, 2, 1000]))
    lines = [",".join([*names, "y"])]
    for _ in range(rows):
        row = [str(rng.choice(CELLS)) if rng.random() < odd else f"{rng.normal():.3f}" for _ in range(columns)]
        lines.append(",".join([*row, str(rng.integers(classes)) if rng.random() > odd / 4 else str(rng.choice(CELLS))]))
    data = "\n".join(lines).encode("utf-8", "surrogatepass") + b"\n" * int(rng.integers(2))
    if rng.random() < 0.3 and data:
        at = int(rng.integers(len(data)))
        data = data[:at] + rng.bytes(int(rng.integers(1, 4))) + data[at + 1 :]
    return data


def odd_spec(rng: np.random.Generator) -> bytes:
    """Return a spec with one byte replaced, dropped or doubled."""
    data, at = PLAIN.encode(), int(rng.integers(len(PLAIN)))
    middle = [rng.bytes(1), b"", data[at : at + 1] * 2][int(rng.integers(3))]
    return data[:at] + middle + data[at + 1 :]


def told(arguments: list[str], folder: Path) -> tuple[int | None, str]:
    """Run the command line in this process, in a folder; return (exit code or None for a traceback, what it said)."""
    out, here = io.StringIO(), os.getcwd()
    os.chdir(folder)
    try:
        argv = mock.patch.object(sys, "argv", ["banditlab", *arguments])
        with argv, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            command_line()
        return 0, out.getvalue()
    except SystemExit as done:
        return int(done.code or 0), out.getvalue()
    except BaseException as error:
        return None, f"{type(error).__name__}: {error}"
    finally:
        os.chdir(here)


def verdict(code: int | None, text: str) -> str:
    """Return "right", "named" or "tracebacks" of what the command line said."""
    if code is None or "Traceback" in text:
        return "tracebacks"
    if code == 0:
        return "right"
    lines = [line for line in text.splitlines() if line.startswith(("banditlab: ", "failed: ", "notice: "))]
    return "named" if lines and all(len(line.splitlines()) == 1 for line in lines) else "tracebacks"


def _many(name: str, count: int, one: Callable[[int], tuple[int | None, str]]) -> Line:
    found: Counter[str] = Counter()
    for i in range(count):
        code, text = one(i)
        found[verdict(code, text)] += 1
        if verdict(code, text) == "tracebacks":
            print(name, i, code, text[-500:], flush=True)
    return line(name, found)


# ------------------------------------------------------------------------------------------------------- surroundings

NO_LOCK = "import errno, fcntl\ndef flock(*_): raise OSError(errno.ENOLCK, 'No locks available')\nfcntl.flock = flock\n"
FULL = """import errno, os
fsync = os.fsync
def full(number):
    import stat
    if stat.S_ISREG(os.fstat(number).st_mode) and os.fstat(number).st_size > 2000:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    fsync(number)
os.fsync = full
"""
SMALL = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
RUN = "from banditlab.cli.main import main\nmain()\n"


def surroundings(place: Path) -> list[Line]:
    """Run commands in processes of their own where the system is not as it should be."""
    (place / "plain.toml").write_text(PLAIN)
    long, raw = "x" * 5000, os.fsdecode(b"out\xff\xfe")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii", "TERM": "dumb"}
    shutil.copy(place / "plain.toml", place / os.fsdecode(b"sp\xe9c.toml"))
    (place / os.fsdecode(b"t\xe9.csv")).write_text("a,y\n1,u\n2,v\n")
    raw_table = [
        "--set",
        f"environment=[{{id='banditlab/Table-v0', path='{os.fsdecode(b't' + bytes([0xE9]))}.csv', label='y'}}]",
    ]
    cases: list[tuple[str, str, list[str], dict[str, str], tuple[int, ...]]] = [
        ("no locks", NO_LOCK, ["-o", "locks"], {}, (2,)),
        ("no room on the disk", FULL, ["-o", "full"], {}, (1, 2)),
        ("no room on the disk, two processes", FULL, ["-o", "full2", "-j", "2"], {}, (2,)),
        ("ulimit -f", SMALL, ["-o", "small"], {}, (1, 2)),
        ("a results folder of 5,000 characters", "", ["-o", long], {}, (2,)),
        ("a lab of 5,000 characters", "", ["--lab", long], {}, (2,)),
        ("a results folder that is no UTF-8", "", ["-o", raw], {}, (0, 2)),
        ("a table that is no UTF-8 by name", "", [*raw_table, "--set", "norm_bounds=[]", "-o", "rawtable"], {}, (0, 2)),
        ("an ASCII terminal", "", ["-o", "ascii", "--set", "repetitions=3"], plain, (0,)),
        ("a results folder that is a file", "", ["-o", "plain.toml"], {}, (2,)),
    ]
    lines = []
    for name, patch, arguments, environment, codes in cases:
        ends = [_run(place, "plain.toml", patch, arguments, environment)]
        if patch:  # the same again, now with locks and room: all is there
            ends.append(_run(place, "plain.toml", "", arguments, environment))
        good = verdict(*ends[0]) != "tracebacks" and ends[0][0] in codes and all(code == 0 for code, _ in ends[1:])
        if not good:
            print(name, ends, flush=True)
        lines.append(Line(name, 1, int(ends[0][0] == 0), int(ends[0][0] != 0), tracebacks=int(not good)))
    for name, spec in (
        ("a spec of 5,000 characters", long),
        ("a spec that is no UTF-8 by name", os.fsdecode(b"sp\xe9c.toml")),
    ):
        code, text = _run(place, spec, "", ["-o", "named"], {})
        lines.append(Line(name, 1, int(code == 0), int(code == 2), tracebacks=int(verdict(code, text) == "tracebacks")))
    return lines


def _run(
    place: Path, spec: str, patch: str, arguments: list[str], environment: dict[str, str]
) -> tuple[int | None, str]:
    command = [sys.executable, "-c", patch + RUN, "run", spec, *arguments]
    if "-j" not in arguments:
        command += ["-j", "1"]
    done = subprocess.run(
        command, cwd=place, capture_output=True, timeout=600, env=os.environ | environment, check=False
    )
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    return done.returncode, text


def attack(count: int, seed: int) -> list[Line]:
    """Try odd tables and specs, `count` in all, and every kind of surroundings once."""
    rng = np.random.default_rng([seed, 37])
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "odd.toml").write_text(SPEC)
        (place / "plain.toml").write_text(PLAIN)
        told(["run", "plain.toml", "-o", "plain", "-j", "1", "--no-report"], place)
        kept = finished_runs(place / "plain")

        def table(i: int) -> tuple[int | None, str]:
            (place / "table.csv").write_bytes(odd_table(rng))
            return told(["run", "odd.toml", "-o", f"tables{i % 7}", "-j", "1", "--no-report"], place)

        def spec(i: int) -> tuple[int | None, str]:
            (place / "odd_spec.toml").write_bytes(odd_spec(rng))
            return told(["run", "odd_spec.toml", "-o", "plain", "-j", "1", "--no-report", "--set", "rounds=6"], place)

        lines = [_many("odd tables", count // 2, table), _many("a byte of a spec", count - count // 2, spec)]
        lost = len(kept - finished_runs(place / "plain"))
        return [lines[0], lines[1]._replace(lost=lost), *surroundings(place)]
