"""Write a results folder in the stored layout, with numbers the tests know."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from banditlab.results.files import parquet_of
from tests.results.by_hand import put

SPEC = """name = "{name}"
rounds = {rounds}
repetitions = {repetitions}
base_seed = 0
checkpoints = {checkpoints}
norm_bounds = {norm_bounds}

{blocks}
[store]
format = {format}

[versions]
banditlab = "0.1.0"
python = "3.11.7"
numpy = "2.4.6"
numba = "0.68.1"
scipy = "1.17.1"
"""


def checkpoints_of(rounds: int) -> list[int]:
    """Return 1, 2, 5 times powers of ten, and the last round."""
    return sorted({m * 10**e for m in (1, 2, 5) for e in range(9) if m * 10**e < rounds} | {rounds})


class Folder:
    """A results folder that is being written: add runs and comparators, then `write`."""

    def __init__(self, out: Path, rounds: int = 100, repetitions: int = 4, norm_bounds: tuple[float, ...] = (1.0, 3.0)):
        self.out, self.rounds, self.repetitions, self.norm_bounds = out, rounds, repetitions, norm_bounds
        self.checkpoints = checkpoints_of(rounds)
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.comparators: list[dict[str, Any]] = []
        self.streams: list[str] = []
        self.skipped: list[dict[str, str]] = []
        self.groups: dict[str, str] = {}
        self.data: dict[str, dict[str, float]] = {}
        self.blocks = '[[environment]]\nid = "Toy-v0"\n\n[[agent]]\nid = "fair"\n'

    def stream(self, environment: str, repetition: int) -> str:
        return f"s{repetition:03d}{abs(hash_text(environment)):08x}"

    def add_run(
        self,
        label: str,
        repetition: int,
        expected: float | np.ndarray,
        *,
        environment: str = "Toy-v0",
        kind: str = "bit",
        mistakes: float | np.ndarray | None = None,
        written: dict[str, Any] | None = None,
        bound: float | np.ndarray = math.nan,
        bound_unit: str = "",
        expected_kind: str = "unconditional",
        stream_id: str | None = None,
        resolved: dict[str, Any] | None = None,
        seconds: float = 0.01,
        explored: float = math.nan,
    ) -> str:
        """Add one run; a number stands for the last round and grows linearly up to it.

        It is one without a table and without labels: every round is a first showing, and no class is the most frequent.
        """
        written = written or {}
        share = np.array(self.checkpoints) / self.rounds
        expected = np.asarray(expected) * (share if np.ndim(expected) == 0 else 1.0)
        mistakes = expected if mistakes is None else np.asarray(mistakes) * (share if np.ndim(mistakes) == 0 else 1.0)
        bounds = np.broadcast_to(bound, share.shape)
        text = json.dumps([label, environment, repetition, written], sort_keys=True)
        run_id = f"{abs(hash_text(text)):08x}" * 4
        stream = stream_id or self.stream(environment, repetition)
        self.streams += [stream] if stream not in self.streams else []
        base = {"run_id": run_id, "stream_id": stream, "kind": kind, "environment": environment}
        base |= {"player": label.split("(")[0], "label": label, "repetition": repetition}
        params = {f"param.{k}": v for k, v in (written | (resolved or {})).items()}
        settings = {f"setting.{k}": str(v) for k, v in written.items()}
        self.rows[run_id] = [
            base
            | {"round": r, "mistakes": round(float(mistakes[i])), "expected_mistakes": float(expected[i])}
            | {"expected_kind": expected_kind, "log_loss": float(expected[i]) * 1.2, "explored": explored * share[i]}
            | {"bound": float(bounds[i]), "bound_unit": bound_unit, "certificate": math.nan}
            | {"seconds": seconds * share[i], "row_losses": None}
            | {"first_sight_rounds": r, "first_sight_mistakes": round(float(mistakes[i]))}
            | {"first_sight_expected_mistakes": float(expected[i]), "mistakes_variance": math.nan}
            | {"constant_mistakes": None, "first_sight_constant_mistakes": None}
            | params
            | settings
            for i, r in enumerate(self.checkpoints)
        ]
        return run_id

    def add_comparator(
        self,
        repetition: int,
        norm_bound: float,
        loss: float | np.ndarray,
        *,
        environment: str = "Toy-v0",
        gap: float = 0.0,
    ) -> None:
        """Add one stream's comparator at one B; a number stands for the last round."""
        share = np.array(self.checkpoints) / self.rounds
        losses = np.asarray(loss) * (share if np.ndim(loss) == 0 else 1.0)
        for r, nats in zip(self.checkpoints, losses):
            self.comparators.append(
                {
                    "stream_id": self.stream(environment, repetition),
                    "environment": environment,
                    "repetition": repetition,
                }
                | {
                    "round": r,
                    "norm_bound": norm_bound,
                    "loss_nats": float(nats),
                    "loss_bits": float(nats) / math.log(2),
                }
                | {"gap": gap, "mistakes": int(nats / 2), "seconds": 0.1}
            )

    def write(self, *, shards: int = 0, format: int = 1, plan: list[str] | None = None) -> Path:
        """Write the folder, the last `shards` runs as shards of their own, the others compacted."""
        self.out.mkdir(parents=True, exist_ok=True)
        ids = list(self.rows)
        spec = SPEC.format(
            name="toy", rounds=self.rounds, repetitions=self.repetitions, checkpoints=self.checkpoints,
            norm_bounds=[float(b) for b in self.norm_bounds], blocks=self.blocks, format=format,
        )  # fmt: skip
        put(self.out, "spec.toml", spec)
        record = {"runs": ids if plan is None else plan, "skipped": self.skipped, "streams": self.streams}
        record |= {"data": self.data, "groups": self.groups}
        put(self.out, "runs.json", record)
        compact, single = ids[: len(ids) - shards], ids[len(ids) - shards :]
        if compact:
            put_frame(self.out, "results.parquet", pd.DataFrame([row for i in compact for row in self.rows[i]]))
        for i in single:
            put_frame(self.out, f"shards/{i[:2]}/{i}.parquet", pd.DataFrame(self.rows[i]))
        if self.comparators:
            for stream, rows in pd.DataFrame(self.comparators).groupby("stream_id"):
                put_frame(self.out, f"comparators/{stream}.parquet", rows)
        return self.out


def put_frame(folder: Path, name: str, frame: pd.DataFrame) -> None:
    """Write a table of a results folder and list it."""
    put(folder, name, parquet_of(pa.Table.from_pandas(frame, preserve_index=False)))


def hash_text(text: str) -> int:
    """Return 32 bits that depend on the text only."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


@pytest.fixture
def new_folder(tmp_path: Path) -> Callable[..., Folder]:
    """Return a maker of results folders: new_folder(rounds=100, repetitions=4, norm_bounds=(1.0, 3.0))."""
    return lambda **kwargs: Folder(tmp_path / "out", **kwargs)


@pytest.fixture(scope="session")
def folder_type() -> type[Folder]:
    """Return the class itself, for fixtures that outlive a test."""
    return Folder
