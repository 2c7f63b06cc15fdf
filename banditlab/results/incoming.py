"""Files that were made in another folder, taken into a results folder: verified, each run once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow.compute as pc

from banditlab.results.files import array_of, parsed, write_bytes, write_parquet
from banditlab.results.reading import runs_of
from banditlab.results.schema import RUNS
from banditlab.results.seal import is_whole
from banditlab.results.store import STREAM, Store


class DamagedError(Exception):
    """A file is not what its own checksum or its name says."""


def take(store: Store, files: Mapping[str, bytes], wanted: set[str]) -> set[str]:
    """Write what belongs to the wanted runs and streams, and return whose rows were written.

    Parameters
    ----------
    files
        Contents by their names in a results folder: shards, comparators (.npz and .parquet) and records of failures.
    wanted
        Ids; rows of other runs are left out, so that none is written twice.

    Raises
    ------
    DamagedError
        A file is damaged, or not what its name says; nothing of it is written.
    """
    done: set[str] = set()
    for name, data in files.items():
        if not is_whole(data):
            raise DamagedError(name)
        if name.startswith("shards/"):
            done |= _take_shard(store, name, data, wanted - done)
    for name, data in files.items():
        id_ = Path(name).stem
        if name.startswith("comparators/") and name.endswith(".parquet") and id_ in wanted:
            _take_comparators(store, id_, data, files.get(f"comparators/{id_}.npz", b""))
            done.add(id_)
        elif name.startswith("failed/") and id_ in wanted:
            if json.loads(data).get("run_id") != id_:
                raise DamagedError(name)
            write_bytes(store.folder / "failed" / f"{id_}.json", data)
    return done


def _take_shard(store: Store, name: str, data: bytes, wanted: set[str]) -> set[str]:
    texts = runs_of(Path(name), data)
    if texts is None:
        raise DamagedError(name)
    mine = {id_: text for id_, text in texts.items() if id_ in wanted}
    if not mine:
        return set()
    if len(mine) == len(texts):
        write_bytes(store.shard(*texts), data)
    else:
        table = parsed(Path(name), data)
        if table is None:
            raise DamagedError(name)
        rows = table.filter(pc.is_in(table["run_id"], array_of(sorted(mine), table.schema.field("run_id").type)))
        write_parquet(store.shard(*mine), rows.replace_schema_metadata({RUNS: json.dumps(mine)}))
    store.forgive(mine)
    return set(mine)


def _take_comparators(store: Store, stream_id: str, rows: bytes, weights: bytes) -> None:
    table, file = store.comparator_files(stream_id)
    found = parsed(table, rows, ["stream_id"])
    if found is None or set(found["stream_id"].unique().to_pylist()) != {stream_id}:
        raise DamagedError(table.name)
    if not is_whole(weights) or f"{STREAM}{stream_id} ".encode() not in weights:
        raise DamagedError(file.name)
    write_bytes(file, weights)
    write_bytes(table, rows)
    (store.folder / "failed" / f"{stream_id}.json").unlink(missing_ok=True)
