"""The resolved spec as TOML, which is stored in a results folder and can be run again."""

from __future__ import annotations

import json
from typing import Any

from banditlab.engine.spec import Spec
from banditlab.results.schema import FORMAT


def spec_to_toml(spec: Spec, facts: dict[str, Any]) -> str:
    """Return the spec with resolved checkpoints, the store format and the versions of the run."""
    data = spec.model_dump(mode="json")
    blocks = {kind: data.pop(kind) for kind in ("environment", "agent", "forecaster")}
    for name in ("feedback", "change", "families"):
        if data[name] in ({"grid": {}}, {}):
            del data[name]
    lines = [
        f"{name} = {toml_value(value)}" for name, value in data.items() if name != "checkpoints" and value is not None
    ]
    lines.append(f"checkpoints = {toml_value(spec.checkpoint_rounds())}")
    for kind, listed in blocks.items():
        for block in listed:
            grid = block.pop("grid")
            lines += ["", f"[[{kind}]]"] + [f"{_key(name)} = {toml_value(value)}" for name, value in block.items()]
            if grid:
                lines.append(f"grid = {toml_value(grid)}")
    lines += ["", "[store]", f"format = {FORMAT}", "", "[versions]", f"python = {toml_value(facts['python'])}"]
    lines += [f"{_key(name)} = {toml_value(value)}" for name, value in facts["packages"].items()]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else json.dumps(name)


def toml_value(value: Any) -> str:
    """Return a value of plain data as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)  # TOML's basic strings share JSON's escapes
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {toml_value(item)}" for name, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    return repr(value)
