"""Tables in which several actions are right: routers of language models, and tags.

    python -m benchmarks several --tables FOLDER --keep

plays the specs of runs/several-right on the tables of a folder; docs/results/routing.md and docs/results/tags.md say where
these come from. --only pareto,yeast plays some. --keep writes docs/results/several-right.csv (the lines of other tables stay)
and the pages.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from analysis.result_pages import routing, tags, which_model
from analysis.result_pages._several_right import FILE, Line, read
from analysis.result_pages.late_answers import write
from banditlab.analysis import load
from banditlab.analysis.arena import arenas
from banditlab.analysis.pages import fill_page
from banditlab.analysis.summary import differences, settings_table, summary_rows
from banditlab.engine import Sweep, make_spec
from banditlab.errors import UsageError

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "docs" / "results"
SPECS = ROOT / "runs" / "several-right"
OUT = ROOT / "runs" / "results" / "several-right"
REDUCED = ("medical", "bibtex", "tmc2007-500")
"""Tables of words, of which the features are replaced by a truncated SVD of 64."""


def main(*, tables: str, only: str = "", jobs: int = 1, keep: bool = False) -> None:
    """Play the specs and print a line for each player, setting and table."""
    names = only.split(",") if only else [spec.stem for spec in sorted(SPECS.glob("*.toml"))]
    lines: list[Line] = []
    for name in names:
        play(name, Path(tables), jobs)
        lines += lines_of(name)
        for line in lines:
            print(*line, sep="\t") if line.table == name else None
    if keep:
        path = PLACE / FILE
        others = [line for line in (read(path) if path.exists() else []) if line.table not in names]
        write(path, Line, sorted([*others, *lines], key=lambda line: line.table))
        fill_page(PLACE / "routing.md", routing.parts(PLACE))
        fill_page(PLACE / "tags.md", tags.parts(PLACE))
        fill_page(PLACE / "../tutorials/which-model.md", which_model.parts(PLACE))


def play(name: str, folder: Path, jobs: int) -> None:
    """Play the spec of a table."""
    spec = tomllib.loads((SPECS / f"{name}.toml").read_text(encoding="utf-8"))
    spec["environment"][0]["path"] = str(prepared(folder, name, spec["environment"][0]["path"]))
    Sweep(make_spec(spec, name)).run(OUT / name, jobs=jobs)


def lines_of(name: str) -> Iterator[Line]:
    """Yield the lines of a table: players at each setting, and what is known in hindsight."""
    results = load(OUT / name)
    [arena] = arenas(results)
    final, rounds = arena.final, arena.ranked_rounds
    costs = final.groupby(["label", "settings"])["cost"].mean()
    gaps = dict(versus(differences(arena)))
    for row in settings_table(arena).to_dict("records"):
        key = row["label"], row["settings"]
        gap = gaps.get(f"{key[0]} {key[1]}".strip(), "")
        numbers = (round(row[column], 5) for column in ("mistakes", "low", "high"))
        yield Line(name, *key, *numbers, round(float(costs[key]), 8), gap, int(rounds))
    for standing in summary_rows(results):
        if standing.constant:
            share, cost = round(standing.mistakes.mean, 5), round(standing.cost, 8)
            yield Line(name, standing.label, "hindsight", share, math.nan, math.nan, cost, "", int(rounds))


def versus(pairs: list) -> Iterator[tuple[str, str]]:
    """Yield, for each player beside beta-ts at its best setting, whether it is "ahead", "behind" or neither ("=")."""
    for first, second, gap in pairs:
        for player, other, low, high in ((first, second, gap.low, gap.high), (second, first, -gap.high, -gap.low)):
            if other.split()[0] == "beta-ts":
                yield player, "ahead" if high < 0.0 else "behind" if low > 0.0 else "="


def prepared(folder: Path, name: str, file: str) -> Path:
    """Return the file of a spec, made from the table it is derived of where it is."""
    for place in (folder / file, OUT / file):
        if place.exists():
            return place
    source = folder / ("mmlu.csv.gz" if name == "cascade" else f"{name}.csv.gz")
    if not source.exists():
        raise UsageError(f"--tables {folder}: there is no {source.name}")
    frame = pd.read_csv(source)
    if name == "cascade":
        cheap = frame.pop("mixtral-8x7b")
        made = frame.drop(columns="gpt-4").assign(cheap=cheap.astype(int), ask=1 - cheap.astype(int))
    else:
        made = reduced(frame)
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / file
    made.to_csv(path.with_suffix(".part"), index=False, compression={"method": "gzip", "mtime": 0})
    os.replace(path.with_suffix(".part"), path)
    return path


def reduced(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table's tags beside a truncated SVD of 64 of its features."""
    from sklearn.decomposition import TruncatedSVD

    tags = [column for column in frame.columns if column.startswith("tag_")]
    found = TruncatedSVD(64, random_state=0).fit_transform(frame.drop(columns=tags).to_numpy(float))
    columns = [f"svd {j}" for j in range(1, 65)]
    return pd.concat([pd.DataFrame(found, columns=columns), frame[tags]], axis=1)
