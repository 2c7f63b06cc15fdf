"""All faults of a table in one error, with the command that corrects them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any

from banditlab.comparison._earlier import Compared
from banditlab.envs.options import with_words, words_of
from banditlab.envs.survey import Survey
from banditlab.errors import FaultError, FaultyTableError

ROUNDS_OF_FIXES = 4
"""How often the corrected table is checked again, because the correction of one fault may uncover another."""
FIRST = ("label", "drop_rows", "drop_columns", "roles")
"""The settings that correct most faults; they come first in a command."""


def refuse_faults(
    look: Callable[[dict[str, Any]], Survey],
    data: str,
    settings: dict[str, Any],
    against: Compared | None = None,
    others: Sequence[str] = (),
    verb: str = "compare",
) -> Survey:
    """Return the survey of a table, or raise an error with all of its faults.

    `look` returns the survey for given settings, which include the label. `against` is the earlier comparison
    (`--best-of`) from which some of the settings are copied. `others` are faults of the request itself, and `verb` is
    the subcommand of the corrected command.
    """
    found = look(settings)
    reported, left = [*others, *map(str, found.faults)], found.faults
    if not reported:
        return found
    fixed = {name: value for name, value in settings.items() if value is not None}
    for _ in range(ROUNDS_OF_FIXES):
        if any(not fault.options for fault in left):
            break
        fixed = _fixed(fixed, left)
        corrected = look(fixed)
        left, found = corrected.faults, found if found.classes else corrected
        reported += [str(fault) for fault in left if str(fault) not in reported]
        if not left:
            raise FaultyTableError(reported, command(data, fixed, against, verb), _loss(found, corrected))
    raise FaultyTableError(reported, "")


def _loss(found: Survey, corrected: Survey) -> str:
    """Describe what a correction leaves out, for example "leaves out 3 of 90 rows, and all of 'a' and 'b'", or return
    "".
    """
    rows = found.n_rows - corrected.classes.total()
    gone = [repr(name) for name in found.classes.keys() - corrected.classes.keys()]
    classes = f", and all of {' and '.join(sorted(gone))}" if gone else ""
    return f"leaves out {rows:,} of {found.n_rows:,} rows{classes}" if rows else ""


def _fixed(settings: dict[str, Any], faults: list[FaultError]) -> dict[str, Any]:
    """Return the settings with the corrections of all faults."""
    found = with_words(settings, [word for fault in faults for word in fault.options])
    if found.get("missing") == "drop_rows" and settings.get("missing") not in (None, "error"):
        found["missing"] = settings["missing"]  # rows without a label are always left out
    if found.get("drop_rows"):
        found["drop_rows"] = sorted(found["drop_rows"])
    if found.get("roles"):
        found["roles"] = {
            name: role for name, role in found["roles"].items() if name not in found.get("drop_columns", ())
        }
    return found


def command(data: str, settings: dict[str, Any], against: Compared | None = None, verb: str = "compare") -> str:
    """Return the command with these settings; if `against` is given, only with those that differ from it."""
    parts, known = ["banditlab", verb, data], {} if against is None else against.settings
    parts += ["--best-of", str(against.folder)] if against is not None else []
    rest = {name: value for name, value in settings.items() if name not in known or value != known[name]}
    return shlex.join([*parts, *words_of({name: rest[name] for name in FIRST if name in rest} | rest)])
