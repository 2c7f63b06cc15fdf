"""The report in a real browser: its first screen, sorting, filters, the explorer against results.parquet, colours, a phone.

Needs chromium and its driver (Debian: `apt install chromium chromium-driver`) and the extra `browser`; axe-core's rules come
with `pip install --no-deps axe-playwright-python`. Without them these tests are skipped, with the reason.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from banditlab.analysis import write_report

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

HOSTILE = 'x</script><script>document.title="taken"</script>"\'&<b>'
DESK, PHONE = (1400, 900), (390, 844)


def filled(folder):
    """Two environments: a player over gamma and B with two decodings, one over B, one that guesses, one of a hostile name."""
    for environment in ("banditlab/Digits-v0", f"banditlab/Logistic-v0(n_classes=3, name={HOSTILE})"):
        for r in range(4):
            for ball in (1.0, 3.0):
                folder.add_comparator(r, ball, 30.0 / ball + r, environment=environment, gap=1e-5)
            for gamma in (0.1, 0.3):
                for ball in (1.0, 3.0):
                    for decoding in ("sample", "half-log"):
                        value = 60 * gamma + 3 * ball + r + (decoding == "sample") * 2.345
                        settings = {"gamma": gamma, "norm_bound": ball, "decoding": decoding}
                        where = {"environment": environment, "bound": 1e5 if ball > 1 else 40.0, "bound_unit": "nats"}
                        folder.add_run("exploration(ogd)", r, value, written=settings, **where)
            for ball in (1.0, 3.0):
                folder.add_run("fastcb", r, 5.0 + r + ball, written={"norm_bound": ball}, environment=environment)
            folder.add_run("uniform", r, 80.0 + r, environment=environment)
            folder.add_run(HOSTILE, r, 50.0 + 2 * r, environment=environment, bound=np.inf, bound_unit="nats")
    return folder


@pytest.fixture(scope="module")
def out(folder_type, tmp_path_factory):
    folder = filled(folder_type(tmp_path_factory.mktemp("browser") / "out"))
    folder.groups = {"exploration(ogd)": "theory", "fastcb": "practice", "uniform": "baseline", HOSTILE: "</script>"}
    write_report(folder.write())
    return folder.out


@pytest.fixture
def page(browser, out):
    browser.show(out / "report.html", DESK)
    assert browser.run("return document.documentElement.dataset.ready") == "true"
    return browser


def cells(page, section: int, key: int) -> list[str]:
    return page.run(
        "return [...document.querySelectorAll(`section[data-section='${arguments[0]}'] table.ranking tbody tr:not(.hide)`)]"
        ".map(r => r.cells[arguments[1]].innerText.trim())", section, key,
    )  # fmt: skip


def test_the_first_screen_answers_for_every_environment(page):
    answers = page.run(
        "return [...document.querySelectorAll('.answer')].map(a => [a.innerText, a.getBoundingClientRect().bottom])"
    )
    assert len(answers) == 2
    for text, bottom in answers:
        said = " ".join(text.split())
        assert "1= fastcb B=1 7.5 % 5.4 to 9.6" in said
        assert "with a proved bound" in said
        assert "fastcb B=1 has the lowest mistake rate, 7.5 %" in said
        assert "The best logistic model in hindsight, B = 3, has a mistake rate of" in said
        assert bottom <= DESK[1] + 40
    assert page.run("return document.title") != "taken"


def test_ranking_sorts_filters_and_compares(page):
    before = cells(page, 0, 1)
    assert before[0] == "fastcb"
    head = page.all("section[data-section='0'] table.ranking th button.sort")
    by_mistakes = next(b for b in head if b.text == "mistakes")
    page.press(by_mistakes)
    page.press(by_mistakes)
    assert cells(page, 0, 1) == before[::-1]
    assert by_mistakes.find_element("xpath", "..").get_attribute("aria-sort") == "descending"
    page.one("section[data-section='0'] input[type=search]").send_keys("fast")
    assert cells(page, 0, 1) == ["fastcb"]
    page.one("section[data-section='0'] input[type=search]").clear()
    page.one("section[data-section='0'] input[type=search]").send_keys(" ")
    choose = "arguments[0].value = 'theory'; arguments[0].dispatchEvent(new Event('change'))"
    page.run(choose, page.one("section[data-section='0'] .controls:has(+ .ranked) select"))
    assert cells(page, 0, 1) == ["exploration(ogd)"]


def test_a_pressed_player_shows_every_difference_to_it(page, out):
    table = pd.read_csv(out / "tables" / "paired_differences.csv")
    row = table[(table["first"] == "fastcb B=1") & (table["second"] == "uniform")].iloc[0]
    button = next(b for b in page.all("section[data-section='0'] button.pair") if b.text == "uniform")
    page.press(button)
    shown = dict(zip(cells(page, 0, 1), cells(page, 0, 5), strict=True))
    assert shown["uniform"] == "–"
    assert shown["fastcb"].startswith(f"{100 * row['difference']:.1f}".replace("-", "−"))
    page.press(button)
    assert cells(page, 0, 5)[0] == "–"


def test_the_explorer_reaches_every_setting_in_two_presses_and_says_what_is_stored(page, out):
    runs = pd.read_parquet(out / "results.parquet")
    assert check_explorer(page, runs) == 2 * (8 + 2 + 1 + 1)


def check_explorer(page, runs: pd.DataFrame) -> int:
    """Press every player and every cell; compare the mistakes shown with the runs' means. Return how many there were."""
    last = runs[runs["round"] == runs["round"].max()]
    last = last.assign(share=last["first_sight_expected_mistakes"] / last["first_sight_rounds"])
    seen = 0
    for section, environment in enumerate(dict.fromkeys(runs["environment"])):
        page.near(f"section[data-section='{section}'] .explorer-live")
        here = last[last["environment"] == environment]
        for i in range(len(page.all(f"section[data-section='{section}'] .explorer-live > .controls button"))):
            player = page.all(f"section[data-section='{section}'] .explorer-live > .controls button")[i]
            page.press(player)
            label, mine = player.text, here[here["label"] == player.text]
            written = sorted(c for c in mine.columns if c.startswith("setting.") and mine[c].notna().any())
            want = {
                tuple(str(v) for v in (key if isinstance(key, tuple) else (key,))): group["share"].mean()
                for key, group in (mine.groupby(written, dropna=False) if written else [((), mine)])
            }
            got = page.run(
                "const host = document.querySelectorAll('section[data-section]')[arguments[0]].querySelector('.explorer-live');"
                "return [...host.querySelectorAll('.cells button')].map(b => { b.click(); return ["
                "host.querySelector('p code').innerText, host.querySelector('[data-fact=mistakes]').innerText, b.innerText,"
                "host.querySelectorAll('.chart svg path').length] })", section,
            )  # fmt: skip
            assert len(got) == len(want), label
            for call, fact, cell, drawn in got:
                inside = call[call.index("(") + 1 : -1] if label == mine["player"].iloc[0] or "(" in call else ""
                pairs = dict(part.split("=", 1) for part in inside.split(", ") if "=" in part)
                key = tuple(pairs[c.removeprefix("setting.")].strip('"') for c in written)
                share = 100 * want[key]
                digits = len(cell.partition(".")[2])
                assert fact.startswith(f"{cell} %")
                assert float(cell) == pytest.approx(share, abs=0.5 * 10**-digits + 1e-9), call
                assert drawn > 0
            seen += len(got)
    return seen


def test_curves_hide_players_and_read_values_by_keyboard(page):
    host = "section[data-section='0'] .curves-live"
    page.near(host)
    legend = page.all(f"{host} .legend button[data-player]")
    paths = page.run("return document.querySelectorAll(arguments[0]).length", f"{host} .chart svg path")
    page.press(legend[0])
    assert page.run("return document.querySelectorAll(arguments[0]).length", f"{host} .chart svg path") < paths
    assert page.all(f"{host} .legend button[data-player]")[0].get_attribute("aria-pressed") == "false"
    page.one(f"{host} .chart").send_keys("\ue012")  # left arrow
    assert "100 rounds: " in page.run(
        "return document.querySelector(arguments[0]).textContent", f"{host} .chart [role=status]"
    )
    selects = page.all(f"{host} select")
    page.run("arguments[0].value = 'seconds'; arguments[0].dispatchEvent(new Event('change'))", selects[-1])
    labels = page.run(
        "return [...document.querySelectorAll(arguments[0])].map(t => t.textContent)", f"{host} .chart text"
    )
    assert "seconds in the agent" in labels


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_rule_broken_no_message_no_request(browser, out, axe, size, dark):
    browser.show(out / "report.html", size, dark=dark)
    for section in (0, 1):
        for part in (".curves-live", ".explorer-live"):
            browser.near(f"section[data-section='{section}'] {part}")
    assert browser.run("return document.documentElement.scrollWidth") <= size[0]
    assert browser.messages() == []
    assert browser.requests() == [(out / "report.html").as_uri()]
    back = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert back == ("rgb(22, 24, 28)" if dark else "rgb(255, 255, 255)")
    assert axe(browser) == []


def test_a_script_that_is_not_the_page_s_own_is_refused(browser, out, tmp_path):
    text = (out / "report.html").read_text(encoding="utf-8")
    file = tmp_path / "evil.html"
    file.write_text(text.replace("<h1", "<script>document.title='taken'</script><h1", 1), encoding="utf-8")
    browser.show(file, DESK)
    assert browser.run("return document.title") != "taken"
    assert any("Content Security Policy" in message for message in browser.messages())


def test_data_are_json_whatever_users_write(out):
    text = (out / "report.html").read_text(encoding="utf-8")
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert len(data["sections"]) == 2
    assert "NaN" not in text.split('id="data">')[1].split("</script>")[0]
