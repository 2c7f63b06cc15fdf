"""The live page in a real browser: it refreshes itself, says the end, breaks no rule and asks only where it came from."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from banditlab.cli.live import Live
from banditlab.engine import Progress

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def wait_for(browser, text: str) -> None:
    end = time.monotonic() + 30
    while text not in browser.run("return document.body.innerText"):
        assert time.monotonic() < end, f"not in 30 s: {text}"
        time.sleep(0.1)


@pytest.mark.parametrize("size", [(1400, 900), (390, 844)], ids=["desk", "phone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_shows_what_comes_and_how_it_ends(browser, axe, new_folder, size, dark):
    folder = new_folder()
    for r in range(2):
        folder.add_run("first", r, 20.0 + r, written={"gamma": 0.1})
        folder.add_run("x</script><script>document.title='taken'</script>", r, 40.0 + r)
    folder.write()
    runs = [SimpleNamespace(environment_label="Toy-v0", label=label) for label in ("first", "second") for _ in range(4)]
    page = Live("toy", SimpleNamespace(runs=runs), folder.out)
    try:
        page.progress = Progress(runs=8, streams=0, runs_done=4, stage="running")
        browser.open(page.url, size, dark=dark)
        wait_for(browser, "2 of 4")
        assert "No run yet: second." in browser.run("return document.body.innerText")
        assert axe(browser) == []
        folder.add_run("first", 2, 22.0, written={"gamma": 0.1})
        folder.write()
        page.progress = Progress(runs=8, streams=0, runs_done=5, stage="storing")
        page._next = 0.0
        wait_for(browser, "storing")
        wait_for(browser, "3 of 4")
        page.finish("The sweep has ended: 5 runs played.")
        wait_for(browser, "The sweep has ended: 5 runs played.")
    finally:
        page.close()
    time.sleep(2.5)  # it asks no more once it knows
    assert browser.run("return document.getElementById('gone').classList.contains('hide')")
    assert browser.run("return document.title").startswith("toy")
    assert browser.run("return document.documentElement.scrollWidth") <= size[0]
    assert browser.messages() == []
    assert set(browser.requests()) <= {page.url, f"{page.url}part", "data:,"}


def test_a_server_that_is_gone_is_said(browser, new_folder):
    folder = new_folder()
    folder.add_run("first", 0, 20.0)
    folder.write()
    page = Live("toy", SimpleNamespace(runs=[]), folder.out)
    browser.open(page.url, (1400, 900))
    page.close()
    wait_for(browser, "No connection: the sweep was stopped")
    assert not browser.run("return document.getElementById('gone').classList.contains('hide')")
