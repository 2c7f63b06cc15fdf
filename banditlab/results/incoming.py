"""Write files and rows from another folder or machine into a results folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from banditlab.results.files import array_of
from banditlab.results.reading import runs_of
from banditlab.results.store import Store


def take(store: Store, files: Mapping[str, bytes]) -> None:
    """Write files that another machine created.

    Parameters
    ----------
    files
        Contents of files by their path in a results folder: shards, comparators (.npz, .parquet), records of failures.
    """
    for name, data in files.items():
        id_ = Path(name).stem
        if name.startswith("shards/"):
            store.write(name, data)
            store.forgive(runs_of(data))
        elif name.startswith("failed/"):
            store.write(name, data)
        elif name.endswith(".parquet"):
            store.write_comparator_files(id_, [files[each] for each in store.comparator_files(id_)])


def take_rows(store: Store, rows: pa.Table, texts: Mapping[str, str], wanted: set[str]) -> set[str]:
    """Write the rows of the runs that are wanted and have a description in `texts` (by run id); return their ids."""
    mine = {id_: text for id_, text in texts.items() if id_ in wanted}
    if mine:
        store.write_shard(rows.filter(pc.is_in(rows["run_id"], array_of(sorted(mine), pa.string()))), mine)
    return set(mine)
