"""One self-contained page per results folder: ranked tables, figures, bounds, how to run it again.

`write_report(out)` writes OUT/report.html (nothing loaded; whole without scripts, and with them to be explored),
OUT/figures/*.svg, and OUT/tables/*.csv. Figures for a paper (PDF, PNG) are made by `papers.export`.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from banditlab.analysis import glossary, look, sentences, svg_figures, words
from banditlab.analysis.answers import Answer, answer
from banditlab.analysis.arena import Arena, arenas
from banditlab.analysis.cells import write_csv
from banditlab.analysis.curves import grids, mistake_curves, relative_panels
from banditlab.analysis.embedding import asset, json_text, policy, script_of
from banditlab.analysis.explore import explorable
from banditlab.analysis.exports import best_settings, paired_differences, ranking, references
from banditlab.analysis.statistics import Interval
from banditlab.analysis.summary import (
    Standing,
    bounds_table,
    comparator_table,
    diagnostics_table,
    differences,
    scale_rows,
    settings_table,
    standings,
    with_constant,
)
from banditlab.analysis.svg import inline_svg
from banditlab.analysis.tables import Results, load
from banditlab.errors import UsageError

MOST_ROWS = 1_000
"""Settings in a table of the page; the files in tables/ have all, and the explorer reaches all."""
MOST_PAIRED = 40
"""Players whose differences are in the page's table; those of all are shown on a press, and in tables/."""


@dataclass(frozen=True)
class Drawn:
    """A figure in the page: its SVG, the words under it, and whether it is folded away at first."""

    svg: Markup
    caption: str
    folded: str = ""


@dataclass(frozen=True)
class Section:
    """What the page says of one environment and kind of feedback."""

    arena: Arena
    title: str
    kind: str
    anchor: str
    answer: Answer
    again: str
    headline: str
    chosen: str
    comparator: str
    rows: list[Standing]
    shown: list[Standing]
    references: list[Standing]
    scale: float
    drawn: list[Drawn]
    comparators: pd.DataFrame
    bounds: pd.DataFrame
    differences: list[tuple[str, str, Interval]]
    pairs: list[tuple[str, str, Interval]]
    settings: pd.DataFrame
    diagnostics: pd.DataFrame


def write_report(out: str | os.PathLike[str] | Results) -> Path:
    """Write the report of a results folder, finished or not, and return the path of its report.html.

    Parameters
    ----------
    out
        The results folder of a sweep, as `Sweep.run` or `banditlab run` leaves it; or what `load` read of it.

    Raises
    ------
    UsageError
        As `load` does, and where the folder cannot be written.
    """
    results = out if isinstance(out, Results) else load(out)
    every = arenas(results)
    try:
        for name in ("figures", "tables"):
            (results.out / name).mkdir(exist_ok=True)
        titles = _titles(every)
        sections = [
            _section(*each, title) for each, title in zip(zip(every, _stems(every), strict=True), titles, strict=True)
        ]
        _write_tables(results.out / "tables", sections)
        page = results.out / "report.html"
        draft = page.with_suffix(".html.part")
        draft.write_text(_render(results, sections), encoding="utf-8")
        os.replace(draft, page)
    except OSError as error:
        raise UsageError(f"{results.out}: the report cannot be written ({error.strerror})") from error
    return page


def _titles(every: list[Arena]) -> list[tuple[str, str]]:
    """Return, per arena, what its data are called, in full where two would be the same, and its feedback if both are there."""
    names = {environment: words.data_title(environment) for environment in dict.fromkeys(a.environment for a in every)}
    short = list(names.values())
    full = {e: words.environment_title(e) if short.count(name) > 1 else name for e, name in names.items()}
    full = words.without_what_is_common(full)
    places = [arena.environment for arena in every]
    return [
        (full[a.environment], sentences.KINDS.get(a.kind, a.kind) if places.count(a.environment) > 1 else "")
        for a in every
    ]


def _section(arena: Arena, stem: str, title: tuple[str, str]) -> Section:
    rows, beside = standings(arena), scale_rows(arena)
    highs = [row.mistakes.high if math.isfinite(row.mistakes.high) else row.mistakes.mean for row in rows + beside]
    every = [arena] if arena.scale is None else [arena, arena.scale]
    return Section(
        arena=arena,
        title=title[0],
        kind=title[1],
        anchor=f"data-{stem}",
        answer=answer(arena, rows),
        again=_again(arena).strip(),
        headline=sentences.headline(rows, arena.paired),
        chosen=sentences.how_chosen(arena, rows),
        comparator=sentences.about_comparator(arena, rows),
        rows=rows,
        shown=with_constant(arena, rows),
        references=beside,
        scale=max([1e-9, *highs]),
        drawn=list(_drawn(arena, stem)),
        comparators=comparator_table(arena),
        bounds=_joined(bounds_table, every),
        differences=differences(arena),
        pairs=_first_pairs(arena, rows),
        settings=_joined(settings_table, every),
        diagnostics=_joined(diagnostics_table, every),
    )


def _first_pairs(arena: Arena, rows: list[Standing]) -> list[tuple[str, str, Interval]]:
    """Return the differences that the page's table shows: those between the first `MOST_PAIRED` players."""
    first = {row.name for row in rows[:MOST_PAIRED]}
    return [each for each in differences(arena) if each[0] in first and each[1] in first]


def _joined(table: Callable[[Arena], pd.DataFrame], every: list[Arena]) -> pd.DataFrame:
    """Return a table of the ranked players and of their references, `kind` telling them apart."""
    parts = [table(arena).assign(kind=arena.kind) for arena in every]
    full = [part for part in parts if len(part)]
    return pd.concat(full, ignore_index=True) if full else parts[0]


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _first(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table that the page shows."""
    return _records(table.head(MOST_ROWS))


def _rest(table: pd.DataFrame, file: str) -> str:
    """Return where the rows are that the page does not show; "" where it shows all."""
    return (
        ""
        if len(table) <= MOST_ROWS
        else f"These are the first {MOST_ROWS:,} of {len(table):,}; tables/{file}.csv has all."
    )


# -------------------------------------------------------------------------------------------------------------- figures


def _drawn(arena: Arena, stem: str) -> Iterator[Drawn]:
    """Draw an arena's figures, write them as files, and yield them for the page."""
    results = arena.results
    looks = look.styles(results.labels(), results.references())
    grey = " Grey and dashed, for scale: players that are told the label." if arena.scale is not None else ""

    def finish(svg: str, name: str, title: str, caption: str, folded: str = "") -> Drawn:
        (results.out / "figures" / f"{stem}-{name}.svg").write_text(svg, encoding="utf-8")
        full = f"{title}, {words.environment_title(arena.environment)}"
        return Drawn(inline_svg(svg, f"{stem}-{name}", full, caption), f"{title}. {caption}", folded)

    yield finish(
        svg_figures.mistakes_against_rounds(mistake_curves(arena), looks),
        "mistakes",
        "Mistakes against rounds",
        "Expected mistakes so far as a share of the rounds so far, each player as it is ranked above; bands are "
        "95 % intervals of the mean over repetitions; the share at the last round stands in the legend."
        + _again(arena)
        + grey,
    )
    panels = relative_panels(arena)
    best = min(panels, key=lambda panel: panel.loss, default=None)
    for panel in sorted(panels, key=lambda panel: panel is not best):
        bound = words.short(panel.norm_bound)
        yield finish(
            svg_figures.relative_against_rounds(panel, looks),
            f"relative-b{_slug(bound)}",
            f"Relative mistakes against rounds, B = {bound}",
            f"Expected mistakes minus the loss of the best logistic model U with rows of norm at most {bound} "
            f"({words.amount(panel.loss)} nats at the end, known to within {panel.gap:.1g}; the bands, 95 % intervals, "
            "include this), the same loss for every player. Below 0: fewer mistakes than the model's loss. Players "
            f"with a B stand at their best setting with B = {bound}. A bound is vacuous where it is the number of "
            "rounds or more; the scale is linear around 0 and logarithmic beyond." + grey,
            "" if panel is best else f"Relative mistakes against rounds, B = {bound}",
        )
    every = grids(arena)
    maps = [grid for grid in every if len(grid.norm_bounds) > 1]
    if maps:
        yield finish(
            svg_figures.heat_maps(maps),
            "heat",
            "Mistakes over γ and B",
            "Expected mistakes in percent, as they are ranked, mean over all repetitions, one colour scale for all panels: "
            "the darker, the fewer; the frame marks a panel's fewest.",
        )
    if every:
        yield finish(
            svg_figures.mistakes_against_gamma(every),
            "gamma",
            "Mistakes against γ",
            "Share of expected mistakes, as they are ranked, one line per B; bars are 95 % intervals, all repetitions.",
        )


def _again(arena: Arena) -> str:
    """Return that a curve goes on over rows seen before, where they are."""
    if not arena.repeats:
        return ""
    first = int(arena.final["first_sight_rounds"].max())
    return f" From round {first + 1:,} on rows return that players may remember: the ranks go by the rounds before."


def _stems(every: list[Arena]) -> list[str]:
    """Return a file name per arena; a number tells apart those that would be alike."""
    names = [f"{_slug(arena.environment)}-{arena.kind}" for arena in every]
    return [f"{name}-{i}" if names.count(name) > 1 else name for i, name in enumerate(names, start=1)]


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text.rpartition("/")[2]).strip("-.").lower() or "x"


def _write_tables(folder: Path, sections: list[Section]) -> None:
    """Write the tidy tables, every environment and kind in one file."""
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
        write_csv(pd.concat(parts, ignore_index=True), folder / f"{name}.csv")


# ----------------------------------------------------------------------------------------------------------------- page


def _render(results: Results, sections: list[Section]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("banditlab.analysis"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "records": _records,
        "first_rows": _first,
        "rest": _rest,
        "percent": words.share,
        "amount": words.amount,
        "short": words.short,
        "duration": words.duration,
        "hundred": lambda interval: interval.scaled(100),
        "mean": words.percent,
        "spread": words.spread,
        "count": lambda items, noun: words.count(len(items), noun),
        "title_of": words.environment_title,
        "gloss": glossary.glossed,
        "sortable": lambda value: f"{value:.17g}" if math.isfinite(value) else "",
    }
    start, script = script_of("start.js"), script_of("charts.js", "explore.js")
    looks = look.styles(results.labels(), results.references())
    data = [explorable(s.arena, s.rows, s.settings, s.differences, looks, results.groups) for s in sections]
    spec_text = (results.out / "spec.toml").read_text(encoding="utf-8")
    return environment.get_template("report.html.j2").render(
        name=str(results.spec.get("name", results.out.name)),
        game=sentences.the_game([section.arena.kind for section in sections]),
        said=sentences.what_was_run(results, warned=False),
        warned=sentences.warnings(results),
        terms=glossary.TERMS,
        style=Markup(asset("page.css")),
        script=script,
        start=start,
        policy=policy(start, script),
        data=json_text({"sections": data}),
        sections=sections,
        kinds=sentences.KINDS,
        skipped=results.skipped,
        failures=results.failures,
        versions=results.spec.get("versions", {}),
        rounds=results.last_round,
        spec=runnable_spec(spec_text),
    )


def runnable_spec(text: str) -> str:
    """Return a stored spec without what the store added ([store] and [versions]), so that it can be run again."""
    kept, inside = [], False
    for line in text.splitlines():
        if line.startswith("["):
            inside = line.strip() in ("[store]", "[versions]")
        if not inside:
            kept.append(line)
    return "\n".join(kept).strip()
