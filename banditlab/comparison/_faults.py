"""All faults of a table in one error, with the command that corrects them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any

from banditlab.envs.survey import Survey
from banditlab.errors import FaultError, UsageError

ROUNDS_OF_FIXES = 4
"""How often the corrected table is checked again: the correction of one fault may uncover another."""
SETTINGS = (
    "drop_rows", "drop_columns", "roles", "header", "format", "encoding", "separator", "decimal", "thousands",
    "comments", "na_values", "max_categories", "order", "group", "missing", "scaling",
)  # fmt: skip
"""The table's settings, in the order in which a command has them: each is the option of its name, lists that of one entry."""
LISTS = {"--comment": "comments", "--na-values": "na_values"}
HEADER = {"yes": "--header", "no": "--no-header"}


class FaultyTableError(UsageError):
    """All faults of a table, and the command that corrects them.

    Attributes
    ----------
    faults
        One line each.
    command
        The corrected `banditlab compare ...`; "" where some fault has no option that corrects it.
    loss
        What that leaves out of the rows and classes; "" for nothing.
    """

    def __init__(self, faults: Sequence[str], command: str, loss: str = "") -> None:
        several = len(faults) > 1
        head = f"{len(faults)} faults: " if several else ""
        corrected = f"corrected{f' ({loss})' if loss else ''}: {command}"
        super().__init__(head + "; ".join(faults) + (f"; {corrected}" if command and several else ""))
        self.faults, self.command, self.loss = list(faults), command, loss


def refuse_faults(
    look: Callable[[str, dict[str, Any]], Survey], data: str, label: str, settings: dict[str, Any]
) -> Survey:
    """Return the survey of a table without faults, or raise all of them; `look` surveys under a label and settings."""
    found = look(label, settings)
    if not found.faults:
        return found
    reported, left = [str(fault) for fault in found.faults], found.faults
    fixed_label, fixed = label, {name: value for name, value in settings.items() if value is not None}
    for _ in range(ROUNDS_OF_FIXES):
        if any(not fault.options for fault in left):
            raise FaultyTableError(reported, "")
        fixed_label, fixed = _fixed(fixed_label, fixed, left)
        corrected = look(fixed_label, fixed)
        left, found = corrected.faults, found if found.classes else corrected
        reported += [str(fault) for fault in left if str(fault) not in reported]
        if not left:
            raise FaultyTableError(reported, command(data, fixed_label, fixed), _loss(found, corrected))
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
        for option, value in zip(fault.options[::2], fault.options[1::2], strict=True):
            if option == "--label":
                label = value
            elif option == "--drop-row":
                settings["drop_rows"] = sorted({*(settings.get("drop_rows") or ()), int(value)})
            elif option == "--drop-column":
                settings["drop_columns"] = list(dict.fromkeys([*(settings.get("drop_columns") or ()), value]))
            elif option == "--role":
                name, _, role = value.rpartition("=")
                settings["roles"] = {**(settings.get("roles") or {}), name: role}
            elif option in ("--comment", "--na-values"):
                name = LISTS[option]
                settings[name] = list(dict.fromkeys([*(settings.get(name) or ()), value]))
            elif option != "--missing" or value != "drop_rows" or settings.get("missing") in (None, "error"):
                settings[option[2:]] = value  # any rule for gaps leaves out rows without a label
    for name in settings.get("drop_columns") or ():
        settings.get("roles", {}).pop(name, None)
    return label, settings


def command(data: str, label: str, settings: dict[str, Any]) -> str:
    """Return the `banditlab compare` that has these settings."""
    parts = ["banditlab", "compare", data, *(["--label", label] if label else [])]
    for name in SETTINGS:
        value = settings.get(name)
        if name == "header":
            parts += [HEADER[value]] if value in HEADER else []
            continue
        several = [f"{key}={each}" for key, each in value.items()] if isinstance(value, dict) else value
        several = several if isinstance(several, list) else [] if several is None else [several]
        option = "--" + (name[:-1] if isinstance(value, dict | list) and name != "na_values" else name).replace(
            "_", "-"
        )
        parts += [part for each in several for part in (option, str(each))]
    return shlex.join(parts)
