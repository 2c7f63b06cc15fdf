"""What `banditlab export` writes: LaTeX whatever users wrote, numbers as they are stored, PDF text that can be found."""

from __future__ import annotations

import itertools
import re
import zlib

import pandas as pd
import pyarrow.parquet as pq
import pytest

from banditlab.analysis.arena import arenas
from banditlab.analysis.curves import grids
from banditlab.analysis.papers import export, tex
from banditlab.analysis.plots import heat_maps
from banditlab.analysis.tables import load
from banditlab.errors import UsageError

HOSTILE = r"\input{/etc/passwd} 50% & a_b #1 ~^ $x$ {"


def filled(folder):
    for r in range(3):
        for gamma in (0.1, 0.3):
            folder.add_run(
                "exploration(ogd)",
                r,
                90 * gamma + r,
                written={"forecaster": "ogd", "gamma": gamma},
                bound=40.0,
                bound_unit="nats",
            )
        folder.add_run(HOSTILE, r, 70.0 + r)
        folder.add_comparator(r, 1.0, 20.0)
    folder.write()
    return folder


def test_latex_prints_what_users_wrote():
    assert tex(HOSTILE) == (
        r"\textbackslash{}input\{/etc/passwd\} 50\% \& a\_b \#1 \textasciitilde{}\textasciicircum{} \$x\$ \{"
    )
    assert tex("a\n\nb") == "a b"  # an empty line would end a caption


@pytest.mark.slow
def test_tables_say_protocol_settings_and_stored_numbers(new_folder):
    folder = filled(new_folder(repetitions=3, norm_bounds=(1.0,)))
    place = folder.out / "new" / "export"
    written = export(folder.out, place, formats=("latex", "csv", "parquet"))
    assert all(path.is_file() for path in written)
    ranking = (place / "toy-bit-ranking.tex").read_text(encoding="utf-8")
    assert re.findall(r"\\(\w+rule)", ranking) == ["toprule", "midrule", "bottomrule"]
    assert "3 repetitions of 100 rounds" in ranking
    assert (
        "Settings are chosen on one half of the repetitions and evaluated on the other half, and the other way round."
        in ranking
    )
    assert r"& exploration(ogd) & $\gamma$ = 0.1 & 10.0 &" in ranking
    assert r"\label{tab:toy-bit-ranking}" in ranking
    assert tex(HOSTILE) in ranking
    lines = [line for line in ranking.splitlines() if line.endswith(r" \\")]
    assert len({len(re.findall(r"(?<!\\)&", line)) for line in lines}) == 1
    for table in (
        pd.read_csv(place / "toy-bit-ranking.csv"),
        pd.read_parquet(place / "toy-bit-ranking.parquet"),
    ):
        row = table[table["player"] == "exploration(ogd)"].iloc[0]
        assert row["mistakes"] == pytest.approx(0.10)
        assert row["setting"] == 'exploration(forecaster="ogd", gamma=0.1)'
    names = list(pd.read_csv(place / "toy-bit-settings.csv"))
    assert names[:2] == ["player", "setting"]
    assert names == pq.read_schema(place / "toy-bit-settings.parquet").names


@pytest.mark.slow
def test_text_in_figures_is_text(new_folder):
    folder = filled(new_folder(repetitions=3, norm_bounds=(1.0,)))
    made = export(folder.out, png=True)
    pictures = [path for path in made if path.suffix == ".png"]
    assert [path.with_suffix(".pdf") for path in pictures] == [path for path in made if path.suffix == ".pdf"]
    assert {path.stem for path in pictures} == {f"toy-bit-{name}" for name in ("mistakes", "relative-b1", "gamma")}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    assert {int.from_bytes(path.read_bytes()[16:20], "big") for path in pictures} == {1500}  # pixels wide
    data = (folder.out / "export" / "toy-bit-mistakes.pdf").read_bytes()
    assert b"/Type3" not in data
    assert b"/ToUnicode" in data
    streams = [
        zlib.decompress(s)
        for s in re.findall(rb"/FlateDecode.*?stream\r?\n(.*?)\r?\nendstream", data, re.S)
        if s[:1] == b"x"
    ]
    assert any(re.search(rb"T[jJ]\b", stream) for stream in streams)
    assert "1 to 2" not in (folder.out / "export" / "toy-bit-mistakes.tex").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_paper_has_heat_maps_labels_and_symbols(new_folder):
    folder = new_folder(repetitions=3, norm_bounds=(1.0,))
    for r in range(3):
        for gamma, ball, decoding in itertools.product(("theory", 0.1), (1.0, 3.0), ("half-log", "sample")):
            settings = {"decoding": decoding, "gamma": gamma, "norm_bound": ball}
            folder.add_run(
                "p", r, 20.0 * ball + r, written=settings, resolved={"gamma": 0.3 if gamma == "theory" else gamma}
            )
    made = export(load(folder.write()).out)
    stem = folder.out / "export" / "toy-bit"
    assert {path.suffix for path in made} == {".pdf", ".tex"}
    assert {path.stem for path in made if path.suffix == ".pdf"} == {
        f"toy-bit-{n}" for n in ("mistakes", "gamma", "heat")
    }
    for name in ("mistakes", "gamma", "heat"):
        text = stem.with_name(f"toy-bit-{name}.tex").read_text(encoding="utf-8")
        assert f"\\label{{fig:toy-bit-{name}}}" in text
    settings = stem.with_name("toy-bit-settings.tex").read_text(encoding="utf-8")
    assert r"$\gamma$ = theory, $B$ = 1, \texttt{decoding=half-log}" in settings
    [arena] = arenas(load(folder.out))
    figure = heat_maps(grids(arena))
    titles = [ax.get_title(loc="left") for ax in figure.axes if ax.get_visible()]
    assert titles == ["p decoding=half-log", "p decoding=sample"]
    assert [[text.get_text() for text in ax.texts] for ax in figure.axes[:2]] == [["21.0", "61.0"] * 2] * 2
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["theory", "0.1"]


def test_requests_that_are_wrong(new_folder):
    folder = filled(new_folder(repetitions=3, norm_bounds=(1.0,)))
    with pytest.raises(UsageError, match="give latex, csv or parquet"):
        export(folder.out, formats=("word",))
    with pytest.raises(UsageError, match="nothing to export"):
        export(folder.out, formats=())
    (folder.out / "file").write_text("")
    with pytest.raises(UsageError, match="the export cannot be written"):
        export(folder.out, folder.out / "file")
