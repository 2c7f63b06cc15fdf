"""Files of a results folder that a test writes itself, with their seals."""

from __future__ import annotations

from typing import Any

from banditlab.results.seal import BLANK, KEY, sealed
from banditlab.results.store import _sealed_json


def sealed_json(record: dict[str, Any]) -> bytes:
    """Return the bytes of a record of the folder; a seal that is in it already is made anew."""
    return _sealed_json(record, indent=1)


def sealed_toml(text: str) -> bytes:
    """Return the bytes of a spec.toml."""
    return sealed(f"{text}\n# {KEY} = {BLANK}\n".encode())
