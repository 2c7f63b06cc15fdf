"""What `banditlab export` writes: LaTeX whatever users wrote, numbers as they are stored, PDF text that can be found."""

from __future__ import annotations

import re
import zlib

import pandas as pd
import pytest

from banditlab.analysis.papers import export, tex
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


def test_tables_say_protocol_settings_and_stored_numbers(new_folder):
    folder = filled(new_folder(repetitions=3, norm_bounds=(1.0,)))
    written = export(folder.out, formats=("latex", "csv", "parquet"))
    assert all(path.is_file() for path in written)
    ranking = (folder.out / "export" / "toy-bit-ranking.tex").read_text(encoding="utf-8")
    assert re.findall(r"\\(\w+rule)", ranking) == ["toprule", "midrule", "bottomrule"]
    assert "3 repetitions of 100 rounds" in ranking
    assert "Settings were chosen for each half of the repetitions on the other half" in ranking
    assert r"\texttt{forecaster={\char34}ogd{\char34}, gamma=0.1} & 10.0 &" in ranking
    assert tex(HOSTILE) in ranking
    lines = [line for line in ranking.splitlines() if line.endswith(r" \\")]
    assert len({len(re.findall(r"(?<!\\)&", line)) for line in lines}) == 1
    for table in (
        pd.read_csv(folder.out / "export" / "toy-bit-ranking.csv"),
        pd.read_parquet(folder.out / "export" / "toy-bit-ranking.parquet"),
    ):
        row = table[table["player"] == "exploration(ogd)"].iloc[0]
        assert row["mistakes"] == pytest.approx(0.10)
        assert row["setting"] == 'exploration(forecaster="ogd", gamma=0.1)'


def test_text_in_figures_is_text(new_folder):
    folder = filled(new_folder(repetitions=3, norm_bounds=(1.0,)))
    made = export(folder.out, png=True)
    pictures = [path for path in made if path.suffix == ".png"]
    assert [path.with_suffix(".pdf") for path in pictures] == [path for path in made if path.suffix == ".pdf"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
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


def test_requests_that_are_wrong(new_folder):
    folder = filled(new_folder(repetitions=3, norm_bounds=(1.0,)))
    with pytest.raises(UsageError, match="give latex, csv or parquet"):
        export(folder.out, formats=("word",))
    with pytest.raises(UsageError, match="nothing to export"):
        export(folder.out, formats=())
    (folder.out / "file").write_text("")
    with pytest.raises(UsageError, match="the export cannot be written"):
        export(folder.out, folder.out / "file")
