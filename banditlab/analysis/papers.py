"""Tables and figures of a results folder for a paper: LaTeX with booktabs, CSV or Parquet, PDF figures whose text is text.

Captions say the protocol: rounds, repetitions, how settings were chosen, what the intervals are. Settings stand as the
arguments of the player's constructor, `fastcb(norm_bound=3)`, which build it again, not as the page's short names.
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

from banditlab.analysis import look, plots, sentences, words
from banditlab.analysis.arena import VARIANT, Arena, arenas
from banditlab.analysis.cells import write_csv
from banditlab.analysis.curves import grids, mistake_curves, relative_panels
from banditlab.analysis.explore import calls
from banditlab.analysis.summary import bounds_table, comparator_table, settings_table, standings, with_constant
from banditlab.analysis.tables import load
from banditlab.errors import UsageError

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    '"': r"{\char34}", "'": r"\textquotesingle{}", "`": r"\textasciigrave{}",
    "γ": r"$\gamma$", "×": r"$\times$", "≤": r"$\le$", "−": r"$-$", "∞": r"$\infty$", "–": "--", "µ": r"\textmu{}",
    "†": r"$\dagger$", "‖": r"$\|$",
}  # fmt: skip
"""What means something to LaTeX, or is not in every font it has."""
NUMBER = re.compile(r"[−-]?[\d,.]+")


def export(
    out: str | os.PathLike[str],
    folder: str | os.PathLike[str] | None = None,
    *,
    formats: Sequence[str] = ("latex",),
    png: bool = False,
) -> list[Path]:
    """Write the tables of a results folder in these formats, and its figures as PDF; return the paths of all files.

    Parameters
    ----------
    out
        The results folder, finished or not; unfinished is said in the captions.
    folder
        Where to; OUT/export by default.
    formats
        Of "latex", "csv" and "parquet".
    png
        Whether each figure is written as PNG, too, 150 dots an inch on white.

    Raises
    ------
    UsageError
        As `load` does; another format; a folder that cannot be written.
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
        stems = _stems(every)
        written: list[Path] = []
        for arena, stem in zip(every, stems, strict=True):
            tables = paper_tables(arena)
            for name in formats:
                written += _written(tables, arena, folder, stem, name)
            written += _figures(arena, folder, stem, png)
    except OSError as error:
        raise UsageError(f"{folder}: the export cannot be written ({error.strerror})") from error
    return written


def _stems(every: Sequence[Arena]) -> list[str]:
    names = [
        re.sub(r"[^A-Za-z0-9.]+", "-", f"{words.data_title(a.environment)}-{a.kind}").strip("-.").lower() for a in every
    ]
    return [f"{name}-{i}" if names.count(name) > 1 else name for i, name in enumerate(names, start=1)]


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
    """Return the tables of an arena by name, as numbers: ranking, settings, comparators, bounds; empty ones are left out.

    Shares are fractions of the rounds, losses nats, times seconds; `setting` is the constructor with its arguments.
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
        ("rank", ""), ("player", "Player"), ("setting", "Setting"), ("mistakes", r"Mistakes (\%)"),
        ("mistakes_low..mistakes_high", r"95\,\%"), ("behind_first", "Behind"),
        ("behind_first_low..behind_first_high", r"95\,\%"),
        ("relative_mistakes", "Relative"),
    ],
    "settings": [
        ("player", "Player"), ("setting", "Setting"), ("mistakes", r"Mistakes (\%)"), ("low..high", r"95\,\%"),
        ("explored", r"Explored (\%)"), ("log_loss", "Log loss (nats)"),
    ],
    "bounds": [
        ("player", "Player"), ("setting", "Setting"), ("norm_bound", "$B$"), ("measured", "Measured"), ("loss", "Loss"),
        ("unit", "Unit"), ("bound", "Bound"),
    ],
    "comparators": [
        ("norm_bound", "$B$"), ("loss_nats", "Loss (nats)"), ("gap", "Gap"), ("mistakes", "Mistakes"), ("streams", "Streams"),
    ],
}  # fmt: skip
"""The columns of each LaTeX table: "a..b" is an interval."""
SHARES = {"ranking": {"mistakes", "behind_first"}, "settings": {"mistakes", "explored", "low"}}
"""What is a fraction there and a percentage in print."""


def latex_table(name: str, table: pd.DataFrame, arena: Arena, label: str) -> str:
    """Return a table with booktabs and a caption that says the protocol; `\\usepackage{booktabs,textcomp}` is all it needs."""
    columns = [(key, head) for key, head in COLUMNS[name] if not _all_missing(table, key)]
    align = "".join("l" if key in ("rank", "player", "setting", "unit") else "r" for key, _ in columns)
    lines = [" & ".join(_cell(name, row, key) for key, _ in columns) + r" \\" for row in table.to_dict("records")]
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            f"  \\caption{{{tex(caption(name, arena))}}}",
            f"  \\label{{{re.sub(r'[^A-Za-z0-9:.-]+', '-', label)}}}",
            f"  \\begin{{tabular}}{{{align}}}",
            r"    \toprule",
            "    " + " & ".join(head for _, head in columns) + r" \\",
            r"    \midrule",
            *(f"    {line}" for line in lines),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def caption(name: str, arena: Arena) -> str:
    """Return what a table or figure shows and how it was measured, in plain text."""
    what = {
        "ranking": "Expected mistakes as a share of the rounds, ranked; differences to the first in percentage points; "
        "relative: mistakes minus the comparator's loss in nats",
        "settings": "Expected mistakes of every setting, means over all repetitions",
        "bounds": "Expected mistakes measured, the comparator's loss, and the bound of the theorem beyond it",
        "comparators": "The best logistic model in hindsight, rows of norm at most B",
        "mistakes": "Expected mistakes so far as a share of the rounds so far, each player as it is ranked",
        "relative": "Expected mistakes minus the loss of the best logistic model in nats",
        "gamma": "Expected mistakes against γ, a line per B",
    }[name]
    said = f"{what}. {words.environment_title(arena.environment)}, {sentences.KINDS.get(arena.kind, arena.kind)}: "
    said += f"{words.count(len(arena.repetitions), 'repetition')} of {words.count(arena.results.last_round, 'round')}."
    if name in ("ranking", "mistakes"):
        said += f" {sentences.how_chosen(arena, standings(arena))}"
    return " ".join([said, *sentences.state(arena.results)])


def tex(text: str) -> str:
    """Return a text as LaTeX that prints it, whatever a user wrote in it."""
    return "".join(SPECIAL.get(sign, sign) for sign in " ".join(text.split()))


def _all_missing(table: pd.DataFrame, key: str) -> bool:
    return bool(table[key.split("..")[0]].isna().all())


def _cell(name: str, row: dict[Any, Any], key: str) -> str:
    first, _, second = key.partition("..")
    per = 100.0 if first.removesuffix("_low") in SHARES.get(name, set()) else 1.0
    values = [row[first], row[second]] if second else [row[first]]
    if all(isinstance(value, str) for value in values):
        arguments = values[0].partition("(")[2].removesuffix(")") if key == "setting" else ""
        return rf"\texttt{{{tex(arguments)}}}" if arguments else tex("" if key == "setting" else values[0])
    if pd.isna(values[0]) or (first.startswith("behind_first") and row["behind_first"] == 0):
        return "--"
    shown = [_number(first, per, float(value)) for value in values]
    return f"{shown[0]} to {shown[1]}" if second else shown[0]


def _number(key: str, per: float, value: float) -> str:
    if key in ("norm_bound", "streams"):
        return tex(words.short(value))
    if key == "gap":
        return tex(f"{value:.1g}")
    return tex(words.plain(per * value, 1) if per == 100.0 else words.amount(value))


# -------------------------------------------------------------------------------------------------------------- figures


def _figures(arena: Arena, folder: Path, stem: str, png: bool) -> Iterator[Path]:
    """Draw an arena's figures as PDF, each with its caption beside it as .tex."""
    looks = look.styles(arena.results.labels(), arena.results.references())
    yield from _figure(
        plots.mistakes_against_rounds(mistake_curves(arena), looks), folder, stem, "mistakes", "", arena, png
    )
    for panel in relative_panels(arena):
        at = f"-b{words.short(panel.norm_bound)}"
        yield from _figure(plots.relative_against_rounds(panel, looks), folder, stem, "relative", at, arena, png)
    every = grids(arena)
    if every:
        yield from _figure(plots.mistakes_against_gamma(every), folder, stem, "gamma", "", arena, png)


def _figure(figure: Figure, folder: Path, stem: str, name: str, at: str, arena: Arena, png: bool) -> Iterator[Path]:
    file = folder / f"{stem}-{name}{at}.pdf"
    with mpl.rc_context({**look.LOOK, "pdf.fonttype": 42}):  # type: ignore[dict-item]
        figure.savefig(file, metadata={"CreationDate": None})  # TrueType: the text is found, copied and searched
    yield file
    if png:
        look.save(figure, file.with_suffix(".png"))
        yield file.with_suffix(".png")
    said = caption(name, arena) + (f" Rows of norm at most {at[2:]}." if at else "")
    beside = file.with_suffix(".tex")
    include = f"  \\includegraphics[width=\\linewidth]{{{file.name}}}"
    lines = [r"\begin{figure}", r"  \centering", include, f"  \\caption{{{tex(said)}}}", r"\end{figure}", ""]
    beside.write_text("\n".join(lines), encoding="utf-8")
    yield beside
