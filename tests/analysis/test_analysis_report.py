"""The page: one file that loads nothing, escapes what users wrote, and says what is in the folder."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import subprocess
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from banditlab.analysis import embedding, explore, write_report
from banditlab.analysis.curves import grids, mistake_curves
from banditlab.analysis.embedding import json_text, script_of
from banditlab.analysis.look import styles
from banditlab.analysis.plots import heat_maps, mistakes_against_gamma, mistakes_against_rounds
from banditlab.analysis.summary import arenas
from banditlab.analysis.tables import load, runnable_spec
from banditlab.errors import UsageError
from banditlab.results.store import Store

HOSTILE = 'evil"><script>alert(1)</script>&amp;$x_{'


class Page(HTMLParser):
    """Collect tags, ids, what is referred to, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.inside = ""
        self.scripts: list[dict[str, str | None]] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.inside = tag
        self.scripts += [dict(attrs)] * (tag == "script")
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [
            value for name, value in attrs if name in ("src", "href", "xlink:href", "data", "action", "srcset")
        ]

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside not in ("script", "style"):
            self.text += data


def fill(folder):
    """Two environments; a player over gamma and B with a vacuous bound, one without settings, a forecaster."""
    for environment in ("banditlab/Digits-v0", "banditlab/Logistic-v0(n_classes=3)"):
        for repetition in range(4):
            for bound in (1.0, 3.0):
                folder.add_comparator(repetition, bound, 30.0 / bound + repetition, environment=environment, gap=1e-5)
            for gamma, bound in ((0.1, 1.0), (0.1, 3.0), (0.3, 1.0), (0.3, 3.0)):
                value, settings = 90 * gamma + bound + repetition, {"gamma": gamma, "norm_bound": bound}
                where = {"environment": environment, "bound": 1e5, "bound_unit": "nats"}
                folder.add_run("exploration(ogd)", repetition, value, written=settings, **where)
            folder.add_run("uniform", repetition, 80.0 + repetition, environment=environment)
            folder.add_run("ftrl", repetition, 5.0, environment=environment, kind="label")
    return folder


def sweep(new_folder):
    return fill(new_folder())


@pytest.fixture(scope="module")
def finished(folder_type, tmp_path_factory):
    """The folder of a finished sweep with its report, and the page."""
    folder = fill(folder_type(tmp_path_factory.mktemp("sweep") / "out"))
    text = write_report(folder.write()).read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    return folder.out, text, page


@pytest.fixture
def page_of(new_folder):
    def make(folder) -> tuple[str, Page]:
        text = write_report(folder.out).read_text(encoding="utf-8")
        page = Page()
        page.feed(text)
        return text, page

    return make


def test_the_page_loads_nothing_and_ids_are_unique(finished):
    _, text, page = finished
    assert not {"link", "iframe", "object", "embed", "image", "form"} & set(page.tags)
    assert page.scripts == [{}, {"type": "application/json", "id": "data"}, {}]  # its data, and two its policy names
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    scripts = re.findall("<script>(.*?)</script>", text, re.S)
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert policy is not None
    assert policy[1].startswith(f"default-src 'none'; script-src 'sha256-{digests[0]}' 'sha256-{digests[1]}';")
    assert all(link.startswith(("#", "data:image/svg+xml;base64,")) for link in page.links)
    assert not re.search(r"@import|url\((?!#)|<\?xml", text)
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"|http-equiv', "", text)
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert set(re.findall(r"url\(#([^)]*)\)", text[: text.rindex("<script>")])) <= set(page.ids)
    assert page.tags.count("figure") == page.tags.count("img") == 2 * (3 + 2)
    assert len(text) < 2e6


def test_the_page_says_what_was_run(finished):
    _, _, page = finished
    said = " ".join(page.text.split())
    assert "exploration(ogd)bandit feedback: right or wrong4γ: 0.1, 0.3; B: 1.0, 3.0" in said
    assert "uniformbandit feedback: right or wrong1–" in said
    assert "ftrlfull information: the label1–" in said
    assert "averaged over 4 repetitions" in said
    assert "Settings with a proved bound: 4. Vacuous (at least the number of rounds): 4. Exceeded: 0." in said
    assert "Unfinished" not in said
    assert "Skipped" not in said
    assert "numpy 2.4.6" in said


def test_unfinished_skipped_and_failed_are_listed(new_folder, page_of):
    folder = new_folder()
    folder.skipped = [{"environment": "banditlab/Digits-v0", "player": "exploration(aioli)", "reason": "it is binary"}]
    ids = [folder.add_run("a", repetition, 10.0) for repetition in range(4)]
    del folder.rows[ids[0]], folder.rows[ids[1]]
    out = folder.write(plan=ids)
    record = {"environment": "E", "player": "p", "repetition": 0, "error": "ValueError: nope"}
    Store(out).write_failure(ids[0], record)
    _, page = page_of(folder)
    assert "Unfinished: 1 of 4 runs missing" in page.text
    assert "Failed: 1 run and the comparators of 0 streams, listed below." in page.text
    assert "ValueError: nope" in page.text
    assert "it is binary" in page.text


def test_hostile_names_are_text(new_folder, page_of):
    folder = new_folder()
    for repetition in range(3):
        folder.add_run(HOSTILE, repetition, 10.0, environment=HOSTILE, written={"note": HOSTILE})
        folder.add_run("_plain", repetition, 20.0, environment=HOSTILE, written={"gamma": 0.1})
        folder.add_run("_plain", repetition, 30.0, environment=HOSTILE, written={"gamma": 0.2})
    folder.skipped = [{"environment": HOSTILE, "player": HOSTILE, "reason": HOSTILE}]
    folder.write()
    text, page = page_of(folder)
    assert page.scripts == [{}, {"type": "application/json", "id": "data"}, {}]
    assert len(re.findall("(?i)<script", text)) == len(re.findall("(?i)</script", text)) == 3
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
    assert {setting["p"] for setting in data["sections"][0]["settings"]} == {HOSTILE, "_plain"}
    assert page.text.count(HOSTILE) >= 6
    names = {path.name for path in (folder.out / "figures").iterdir()}
    assert all(re.fullmatch(r"[a-z0-9.-]+-(bit)-[A-Za-z0-9.-]+", name) for name in names)
    assert sum(name.endswith("-gamma.svg") for name in names) == 1  # without a B there is no heat map
    assert "_plain γ=0.1" in page.text  # a leading underscore is a name, not "no legend"


@pytest.mark.parametrize(("most", "shown"), [(56, [1, 5, 10, 20, 100, 500, 1000]), (0, [1, 5, 20, 50, 200, 1000])])
def test_curves_of_many_settings_have_fewer_checkpoints(new_folder, page_of, monkeypatch, most, shown):
    monkeypatch.setattr(explore, "MOST_POINTS", most)
    folder = new_folder(rounds=1000, repetitions=1)
    for gamma in (0.1, 0.2):
        folder.add_run("a", 0, 100.0, written={"gamma": gamma})
    folder.write()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page_of(folder)[0], re.S)[1])
    assert [setting["x"] for setting in data["sections"][0]["settings"]] == [shown, shown]


def test_long_names_leave_room_for_the_figure(new_folder, page_of):
    folder = new_folder(repetitions=2)
    for repetition in range(2):
        folder.add_comparator(repetition, 1.0, 5.0)
        for gamma in (0.1, 0.2):
            for bound in (1.0, 3.0):
                settings = {"gamma": gamma, "norm_bound": bound, "a_setting_with_a_long_name": 1 / bound + gamma}
                folder.add_run("an_agent_with_a_name_that_goes_on_" * 4, repetition, 10.0 * gamma, written=settings)
    folder.write()
    page_of(folder)  # matplotlib warns, here raises, when a layout leaves no room
    arena = arenas(load(folder.out))[0]
    figure = mistakes_against_rounds(mistake_curves(arena), styles([arena.final["label"].iloc[0]]))
    assert figure.axes[0].get_position().width > 0.4


def test_csv_tables_are_tidy(finished):
    out, _, _ = finished
    tables = {path.stem: pd.read_csv(path) for path in (out / "tables").glob("*.csv")}
    assert set(tables) == {
        *("ranking", "best_settings", "all_settings"),
        *("paired_differences", "comparators", "bounds"),
    }
    assert len(tables["ranking"]) == 2 * 3
    assert len(tables["all_settings"]) == 2 * 6
    assert len(tables["paired_differences"]) == 2
    best = tables["best_settings"]
    assert len(best) == 2 * 3 * 4
    assert set(best.loc[best["label"] == "exploration(ogd)", "reported_at"]) == {"γ=0.1 B=1"}
    assert tables["ranking"]["mistakes"].iloc[0] == pytest.approx(0.115)


def test_twice_the_same_page(new_folder, page_of):
    folder = new_folder(repetitions=2)
    for repetition in range(2):
        folder.add_run("a", repetition, 10.0 + repetition)
    folder.write()
    assert page_of(folder)[0] == page_of(folder)[0]


def test_one_run_is_enough_for_a_page(new_folder, page_of):
    folder = new_folder(rounds=1, repetitions=1, norm_bounds=())
    folder.add_run("alone", 0, 1.0)
    folder.write()
    _, page = page_of(folder)
    assert "alone" in page.text
    assert "100.0 %" in page.text


def test_a_perfect_player_is_drawn(new_folder, page_of):
    folder = new_folder(repetitions=2)
    for repetition in range(2):
        folder.add_run("perfect", repetition, 0.0)
        folder.add_run("fair", repetition, 10.0)
        folder.add_comparator(repetition, 1.0, 0.0)
    folder.write()
    said = " ".join(page_of(folder)[1].text.split())
    assert "0.0 %0.0 to 6.3" in said  # none wrong of 200: (k + 1) / (n + 2)


def test_a_place_that_cannot_be_written(new_folder):
    folder = new_folder()
    folder.add_run("a", 0, 1.0)
    (folder.write() / "figures").write_text("a file where the folder should be")
    with pytest.raises(UsageError, match="the report cannot be written"):
        write_report(folder.out)


def test_figures_are_files_too(finished):
    out, _, _ = finished
    names = {"mistakes", "relative", "heat"}
    files = list((out / "figures").glob("digits-v0-bit-*"))
    assert {path.name for path in files} == {f"digits-v0-bit-{name}.svg" for name in names}
    for path in files:
        assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.slow
def test_a_board_is_written_without_matplotlib(finished):
    """Importing it takes most of a second."""
    out, _, _ = finished
    code = (
        "import sys; from banditlab.analysis import load; from banditlab.analysis.board import board_page;"
        f"board_page([load({str(out)!r})]);"
        "print(sorted({'matplotlib', 'seaborn', 'scipy.stats', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_files_of_like_names_do_not_meet(new_folder, page_of):
    folder = new_folder(repetitions=1, norm_bounds=(0.25, 0.5))
    for environment in ("one/Toy-v0", "two/Toy-v0"):
        folder.add_run("a", 0, 10.0, environment=environment)
        for bound in (0.25, 0.5):
            folder.add_comparator(0, bound, 5.0, environment=environment)
    folder.write()
    text, page = page_of(folder)
    assert re.findall(r'<h2 id="[^"]*">(\S+) ', text) == ["one/Toy-v0", "two/Toy-v0"]
    names = {path.name for path in (folder.out / "figures").glob("*.svg")}
    figures = ("mistakes", "relative")
    assert names == {f"toy-v0-bit-{i}-{figure}.svg" for i in (1, 2) for figure in figures}
    assert len(page.ids) == len(set(page.ids))


def test_runnable_spec_leaves_out_what_the_store_added():
    text = 'rounds = 3\n[[agent]]\nid = "a"\n[store]\nformat = 1\n[versions]\nnumpy = "2"\n[[agent]]\nid = "b"\n'
    assert runnable_spec(text) == 'rounds = 3\n[[agent]]\nid = "a"\n[[agent]]\nid = "b"'


def test_failed_comparators_are_listed(new_folder, page_of):
    folder = new_folder(repetitions=2)
    for repetition in range(2):
        folder.add_run("a", repetition, 10.0)
    stream = folder.streams[1]
    out = folder.write()
    record = {"environment": "Toy-v0", "player": "comparator", "repetition": 1, "error": "E: no loss"}
    Store(out).write_failure(stream, record)
    Store(out).write_failure("old", record | {"error": "E: of an older spec"})
    assert load(out).missing == 0
    text = page_of(folder)[1].text
    assert "Failed: 0 runs and the comparators of 1 stream, listed below." in text
    assert "E: no loss" in text
    assert "older spec" not in text


def test_a_file_stands_first_in_titles(new_folder, page_of):
    folder = new_folder(repetitions=1)
    folder.add_run("a", 0, 1.0, environment="banditlab/Table-v0(decimal=., label=target, path=wine.csv)")
    folder.write()
    assert "wine.csv · banditlab/Table-v0(decimal=., label=target)" in page_of(folder)[1].text


def test_colours_follow_the_player_from_figure_to_figure(new_folder):
    folder = sweep(new_folder)
    results = load(folder.write())
    looks = styles(results.labels())
    colours = [
        {
            line.get_label(): line.get_color()
            for line in mistakes_against_rounds(mistake_curves(a), looks).legends[0].get_lines()
        }
        for a in arenas(results)
        if a.kind == "bit"
    ]
    assert len(colours) == 2
    for legend in colours:
        by_player = {name.split()[0].rstrip(":"): colour for name, colour in legend.items()}
        assert by_player["uniform"] == looks["uniform"].colour
        assert by_player["exploration(ogd)"] == looks["exploration(ogd)"].colour
    many = styles([str(i) for i in range(24)])
    assert len({(s.colour, str(s.dash)) for s in many.values()}) == 24


def test_heat_map_prints_every_number_and_leaves_gaps_empty(new_folder):
    folder = sweep(new_folder)
    gone = [
        i for i, rows in folder.rows.items() if rows[0].get("param.gamma") == 0.3 and rows[0]["param.norm_bound"] == 3.0
    ]
    for run_id in gone:
        del folder.rows[run_id]
    arena = arenas(load(folder.write()))[0]
    figure = heat_maps(grids(arena))
    numbers = [text.get_text() for text in figure.axes[0].texts]
    assert numbers == ["11.5", "13.5", "29.5"]  # percent
    cells = figure.axes[0].collections[0]
    shade = dict(zip(numbers, cells.norm(cells.get_array())[~np.ma.getmaskarray(cells.get_array())].tolist()))
    assert shade["11.5"] == 0.0 < shade["13.5"] < shade["29.5"] == 1.0  # coloured by mistakes, whatever the ball
    [ax] = mistakes_against_gamma(grids(arena)).axes
    np.testing.assert_array_equal([line.get_xdata() for line in ax.lines], [[0.1, 0.3], [0.1, np.nan]])


def test_numbers_of_a_page_have_six_digits_and_none_is_infinite() -> None:
    data = {"a": [1.23456789, 2.0, -0.0, math.nan, math.inf], 3: (np.float32(0.5), np.int64(7), np.True_, True, None)}
    assert str(json_text(data)) == '{"a":[1.23457,2,0,null,null],"3":[0.5,7,true,true,null]}'
    assert str(json_text(np.array([[999_999_000_000_000.0, 1e15]]))) == "[[999999000000000,1000000000000000.0]]"
    assert str(json_text("<é\u2028&>")) == '"\\u003c\\u00e9\\u2028\\u0026\\u003e"'
    assert embedding.DIGITS == 6


@pytest.mark.parametrize(("text", "ends"), [("a </SCRIPT >", True), ("a <!-- b", True), ("a < b -->", False)])
def test_a_script_must_not_end_its_element(text: str, ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "asset", lambda name: f" {text} ")
    if ends:
        with pytest.raises(ValueError, match="contains its end tag or <!--"):
            script_of("a", "b")
    else:
        assert str(script_of("a", "b")) == f"\n{text}\n{text}\n"
