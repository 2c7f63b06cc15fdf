"""The contents of a results folder.

    spec.toml                                    resolved, with versions and the store format number
    runs.json                                    the current spec's run ids, stream ids and skipped pairs
    shards/<first two of id>/<run_id>.parquet    a run; several runs: <run_id of one>-<hash of all ids>.parquet
    comparators/<stream_id>.parquet, .npz        losses at checkpoints, and the weights W
    failed/<run_id>.json                         traceback; the run is tried again on the next call
    results.parquet, descriptions.parquet        the runs of the shards, which are then removed
    comparators.parquet                          the rows of all streams, for other programs
    SHA256SUMS                                   the manifest: SHA-256 and name of every file above, one line each
    <name>.damaged                               a file that did not match the manifest, renamed by the next sweep
    report.html, figures/, tables/               the report of the current spec
    earlier/<hash>/                              a report of an earlier spec, with that spec

A file counts only if the manifest lists the SHA-256 of its bytes. Every file is written and fsynced under a temporary
name and listed in the manifest, which is fsynced; then the file is renamed. A file with its final name is therefore
complete and listed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa

FORMAT = 1
SUMS = "SHA256SUMS"
SHARDS = "shards/*/*.parquet"
LISTED = (
    "spec.toml",
    "runs.json",
    "results.parquet",
    "descriptions.parquet",
    "comparators.parquet",
    SHARDS,
    "comparators/*.npz",
    "comparators/*.parquet",
    "failed/*.json",
)
"""Patterns of the files that the manifest lists."""
COMPARATOR = "comparator"  # the player in the record of a failure of a stream's comparators
COUNTED = (
    "mistakes_variance",
    "first_sight_rounds",
    "first_sight_mistakes",
    "first_sight_expected_mistakes",
    "constant_mistakes",
    "first_sight_constant_mistakes",
)
"""Columns that count mistakes, which are attributes of `engine.runner.Played`.

A further column is `row_losses`, in a run's last row: the expected mistakes of each row of a table (or group of rows)
in the first pass, followed by the number of its rows that occurred, as little-endian float32.
"""
UNCOVERED = "no theorem covers this stream"
"""`no_bound` of a run in an adaptive environment, in which the player's bound does not hold."""
ONE_RIGHT = "its theorem assumes one right action"
"""`no_bound` of a run in which several actions may be right, if the player has a bound."""
LATE = "its theorem does not cover these late, lost or wrong bits"
"""`no_bound` of a run with late, lost or wrong feedback, if the player has a bound."""
Rows = dict[str, list[Any]]
RUNS = "banditlab.runs"  # the key of a shard's metadata for its runs' descriptions by id, as JSON

COLUMNS: dict[str, pa.DataType] = {
    **dict.fromkeys(("run_id", "stream_id", "kind", "environment", "player", "label"), pa.string()),
    **dict.fromkeys(("repetition", "round", "mistakes"), pa.int64()),
    **dict.fromkeys(("expected_mistakes", "log_loss", "explored"), pa.float64()),
    **dict.fromkeys(("bound", "certificate", "seconds"), pa.float64()),
    **dict.fromkeys(("expected_kind", "bound_unit", "no_bound"), pa.string()),
    **dict.fromkeys((name for name in COUNTED if "expected" not in name and "variance" not in name), pa.int64()),
    **dict.fromkeys(("mistakes_variance", "first_sight_expected_mistakes"), pa.float64()),
    "row_losses": pa.binary(),
    **dict.fromkeys(("loss_nats", "loss_bits", "gap", "norm_bound"), pa.float64()),
    "description": pa.string(),
}


class Finished(NamedTuple):
    """A finished run that is not yet stored, with its rows as columns and its description."""

    run_id: str
    rows: Rows
    description: dict[str, Any]


def type_of(name: str, values: list[Any]) -> pa.DataType:
    if name in COLUMNS:
        return COLUMNS[name]
    if name.startswith("diagnostic."):
        return pa.float64()
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values if v is not None)
    return pa.float64() if numbers and not name.startswith("setting.") else pa.string()
