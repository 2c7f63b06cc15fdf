"""How large pages are and how soon they are open: a report, a board of 10^5 runs, Optuna's and benchopt's of like content.

`python -m benchmarks pages --report FOLDER` with chromium, its driver and selenium; Optuna and benchopt where they can be
imported. A page is open when its script says it is ready (ours), or when its first drawing is there (theirs). Times are
medians, wall seconds from the address to that, each in a new tab of a browser that runs already. A page that asks for
something outside is opened without a network: what it then lacks is said.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from banditlab.errors import UsageError

OURS = "document.documentElement.dataset.ready === 'true'"
PLOTLY = "document.querySelectorAll('.main-svg').length > 0"
LOADED = "document.readyState === 'complete'"
PATIENCE = 120.0


def main(*, report: Path | None = None, runs: int = 100_000, openings: int = 5, peers: bool = False) -> None:
    """Print the table; `report` is a results folder, `peers` measures Optuna's and benchopt's pages, too."""
    print(
        f"| page | bytes | written, CPU s | opened, s, median of {openings} | asks outside |\n|---|---:|---:|---:|---:|"
    )
    with tempfile.TemporaryDirectory() as place, _browser() as browser:
        if report is not None:
            page, took = _timed(lambda: _report(report))
            _line(f"report of {report.name}", page, took, *_opened(browser, page, OURS, openings))
        page, took = _timed(lambda: _board(Path(place), runs))
        _line(f"board of {runs:,} runs in {runs // 10:,} settings", page, took, *_opened(browser, page, OURS, openings))
        for name, make, ready in (("optuna", _optuna, PLOTLY), ("benchopt", _benchopt, LOADED)) if peers else ():
            if importlib.util.find_spec(name) is None:
                print(f"| {name}: not installed | | | | |")
                continue
            page, took = _timed(lambda make=make: make(Path(place), runs))  # type: ignore[misc]
            _line(f"{name}, {runs:,} runs", page, took, *_opened(browser, page, ready, openings))


def _line(name: str, page: Path, took: float, opened: float, outside: int, drawn: bool) -> None:
    lacks = "" if drawn or not outside else ", and draws nothing without"
    print(f"| {name} | {page.stat().st_size:,} | {took:.1f} | {opened:.2f} | {outside}{lacks} |", flush=True)


def _timed(make: Callable[[], Path]) -> tuple[Path, float]:
    begin = time.process_time()
    return make(), time.process_time() - begin


@contextlib.contextmanager
def _browser() -> Iterator[Any]:
    if importlib.util.find_spec("selenium") is None:
        raise UsageError("pages needs selenium: pip install selenium")
    from selenium import webdriver

    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        raise UsageError("no browser: apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1400,900",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    made = webdriver.Chrome(service=webdriver.ChromeService(driver), options=options)
    made.set_page_load_timeout(PATIENCE)
    yield made
    made.quit()


def _opened(browser: Any, page: Path, ready: str, openings: int) -> tuple[float, int, bool]:
    """Return the median seconds until a page is open, how much it asks for outside, and whether anything is drawn."""
    times, outside, drawn = [], 0, True
    for _ in range(openings):
        browser.get("about:blank")
        browser.get_log("performance")
        begin = time.perf_counter()
        browser.get(page.as_uri())
        while not browser.execute_script(f"return {ready}"):
            if time.perf_counter() - begin > PATIENCE:
                raise UsageError(f"{page.name}: not open in {PATIENCE:g} s")
            time.sleep(0.01)
        times.append(time.perf_counter() - begin)
        events = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
        asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        outside = sum(url.startswith("http") for url in asked)
        drawn = bool(browser.execute_script("return document.querySelectorAll('.chart svg, .main-svg').length > 0"))
    return statistics.median(times), outside, drawn


def _report(folder: Path) -> Path:
    from banditlab.analysis import write_report

    return write_report(folder)


def _board(place: Path, runs: int) -> Path:
    """Return a board over a made-up folder: runs in settings of ten repetitions, of players with up to 1,000 settings."""
    from banditlab.analysis.board import write_board
    from banditlab.results.schema import FORMAT

    out = place / "many"
    out.mkdir()
    rounds, seat, rng = [1, 2, 5, 10], np.arange(runs), np.random.default_rng(0)
    settings, repetition = seat // 10, seat % 10
    gamma = (settings % 1000 + 1) / 1001
    base = {
        "run_id": [f"{i:024x}" for i in seat], "stream_id": [f"{r:024x}" for r in repetition], "kind": "bit",
        "environment": "Toy-v0", "player": "agent", "label": [f"agent-{s // 1000}" for s in settings],
        "repetition": repetition, "expected_kind": "unconditional", "log_loss": 1.0, "explored": 0.0, "bound": np.nan,
        "bound_unit": "", "certificate": np.nan, "seconds": 0.01, "param.gamma": gamma,
        "setting.gamma": [f"{g:.6g}" for g in gamma],
    }  # fmt: skip
    parts = [
        pd.DataFrame(base | {"round": r, "mistakes": r, "expected_mistakes": r * rng.uniform(0.1, 0.9, runs)})
        for r in rounds
    ]
    pd.concat(parts).to_parquet(out / "results.parquet")
    spec = f'name = "many"\nrounds = 10\nrepetitions = 10\nbase_seed = 0\n[store]\nformat = {FORMAT}\n[versions]\n'
    (out / "spec.toml").write_text(spec)
    plan = {"format": FORMAT, "runs": base["run_id"], "streams": [], "skipped": [], "groups": {}, "data": {}}
    (out / "runs.json").write_text(json.dumps(plan))
    return write_board([out], place / "board.html")


def _optuna(place: Path, runs: int) -> Path:
    """Return Optuna's history of as many trials, written into one page with its library."""
    import datetime

    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study, now = optuna.create_study(), datetime.datetime.now()
    where = {"x": optuna.distributions.FloatDistribution(0, 1)}
    study.add_trials(
        [
            optuna.trial.FrozenTrial(
                number=i, state=optuna.trial.TrialState.COMPLETE, value=float(value), datetime_start=now,
                datetime_complete=now, params={"x": float(x)}, distributions=where, user_attrs={}, system_attrs={},
                intermediate_values={}, trial_id=i,
            )
            for i, (value, x) in enumerate(np.random.default_rng(0).random((runs, 2)))
        ]
    )  # fmt: skip
    optuna.visualization.plot_optimization_history(study).write_html(place / "optuna.html", include_plotlyjs=True)
    return place / "optuna.html"


def _benchopt(place: Path, runs: int) -> Path:
    """Return benchopt's page of as many runs, of 100 solvers, one line each: its own figures, which it aggregates."""
    from benchopt.plotting.generate_html import plot_benchmark_html
    from benchopt.utils.temp_benchmark import temp_benchmark

    seat, rng = np.arange(runs), np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "dataset_name": "simulated", "objective_name": "test-objective", "solver_name": [f"agent-{i % 100}" for i in seat],
            "stop_val": 10, "idx_rep": seat // 100, "time": rng.uniform(1, 2, runs), "objective_value": rng.random(runs),
        }
    )  # fmt: skip
    with contextlib.chdir(place), temp_benchmark() as benchmark, contextlib.redirect_stdout(io.StringIO()):
        folder = benchmark.get_output_folder()
        folder.mkdir(parents=True, exist_ok=True)
        table.to_parquet(folder / "many.parquet")
        plot_benchmark_html(folder / "many.parquet", benchmark, {}, display=False)
        [made] = folder.glob("*_many.html")
        shutil.copy(made, place / "benchopt.html")
    return place / "benchopt.html"
