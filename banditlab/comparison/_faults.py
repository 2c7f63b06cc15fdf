"""All faults of a table in one error, with the command that mends them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from banditlab.envs.survey import Survey
from banditlab.errors import FaultError, FaultyTableError

ROUNDS_OF_FIXES = 4
"""What mends one fault may show another: so often the mended table is looked at again."""
FIRST = ("drop_rows", "drop_columns", "roles")
"""The settings that mend most faults: a command has them first."""
HEADER = {"yes": "--header", "no": "--no-header"}


def refuse_faults(
    look: Callable[[str, dict[str, Any]], Survey], data: str, label: str, settings: dict[str, Any]
) -> Survey:
    """Return the survey of a table without faults, or raise all of them; `look` surveys under a label and settings."""
    found = look(label, settings)
    if not found.faults:
        return found
    told, left = [str(fault) for fault in found.faults], found.faults
    fixed_label, fixed = label, {name: value for name, value in settings.items() if value is not None}
    for _ in range(ROUNDS_OF_FIXES):
        if any(not fault.options for fault in left):
            raise FaultyTableError(told, "")
        fixed_label, fixed = _mended(fixed_label, fixed, left)
        left = look(fixed_label, fixed).faults
        told += [str(fault) for fault in left if str(fault) not in told]
        if not left:
            raise FaultyTableError(told, command(data, fixed_label, fixed))
    raise FaultyTableError(told, "")


def _mended(label: str, settings: dict[str, Any], faults: list[FaultError]) -> tuple[str, dict[str, Any]]:
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
    for name, value in (dict.fromkeys(FIRST) | settings).items():
        if name == "header":
            parts += [HEADER[value]] if value in HEADER else []
            continue
        several = [f"{key}={each}" for key, each in value.items()] if isinstance(value, dict) else value
        several = several if isinstance(several, list) else [] if several is None else [several]
        option = "--" + (name[:-1] if isinstance(value, dict | list) else name).replace("_", "-")
        parts += [part for each in several for part in (option, str(each))]
    return shlex.join(parts)
