"""The output of `banditlab check`: one line per check, and after a failed check the contract that it tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rich.console

from banditlab.checks import CheckResult, check_file, check_gymnasium, check_id
from banditlab.cli.plain import say
from banditlab.engine.spec import settings_of
from banditlab.errors import UsageError


def print_checks(subject: str, *, every: bool = False, settings: list[str]) -> int:
    """Run the conformance checks of an id, a file or a Gymnasium environment, and print each; return 1 if one failed.

    The run ends at the first failed check unless `every` is set, because later checks often fail for the same reason.
    """
    out = rich.console.Console()
    passed = failed = 0
    for r in _results(subject, settings_of(settings)):
        say(out, f"{r.status:9} {r.subject}: {r.name}" + (f": {r.reason}" if r.reason else ""))
        if r.status == "failed":
            failed += 1
            if r.contract:
                say(out, f"          the contract: {r.contract}")
            if not every:
                say(out, f"{_done(passed)}; the next one failed, later checks were not run (--all runs them)")
                return 1
        else:
            passed += 1
    say(out, f"{_done(passed)}, {failed} failed")
    return 1 if failed else 0


def _done(passed: int) -> str:
    return "1 check passed or was excluded" if passed == 1 else f"{passed} checks passed or were excluded"


def _results(subject: str, settings: dict[str, Any]) -> Iterator[CheckResult]:
    if subject.endswith(".py") or Path(subject).is_file():
        if settings:
            raise UsageError("--set applies to an id; a file is checked with default settings")
        return check_file(subject)
    if ":" in subject:
        return check_gymnasium(subject, **settings)
    return check_id(subject, **settings)
