"""A mutant's trial: a copy of the tree with one line changed, and the tests that are meant to see it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure.mutants.sites import Mutant
from benchmarks.measure.mutants.witnesses import witnesses

HANG = 240
"""Seconds after which one test that has not ended is taken for one that never does; kernels compile in less."""
PARTS = ("agents", "analysis", "banditlab", "benchmarks", "docs", "envs", "runs", "tests")
FILES = ("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "LICENSE")
NOTICED, EQUIVALENT, UNNOTICED, LATE = "noticed", "equivalent", "not noticed", "out of time"


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant, which test saw it (its id, or what pytest said), and the seconds that took."""

    outcome: str
    by: str
    seconds: float


class Ground:
    """A copy of the tree that mutants are tried in, one after the other, beside a clean one.

    A mutant of a file with kernels has a folder for compiled ones that goes with it; for the other files they stay.
    """

    def __init__(self, root: Path, place: Path) -> None:
        self.root, self.tree, self.clean, self.home = root, place / "tree", place / "clean", place / "home"
        for copy in (self.tree, self.clean):
            copy.mkdir(parents=True)
            for part in PARTS:
                shutil.copytree(root / part, copy / part, ignore=shutil.ignore_patterns("__pycache__", "results-*"))
            for file in FILES:
                shutil.copy(root / file, copy / file)
        self.home.mkdir()
        self.sound: dict[str, bool] = {}

    def tried(self, mutant: Mutant, limit: float) -> Verdict:
        """Return what the tests say of a mutant within so many seconds."""
        file, began = self.tree / mutant.path, time.monotonic()
        source = file.read_bytes()
        cache = self.home / ("mutant" if _compiles(source) else "kept")
        file.write_bytes(mutant.applied(source))
        try:
            for arguments in witnesses(self.clean, mutant.path, mutant.scope):
                left = limit - (time.monotonic() - began)
                if left <= 0:
                    return Verdict(LATE, "", time.monotonic() - began)
                code, said = self._pytest(self.tree, arguments, cache, left)
                if code is None:
                    return Verdict(LATE, "", time.monotonic() - began)
                if code not in (0, 5) and (by := self._seen_by(code, said)):
                    return Verdict(NOTICED, by, time.monotonic() - began)
            return Verdict(UNNOTICED, "", time.monotonic() - began)
        finally:
            file.write_bytes(source)
            shutil.rmtree(self.home / "mutant", ignore_errors=True)

    def _seen_by(self, code: int, said: str) -> str:
        """Return what noticed a mutant; nothing where the same test fails in the clean tree as well."""
        found = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
        if not found:  # the process itself ended, or a test never did
            return "a test that never ends" if "Timeout" in said else f"the tests' process ended with {code}"
        test = found[1].split(" - ")[0]
        if test not in self.sound:
            clean, _ = self._pytest(self.clean, [test, "-m", "slow or not slow"], self.home / "kept", 600.0)
            self.sound[test] = clean == 0
            if clean != 0:
                print(f"{test} fails in the clean tree as well, and proves nothing", file=sys.stderr)
        return test if self.sound[test] else ""

    def _pytest(self, tree: Path, arguments: list[str], cache: Path, limit: float) -> tuple[int | None, str]:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no"]
        command += ["-o", f"faulthandler_timeout={HANG}", "-o", "faulthandler_exit_on_timeout=true", *arguments]
        environment = os.environ | {
            "PYTHONPATH": str(tree),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_CACHE_DIR": str(cache),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self.home / "hypothesis"),
        }
        process = subprocess.Popen(
            command,
            cwd=tree,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=limit)
            return process.returncode, said
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _compiles(source: bytes) -> bool:
    """Return whether a file holds kernels. A constant that kernels take from another file keeps its old value in them."""
    return b"import numba" in source or b"banditlab.numerics.jit import" in source
