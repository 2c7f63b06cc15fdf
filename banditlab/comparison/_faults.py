"""All faults of a table in one error, with the command that corrects them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any

from banditlab.comparison._earlier import Compared
from banditlab.envs.survey import Survey
from banditlab.errors import FaultError, FaultyTableError

ROUNDS_OF_FIXES = 4
"""How often the corrected table is checked again: the correction of one fault may uncover another."""
FIRST = ("drop_rows", "drop_columns", "roles")
"""The settings that correct most faults: a command has them first."""
LISTS = {"--comment": "comments", "--na-values": "na_values"}
HEADER = {"yes": "--header", "no": "--no-header"}


def refuse_faults(
    look: Callable[[str, dict[str, Any]], Survey],
    data: str,
    label: str,
    settings: dict[str, Any],
    against: Compared | None = None,
    others: Sequence[str] = (),
    verb: str = "compare",
) -> Survey:
    """Return the survey of a table without faults, or raise all of them; `look` surveys under a label and settings.

    `against` is the comparison whose recipe is among the settings, `others` are faults of the request that label and
    settings do not have, `verb` is the command to be corrected.
    """
    found = look(label, settings)
    reported, left = [*others, *map(str, found.faults)], found.faults
    if not reported:
        return found
    fixed_label, fixed = label, {name: value for name, value in settings.items() if value is not None}
    for _ in range(ROUNDS_OF_FIXES):
        if any(not fault.options for fault in left):
            break
        fixed_label, fixed = _fixed(fixed_label, fixed, left)
        corrected = look(fixed_label, fixed)
        left, found = corrected.faults, found if found.classes else corrected
        reported += [str(fault) for fault in left if str(fault) not in reported]
        if not left:
            raise FaultyTableError(reported, command(data, fixed_label, fixed, against, verb), _loss(found, corrected))
    raise FaultyTableError(reported, "")


def _loss(found: Survey, corrected: Survey) -> str:
    """Return what a corrected table has lost: "leaves out 3 of 90 rows, and all of 'a' and 'b'"; "" for nothing."""
    rows = found.n_rows - corrected.classes.total()
    gone = [repr(name) for name in found.classes.keys() - corrected.classes.keys()]
    classes = f", and all of {' and '.join(sorted(gone))}" if gone else ""
    return f"leaves out {rows:,} of {found.n_rows:,} rows{classes}" if rows else ""


def _fixed(label: str, settings: dict[str, Any], faults: list[FaultError]) -> tuple[str, dict[str, Any]]:
    """Return label and settings with the options of all faults."""
    settings = dict(settings)
    for fault in faults:
        for word, value in zip(fault.options[::2], fault.options[1::2], strict=True):
            if word == "--label":
                label = value
            elif word == "--drop-row":
                settings["drop_rows"] = sorted({*(settings.get("drop_rows") or ()), int(value)})
            elif word == "--drop-column":
                settings["drop_columns"] = list(dict.fromkeys([*(settings.get("drop_columns") or ()), value]))
            elif word == "--role":
                name, _, role = value.rpartition("=")
                settings["roles"] = {**(settings.get("roles") or {}), name: role}
            elif word in LISTS:
                name = LISTS[word]
                settings[name] = list(dict.fromkeys([*(settings.get(name) or ()), value]))
            elif word != "--missing" or value != "drop_rows" or settings.get("missing") in (None, "error"):
                settings[word[2:]] = value  # any rule for gaps leaves out rows without a label
    for name in settings.get("drop_columns") or ():
        settings.get("roles", {}).pop(name, None)
    return label, settings


def command(
    data: str, label: str, settings: dict[str, Any], against: Compared | None = None, verb: str = "compare"
) -> str:
    """Return the command that has these settings, with a comparison those that its recipe has not."""
    parts = ["banditlab", verb, data]
    if against is not None:
        parts += ["--best-of", str(against.folder)]
        settings = {name: value for name, value in settings.items() if value != against.settings.get(name)}
    if label and (against is None or label != against.settings.get("label")):
        parts += ["--label", label]
    for name, value in (dict.fromkeys(FIRST) | settings).items():
        if name == "header":
            parts += [HEADER[value]] if value in HEADER else []
            continue
        one = isinstance(value, dict | list) and name != "na_values"
        option = "--" + (name[:-1] if one else name).replace("_", "-")
        several = [f"{key}={each}" for key, each in value.items()] if isinstance(value, dict) else value
        several = several if isinstance(several, list) else [] if several is None else [several]
        parts += [part for each in several for part in (option, str(each))]
    return shlex.join(parts)
