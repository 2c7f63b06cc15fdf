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
    "drop_rows", "drop_columns", "roles", "header", "format", "encoding", "separator", "decimal", "max_categories",
    "order", "group", "missing", "scaling",
)  # fmt: skip
"""The table's settings, in the order in which a command has them: each is the option of its name, lists that of one entry."""
HEADER = {"yes": "--header", "no": "--no-header"}


class FaultyTableError(UsageError):
    """All faults of a table, and the command that corrects them.

    Attributes
    ----------
    faults
        One line each.
    command
        The corrected `banditlab compare ...`; "" where some fault has no option that corrects it.
    """

    def __init__(self, faults: Sequence[str], command: str) -> None:
        several = len(faults) > 1
        head = f"{len(faults)} faults: " if several else ""
        super().__init__(head + "; ".join(faults) + (f"; corrected: {command}" if command and several else ""))
        self.faults, self.command = list(faults), command


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
        left = look(fixed_label, fixed).faults
        reported += [str(fault) for fault in left if str(fault) not in reported]
        if not left:
            raise FaultyTableError(reported, command(data, fixed_label, fixed))
    raise FaultyTableError(reported, "")


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
            elif option == "--missing":  # rows without a label can only be dropped, and others then are, too
                settings["missing"] = "drop_rows" if "drop_rows" in (value, settings.get("missing")) else value
            elif option == "--decimal":
                settings["decimal"] = value
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
        option = "--" + (name[:-1] if isinstance(value, dict | list) else name).replace("_", "-")
        parts += [part for each in several for part in (option, str(each))]
    return shlex.join(parts)
