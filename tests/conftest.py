"""One thread and fixed examples for every test: the same numbers on every machine, loaded or not."""

from __future__ import annotations

import gc
import importlib.util
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Hold BLAS to one thread, as the engine does."""
    with threadpool_limits(limits=1):
        yield


def pytest_collection_finish() -> None:
    """Take what was imported out of the garbage collector's rounds: a tenth of the tests' time, numba makes many objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.fixture
def allocations() -> Iterator[Callable[[], Any]]:
    """Numba's counters, switched on: `alloc`, how often memory was asked for, `mi_alloc`, `mi_free`, arrays made and freed."""
    from numba.core.registry import cpu_target
    from numba.core.runtime import _nrt_python, rtsys

    rtsys.initialize(cpu_target.target_context)
    before = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    yield rtsys.get_allocation_stats
    if not before:
        _nrt_python.memsys_disable_stats()


@pytest.fixture(scope="session")
def dense_step() -> Any:
    """Return `step(M, C, x, y, w)`: a Gaussian posterior's implicit step in Kd dimensions, slowly, by scipy.

    The mean by a proximal step on the objective, then the covariance by inverting the precision.
    """
    import numpy as np
    from scipy.optimize import minimize

    from banditlab.losses import logistic_gradient, logistic_loss, softmax

    def step(M: Any, C: Any, x: Any, y: int, w: float) -> Any:
        K, d = M.shape
        precision = np.linalg.inv(C)

        def objective(v: Any) -> Any:
            W, e = v.reshape(K, d), v - M.ravel()
            return e @ precision @ e / 2 + w * logistic_loss(W @ x, y)

        def gradient(v: Any) -> Any:
            return precision @ (v - M.ravel()) + w * logistic_gradient(v.reshape(K, d), x, y).ravel()

        def hessian(v: Any) -> Any:
            s = softmax(v.reshape(K, d) @ x)
            return precision + w * np.kron(np.diag(s) - np.outer(s, s), np.outer(x, x))

        found = minimize(objective, M.ravel(), jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-9})
        v = found.x - np.linalg.solve(hessian(found.x), gradient(found.x))  # scipy stops at rounding of the objective
        return v.reshape(K, d), np.linalg.inv(hessian(v))

    return step


FAMILIES = {
    "obama": "obama|gaussian_posterior",
    "newtron": "newtron|_programme",
    "inverse gap": "fastcb|squarecb",
    "stack": "stackcb|test_stacked",
    "ridge": "confidit|linucb|lints|ridge",
    "gaf": "gaf|gaussian_softmax",
    "grid": "b-grid|test_grid",
    "ons": "[^a-z]ons[^a-z]",
    "span": "test_primal_dual|in_the_span|form=dual",
    "kernel": "kernel[-_]?(aioli|folklore|gaf)",
    "olm++": "adaboost-olm[+][+]|OLMPlus",
    "samplers": "obama_samplers|langevin",
    "fourier": "fourier",
    "remembered": r"[-\[]remembered",
    "folklore": "folklore|(?<!boosted-)exploration",
}
"""Players whose kernels take long to compile, as their tests are called."""
PLAYERS = ("agents", "forecasters", "checks", "conformance", "numerics", "players", "record", "boosting")
"""Folders of tests that compile players."""
SLOW = ("gaf", "grid", "ons", "span", "kernel", "olm++", "samplers", "fourier", "remembered", "newtron", "obama")
"""Families that are no agent's default: a contributor's run leaves them out."""


def group_of(nodeid: str) -> str:
    """Return which tests share a worker: a slow family's of all files of players, else a file's.

    Workers share what they compiled, but what two of them need at the same moment both compile. Files stay whole because
    their fixtures, some of which play sweeps, are made once.
    """
    return next((family for family in FAMILIES if is_of(nodeid, family)), nodeid.partition("::")[0])


def is_of(nodeid: str, family: str) -> bool:
    """Return whether a test is one of a family of players."""
    folder = PurePosixPath(nodeid.partition("::")[0]).parent.name
    return folder in PLAYERS and re.search(FAMILIES[family], nodeid, re.IGNORECASE) is not None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out tests by `group_of` where `--dist loadgroup` is asked for.

    The marks that option reads have no effect under pytest 9.2 and pytest-xdist 3.8: every test then goes to any worker.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return ByGroup(config, log)


@pytest.hookimpl(tryfirst=True)  # before pytest leaves the slow ones out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow the families of `SLOW`, and all but a few, evenly spread, of the cases of a test marked `few`."""
    for item in items:
        if any(is_of(item.nodeid, family) for family in SLOW):
            item.add_marker(pytest.mark.slow)
    quick = [item for item in items if not item.get_closest_marker("slow")]
    for _, group in groupby(quick, key=lambda item: item.nodeid.partition("[")[0]):
        cases = list(group)
        few = cases[0].get_closest_marker("few")
        if few is not None:
            kept = {i * len(cases) // few.args[0] for i in range(few.args[0])}
            for i in set(range(len(cases))) - kept:
                cases[i].add_marker(pytest.mark.slow)


# --------------------------------------------------------------------------------------------------------------- a real browser


class Browser:
    """A page in chromium: show a file, run a script in it, press things, and say what it logged and asked for."""

    def __init__(self, driver: Any):
        self.driver = driver

    def show(self, file: Path, size: tuple[int, int], *, dark: bool = False) -> None:
        """Open a file at that size, in light or dark; what was logged before is forgotten."""
        self.open(file.as_uri(), size, dark=dark)

    def open(self, url: str, size: tuple[int, int], *, dark: bool = False) -> None:
        """Open an address, as `show` does a file."""
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get("about:blank")
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(url)
        self._until("return document.URL === arguments[0] && document.readyState === 'complete'", url)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements("css selector", selector))

    def press(self, element: Any) -> None:
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def near(self, selector: str) -> None:
        """Scroll to a part that is drawn when the reader comes near, and wait until it is."""
        self.run("arguments[0].scrollIntoView({block: 'center'})", self.one(selector))
        self._until("return document.querySelector(arguments[0]).querySelectorAll('svg path').length", selector)

    def _until(self, script: str, *arguments: Any) -> None:
        end = time.monotonic() + 30
        while not self.run(script, *arguments):
            assert time.monotonic() < end, f"not in 30 s: {script} {arguments}"
            time.sleep(0.05)

    def messages(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return what the page asked for since it was opened, itself included."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return Debian's chromium behind selenium, without a screen."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium: pip install -e '.[browser]'")
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no browser: apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(service=webdriver.ChromeService(driver), options=options)
    made.set_script_timeout(120)
    yield Browser(made)
    made.quit()


@pytest.fixture(scope="session")
def axe() -> Callable[[Browser], list[str]]:
    """Return a check of axe-core's rules: what a page violates, as "rule: elements"."""
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        pytest.skip("no axe-core: pip install --no-deps axe-playwright-python")
    script = (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")

    def check(browser: Browser) -> list[str]:
        browser.driver.execute_cdp_cmd(
            "Runtime.evaluate", {"expression": script}
        )  # the page's policy lets no script in
        told = browser.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document).then(r => done(r.violations), e => done([String(e)]))"
        )
        return [f"{v['id']}: {[n['target'] for n in v['nodes']][:4]} {v['nodes'][0]['failureSummary']}" for v in told]

    return check
