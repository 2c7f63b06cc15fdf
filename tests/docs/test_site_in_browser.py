"""The built site in a real browser, opened from a disk: search, mathematics, wide things on a phone, no request, no message.

Needs what `tests/analysis/test_report_in_browser.py` needs, and the site: `python -m docs`, or the folder that BANDITLAB_SITE
names.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

DESK, PHONE = (1400, 900), (390, 844)
PAGES = (
    "index.html",
    "start.html",
    "tutorials/index.html",
    "tutorials/play-a-round.html",
    "glossary.html",
    "algorithms/agents/fastcb.html",
    "algorithms/agents/stackcb.html",
    "algorithms/forecasters/gaf.html",
    "algorithms/forecasters/kernel-folklore.html",
    "algorithms/envs/sparse-v0.html",
    "api/banditlab.html",
    "api/banditlab.bounds.html",
    "tutorials/own-agent.html",
    "tutorials/theory-on-one-page.html",
    "gallery/index.html",
    "gallery/studies.html",
    "gallery/quickstart.html",
    "results/speed.html",
    "theory/half-log.html",
    "errata.html",
    "cluster.html",
)


@pytest.fixture(scope="module")
def site() -> Path:
    """Return the folder of the built site."""
    folder = Path(os.environ.get("BANDITLAB_SITE") or Path(__file__).parents[2] / "build" / "site" / "html").resolve()
    if not (folder / "searchindex.js").is_file():
        pytest.skip(f"{folder}: the site is not built: python -m docs")
    return folder


def own(browser, site) -> None:
    """All that was asked for is of the site's folder, and nothing was logged."""
    asked = browser.requests()
    assert asked
    assert [url for url in asked if not url.startswith((site.as_uri(), "data:"))] == []
    assert browser.messages() == []


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("gaptron", "algorithms/agents/gaptron.html"),
        ("comparator", "glossary.html"),
        ("best_in_ball", "api/banditlab.html"),
    ],
    ids=["an agent", "a term", "a function"],
)
def test_search_finds_without_a_server(browser, site, word, page) -> None:
    browser.show(site / "index.html", DESK)
    field = browser.one("input[name=q]")
    field.send_keys(word)
    field.submit()
    end = time.monotonic() + 30
    found: list[str] = []
    while page not in found:
        assert time.monotonic() < end, f"{word}: {page} is not among {found}"
        time.sleep(0.1)
        links = browser.run("return [...document.querySelectorAll('#search-results li a')].map(a => a.href)")
        found = [unquote(urlsplit(a).path).removeprefix(f"{site}/") for a in links]
    assert all((site / name).is_file() for name in found)
    own(browser, site)


def test_a_word_that_is_nowhere_finds_nothing(browser, site) -> None:
    browser.show(site / "index.html", DESK)
    field = browser.one("input[name=q]")
    field.send_keys("zyxwvut")
    field.submit()
    end = time.monotonic() + 30
    while "did not match any documents" not in browser.run("return document.body.innerText"):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert browser.all("#search-results li") == []


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_and_asks_for_nothing(browser, site, page, size) -> None:
    browser.show(site / page, size)
    wide = browser.run(
        "const scrolls = 'pre, .table-wrapper, div.math, mjx-container';"
        "return [...document.querySelectorAll('article *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 &&"
        " !e.parentElement.closest(scrolls)).slice(0, 5).map(e => e.outerHTML.slice(0, 120))"
    )
    assert wide == []
    assert browser.run("return document.documentElement.scrollWidth") <= size[0]
    broken = browser.run("return [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)")
    assert broken == []
    own(browser, site)


@pytest.mark.parametrize("page", ["errata.html", "algorithms/agents/newtron.html", "api/banditlab.bounds.html"])
def test_every_formula_is_drawn(browser, site, page) -> None:
    browser.show(site / page, DESK)
    drawn = "return [document.querySelectorAll('.math').length, document.querySelectorAll('mjx-container svg').length]"
    end = time.monotonic() + 30
    while len(set(browser.run(drawn))) > 1:
        assert time.monotonic() < end, browser.run(drawn)
        time.sleep(0.1)
    assert browser.run(drawn)[0] > 20
    assert browser.run("return document.querySelectorAll('[data-mml-node=merror]').length") == 0
    own(browser, site)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(
    "page", ["index.html", "algorithms/agents/fastcb.html", "api/banditlab.html", "gallery/index.html"]
)
def test_no_rule_of_accessibility_is_broken(browser, site, axe, page, dark) -> None:
    browser.show(site / page, DESK, dark=dark)
    assert axe(browser) == []
