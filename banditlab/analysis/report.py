"""One self-contained page per results folder: ranked tables, figures, bounds, and the command that repeats the sweep.

`write_report(out)` writes OUT/report.html (an interactive page that makes no requests), OUT/figures/*.svg, and
OUT/tables/*.csv. `papers.export` writes figures for a paper (PDF, PNG).
"""

from __future__ import annotations

import base64
import math
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from banditlab.analysis import look
from banditlab.analysis.across import Across, across
from banditlab.analysis.alerts import alerts
from banditlab.analysis.arena import Arena, arenas
from banditlab.analysis.cells import write_csv
from banditlab.analysis.curves import grids, mistake_curves, relative_panels
from banditlab.analysis.embedding import json_text, policy, render, script_of
from banditlab.analysis.explore import explorable
from banditlab.analysis.exports import best_settings, paired_differences, ranking, references
from banditlab.analysis.findings import Model, best_model, findings
from banditlab.analysis.formats import (
    amount,
    data_title,
    environment_title,
    facts_of_data,
    learner,
    short,
    without_what_is_common,
)
from banditlab.analysis.settings import varied
from banditlab.analysis.statistics import Interval
from banditlab.analysis.summary import (
    Standing,
    best_ball,
    bounds_table,
    comparator_table,
    constant_name,
    constant_share,
    diagnostics_table,
    differences,
    scale_rows,
    settings_table,
    standings,
    switching_table,
    with_constant,
)
from banditlab.analysis.tables import Results, load, runnable_spec
from banditlab.errors import UsageError

FEEDBACK = {
    "bit": "bandit feedback: right or wrong",
    "label": "full information: the label",
    "reference": "full information, as a reference",
}
FIRST = 10
"""The largest number of players of an environment on the first screen."""
MOST_ROWS = 1_000
"""The largest number of settings in a table of the page; the files in tables/ and the explorer have all settings."""
LONGEST = 100
"""The largest length of a file name from an environment's title, which may list hundreds of actions."""
MOST_PICTURED = 10
"""The largest number of environments for which the page has figures for browsers without scripts; `export` has no
limit."""
MOST_PAIRED = 40
"""The largest number of players whose differences are in the page's table; a button and the files in tables/ show all
differences.
"""


@dataclass(frozen=True)
class Picture:
    """A figure in the page: its SVG as base64, and its caption."""

    data: str
    caption: str
    always: bool
    """Whether the figure is also shown in browsers with scripts, where scripts draw all other figures."""


@dataclass(frozen=True)
class Section:
    """The tables of one environment and kind of feedback."""

    arena: Arena
    title: str
    feedback: str
    anchor: str
    findings: dict[str, str]
    constant: Interval
    constant_name: str
    costly: bool
    model: Model | None
    guarantees: pd.DataFrame
    rows: list[Standing]
    shown: list[Standing]
    references: list[Standing]
    ball: float
    pictures: list[Picture]
    comparators: pd.DataFrame
    switching: pd.DataFrame
    bounds: pd.DataFrame
    differences: list[tuple[str, str, Interval]]
    pairs: list[tuple[str, str, Interval]]
    settings: pd.DataFrame
    diagnostics: pd.DataFrame


def write_report(out: str | os.PathLike[str] | Results) -> Path:
    """Write the report of a results folder, finished or not, and return the path of its `report.html`.

    Parameters
    ----------
    out
        The results folder of a sweep, as written by `Sweep.run` or `banditlab run`; or the result of `load`.

    Raises
    ------
    UsageError
        As for `load`, or the folder cannot be written.
    """
    results = out if isinstance(out, Results) else load(out)
    every = arenas(results)
    try:
        for name in ("figures", "tables"):
            (results.out / name).mkdir(exist_ok=True)
        titles = _titles(every)
        pictured = len(every) <= MOST_PICTURED
        sections = [_section(*each, pictured) for each in zip(every, stems(every), titles, strict=True)]
        _write_tables(results.out / "tables", sections)
        if (over := across(results)) is not None:
            write_csv(over.table(), results.out / "tables" / "data_sets.csv")
            write_csv(over.pair_table(), results.out / "tables" / "over_data_sets.csv")
        page = results.out / "report.html"
        draft = page.with_suffix(".html.part")
        draft.write_text(_page(results, sections), encoding="utf-8")
        os.replace(draft, page)
    except OSError as error:
        raise UsageError(f"{results.out}: the report cannot be written ({error.strerror})") from error
    return page


def _titles(every: list[Arena]) -> list[str]:
    """Return the name of each arena's data set, or its full title if two names would be the same."""
    names = {arena.environment: data_title(arena.environment) for arena in every}
    short_names = list(names.values())
    full = {e: environment_title(e) if short_names.count(name) > 1 else name for e, name in names.items()}
    full = without_what_is_common(full)
    return [full[arena.environment] for arena in every]


def _section(arena: Arena, stem: str, title: str, pictured: bool) -> Section:
    rows, beside = standings(arena), scale_rows(arena)
    every = [arena] if arena.scale is None else [arena, arena.scale]
    pairs = differences(arena)
    first = {row.name for row in rows[:MOST_PAIRED]}
    return Section(
        arena=arena,
        title=title,
        feedback=FEEDBACK.get(arena.kind, arena.kind),
        anchor=f"data-{stem}",
        findings=findings(arena),
        constant=constant_share(arena),
        constant_name=constant_name(arena),
        costly=any(not math.isnan(row.cost) for row in rows),
        model=best_model(arena),
        guarantees=_guarantees(arena),
        rows=rows,
        shown=with_constant(arena, rows),
        references=beside,
        ball=best_ball(arena),
        pictures=list(_pictures(arena, stem)) if pictured else [],
        comparators=comparator_table(arena),
        switching=_joined(switching_table, every),
        bounds=_joined(bounds_table, every),
        differences=pairs,
        pairs=[pair for pair in pairs if pair[1] in first],  # the second of a pair has the lower rank
        settings=_joined(settings_table, every),
        diagnostics=_joined(diagnostics_table, every),
    )


def _guarantees(arena: Arena) -> pd.DataFrame:
    """Return, for each player, its setting with the smallest guarantee; sorted by guarantee if all players had the same
    streams.
    """
    least = bounds_table(arena).sort_values("guarantee", kind="stable").drop_duplicates("label")
    return least if arena.paired else least.sort_index()


def _joined(table: Callable[[Arena], pd.DataFrame], every: list[Arena]) -> pd.DataFrame:
    """Return one table of the ranked players and of the references, which observe the label and are not ranked; the
    column `kind` tells them apart.
    """
    parts = [table(arena).assign(kind=arena.kind) for arena in every]
    full = [part for part in parts if len(part)]
    return pd.concat(full) if full else parts[0]


# ------------------------------------------------------------------------------------------------------------- pictures


def _pictures(arena: Arena, stem: str) -> Iterator[Picture]:
    """Draw the figures that the page shows if JavaScript is off, write them as SVG files, and yield each `Picture`."""
    from banditlab.analysis import plots  # importing matplotlib and seaborn takes longer than a board

    results = arena.results
    looks = look.styles(results.labels(), results.references())
    drawn = {"mistakes": (plots.mistakes_against_rounds(mistake_curves(arena), looks), caption("mistakes", arena))}
    for panel in relative_panels(arena):
        if panel.norm_bound == best_ball(arena):
            figure = plots.relative_against_rounds(panel, looks)
            drawn["relative"] = figure, caption("relative", arena, panel.norm_bound)
    shown = with_constant(arena, standings(arena))
    if not all(math.isnan(row.cost) for row in shown):
        drawn["costs"] = plots.mistakes_against_costs(shown, looks), caption("costs", arena)
    every = grids(arena)
    if any(len(grid.norm_bounds) > 1 for grid in every):
        drawn["heat"] = plots.heat_maps(every), caption("heat", arena)
    elif every:
        drawn["gamma"] = plots.mistakes_against_gamma(every), caption("gamma", arena)
    for name, (figure, text) in drawn.items():
        file = results.out / "figures" / f"{stem}-{name}.svg"
        look.save(figure, file)
        yield Picture(base64.b64encode(file.read_bytes()).decode(), text, always=name == "costs")


def caption(name: str, arena: Arena, norm_bound: float = math.nan) -> str:
    """Return a description of the figure, in plain text."""
    ball = short(norm_bound)
    grey = " Grey and dashed: references that observe the label." if arena.scale is not None else ""
    table, noun = comparator_table(arena), arena.noun
    loss = "".join(
        f"{amount(row['loss_nats'])} nats at the end, accurate to {row['gap']:.1g}, the same for every {noun}"
        for row in table[table["norm_bound"] == norm_bound].to_dict("records")
    )
    return {
        "mistakes": f"Expected mistakes so far as a share of the rounds so far, for each {noun} at its ranked setting; "
        "bands are 95 % intervals; the legend gives the share at the last round." + grey,
        "relative": f"Expected mistakes minus the loss of the best logistic model with rows of norm at most {ball} ({loss}). "
        f"Each {noun} with a B is shown at its best setting with B = {ball}. The vertical axis is linear around 0."
        + grey,
        "costs": f"Expected mistakes against the mean cost of the chosen actions. The line joins each {noun} for which no "
        "other has fewer mistakes at no higher cost. Hollow marks are hindsight references.",
        "heat": "Expected mistakes in percent, as means over all repetitions; the title of a panel gives the other settings. "
        "All panels have one colour scale; a frame marks the smallest value of a panel.",
        "gamma": "Share of expected mistakes against γ, as means over all repetitions with 95 % intervals, one line per B; the "
        "title of a panel gives the other settings.",
    }[name]


def stems(every: list[Arena], title: Callable[[str], str] = lambda label: label.rpartition("/")[2]) -> list[str]:
    """Return a file name per arena, from the title of its environment, with a number if two names would be equal."""
    slugs = [
        re.sub(r"[^A-Za-z0-9.]+", "-", title(arena.environment))[:LONGEST].strip("-.").lower() or "x" for arena in every
    ]
    names = [f"{slug}-{arena.kind}" for slug, arena in zip(slugs, every, strict=True)]
    return [f"{name}-{i}" if names.count(name) > 1 else name for i, name in enumerate(names, start=1)]


def _write_tables(folder: Path, sections: list[Section]) -> None:
    """Write the tidy tables; each file contains all environments and kinds of feedback."""
    tables: dict[str, list[pd.DataFrame]] = {}
    for section in sections:
        made = {
            "ranking": ranking(section.rows),
            "references": references(section.references),
            "diagnostics": section.diagnostics,
            "best_settings": best_settings(section.arena),
            "all_settings": section.settings,
            "paired_differences": paired_differences(section.arena, section.differences),
            "comparators": section.comparators,
            "switching": section.switching,
            "bounds": section.bounds,
        }
        for name, table in made.items():
            if len(table):
                table = table.copy()
                table.insert(0, "environment", section.arena.environment)
                kind = table.pop("kind") if "kind" in table else section.arena.kind
                table.insert(1, "kind", kind)
                tables.setdefault(name, []).append(table)
    for name, parts in tables.items():
        write_csv(pd.concat(parts), folder / f"{name}.csv")


# ----------------------------------------------------------------------------------------------------------------- page


def _page(results: Results, sections: list[Section]) -> str:
    start, script = script_of("start.js"), script_of("charts.js", "explore.js")
    looks = look.styles(results.labels(), results.references())
    kinds = [section.arena.kind for section in sections]
    data = [explorable(s.arena, s.rows, s.settings, s.differences, looks, results.groups) for s in sections]
    over = across(results)
    spec_text = (results.out / "spec.toml").read_text(encoding="utf-8")
    return render(
        "report.html.j2",
        name=str(results.spec.get("name", results.out.name)),
        alerts=alerts(results),
        script=script,
        start=start,
        policy=policy(start, script).replace("connect-src", "img-src data:; connect-src"),
        data=json_text({"sections": data} | ({"across": _dots(over, sections)} if over else {})),
        over=over,
        sections=sections,
        first=FIRST,
        most=MOST_ROWS,
        data_sets=[(environment_title(name), _data_set(results, name)) for name in results.environments],
        players=_players(results),
        kinds=kinds,
        noun=learner(results.runs["kind"].unique()),
        feedback=FEEDBACK,
        skipped=results.skipped,
        failures=results.failures,
        versions=results.spec.get("versions", {}),
        repetitions=results.runs["repetition"].nunique(),
        rounds=_rounds(results),
        spec=runnable_spec(spec_text),
    )


def _dots(over: Across, sections: list[Section]) -> dict[str, Any]:
    """Return the data of the scatter plot of two agents: a dot per data set, with the anchor of the section
    that a click on it opens.
    """
    anchors = {(section.arena.environment, section.arena.kind): section.anchor for section in sections}
    opened = [anchors[arena.environment, arena.kind] for arena in over.arenas]
    return {"agents": over.agents, "titles": over.titles, "anchors": opened, "shares": 100 * over.shares}


def _data_set(results: Results, environment: str) -> str:
    facts = results.data.get(environment)
    return facts_of_data(facts, results.rounds_of(environment)) if facts else ""


def _rounds(results: Results) -> str:
    """Return "5,000", or "150 to 20,000" if the environments' runs have different lengths."""
    lengths = [results.rounds_of(environment) for environment in results.environments]
    return " to ".join(f"{n:,}" for n in sorted({min(lengths), max(lengths)}))


def _players(results: Results) -> list[dict[str, Any]]:
    """Return each player with its feedback, its number of settings, and the settings that were varied."""
    return [
        {"label": label, "kind": kind, "settings": rows["settings"].nunique(), "varied": varied(rows)}
        for (label, kind), rows in results.runs.groupby(["label", "kind"], sort=False)
    ]
