"""The live page: what it says of a sweep that is not done, who is answered, and that it ends with the sweep."""

from __future__ import annotations

import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest

from banditlab.analysis import tables
from banditlab.cli.live import Live
from banditlab.cli.main import main as command_line
from banditlab.engine import Progress, Sweep
from banditlab.errors import UsageError

HOSTILE = "x</script><img src=x onerror=alert(1)>"


@pytest.fixture
def sweep(new_folder):
    """Eight runs of twelve, one of them failed, of a player of a hostile name, one of two settings, one not begun."""
    folder = new_folder()
    for r in range(3):
        folder.add_run("fair", r, 20.0 + r, written={"gamma": 0.1})
        folder.add_run(HOSTILE, r, 40.0 + 3 * r)
    folder.write()
    labels = ["fair"] * 4 + [HOSTILE] * 4 + ["later"] * 4
    return SimpleNamespace(
        out=folder.out,
        plan=SimpleNamespace(runs=[SimpleNamespace(environment_label="Toy-v0", label=x) for x in labels]),
    )


@pytest.fixture
def live(sweep):
    page = Live("toy", sweep.plan, sweep.out)
    yield page
    page.close()


def get(url: str, host: str | None = None) -> tuple[int, str, dict[str, str]]:
    request = urllib.request.Request(url, headers={} if host is None else {"Host": host})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), dict(error.headers)


def test_the_page_says_what_is_there_and_that_it_is_not_all(live):
    progress = Progress(runs=12, streams=4, runs_done=6, streams_done=3, failed=1, rounds_done=1234)
    progress.playing_since = time.perf_counter() - 2.0
    progress.notices.append("a worker was lost & is back")
    live.progress = progress
    code, page, headers = get(live.url)
    assert code == 200
    assert "6/12 runs, 3/4 streams with comparators, 1 failed, " in page
    assert '<progress max="16" value="9"' in page
    assert "a worker was lost &amp; is back" in page
    assert "So far: 6 of 6 runs" not in page
    assert page.count("3 of 4") == 2  # runs of each player
    assert "No run yet: later." in page
    assert HOSTILE not in page
    assert "x&lt;/script&gt;&lt;img" in page
    assert "connect-src 'self'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"
    part = get(f"{live.url}part")[1]
    assert "<html" not in part
    assert "No run yet: later." in part


def test_nobody_else_is_answered(live):
    port = live.url.split(":")[2].partition("/")[0]
    assert get(f"http://127.0.0.1:{port}/")[0] == 404
    assert get(f"{live.url}part/../../etc/passwd")[0] == 404
    assert get(live.url, host="evil.example")[0] == 404
    assert get(live.url, host=f"evil.example:{port}")[0] == 404
    assert get(live.url, host=f"localhost:{port}")[0] == 200
    others = [each[4][0] for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
    for address in {each for each in others if not each.startswith("127.")}:
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((address, int(port)), 2)


def test_a_folder_without_a_run_or_with_a_damaged_one_is_said(live, sweep, monkeypatch):
    (sweep.out / "results.parquet").unlink()
    assert "no finished runs yet" in get(live.url)[1]

    def torn(_):
        raise OSError("torn while it was read")

    monkeypatch.setattr(tables, "load", torn)
    live._next = 0.0
    assert "could not be read (OSError: torn while it was read)" in get(live.url)[1]


def test_results_are_read_when_a_page_asks_and_not_all_the_time(live, monkeypatch):
    read = []
    real = tables.load
    monkeypatch.setattr(tables, "load", lambda out: (read.append(out), real(out))[1])
    time.sleep(0.3)
    assert read == []
    for _ in range(5):
        get(f"{live.url}part")
    assert len(read) == 1


def test_a_port_in_use_is_one_line(live, sweep):
    port = int(live.url.split(":")[2].partition("/")[0])
    with pytest.raises(
        UsageError, match=rf"^--live-port {port}: not available on 127\.0\.0\.1 \(Address already in use\)"
    ):
        Live("toy", sweep.plan, sweep.out, port)


def test_the_end_is_told_to_an_open_page_and_waits_for_no_other(sweep):
    alone = Live("toy", sweep.plan, sweep.out)
    begin = time.monotonic()
    alone.finish("ended")
    assert time.monotonic() - begin < 1.0
    alone.close()
    with pytest.raises(urllib.error.URLError, match="refused"):
        get(alone.url)

    watched = Live("toy", sweep.plan, sweep.out)
    get(watched.url)
    told = []
    threading.Timer(0.3, lambda: told.append(get(f"{watched.url}part")[1])).start()
    watched.finish("ended well: <all>")
    assert watched._told.is_set()
    watched.close()
    assert "ended well: &lt;all&gt;" in told[0]
    assert 'data-ended="true"' in told[0]


SPEC = """
name = "toy"
rounds = 20
repetitions = 1
norm_bounds = []
environment = [{ id = "banditlab/Logistic-v0" }]
agent = [{ id = "uniform" }]
"""


@pytest.mark.parametrize("how", ["interrupted", "broken", "dry"])
def test_the_server_ends_with_the_sweep_however_that_ends(tmp_path, monkeypatch, capsys, how):
    (tmp_path / "toy.toml").write_text(SPEC)
    seen = []

    def play(self, folder, *, watch, **options):
        watch(Progress(runs=1, streams=0))
        url = capsys.readouterr().out.split("live page, on this machine only: ")[1].split()[0]
        seen.append((url, get(url)[0]))
        raise KeyboardInterrupt if how == "interrupted" else UsageError("broken")

    monkeypatch.setattr(Sweep, "run", play)
    arguments = ["run", str(tmp_path / "toy.toml"), "-o", str(tmp_path / "out"), "--live"]
    monkeypatch.setattr(sys, "argv", ["banditlab", *arguments, *(["--dry-run"] if how == "dry" else [])])
    with pytest.raises(SystemExit) as end:
        command_line()
    assert end.value.code == {"interrupted": 130, "broken": 2, "dry": 2}[how]
    if how == "dry":
        assert (
            capsys.readouterr().err
            == "banditlab: --live shows a running sweep, but --dry-run does not run one; give one of them\n"
        )
        return
    [(url, code)] = seen
    assert code == 200
    with pytest.raises(urllib.error.URLError, match="refused"):
        get(url)
