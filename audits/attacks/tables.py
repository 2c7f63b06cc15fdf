"""Odd tables: files of rows that are damaged, strange or far too large; each is read or refused in one line."""

from __future__ import annotations

import gzip
import importlib
import io
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from audits.attacks.lines import Line, line
from banditlab.analysis.cells import STARTS, write_csv
from banditlab.engine.spec import make_spec
from banditlab.envs.table import Table
from banditlab.errors import BanditlabError

TITLE = "Odd tables, large requests, cells of tables"
WORDS = """The inputs are of two kinds. Files in CSV, LIBSVM and Parquet contain flipped bits, replaced cells, entries
of 1e-320 to 1e308, an index of 2e9, or a million columns, or are gzip bombs. Specs have 1e9 repetitions or 6.4e7 grid
points. An outcome is `right` if the file is read and gives finite contexts of norm at most R and at least two classes,
or if it is written as CSV and read back without a cell that a spreadsheet would execute. It is `named` if the input is
rejected with a one-line message that names the file or the limit, and `lost` if reading or rejecting takes more than
ten seconds."""
COUNT = 1_500
SECONDS = 10.0
CELLS = (
    *("", "\0", "\r", "9" * 400),
    *("nan", "inf", "-1e308", "1e308", "1e-320", "1e200", "1e400", "x", "'", '"', '"a', "=1+1", "é"),
)


def attack(count: int, seed: int) -> list[Line]:
    """Return a line for every kind of table."""
    kinds: list[tuple[str, Callable[[np.random.Generator, Path], dict[str, Any]], int]] = [
        ("CSV: bits flipped", _flipped("t.csv", _csv), count // 5),
        ("CSV: cells replaced", _cells, count // 4),
        ("LIBSVM: bits flipped", _flipped("t.libsvm", _libsvm), count // 5),
        ("Parquet: bits flipped", _flipped("t.parquet", _parquet), count // 6),
        ("gzip: bits flipped", _flipped("t.csv.gz", lambda: gzip.compress(_csv(), mtime=0)), count // 6),
        ("far too large", _large, 4),
    ]
    lines = []
    for module in ("pyarrow.parquet", "sklearn.datasets"):  # whose import may take longer than a refusal may
        importlib.import_module(module)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for words, make, times in kinds:
            found: Counter[str] = Counter()
            for number in range(max(1, times)):
                rng = np.random.default_rng([seed, number, *map(ord, words)])
                found[_read(make(rng, Path(folder)))] += 1
            lines.append(line(words, found))
        lines.append(line("specs of too many runs", Counter(_spec(i) for i in range(2))))
        lines.append(line("cells of tables written as CSV", _written(max(1, count // 10), seed, Path(folder))))
    return lines


def _read(settings: dict[str, Any]) -> str:
    """Return how reading a table ended."""
    begin = time.perf_counter()
    try:
        rows = Table(**settings)._table
    except BanditlabError as error:
        slow = time.perf_counter() - begin > SECONDS
        said = str(error)
        return "lost" if slow else "named" if "\n" not in said and settings["path"] in said else "tracebacks"
    except Exception:
        traceback.print_exc()
        return "tracebacks"
    X = np.asarray(rows.X.toarray() if hasattr(rows.X, "toarray") else rows.X)
    fits = np.isfinite(X).all() and (np.linalg.norm(X, axis=1) <= rows.radius * (1.0 + 1e-9)).all()
    return "right" if fits and X.any() and len(set(rows.y.tolist())) >= 2 else "wrong"


# ------------------------------------------------------------------------------------------------------------ the files


def _frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(size=(40, 3)), 3)
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        kind=rng.choice(["red", "blue"], 40), y=rng.integers(3, size=40)
    )


def _csv() -> bytes:
    return bytes(_frame().to_csv(index=False).encode())


def _libsvm() -> bytes:
    rows = _frame().drop(columns="kind").to_numpy()
    return "".join(f"{int(y)} 1:{a} 2:{b} 7:{c}\n" for a, b, c, y in rows).encode()


def _parquet() -> bytes:
    out = io.BytesIO()
    _frame().to_parquet(out)
    return out.getvalue()


def _flipped(name: str, made: Callable[[], bytes]) -> Callable[[np.random.Generator, Path], dict[str, Any]]:
    plain = made()

    def make(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
        data = bytearray(plain)
        for place in rng.integers(len(data), size=rng.integers(1, 4)):
            data[place] ^= 1 << rng.integers(8)
        (folder / name).write_bytes(data)
        return {"path": str(folder / name), "label": "" if "libsvm" in name else "y"}

    return make


def _cells(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    frame = _frame().astype(object)
    for _ in range(rng.integers(1, 5)):
        frame.iloc[rng.integers(len(frame)), rng.integers(frame.shape[1])] = CELLS[rng.integers(len(CELLS))]
    if rng.random() < 0.2:
        frame.iloc[:, rng.integers(frame.shape[1])] = CELLS[rng.integers(len(CELLS))]
    file = folder / "cells.csv"
    frame.to_csv(file, index=False)
    missing = ("error", "mean", "zero", "indicator", "drop_rows")[rng.integers(5)]
    return {"path": str(file), "label": "y", "missing": missing, "scaling": ("none", "minmax", "auto")[rng.integers(3)]}


def _large(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    """Return one of the four, each in its turn."""
    file = folder / ("large.libsvm", "bomb.csv.gz", "wide.csv", "bomb.libsvm.gz")[_large.turn % 4]  # type: ignore[attr-defined]
    _large.turn += 1  # type: ignore[attr-defined]
    if file.name == "large.libsvm":
        file.write_text("1 2000000000:1\n0 1:1\n")
    elif file.name == "wide.csv":
        file.write_text(",".join(f"c{i}" for i in range(10**6)) + "\n" + "0," * (10**6 - 1) + "1\n")
    else:
        with gzip.open(file, "wb", compresslevel=1) as out:
            for _ in range(160):  # 2.5 GiB
                out.write(b"\0" * 2**24)
    return {"path": str(file), "label": "" if "libsvm" in file.name else "c0"}


_large.turn = 0  # type: ignore[attr-defined]


def _spec(which: int) -> str:
    grid = {f"s{i}": list(range(20)) for i in range(6)}
    asked = ({"repetitions": 10**9}, {"agent": [{"id": "uniform", "grid": grid}]})[which]
    data = {"rounds": 10, "environment": [{"id": "banditlab/SynSep-v0"}], "agent": [{"id": "uniform"}], **asked}
    try:
        make_spec(data, "spec.toml")
    except BanditlabError as error:
        return "named" if "BANDITLAB_MAX_RUNS" in str(error) and "\n" not in str(error) else "tracebacks"
    return "wrong"


def _written(count: int, seed: int, folder: Path) -> Counter[str]:
    """Return how many tables with texts and numbers of all kinds are written so that no cell is a formula."""
    found: Counter[str] = Counter()
    rng = np.random.default_rng([seed, 17])
    texts = [start + rest for start in ("", *STARTS) for rest in ("", "1", "a", "1+1", "\r=1", "\n=1", ",=1", '"')]
    for _ in range(count):
        table = pd.DataFrame({"t": rng.choice(texts, 5), "x": rng.normal(size=5)})
        write_csv(table, folder / "out.csv")
        back = pd.read_csv(folder / "out.csv", dtype=str, keep_default_na=False)
        safe = all(not cell.startswith(STARTS) or _number(cell) for cell in back["t"])
        whole = len(back) == 5 and np.array_equal(back["x"].astype(float), table["x"])
        found["right" if safe and whole else "wrong"] += 1
    return found


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
