"""A mutant's trial: a copy of the tree with one line changed, and the tests that are meant to see it.

A change of what kernels are made of is looked at uncompiled first (`uncompiled.py`): compiling takes most of a trial's time,
and nine of ten show without.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from analysis.result_pages.mutants import LATE, NOTICED, UNNOTICED
from audits.mutants.sites import Mutant
from audits.mutants.witnesses import KERNELS, uncompiled_witnesses, witnesses
from banditlab.numerics.jit import PACKAGE, kernel_sources

HANG = 240
"""Seconds after which one test that has not ended is taken for one that never does; kernels compile in less."""
PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:anyio", "--tb=no")
PARTS = ("agents", "analysis", "audits", "banditlab", "benchmarks", "docs", "envs", "runs", "tests")
FILES = ("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "LICENSE")


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

    def __init__(self, root: Path, place: Path, baselines: Path | None = None, only_uncompiled: bool = False) -> None:
        self.root, self.tree, self.clean, self.home = root, place / "tree", place / "clean", place / "home"
        self.baselines, self.only_uncompiled = baselines or place / "baselines", only_uncompiled
        for copy in (self.tree, self.clean):
            copy.mkdir(parents=True)
            for part in PARTS:
                shutil.copytree(root / part, copy / part, ignore=shutil.ignore_patterns("__pycache__", "results-*"))
            for file in FILES:
                shutil.copy(root / file, copy / file)
        self.home.mkdir()
        self.baselines.mkdir(parents=True, exist_ok=True)
        self.sound: dict[str, bool] = {}
        self.warm: subprocess.Popen[str] | None = None
        self.kernels = {file.relative_to(PACKAGE.parent).as_posix() for file in kernel_sources()}
        self.sources = _digest(*sorted((self.clean / "banditlab").rglob("*.py")))

    def tried(self, mutant: Mutant, limit: float) -> Verdict:
        """Return what the tests say of a mutant within so many seconds."""
        file, began = self.tree / mutant.path, time.monotonic()
        source = file.read_bytes()
        cache = self.home / ("mutant" if _compiles(source) else "kept")
        file.write_bytes(mutant.applied(source))
        self._forget(mutant.path)
        try:
            if self._may_be_seen_uncompiled(mutant) and (by := self._seen_uncompiled(mutant, limit)):
                return Verdict(NOTICED, by, time.monotonic() - began)
            asked = [] if self.only_uncompiled else witnesses(self.clean, mutant.path, mutant.line, mutant.scope)
            for arguments in asked:
                by = self._seen_by(arguments, cache, limit - (time.monotonic() - began))
                if by is None:
                    return Verdict(LATE, "", time.monotonic() - began)
                if by:
                    return Verdict(NOTICED, by, time.monotonic() - began)
            return Verdict(UNNOTICED, "", time.monotonic() - began)
        finally:
            file.write_bytes(source)
            self._forget(mutant.path)
            shutil.rmtree(self.home / "mutant", ignore_errors=True)

    def _forget(self, path: str) -> None:
        """Remove a file's bytecode: it is kept by time and size, and a mutant may have those of the one before."""
        source = self.home / "bytecode" / self.tree.relative_to("/") / path
        for file in source.parent.glob(f"{source.stem}.*.pyc"):
            file.unlink()

    def _may_be_seen_uncompiled(self, mutant: Mutant) -> bool:
        return mutant.room in (*KERNELS, "players", "regression") or mutant.path in self.kernels

    def _seen_uncompiled(self, mutant: Mutant, limit: float) -> str:
        """Return the test that sees a mutant while kernels are plain Python, "" where none does."""
        for asked in uncompiled_witnesses(self.clean, mutant.path, mutant.line):
            known = [self._baseline(name) for name in asked]
            if not any(file.stat().st_size for file in known):
                continue
            reads = {"UNCOMPILED_READS": os.pathsep.join(map(str, known))}
            code, said = self._uncompiled(self.tree, asked, limit, reads)
            if code not in (0, 5, None):
                return f"{failed(said) or f'the process ended with {code}'} (uncompiled)"
        return ""

    def _baseline(self, asked: str) -> Path:
        """Return the file that says which tests of a file, or recorded runs of a player, the clean tree passes uncompiled."""
        files = [
            self.clean / (asked if asked.endswith(".py") else "tests/record/cases.py"),
            Path(__file__).parent / "uncompiled.py",
        ]
        files += sorted((self.clean / "tests").rglob("conftest.py"))
        plain = re.sub(r"\W+", "-", asked)
        file = self.baselines / f"{plain}-{self.sources}-{_digest(*files)}.jsonl"
        if not file.exists():
            part = file.with_suffix(".part")
            part.unlink(missing_ok=True)
            part.touch()
            self._uncompiled(self.clean, [asked], 600.0, {"UNCOMPILED_WRITES": str(part)}, "--maxfail=1000")
            part.replace(file)
        return file

    def _seen_by(self, arguments: list[str], cache: Path, limit: float) -> str | None:
        """Return the test that sees the mutant, "" where none does, None where the time is up.

        A test that fails in the clean tree as well proves nothing: the others are asked without it.
        """
        left_out: list[str] = []
        ends = time.monotonic() + limit
        while (left := ends - time.monotonic()) > 0.0:
            code, said = self._pytest(self.tree, [*arguments, *left_out], cache, left)
            if code in (0, 5):
                return ""
            if code is None:
                return None
            test = failed(said)
            if not test:  # the process itself ended, or a test never did
                if code in (3, 4) and self._pytest(self.clean, arguments, cache, limit)[0] in (3, 4):
                    raise RuntimeError(f"pytest ends with {code} in the clean tree as well: {said[-2000:]}")
                return "a test that never ends" if "Timeout" in said else f"the tests' process ended with {code}"
            if self._is_sound(test):
                return test
            if test in left_out:
                raise RuntimeError(f"pytest does not leave {test} out")
            left_out += ["--deselect", test]
            if test in arguments:  # a whole file, which cannot be collected
                arguments = [each for each in arguments if each != test]
                if not any(each.endswith(".py") for each in arguments):
                    return ""
        return None

    def _is_sound(self, test: str) -> bool:
        """Return whether a test passes in the clean tree."""
        if test not in self.sound:
            clean, _ = self._pytest(self.clean, [test, "-m", "slow or not slow"], self.home / "kept", 600.0)
            self.sound[test] = clean == 0
            if clean != 0:
                print(f"{test} fails in the clean tree as well, and proves nothing", file=sys.stderr)
        return self.sound[test]

    def _uncompiled(
        self, tree: Path, asked: list[str], limit: float, variables: dict[str, str], *more: str
    ) -> tuple[int | None, str]:
        """Run tests and recorded runs with kernels as plain Python, in a fork of a process that has imported the libraries."""
        if self.warm is None:
            environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": "", "OPENBLAS_NUM_THREADS": "1"}
            environment["HYPOTHESIS_STORAGE_DIRECTORY"] = str(self.home / "hypothesis")
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            command = [sys.executable, str(Path(__file__).with_name("warm.py"))]
            self.warm = subprocess.Popen(
                command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.home
            )
        assert self.warm.stdin is not None
        assert self.warm.stdout is not None
        said = self.home / "said"
        arguments = [
            *PYTEST,
            *more,
            "-p",
            "audits.mutants.uncompiled",
            "-W",
            "ignore::RuntimeWarning",
            *_selected(asked),
        ]
        line = {"tree": str(tree), "arguments": arguments, "said": str(said), "limit": limit}
        line |= {"environment": {"PYTHONPATH": str(tree), **variables}, "bytecode": str(self.home / "bytecode")}
        self.warm.stdin.write(json.dumps(line) + "\n")
        self.warm.stdin.flush()
        code, words = json.loads(self.warm.stdout.readline()), said.read_text("utf-8", "replace")
        # pytest's own faults, or the fork's, say nothing of the mutant; a conftest that cannot be imported does
        if code in (3, 70) or (code == 4 and "while loading conftest" not in words):
            raise RuntimeError(f"pytest ended with {code}: {words[-2000:]}")
        return code, words

    def close(self) -> None:
        """End the process that forks."""
        if self.warm is not None:
            self.warm.communicate()  # its input ends, and so does it

    def _pytest(self, tree: Path, arguments: list[str], cache: Path, limit: float) -> tuple[int | None, str]:
        command = [sys.executable, "-m", "pytest", *PYTEST]
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


def failed(said: str) -> str:
    """Return the id of the first test that pytest's summary names, "" where it names none. An id may hold spaces."""
    found = re.search(r"^(?:FAILED|ERROR) (\S+?\.py(?:::.*?(?:\[.*?\])?)?)(?: - |$)", said, re.MULTILINE)
    return found[1] if found else ""


def _selected(asked: list[str]) -> list[str]:
    """Return pytest's arguments for files of tests and recorded runs of players."""
    files = [name for name in asked if name.endswith(".py")]
    runs = [name for name in asked if name not in files]
    arguments = ["-m", "slow or not slow", *files, *(["tests/record/test_recorded_runs.py"] if runs else [])]
    if runs:  # of the files given, all that is no recorded run
        arguments += ["-k", " or ".join([*runs, "not test_recorded_runs"])]
    return arguments


def _digest(*files: Path) -> str:
    found = hashlib.sha256()
    for file in files:
        found.update(file.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def _compiles(source: bytes) -> bool:
    """Return whether a file holds kernels. A constant that kernels take from another file keeps its old value in them."""
    return b"import numba" in source or b"banditlab.numerics.jit import" in source
