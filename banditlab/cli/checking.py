"""The output of `banditlab check`: one line per check, up to the first that fails, with its requirement."""

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
                what = "then this failed; fix it and check again (--all continues)"
                say(out, f"{passed} passed or excluded with a reason, {what}")
                return 1
        else:
            passed += 1
    say(out, f"{passed} passed or excluded with a reason, {failed} failed")
    return 1 if failed else 0


def _results(subject: str, settings: dict[str, Any]) -> Iterator[CheckResult]:
    if subject.endswith(".py") or Path(subject).is_file():
        if settings:
            raise UsageError("--set applies to an id; a file is checked with default settings")
        return check_file(subject)
    if ":" in subject:
        return check_gymnasium(subject, **settings)
    return check_id(subject, **settings)
