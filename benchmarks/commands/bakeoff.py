"""The bake-off: agents of practice and of theory, and Vowpal Wabbit's, over many tables: docs/results/bakeoff.md.

    python -m benchmarks bakeoff --tables FOLDER --out RESULTS --keep

plays runs/bakeoff.toml with the tables of FOLDER in the place of openml.org's (`python -m benchmarks reading` says what
FOLDER has and how a table is read), and Vowpal Wabbit over the same contexts in the same orders. What is finished in RESULTS
is not played again. --keep writes docs/results/bakeoff.csv, bakeoff-wins.csv, the figure and the page.
"""

from __future__ import annotations

import csv
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.result_pages import bakeoff as page
from banditlab.analysis import load, look
from banditlab.analysis.formats import data_title
from banditlab.analysis.pages import fill_page
from banditlab.analysis.statistics import difference, leads
from banditlab.distributions import library
from banditlab.engine import Sweep, make_spec
from banditlab.engine.plan import Run, make_plan
from banditlab.engine.spec import Spec
from benchmarks.commands.reading import read
from benchmarks.measure.one_player import in_child
from benchmarks.measure.rivals.tables import Stream
from benchmarks.measure.rivals.vowpal import examples
from benchmarks.page.bakeoff_figure import figure

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "docs" / "results"
FORMS = {
    "greedy": "--epsilon 0 --cb_type mtr",
    "epsilon-greedy": "--epsilon 0.02 --cb_type mtr",
    "RegCB-opt": "--regcbopt --mellowness 0.001 --cb_type mtr --cb_min_cost -1 --cb_max_cost 0",
    "Cover-NU": "--cover 4 --psi 0.1 --nounif --cb_type dr",
    "Bag-greedy": "--bag 4 --greedify --cb_type mtr",
}
"""The settings that Bietti et al. found best over tables for costs of -1 and 0."""
RATES = (0.1, 0.5, 2.0, 8.0)
USUAL = 0.5
"""Vowpal Wabbit's default learning rate."""
LIMIT = 3600.0
"""Seconds for all forms, rates and orders of one table."""


def main(
    *, tables: str, out: str = str(ROOT / "runs" / "results" / "bakeoff"), jobs: int = 1, keep: bool = False
) -> None:
    """Play what is missing in `out`, and print every agent's mean rank and ratio to the first."""
    place = Path(out)
    spec = local(Path(tables), place / "tables")
    Sweep(spec).run(place / "sweep", jobs=jobs)
    vowpal_wabbit(spec, place / "vw.csv")
    by_order = orders(place)
    table = collected(place, by_order)
    if keep:
        table.to_csv(PLACE / "bakeoff.csv", index=False, float_format="%.2f")
        wins(by_order).to_csv(PLACE / "bakeoff-wins.csv", index=False)
        look.save(figure(page.read(PLACE)), PLACE.parent / "images" / "bakeoff.png")
        fill_page(PLACE / "bakeoff.md", page.parts(PLACE))
    print(table.to_string())


def spec_of() -> dict[str, Any]:
    """Return the spec as it is written, with OpenML numbers."""
    return tomllib.loads((ROOT / "runs" / "bakeoff.toml").read_text(encoding="utf-8"))


def local(tables: Path, place: Path) -> Spec:
    """Return the spec with a file for each OpenML number, which is written into `place` as it is read."""
    spec = spec_of()
    [environment] = spec["environment"]
    known = pd.read_csv(tables / "index.csv").dropna(subset="openml_id").set_index("openml_id", drop=False)
    names = {number: f"{number}-{known.loc[number, 'file']}.csv.gz" for number in environment.pop("grid")["data_id"]}
    place.mkdir(parents=True, exist_ok=True)
    for number, name in names.items():
        if not (place / name).exists():
            read(tables, dict(known.loc[number])).to_csv(place / name, index=False)
    rest = {"id": "banditlab/Table-v0", "label": "class", "missing": environment["missing"]}
    spec["environment"] = [rest | {"path": str(place / name)} for name in names.values()]
    number_of = {f"openml:{number}": name for number, name in names.items()}
    spec["families"] = {family: [number_of[each] for each in ids] for family, ids in spec["families"].items()}
    return make_spec(spec, "bakeoff")


# ------------------------------------------------------------------------------------------------------- Vowpal Wabbit


def vowpal_wabbit(spec: Spec, file: Path) -> None:
    """Write a line for each table, form and learning rate that is not in the file: the mistakes in % of every order."""
    done = {row[0] for row in _lines(file)}
    runs = [run for run in make_plan(spec).runs if run.label == "uniform"]
    for run in (run for run in runs if run.repetition == 0):
        name = name_of(run.environment_label)
        if name in done:
            continue
        same = [each for each in runs if each.environment_label == run.environment_label]
        found = in_child(lambda same=same: losses(same), LIMIT)  # type: ignore[misc]
        with file.open("a", encoding="utf-8", newline="") as lines:
            csv.writer(lines).writerows([name, *key.split("@"), *each] for key, each in found.items())
        print("vw", name, flush=True)


def _lines(file: Path) -> list[list[str]]:
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines))


def losses(runs: list[Run]) -> dict[str, Any]:
    """Return the mistakes in % of each form and rate in the order of each run; all have one environment."""
    vw = library("vowpalwabbit.pyvw", "vw")
    env = runs[0].build_environment().unwrapped
    found: dict[str, Any] = {f"{form}@{rate:g}": [] for form in FORMS for rate in RATES}
    for run in runs:
        env.reset(seed=run.environment_seed())
        [(X, y)] = env.blocks(run.rounds, run.rounds)
        K = env.problem.n_classes
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "stream.vw"
            file.write_text(examples(Stream(X, y, K, 1.0, "", "", 0)))
            fixed = f"--cbify {K} --cb_explore_adf --loss0 -1 --loss1 0 --bit_precision 20 --quiet --holdout_off"
            seen = f"-d {file} --cache_file {file}.cache --random_seed {run.repetition + 1}"
            for form, options in FORMS.items():
                for rate in RATES:
                    model = vw.Workspace(f"{fixed} {seen} {options} --learning_rate {rate}")
                    share = model.get_sum_loss() / model.get_weighted_examples()  # mistakes, whatever they cost
                    model.finish()
                    found[f"{form}@{rate:g}"].append(round(100.0 * share, 4))
    return found


def name_of(environment: str) -> str:
    """Return a table's name: that of its file without the ending."""
    return data_title(environment).partition(".csv")[0]


# -------------------------------------------------------------------------------------------------------- what was played


def orders(place: Path) -> dict[str, pd.DataFrame]:
    """Return the mistakes in % by table, a column per player, a line per order; VW's at `USUAL` and at the best rate."""
    runs = load(place / "sweep").runs
    runs = runs.assign(table=runs["environment"].map(name_of), share=100.0 * runs["mistakes"] / runs["round"])
    found = {
        str(name): rows.pivot(index="repetition", columns="label", values="share").reset_index(drop=True)
        for name, rows in runs.groupby("table", sort=False)
    }
    by_rate: dict[tuple[str, str], list[Any]] = {}
    for name, form, rate, *values in _lines(place / "vw.csv"):
        by_rate.setdefault((name, form), []).append(np.array(values, dtype=float))
        if float(rate) == USUAL:
            found[name][f"VW {form}"] = by_rate[name, form][-1]
    for (name, form), each in by_rate.items():
        found[name][f"VW {form}, best rate"] = min(each, key=np.mean)
    return found


def collected(place: Path, by_order: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return a row per table: its size, its family, and the mean mistakes in % of every player."""
    results = load(place / "sweep")
    constant = results.runs.groupby(results.runs["environment"].map(name_of))["constant"].mean()
    data = {name_of(environment): facts for environment, facts in results.data.items()}
    families = {
        Path(each).name.partition(".csv")[0]: name
        for name, files in results.spec.get("families", {}).items()
        for each in files
    }
    return pd.DataFrame(
        {"table": name, "family": families.get(name, name)}
        | {size: int(data[name][size]) for size in ("rows", "features", "classes")}
        | {"most frequent class": 100.0 * constant[name]}
        | dict(shares.mean())
        for name, shares in by_order.items()
    )


def wins(by_order: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return a line per table: for each player -1, 0 or 1, as it is significantly worse than the first, tied, or better."""
    return pd.DataFrame({"table": name} | dict(_against_first(shares)) for name, shares in by_order.items())


def _against_first(shares: pd.DataFrame) -> Iterator[tuple[str, int]]:
    first = shares[page.FIRST]
    for player in shares.columns.drop(page.FIRST):
        gap, back = (
            difference(a, b, family=shares.shape[1]) for a, b in ((first, shares[player]), (shares[player], first))
        )
        yield str(player), int(leads(gap)) - int(leads(back))
