"""Export a policy's log as Vowpal Wabbit's dsjson or as Parquet."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from banditlab.errors import UsageError
from banditlab.offpolicy.log import Floats
from banditlab.policy.choice import Name
from banditlab.policy.events import Decided
from banditlab.policy.log_events import AnsweredDecisions
from banditlab.policy.logged import OBJECTS


def export_log(log: str | os.PathLike[str], out: str | os.PathLike[str]) -> list[str]:
    """Write the decisions with feedback in a policy's log to a file, and return a summary.

    Contexts are written as encoded. A Parquet file has them in the columns x0, x1, ... Its other columns are id, time
    (Unix time in seconds), action, reward, propensity, held (whether the holdback policy made the decision), and for
    each action the column p:NAME with its probability.

    Parameters
    ----------
    log
        As in `Policy.resume`.
    out
        The file, with the ending .dsjson or .parquet.

    Returns
    -------
    list of str
        The number of decisions written, and the reasons why other decisions were left out.

    Raises
    ------
    UsageError
        `out` has another ending or cannot be written, or fewer than two decisions have feedback.
    LogError
        The log cannot be read.
    """
    path = Path(out)
    if path.suffix not in (".dsjson", ".parquet"):
        raise UsageError(f"-o {out}: the ending must be .dsjson or .parquet")
    decisions = AnsweredDecisions(os.fspath(log))
    try:
        with open(path, "wb") as file:
            (_write_lines if path.suffix == ".dsjson" else _write_parquet)(decisions, file)
    except OSError as error:
        raise UsageError(f"-o {out}: cannot be written ({error.strerror})") from None
    return [f"{decisions.rounds:,} decisions written to {out}", *decisions.notes]


def _write_lines(log: AnsweredDecisions, file: IO[bytes]) -> None:
    file.writelines(f"{json.dumps(_line(log.names, *each))}\n".encode() for each in log)


def _line(names: list[Name], decision: Decided, right: bool, p: Floats, able: Floats) -> dict[str, Any]:
    """Return a decision as the object of a line of dsjson; actions that were not allowed are not in it."""
    places, x = np.flatnonzero(able), decision.record.context
    chosen = int(np.flatnonzero(places == decision.record.action)[0])
    order = [chosen, *(k for k in range(len(places)) if k != chosen)]
    moment = datetime.fromtimestamp(decision.at, UTC).isoformat(timespec="milliseconds")
    return {
        "_label_cost": -float(right),
        "_label_probability": p[places[chosen]].item(),
        "_label_Action": chosen + 1,
        "_labelIndex": chosen,
        "Timestamp": moment.replace("+00:00", "Z"),
        "Version": "1",
        "EventId": decision.id,
        "a": [k + 1 for k in order],
        "c": {
            "x": {f"x{j}": x[j].item() for j in np.flatnonzero(x)},
            "_multi": [{"action": {str(names[k]): 1}} for k in places],
        },
        "p": p[places[order]].tolist(),
        "VWState": {"m": "N/A"},
    }


def _write_parquet(log: AnsweredDecisions, file: IO[bytes]) -> None:
    import pyarrow.parquet

    rows = (_row(log.names, *each) for each in log)
    table = pyarrow.Table.from_pylist([*islice(rows, OBJECTS)])
    with pyarrow.parquet.ParquetWriter(file, table.schema) as writer:
        while len(table):
            writer.write_table(table)
            table = pyarrow.Table.from_pylist([*islice(rows, OBJECTS)], table.schema)


def _row(names: list[Name], decision: Decided, right: bool, p: Floats, _: Floats) -> dict[str, Any]:
    record = decision.record
    row = {"id": decision.id, "time": decision.at, "action": str(names[record.action])}
    row |= {"reward": float(right), "propensity": p.item(record.action)}
    row |= {"held": record.held is not None and record.held.held}
    row |= {f"p:{name}": value for name, value in zip(names, p.tolist(), strict=True)}
    return row | {f"x{j}": value for j, value in enumerate(record.context.tolist())}
