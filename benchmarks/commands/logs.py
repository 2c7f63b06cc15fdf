"""Long logs: rows a second and the peak of memory of `banditlab evaluate`, beside Vowpal Wabbit's pass over the same file.

    python -m benchmarks logs --rows 1000000

draws a log with 4 actions, two numbers and a text as context, and known propensities, writes it in each format, and evaluates
it in a fresh process each time. Vowpal Wabbit reads the dsjson, too; "db" is a policy's event log, in which every decision has
its answer. Seconds are those of a core, of the whole process: a busy machine adds less to them than to those of a clock.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet

from banditlab import Policy
from banditlab.policy.choice import Record
from banditlab.policy.container import read
from banditlab.policy.events import PLACE, Answered, Decided, Event
from banditlab.policy.log import EventLog
from banditlab.validation import at_least

K, CHUNK = 4, 100_000
P = np.array([0.4, 0.3, 0.2, 0.1])
CITIES = np.array(["Bern", "Oslo", "Rome", "Wien"])
OURS = "from banditlab.cli.main import app; app(['evaluate', {file!r}, '--policy', {policy!r}], standalone_mode=False)"
THEIRS = "from vowpalwabbit import Workspace; Workspace('--cb_explore_adf --quiet --dsjson -d {file}').finish()"
PEAK = (
    "; import resource; used = resource.getrusage(resource.RUSAGE_SELF)"
    "; [peak] = [line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')]"
    "; print(used.ru_utime + used.ru_stime, peak)"
)
"""Linux only. The peak that `resource` knows is at least that of the process which started this one."""


def main(*, rows: int = 1_000_000, kinds: str = "csv,parquet,dsjson,db", policy: str = "uniform") -> None:
    """Print a line for each format and program."""
    at_least("rows", rows, CHUNK)
    print(f"{rows:,} rows of {K} actions, policy {policy}\n")
    print(f"{'file':<10}{'program':<12}{'MB':>8}{'CPU s':>8}{'rows/CPU s':>12}{'peak MiB':>10}")
    for kind in kinds.split(","):
        with tempfile.TemporaryDirectory() as folder:
            file = written(Path(folder) / f"log.{kind}", rows)
            programs = {"banditlab": OURS.format(file=str(file), policy=policy)}
            if kind == "dsjson":
                programs["VW"] = THEIRS.format(file=file)
            for name, code in programs.items():
                seconds, peak = measured(code + PEAK)
                size = file.stat().st_size / 1e6
                print(
                    f"{kind:<10}{name:<12}{size:>8,.0f}{seconds:>8.1f}{rows / seconds:>12,.0f}{peak:>10,.0f}",
                    flush=True,
                )


def measured(code: str) -> tuple[float, float]:
    """Return seconds of a core and MiB of a process that runs the code."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, peak = map(float, done.stdout.split()[-2:])
    return seconds, peak / 1024.0


def chunks(rows: int) -> Iterator[pd.DataFrame]:
    """Yield the log in parts."""
    rng = np.random.default_rng(0)
    for start in range(0, rows, CHUNK):
        m = min(CHUNK, rows - start)
        a, city, age = rng.choice(K, m, p=P), rng.integers(len(CITIES), size=m), rng.integers(18, 80, m)
        reward = (rng.random(m) < np.where(a == city, 0.7, 0.2)).astype(int)
        yield pd.DataFrame(
            {"city": CITIES[city], "age": age, "visits": rng.integers(0, 100, m) / 10, "action": a, "reward": reward}
            | {"propensity": P[a]}
        )


def written(file: Path, rows: int) -> Path:
    """Write the log in the format of the file's ending."""
    writer = None
    if file.suffix == ".db":
        return written_events(file, rows)
    with open(file, "wb") as out:
        for i, frame in enumerate(chunks(rows)):
            if file.suffix == ".csv":
                frame.to_csv(out, index=False, header=i == 0)
            elif file.suffix == ".dsjson":
                numbered = enumerate(frame.itertuples(index=False, name=None), i * CHUNK)
                out.writelines(f"{json.dumps(line_of(number, *row))}\n".encode() for number, row in numbered)
            else:
                table = pyarrow.Table.from_pandas(frame)
                writer = writer or pyarrow.parquet.ParquetWriter(out, table.schema)
                writer.write_table(table)
        if writer is not None:
            writer.close()
    return file


def written_events(file: Path, rows: int) -> Path:
    """Write the log as a policy's event log."""
    columns = {"city": [*CITIES], "age": [18, 80], "visits": [0.0, 10.0]}
    policy = Policy.new(columns, [*map(str, range(K))], agent="uniform")
    policy.save(file.with_suffix(".policy"))
    Policy.open(file.with_suffix(".policy"), file).close()
    encoder, seq = read(file.with_suffix(".policy")).encoder, 0
    with closing(EventLog(str(file))) as log:
        for frame in chunks(rows):
            X = encoder.transform(frame[[*columns]])
            events: list[Event] = []
            for x, a, r in zip(X, frame["action"].tolist(), frame["reward"].tolist(), strict=True):
                record = Record(x, a, P, None, None, 0)
                events.append(Decided(seq + 1, f"{seq + 1:0{PLACE}x}{0:020x}", 1e9, record, None))
                events.append(Answered(seq + 2, seq + 1, 1e9, bool(r)))
                seq += 2
            log.append(events)
    return file


def line_of(number: int, city: str, age: int, visits: float, action: int, reward: int, propensity: float) -> object:
    """Return a row as the object of a line of dsjson."""
    order = [action, *(k for k in range(K) if k != action)]
    return {
        "_label_cost": -reward,
        "_label_probability": propensity,
        "_label_Action": action + 1,
        "_labelIndex": action,
        "EventId": f"{number:x}",
        "a": [k + 1 for k in order],
        "c": {"u": {"city": city, "age": age, "visits": visits}, "_multi": [{"t": {f"a{k}": 1}} for k in range(K)]},
        "p": P[order].tolist(),
    }
