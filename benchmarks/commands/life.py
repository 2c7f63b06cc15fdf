"""What late, batched, lost and wrong feedback and changed labels cost agents of practice: docs/results/late-lost-wrong.md.

    python -m benchmarks life --tables FOLDER --keep

plays the specs of runs/life on the tables of a folder, of which the page says where they come from, and on sets of openml.org
in the cache that BANDITLAB_DATA_HOME names. --only delay,flip plays some. --keep writes docs/results/late-lost-wrong.csv (the
lines of other kinds stay), the figures and the page.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from analysis.result_pages.late_lost_wrong import FILE, HITS, KINDS, Line, Means, parts, read, save
from banditlab.analysis import load, look
from banditlab.analysis.pages import fill_page
from banditlab.engine import Sweep, make_spec
from banditlab.errors import UsageError
from benchmarks.measure.names import picked
from benchmarks.measure.rivals.tables import SETS
from benchmarks.page.late_lost_wrong_figures import figure

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "docs" / "results"
SPECS = ROOT / "runs" / "life"
OUT = ROOT / "runs" / "results" / "life"
NAMES = {
    "{'right': 1, 'wrong': 0}": HITS,
    "{'right': 0, 'wrong': 300}": "300 where wrong",
    "{'right': 300, 'wrong': 0}": "300 where right",
    "{'geometric': 100}": "geometric, mean 100",
    "{'lognormal': 100, 'sigma': 1.0}": "lognormal, mean 100",
}


def main(*, tables: str, only: str = "", jobs: int = 1, out: str = str(OUT), keep: bool = False) -> None:
    """Play the specs, or what is missing of them in the folder `out`, and print a line for each agent, setting and table."""
    kinds = picked("only", only, tuple(KINDS))
    lines: list[Line] = []
    for kind in kinds:
        play(kind, Path(tables), Path(out) / kind, jobs)
        lines += lines_of(kind, Path(out) / kind)
    for line in lines:
        print(*line[:4], *(f"{share:.2f}" for share in line.mistakes), sep="\t")
    if keep:
        path = PLACE / FILE
        others = [line for line in (read(path) if path.exists() else []) if line.kind not in kinds]
        save(path, sorted([*others, *lines], key=lambda line: list(KINDS).index(line.kind)))
        means = Means(read(path))
        for kind in means.kinds:
            look.save(figure(means, kind), PLACE.parent / "images" / f"late-lost-wrong-{kind}.png")
        fill_page(PLACE / "late-lost-wrong.md", parts(PLACE))


def play(kind: str, folder: Path, out: Path, jobs: int) -> None:
    """Play the spec of a kind."""
    spec = tomllib.loads((SPECS / f"{kind}.toml").read_text(encoding="utf-8"))
    for block in spec["environment"]:
        if "path" in block:
            path = folder / block["path"]
            if not path.exists():
                raise UsageError(f"--tables {folder}: there is no {path.name}")
            block["path"] = str(path)
    Sweep(make_spec(spec, kind)).run(out, jobs=jobs)


def lines_of(kind: str, out: Path) -> Iterator[Line]:
    """Yield a line for each setting, table and agent, in the order in which they were played."""
    results = load(out)
    for environment in results.environments:
        runs = results.runs[results.runs["environment"] == environment]
        for agent, rows in runs.groupby("label", sort=False):
            wide = rows.pivot(index="repetition", columns="round", values="expected_mistakes").sort_index()
            half, every = wide.columns
            share, later = 100.0 * wide[every] / every, 100.0 * (wide[every] - wide[half]) / (every - half)
            yield Line(kind, setting_of(kind, environment), table_of(environment), agent, tuple(share), tuple(later))


def setting_of(kind: str, environment: str) -> str:
    """Return what the setting of an environment is called on the page."""
    found = dict(re.findall(r"(?:feedback|change)\.(\w+)=(\{.*?\}|[^,)]+)", environment))
    if kind == "timeout":
        return f"{HITS if '{' in found['answered'] else 'all'}, {found['timeout']}"
    written = found["labels" if kind == "change" else kind]
    return NAMES.get(written, written)


def table_of(environment: str) -> str:
    """Return the name of an environment's table."""
    path, number = re.search(r"(\w[\w.-]*)\.csv\.gz", environment), re.search(r"data_id=(\d+)", environment)
    return path[1] if path else {str(number): name for name, number in SETS.items()}[number[1]]  # type: ignore[index]
