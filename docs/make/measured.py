"""What was measured of an algorithm, drawn from the tables that studies keep in docs/results."""

from __future__ import annotations

import csv
import math
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.commands.figures import STUDIES
from docs.make.chart import Dot, Line, dots, figure, lines

RESULTS = Path(__file__).parents[1] / "results"
METHODS = {
    "adaboost-olm": "AdaOLM",
    "adaboost-olm++": "OLM++",
    "online-mbbm": "MB .1",
    "adaboost-ol-ova": "OvA",
    "adaova": "AdaOVA",
    "oza": "OLB",
    "best-single": "DT",
}
"""Boosters by their names in the tables of online boosting."""
PICTURES = {
    "banditlab/Digits-v0": (
        "quickstart.png",
        "Mistakes so far on the digits, each agent at its best setting.",
        "gallery/quickstart.md",
    ),
    "banditlab/Logistic-v0": ("theory.png", "Mistakes against rounds on planted logistic models.", "results/theory.md"),
    "banditlab/LowerBound-v0": ("papers-001-figure-2.png", "Regret on the lower-bound data.", "results/papers-001.md"),
    "banditlab/OpenML-v0": ("real-data.png", "Mistakes on eight sets of real data.", "results/real-data.md"),
    "banditlab/SynSep-v0": ("synsep.png", "Mistakes on SynSep and SynNonSep against gamma.", "results/synsep.md"),
    "banditlab/SynNonSep-v0": ("synsep.png", "Mistakes on SynSep and SynNonSep against gamma.", "results/synsep.md"),
    "banditlab/Table-v0": ("real-data.png", "Mistakes on eight tables.", "results/real-data.md"),
    "hoeffding-tree": ("boosting-learners.png", "Errors against the number of trees.", "results/boosting-tables.md"),
    "simulated": (
        "boosting-edges.png",
        "Mistakes of boosters over simulated learners of a known edge.",
        "results/boosting-edges.md",
    ),
    "aioli": ("papers-001-figure-2.png", "Regret on the lower-bound data.", "results/papers-001.md"),
    "ftrl": ("papers-001-figure-2.png", "Regret on the lower-bound data.", "results/papers-001.md"),
    "b-grid": ("papers-001-figure-2.png", "Regret on the lower-bound data.", "results/papers-001.md"),
    "aggregating": ("papers-001-figure-1.png", "Log-odds the forecasters give near 0.", "results/papers-001.md"),
    "decoded-descent": ("decoding.png", "Mistakes per round with and without half-log.", "results/decoding.md"),
}
"""Figures of a study that are of one algorithm in particular: file, caption, the page that says more."""


@cache
def table(name: str) -> list[dict[str, str]]:
    """Return the rows of a committed table; none where it is not there."""
    file = RESULTS / f"{name}.csv"
    if not file.is_file():
        return []
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def figures(kind: str, id_: str, cls: Any) -> str:
    """Return the figures of one algorithm.

    Raises
    ------
    ValueError
        No committed study plays it: `benchmarks/commands/figures.py` is where a small one goes.
    """
    parts = (_promise, _real_data, _regret, _boosting, _default_agent, _small_study, _picture, _speed)
    found = [part for part in (make(id_) for make in parts) if part]
    if not found and kind in ("agents", "forecasters"):
        return f"Nothing of {id_} is on record yet: `python -m benchmarks --only {id_} --keep` measures its speed."
    if not found:
        raise ValueError(
            f"{kind} {id_}: no figure of it is on record; a small study goes into benchmarks/commands/figures.py"
        )
    return "\n\n".join(found)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _real_data(id_: str) -> str:
    """Return a chart of an agent's mistakes on eight sets of real data, the best agent and uniform play beside it."""
    rows = [r for r in table("real-data-defaults") if r["agent"] == id_]
    if not rows:
        return ""
    chart = []
    for row in rows:
        every = [_number(r["mistakes %"]) for r in table("real-data-defaults") if r["data"] == row["data"]]
        value = tuple(_number(row[name]) for name in ("mistakes %", "low", "high"))
        chart.append(Dot(row["data"], *value, others=(min(every), max(every))))
    caption = (
        f"Mistakes of {id_} at its defaults, in per cent of the rows shown for the first time, with 95 % intervals; the "
        "bars to both sides are the best and the worst player of the study. From docs/results/real-data-defaults.csv."
    )
    svg = dots(chart, "mistakes, %", f"Mistakes of {id_} on {len(chart)} sets of real data")
    return f"{figure(svg, caption)}\n\nMore: [eight sets of real data](../../results/real-data.md)."


def _promise(id_: str) -> str:
    """Return a chart of the mistakes of an agent at its theorem's settings and of what the theorem promises."""
    for name, agent in (("theory-mistakes", id_), ("decoding-mistakes", f"{id_} half-log"), ("decoding-mistakes", id_)):
        rows = [r for r in table(name) if r["agent"] == agent and (r["K"], r["B"]) == ("3", "1")]
        rows = [r for r in rows if math.isfinite(_number(r["bound"]))]
        if not rows:
            continue
        rows.sort(key=lambda r: float(r["T"]))
        made = tuple((float(r["T"]), _number(r["mistakes"])) for r in rows)
        promised = tuple((float(r["T"]), _number(r["loss"]) + _number(r["bound"])) for r in rows)
        caption = (
            f"Mistakes of {agent} at its theorem's settings and what the theorem promises, the loss of the best model of the "
            f"ball plus the bound, against T on a planted logistic model (K = 3, d = 10, B = 1). From docs/results/{name}.csv."
        )
        drawn = [Line("promised", promised, "faint"), Line("made", made, "mine")]
        page = name.partition("-")[0]
        svg = lines(drawn, "rounds T", "mistakes", f"Mistakes of {agent} and its bound against T")
        return f"{figure(svg, caption)}\n\nMore: [measured promises](../../results/{page}.md)."
    return ""


def _regret(id_: str) -> str:
    """Return a chart of a forecaster's regret on hard streams beside its bound."""
    rows = [
        r
        for r in table("papers-000-regret")
        if r["forecaster"] == id_ and r["data"] == "HardMulticlass" and r["K"] == "2"
    ]
    rows = sorted((r for r in rows if _number(r["regret"]) > 0), key=lambda r: float(r["B"]))
    if len(rows) < 2:
        return ""
    regret = tuple((float(r["B"]), _number(r["regret"])) for r in rows)
    bound = tuple((float(r["B"]), _number(r["bound"])) for r in rows if math.isfinite(_number(r["bound"])))
    caption = (
        f"Regret of {id_} in nats on hard multiclass streams (K = 2, T = 4,000), the worse of both signs, and its bound, "
        "against the norm bound B; regrets below 0 are left out. From docs/results/papers-000-regret.csv."
    )
    svg = lines(
        [Line("bound", bound, "faint"), Line("regret", regret, "mine")],
        "norm bound B",
        "nats",
        f"Regret of {id_} and its bound",
    )
    return f"{figure(svg, caption)}\n\nMore: [the studies of the multiclass paper](../../results/papers-000.md)."


def _boosting(id_: str) -> str:
    """Return a chart of a booster's errors on the sets of the boosting paper, a single tree's beside them."""
    method = METHODS.get(id_)
    rows = [r for r in table("boosting-tables") if r["method"] == method] if method else []
    if not rows:
        return ""
    single = {r["data"]: 100 - 100 * _number(r["last fifth"]) for r in table("boosting-tables") if r["method"] == "DT"}
    chart = [
        Dot(r["data"], 100 - 100 * _number(r["last fifth"]), math.nan, math.nan, (single.get(r["data"], 0.0),))
        for r in rows
        if math.isfinite(_number(r["last fifth"]))
    ]
    caption = (
        f"Errors of {id_} ({method} in the tables) on the last fifth of each stream, in per cent; the bar is a single "
        "Hoeffding tree. From docs/results/boosting-tables.csv."
    )
    svg = dots(chart, "errors, %", f"Errors of {id_}")
    return f"{figure(svg, caption)}\n\nMore: [the boosting tables](../../results/boosting-tables.md)."


def _default_agent(id_: str) -> str:
    """Return a chart of an agent's mistakes on the 25 tables of the default agent's page, the study's others beside it."""
    every = table("default-agent")
    rows = [r for r in every if r["player"] == id_] if id_ == "stackcb" else []
    if not rows:
        return ""
    chart = []
    for row in rows:
        others = [r for r in every if r["table"] == row["table"] and r["player"] != id_]
        value, wide = float(row["mean"]), 2.0 * float(row["standard_error"])
        chart.append(Dot(row["table"], value, value - wide, value + wide, tuple(float(r["mean"]) for r in others)))
    named = ", ".join(dict.fromkeys(r["player"] for r in every if r["player"] != id_))
    caption = (
        f"Mistakes of {id_} at its defaults in per cent, means of four streams and two standard errors to both sides; the "
        f"bars are the study's others: {named}. No bound is proved. From docs/results/default-agent.csv."
    )
    svg = dots(chart, "mistakes, %", f"Mistakes of {id_} on {len(chart)} tables")
    return f"{figure(svg, caption)}\n\nMore: [a default agent](../../results/default-agent.md)."


def _small_study(id_: str) -> str:
    """Return a chart of the small study that is made for a page."""
    rows = [r for r in table("small-studies") if r["id"] == id_]
    if not rows:
        return ""
    study, drawn = STUDIES[id_], []
    for line in dict.fromkeys(r["line"] for r in rows):
        points = tuple((float(r["x"]), _number(r["mean"])) for r in rows if r["line"] == line)
        drawn.append(Line(line, points, "faint" if drawn else "mine"))
    caption = (
        f"{study.caption} Means of {rows[0]['streams']} streams. From docs/results/small-studies.csv, which "
        f"`python -m benchmarks figures --only {id_} --keep` makes again."
    ).replace("`", "")
    svg = lines(drawn, study.x, study.y, study.caption)
    return f"{figure(svg, caption)}\n\nMore: [small studies](../../results/small-studies.md)."


def _picture(id_: str) -> str:
    if id_ not in PICTURES:
        return ""
    file, caption, page = PICTURES[id_]
    more = f"[{page.rpartition('/')[2].removesuffix('.md')}](../../{page})"
    return f"![{caption}](../../images/{file})\n\n{caption} More: {more}."


def _speed(id_: str) -> str:
    """Return a chart of a player's time a round against d, and its figures on the digits."""
    every = [r for r in table("speed") if r["player"].split(" ")[0] == id_ and r["nanoseconds"]]
    if not every:
        return ""
    first = every[0]["player"]
    every = [r for r in every if r["player"] == first]
    drawn = []
    for K in ("2", "10", "50"):
        points = tuple(
            (float(r["d"]), float(r["nanoseconds"]) / 1000) for r in every if r["stream"] == "logistic" and r["K"] == K
        )
        drawn += [Line(f"K = {K}", tuple(sorted(points)), "mine")] if points else []
    settings = first.removeprefix(id_).strip()
    said = f" with {settings}" if settings else ""
    digits = next((r for r in every if r["stream"] == "digits"), None)
    told = ""
    if digits and math.isfinite(_number(digits["mistakes"])):
        share, rounds = 100 * float(digits["mistakes"]), f"{int(digits['rounds']):,}"
        time = f"{float(digits['nanoseconds']) / 1000:.3g} microseconds a round"
        told = f" On the digits{said} it made {share:.1f} % mistakes in {rounds} rounds, at {time}."
    if not drawn:
        return told.strip()
    caption = f"Microseconds a round of {id_}{said} against d, on one core.{told} From docs/results/speed.csv."
    svg = lines(drawn, "features d", "microseconds", f"Time a round of {id_}")
    return f"{figure(svg, caption)}\n\nMore: [speed](../../results/speed.md)."
