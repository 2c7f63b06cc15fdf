"""Tables and figures of a results folder for a paper: LaTeX with booktabs, CSV, Parquet, PDF with selectable text.

Captions state the protocol: rounds, repetitions, how settings were chosen, and the kind of intervals. LaTeX tables show
settings by their symbols. CSV and Parquet show the constructor's arguments, such as `fastcb(norm_bound=3)`, from which
the player can be built again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from banditlab.analysis import formats, look, plots, report
from banditlab.analysis.alerts import incomplete
from banditlab.analysis.arena import VARIANT, Arena, arenas
from banditlab.analysis.cells import write_csv
from banditlab.analysis.curves import grids, mistake_curves, relative_panels
from banditlab.analysis.explore import calls
from banditlab.analysis.findings import findings
from banditlab.analysis.formats import data_title
from banditlab.analysis.summary import (
    best_ball,
    bounds_table,
    comparator_table,
    settings_table,
    standings,
    with_constant,
)
from banditlab.analysis.tables import load
from banditlab.errors import UsageError

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    '"': r"{\char34}", "'": r"\textquotesingle{}", "`": r"\textasciigrave{}",
    "γ": r"$\gamma$", "×": r"$\times$", "≤": r"$\le$", "−": r"$-$", "∞": r"$\infty$", "–": "--", "µ": r"\textmu{}",
    "†": r"$\dagger$", "‖": r"$\|$",
}  # fmt: skip
"""Characters that are special in LaTeX, or not in every font."""
SYMBOLS = {"γ": r"$\gamma$", "B": "$B$"}
PROTOCOL = {
    "few": ("ranking",),
    "chosen": ("ranking", "mistakes", "relative"),
    "in-sample": ("ranking", "mistakes", "relative"),
    "first-pass": ("ranking", "settings", "heat", "gamma"),
    "streams": ("ranking", "mistakes", "relative", "comparators"),
}
"""The sentences of a report that captions contain, and the captions that contain them."""


def export(
    out: str | os.PathLike[str],
    folder: str | os.PathLike[str] | None = None,
    *,
    formats: Sequence[str] = ("latex",),
    png: bool = False,
) -> list[Path]:
    """Write the tables of a results folder in the given formats, and its figures as PDF; return the paths of all files.

    Parameters
    ----------
    out
        The results folder. If its sweep is unfinished, the captions say so.
    folder
        The output folder; OUT/export by default.
    formats
        One or more of "latex", "csv" and "parquet".
    png
        Whether to write each figure also as PNG, with 150 dots per inch on white.

    Raises
    ------
    UsageError
        As for `load`; or a format is unknown, or the folder cannot be written.
    """
    for name in formats:
        if name not in ("latex", "csv", "parquet"):
            raise UsageError(f"formats = {name!r}: give latex, csv or parquet")
    if not formats:
        raise UsageError("nothing to export: give --latex, --csv or --parquet")
    results = load(out)
    folder = results.out / "export" if folder is None else Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        every = arenas(results)
        written: list[Path] = []
        for arena, stem in zip(every, report.stems(every, data_title), strict=True):
            tables = paper_tables(arena)
            for name in formats:
                written += _written(tables, arena, folder, stem, name)
            written += _figures(arena, folder, stem, png)
    except OSError as error:
        raise UsageError(f"{folder}: the export cannot be written ({error.strerror})") from error
    return written


def _written(tables: dict[str, pd.DataFrame], arena: Arena, folder: Path, stem: str, form: str) -> Iterator[Path]:
    for name, table in tables.items():
        file = folder / f"{stem}-{name}.{'tex' if form == 'latex' else form}"
        if form == "latex":
            file.write_text(latex_table(name, table, arena, f"tab:{stem}-{name}"), encoding="utf-8")
        elif form == "csv":
            write_csv(table, file)
        else:
            table.to_parquet(file, index=False)
        yield file


def paper_tables(arena: Arena) -> dict[str, pd.DataFrame]:
    """Return the tables of an arena by name: ranking, settings, comparators, bounds. Empty tables are left out.

    Shares are fractions of the rounds, losses are in nats, times in seconds; `setting` is the constructor with its
    arguments.
    """
    first = arena.final.drop_duplicates(VARIANT)
    named = dict(zip(zip(first["label"], first["settings"]), calls(first), strict=True))
    listed = with_constant(arena, standings(arena))
    ranking = pd.DataFrame(
        [
            {
                "rank": row.rank,
                "player": row.label,
                "setting": named.get((row.label, row.settings), ""),
                "mistakes": row.mistakes.mean,
                "mistakes_low": row.mistakes.low,
                "mistakes_high": row.mistakes.high,
                "behind_first": row.behind_first.mean,
                "behind_first_low": row.behind_first.low,
                "behind_first_high": row.behind_first.high,
                "relative_mistakes": row.relative.mean if row.relative else float("nan"),
                "repetitions": row.mistakes.n,
                "seconds_per_round": row.seconds_per_round,
            }
            for row in listed
        ]
    )
    made = {"ranking": ranking}
    for name, table in (("settings", settings_table(arena)), ("bounds", bounds_table(arena))):
        if len(table):
            table = table.rename(columns={"label": "player"})
            setting = [named.get(key, "") for key in zip(table["player"], table["settings"])]
            made[name] = table.drop(columns="settings").assign(setting=setting)
            made[name].insert(1, "setting", made[name].pop("setting"))
    comparators = comparator_table(arena)
    return made | ({"comparators": comparators} if len(comparators) else {})


# ---------------------------------------------------------------------------------------------------------------- LaTeX

COLUMNS: dict[str, list[tuple[str, str]]] = {
    "ranking": [
        ("rank", ""), ("player", "Agent"), ("setting", "Setting"), ("mistakes", r"Mistakes (\%)"),
        ("mistakes_low..mistakes_high", r"95\,\%"), ("behind_first", "Behind"),
        ("behind_first_low..behind_first_high", r"95\,\%"),
        ("relative_mistakes", "Relative"),
    ],
    "settings": [
        ("player", "Agent"), ("setting", "Setting"), ("mistakes", r"Mistakes (\%)"), ("low..high", r"95\,\%"),
        ("explored", r"Explored (\%)"), ("log_loss", "Log loss (nats)"),
    ],
    "bounds": [
        ("player", "Agent"), ("setting", "Setting"), ("norm_bound", "$B$"), ("measured", "Measured"), ("loss", "Loss"),
        ("unit", "Unit"), ("bound", "Bound"),
    ],
    "comparators": [
        ("norm_bound", "$B$"), ("player", "Streams of"), ("loss_nats", "Loss (nats)"), ("gap", "Gap"), ("mistakes", "Mistakes"),
        ("streams", "Streams"),
    ],
}  # fmt: skip
"""The columns of each LaTeX table: "a..b" is an interval, and "Agent" becomes "Forecaster" in a table of forecasters."""
SHARES = {"ranking": {"mistakes", "behind_first"}, "settings": {"mistakes", "explored", "low"}}
"""Columns that are fractions in the tables and percentages in LaTeX."""


def latex_table(name: str, table: pd.DataFrame, arena: Arena, label: str) -> str:
    r"""Return a table with booktabs and a caption that states the protocol; it needs `\\usepackage{booktabs,textcomp}`."""
    heads = {"Agent": arena.noun.capitalize()}
    columns = [(key, heads.get(head, head)) for key, head in COLUMNS[name] if not _all_missing(table, key)]
    align = "".join("l" if key in ("rank", "player", "setting", "unit") else "r" for key, _ in columns)
    lines = [" & ".join(_cell(name, row, key) for key, _ in columns) + r" \\" for row in table.to_dict("records")]
    tabular = [
        f"\\begin{{tabular}}{{{align}}}", r"  \toprule", "  " + " & ".join(head for _, head in columns) + r" \\", r"  \midrule",
        *(f"  {line}" for line in lines), r"  \bottomrule", r"\end{tabular}",
    ]  # fmt: skip
    return _float("table", tabular, caption(name, arena), label)


def _float(kind: str, lines: Sequence[str], said: str, label: str) -> str:
    """Return a LaTeX table or figure with its caption and label."""
    name = re.sub(r"[^A-Za-z0-9:.-]+", "-", label)
    inside = [r"\centering", *lines, f"\\caption{{{tex(said)}}}", f"\\label{{{name}}}"]
    return "\n".join([f"\\begin{{{kind}}}", *(f"  {line}" for line in inside), f"\\end{{{kind}}}", ""])


def caption(name: str, arena: Arena, norm_bound: float = float("nan")) -> str:
    """Return the caption of a table or figure, with the protocol, in plain text."""
    what = {
        "ranking": "Expected mistakes as a share of the rounds, ranked; differences from the first in percentage points; "
        f"relative: mistakes minus the loss of the best logistic model in nats, B = {formats.short(best_ball(arena))}. "
        "Intervals of differences cover all pairs at once.",
        "settings": "Expected mistakes of every setting, as means over all repetitions.",
        "bounds": "The measured expected mistakes, the comparator's loss, and the theorem's bound on the difference.",
        "comparators": "The best logistic model in hindsight with rows of norm at most B.",
    }
    said = what[name] if name in what else report.caption(name, arena, norm_bound)
    where = f"{formats.environment_title(arena.environment)}, {report.FEEDBACK.get(arena.kind, arena.kind)}: "
    where += f"{formats.count(len(arena.repetitions), 'repetition')} of {formats.count(arena.last_round, 'round')}."
    sentences = [text for each, text in findings(arena).items() if name in PROTOCOL.get(each, ())]
    return " ".join([said, where, *sentences, *incomplete(arena.results)])


def tex(text: str) -> str:
    """Return a text escaped for LaTeX."""
    return "".join(SPECIAL.get(sign, sign) for sign in " ".join(text.split()))


def _all_missing(table: pd.DataFrame, key: str) -> bool:
    return key != "bound" and bool(table[key.split("..")[0]].isna().all())


def _cell(name: str, row: dict[Any, Any], key: str) -> str:
    first, _, second = key.partition("..")
    per = 100.0 if first.removesuffix("_low") in SHARES.get(name, set()) else 1.0
    values = [row[first], row[second]] if second else [row[first]]
    if all(isinstance(value, str) for value in values):
        return _setting(values[0], row["player"]) if key == "setting" else tex(values[0])
    if pd.isna(values[0]) or (first.startswith("behind_first") and row["behind_first"] == 0):
        return tex(row["verdict"]) if key == "bound" else "--"
    shown = [_number(first, per, float(value)) for value in values]
    return f"{shown[0]} to {shown[1]}" if second else shown[0]


def _setting(call: str, player: str) -> str:
    r"""Return the arguments that are not in the player's label, such as "$\\gamma$ = 0.1, $B$ = 3"."""
    symbols, others = [], []
    for name, value in re.findall(r"([\w.]+)=(\"(?:[^\"\\]|\\.)*\"|[^,]*)", call.partition("(")[2].removesuffix(")")):
        shown = tex(formats.short(float(value)) if formats.is_number(value) else value.strip('"'))
        if symbol := SYMBOLS.get(formats.sign(name)):
            symbols.append(f"{symbol} = {shown}")
        elif f"({value.strip(chr(34))})" not in player:
            others.append(rf"\texttt{{{tex(name)}={shown}}}")
    return ", ".join([*symbols, *others])


def _number(key: str, per: float, value: float) -> str:
    if key in ("norm_bound", "streams"):
        return tex(formats.short(value))
    if key == "gap":
        return tex(f"{value:.1g}")
    return tex(formats.plain(per * value, 1) if per == 100.0 else formats.amount(value))


# -------------------------------------------------------------------------------------------------------------- figures


def _figures(arena: Arena, folder: Path, stem: str, png: bool) -> Iterator[Path]:
    """Draw an arena's figures as PDF, each with a .tex file of its caption and label."""
    looks = look.styles(arena.results.labels(), arena.results.references())
    drawn = {"mistakes": (plots.mistakes_against_rounds(mistake_curves(arena), looks), caption("mistakes", arena))}
    for panel in relative_panels(arena):
        figure = plots.relative_against_rounds(panel, looks)
        said = caption("relative", arena, panel.norm_bound)
        drawn[f"relative-b{formats.short(panel.norm_bound)}"] = figure, said
    if every := grids(arena):
        drawn["gamma"] = plots.mistakes_against_gamma(every), caption("gamma", arena)
    if maps := [grid for grid in every if len(grid.norm_bounds) > 1]:
        drawn["heat"] = plots.heat_maps(maps), caption("heat", arena)
    for name, (figure, said) in drawn.items():
        yield from _figure(figure, folder / f"{stem}-{name}.pdf", said, png)


def _figure(figure: Figure, file: Path, said: str, png: bool) -> Iterator[Path]:
    with mpl.rc_context({**look.LOOK, "pdf.fonttype": 42}):  # type: ignore[dict-item]
        figure.savefig(file, metadata={"CreationDate": None})  # TrueType, so text can be searched and copied
    yield file
    if png:
        look.save(figure, file.with_suffix(".png"))
        yield file.with_suffix(".png")
    beside = file.with_suffix(".tex")
    include = f"\\includegraphics[width=\\linewidth]{{{file.name}}}"
    beside.write_text(_float("figure", [include], said, f"fig:{file.stem}"), encoding="utf-8")
    yield beside
