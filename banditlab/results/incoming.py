"""Files that were made in another folder, taken into a results folder: verified, each run once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from banditlab.results.files import array_of, listing, parsed
from banditlab.results.reading import runs_of
from banditlab.results.schema import SUMS
from banditlab.results.store import Store


class DamagedError(Exception):
    """A file is not what its folder's manifest says."""


def take(store: Store, files: Mapping[str, bytes], wanted: set[str]) -> set[str]:
    """Write what belongs to the wanted runs and streams, and return whose rows were written.

    Parameters
    ----------
    files
        Contents by their names in a results folder: shards, comparators (.npz and .parquet), records of failures, and the
        manifest that lists them.
    wanted
        Ids; rows of other runs are left out, so that none is written twice.

    Raises
    ------
    DamagedError
        A file does not match the manifest; nothing is written.
    """
    lines = files.get(SUMS, b"").split(b"\n")
    for name, data in files.items():
        if name != SUMS and listing(name, data) not in lines:
            raise DamagedError(name)
    done: set[str] = set()
    for name, data in files.items():
        id_ = Path(name).stem
        if name.startswith("shards/"):
            done |= take_rows(store, parsed(data), runs_of(data), wanted - done)
        elif name.startswith("failed/") and id_ in wanted:
            store.write(f"failed/{id_}.json", data)
    for id_ in wanted:
        contents = [files[name] for name in store.comparator_files(id_) if name in files]
        if len(contents) == 2:
            store.write_comparator_files(id_, contents)
            done.add(id_)
    return done


def take_rows(store: Store, rows: pa.Table, texts: Mapping[str, str], wanted: set[str]) -> set[str]:
    """Write the rows of the wanted runs, whose descriptions are given by id, and return their ids."""
    mine = {id_: text for id_, text in texts.items() if id_ in wanted}
    if mine:
        store.write_shard(rows.filter(pc.is_in(rows["run_id"], array_of(sorted(mine), pa.string()))), mine)
    return set(mine)
