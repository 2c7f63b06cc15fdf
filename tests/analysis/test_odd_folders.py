"""Folders that are odd and not damaged: reports, boards and rankings of them are written, and say what is odd."""

from __future__ import annotations

import io
import math
import re

import pytest
import rich.console

from banditlab.analysis import load, report, summary_rows, write_report
from banditlab.analysis.board import write_board
from banditlab.cli.ranking import print_ranking
from banditlab.errors import UsageError

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
NAMES = ("</script>", "\"'`&", "\u202eevil\u202c", "שלום עולם", "a\nb", "x" * 300, "__proto__", "%s{0}{{x}}", "$x_{")


def one_run(folder):
    folder.repetitions = 1
    folder.add_run("only", 0, 12.5)


def no_mistakes_at_all(folder):
    for r in range(4):
        folder.add_run("a", r, 0.0)
        folder.add_run("b", r, 0.0)
        folder.add_comparator(r, 1.0, 0.0)


def a_setting_without_a_number(folder):
    for r in range(4):
        folder.add_run("a", r, math.nan, mistakes=3.0, written={"gamma": 0.1})
        folder.add_run("a", r, 5.0 + r, mistakes=3.0, written={"gamma": 0.2})
        folder.add_run("b", r, 10.0 + r)
        folder.add_comparator(r, 1.0, 9.0)
        folder.comparators[-1]["loss_nats"] = math.nan


def no_number_at_all(folder):
    for r in range(3):
        folder.add_run("a", r, math.nan, mistakes=3.0)


def infinite(folder):
    for r in range(4):
        folder.add_run("a", r, math.inf, mistakes=3.0)
        folder.add_run("b", r, 10.0 + r, bound=math.inf, bound_unit="nats")
        folder.add_comparator(r, 1.0, 9.0)
        folder.comparators[-1]["loss_nats"] = math.inf


def tiny_and_huge(folder):
    for r in range(3):
        for gamma in (1e-200, 1e200):
            written = {"gamma": gamma, "norm_bound": 1e200}
            folder.add_run("a", r, 1e-200 if gamma < 1 else 2.0, bound=1e200, bound_unit="nats", written=written)
        folder.add_comparator(r, 1e200, 1e15)


def names(folder):
    for name in NAMES:
        for r in range(2):
            for gamma in (0.1, 0.2):
                folder.add_run(name, r, 20.0 + r + 50 * gamma, written={"note": name, "gamma": gamma})


def unfinished(folder):
    for r in range(4):
        folder.add_run("a", r, 10.0 + r, written={"gamma": 0.1})
        if r % 2:
            folder.add_run("a", r, 12.0 + r, written={"gamma": 0.2})
            folder.add_run("b", r, 30.0 + r)
        if r == 3:
            folder.add_run("c", r, 33.0)


MADE = {
    one_run: "only 12.5 %",
    no_mistakes_at_all: "a has the lowest mistake rate, 0.0 %; no other agent is significantly worse.",
    a_setting_without_a_number: "Not ranked: 4 runs with an undefined number of mistakes (a).",
    no_number_at_all: "Not ranked: 3 runs with an undefined number of mistakes (a).",
    infinite: "b has the lowest mistake rate, 11.5 %",
    tiny_and_huge: "a γ=1e-200",
    names: "a b",
    unfinished: "c",
}


@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__)
@pytest.mark.few(1)
def test_a_page_a_board_and_a_ranking(new_folder, make):
    folder = new_folder()
    make(folder)
    folder.write()
    results = load(folder.out)
    page = write_report(results).read_text(encoding="utf-8")
    text = " ".join(re.sub("<[^>]*>", " ", re.sub(r"<(script|style).*?</\1>", "", page, flags=re.S)).split())
    assert MADE[make] in re.sub(r" (?=[.,;:)])", "", text) or MADE[make] in text
    shown = text.replace("(NaN)", "")
    assert re.findall(r".{20}\b(?:nan|inf|None)\b.{20}", shown) == []
    write_board([folder.out], folder.out / "board.html")
    file = io.StringIO()
    print_ranking(rich.console.Console(file=file, width=80, highlight=False), summary_rows(results))
    assert make is no_number_at_all or file.getvalue()


@pytest.mark.slow
def test_two_hundred_players_are_a_page_of_three_megabytes_at_most(new_folder):
    folder = new_folder(repetitions=2, rounds=10)
    for i in range(200):
        for r in range(2):
            folder.add_run(f"player-{i}", r, 1.0 + i / 30 + r / 10)
    folder.write()
    page = write_report(folder.out)
    assert page.stat().st_size < 3e6
    text = page.read_text(encoding="utf-8")
    assert "These are the 780 between the first agents; tables/paired_differences.csv has all." in text
    assert "190 more in the ranking below" in text
    assert (folder.out / "tables" / "paired_differences.csv").read_text().count("\n") == 200 * 199 / 2 + 1


def test_thousands_of_settings_are_in_a_file_and_the_first_on_the_page(new_folder, monkeypatch):
    monkeypatch.setattr(report, "MOST_ROWS", 7)
    folder = new_folder(repetitions=1)
    for i in range(12):
        folder.add_run("a", 0, 10.0 + i, written={"gamma": 0.05 * (i + 1)}, bound=200.0, bound_unit="nats")
    folder.add_comparator(0, 1.0, 9.0)
    folder.write()
    text = write_report(folder.out).read_text(encoding="utf-8")
    assert "These are the first 7 of 12; tables/all_settings.csv has all." in text
    assert "These are the first 7 of 12; tables/bounds.csv has all." in text
    table = text[text.index("Every setting (12)") :]
    assert table[: table.index("</table>")].count("<tr>") == 1 + 7
    assert (folder.out / "tables" / "all_settings.csv").read_text().count("\n") == 1 + 12


def test_a_board_leaves_out_a_sweep_that_has_only_begun(new_folder, folder_type, tmp_path):
    folder, begun = new_folder(), folder_type(tmp_path / "begun")
    for r in range(3):
        folder.add_run("a", r, 10.0 + r)
        begun.add_run("b", r, 20.0 + r)
    folder.write()
    begun.write()
    (begun.out / "results.parquet").unlink()
    said = []
    page = write_board([folder.out, begun.out], tmp_path / "board.html", said.append).read_text(encoding="utf-8")
    assert said == [f"left out: {begun.out}: no finished runs yet (0 of 3 in its spec); run the sweep first"]
    assert f"Left out: {begun.out}: no finished runs yet (0 of 3 in its spec)" in page
    with pytest.raises(UsageError, match=r"no finished runs yet \(0 of 3 in its spec\)"):
        write_board([begun.out], tmp_path / "board.html")
    (tmp_path / "link").symlink_to(folder.out)
    with pytest.raises(UsageError, match="given twice"):
        write_board([folder.out, tmp_path / "link"], tmp_path / "board.html")
