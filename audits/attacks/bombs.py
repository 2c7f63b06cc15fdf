"""Small files that stand for tables of hundreds of millions of entries."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from audits.attacks.lines import Line

TITLE = "Small files of large tables"
WORDS = """`banditlab compare` reads a file of up to 80 MB that expands to 20 to 840 million entries. An outcome is
`named` if the command rejects the file in one line that states the limit, and `wrong` if it reads the file. The first
column also gives the peak memory of the process, which is stopped at 8 GB."""
COUNT = 1
"""Files of each kind."""
MEMORY = 8 * 10**9
SCRIPT = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
from banditlab.envs import Table
from banditlab.errors import UsageError
try:
    Table(path=sys.argv[1], label="y")
    print("read", end=" ")
except UsageError as error:
    print("named" if "above the limit of" in str(error) else "refused", end=" ")
except MemoryError:
    print("memory", end=" ")
# `ru_maxrss` would begin with what the parent had before this program was loaded.
print(int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) // 1024)
"""


def zeros(path: Path) -> None:
    """Write 40,000,000 rows of 21 columns that hold zeros."""
    part = pa.table({**{f"c{j}": np.zeros(1_000_000) for j in range(20)}, "y": np.arange(1_000_000) % 2})
    with pq.ParquetWriter(path, part.schema, compression="zstd") as out:
        for _ in range(40):
            out.write_table(part)


def texts(path: Path) -> None:
    """Write one text of 10 MB that stands in 100,000 rows."""
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, np.int32)), pa.array(["x" * 10_000_000]))
    pq.write_table(pa.table({"t": text, "y": np.arange(100_000) % 2}), path, compression="zstd")


def lists(path: Path) -> None:
    """Write one row with a list of 60,000,000 numbers."""
    long = pa.ListArray.from_arrays(pa.array([0, 60_000_000], pa.int32()), pa.array(np.zeros(60_000_000, np.int8)))
    pq.write_table(pa.table({"t": long, "y": [1]}), path, compression="zstd")


def lines(path: Path) -> None:
    """Write 20,000,000 rows of two columns as text."""
    path.write_text("a,y\n" + "1,0\n2,1\n" * 10_000_000)


def relation(path: Path) -> None:
    """Write the same as an ARFF file."""
    path.write_text("@relation r\n@attribute a numeric\n@attribute y {0,1}\n@data\n" + "1,0\n2,1\n" * 10_000_000)


KINDS: dict[str, Callable[[Path], None]] = {
    "zeros.parquet": zeros, "texts.parquet": texts, "lists.parquet": lists, "lines.csv": lines, "lines.arff": relation,
}  # fmt: skip


def attack(count: int, seed: int) -> list[Line]:
    """Return a line for each kind of file."""
    with tempfile.TemporaryDirectory() as folder:
        return [_attack(Path(folder) / name, write) for name, write in KINDS.items()]


def _attack(path: Path, write: Callable[[Path], None]) -> Line:
    write(path)
    command = [sys.executable, "-c", SCRIPT.format(memory=MEMORY), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    outcome, _, memory = done.stdout.strip().partition(" ")
    named = outcome in ("named", "refused")
    return Line(
        f"{path.name} ({memory or 'ended'} MB)", 1, 0, int(named), 0, int(not named), int("Traceback" in done.stderr)
    )
