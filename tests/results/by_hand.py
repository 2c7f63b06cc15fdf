"""Files of a results folder that a test writes itself, listed in its manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from banditlab.results.files import listing
from banditlab.results.schema import SUMS


def put(folder: Path, name: str, content: bytes | str | dict[str, Any] | list[Any]) -> Path:
    """Write a file and list it; a dictionary or list is written as JSON."""
    text = content if isinstance(content, bytes | str) else json.dumps(content)
    data = text if isinstance(text, bytes) else text.encode()
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    with open(folder / SUMS, "ab") as sums:
        sums.write(b"\n" + listing(name, data))
    return file


def flipped(data: bytes, at: int, bit: int) -> bytes:
    """Return bytes with one bit of one of them the other way round."""
    return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]
