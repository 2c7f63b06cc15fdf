"""A policy's log as a file that others read: Vowpal Wabbit's dsjson, or Parquet."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import numpy as np

from banditlab.errors import UsageError
from banditlab.policy.choice import Name
from banditlab.policy.log_events import AnsweredDecisions, Decision


def export_log(log: str | os.PathLike[str], out: str | os.PathLike[str]) -> list[str]:
    """Write the answered decisions of a policy's log to a file, and return what is to be known of it, a sentence each.

    Contexts are the encoded ones. In Parquet they are the columns x0, x1, ..., beside id, time (seconds since 1970), action,
    reward, propensity, held (back), and the probabilities of all actions, p: and the action's name.

    Parameters
    ----------
    log
        The log, as `Policy.resume` takes it.
    out
        The file, with the ending .dsjson or .parquet.

    Raises
    ------
    UsageError
        Another ending, fewer than two answered decisions, or a file that cannot be written.
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
    return [f"{decisions.rounds:,} decisions written to {out}", *decisions.notes()]


def _write_lines(decisions: AnsweredDecisions, file: IO[bytes]) -> None:
    for some in decisions.chunks():
        file.writelines(f"{json.dumps(dsjson_of(one, decisions.names))}\n".encode() for one in some)


def dsjson_of(one: Decision, names: list[Name]) -> dict[str, object]:
    """Return a decision as the object of a line of dsjson; actions that were not allowed are not in it."""
    able = np.flatnonzero(one.able)
    chosen = int(np.flatnonzero(able == one.action)[0])
    order = [chosen, *(k for k in range(len(able)) if k != chosen)]
    p = one.propensities[able].tolist()
    moment = datetime.fromtimestamp(one.at, UTC).isoformat(timespec="milliseconds")
    return {
        "_label_cost": -one.reward,
        "_label_probability": p[chosen],
        "_label_Action": chosen + 1,
        "_labelIndex": chosen,
        "Timestamp": moment.replace("+00:00", "Z"),
        "Version": "1",
        "EventId": one.id,
        "a": [k + 1 for k in order],
        "c": {
            "x": {f"x{j}": one.context[j].item() for j in np.flatnonzero(one.context)},
            "_multi": [{"action": {str(names[k]): 1}} for k in able],
        },
        "p": [p[k] for k in order],
        "VWState": {"m": "N/A"},
    }


def _write_parquet(decisions: AnsweredDecisions, file: IO[bytes]) -> None:
    import pyarrow
    import pyarrow.parquet

    writer = None
    for some in decisions.chunks():
        ids, at, action, _, p, X, held, reward = zip(*some, strict=True)
        own = np.array(action)
        columns: dict[str, Any] = {
            "id": ids,
            "time": at,
            "action": [str(decisions.names[k]) for k in own],
            "reward": reward,
        }
        columns |= {"propensity": np.array(p)[np.arange(len(own)), own], "held": held}
        columns |= {f"p:{name}": np.array(p)[:, k] for k, name in enumerate(decisions.names)}
        columns |= {f"x{j}": column for j, column in enumerate(np.array(X).T)}
        table = pyarrow.table({name: np.asarray(values) for name, values in columns.items()})
        writer = writer or pyarrow.parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
