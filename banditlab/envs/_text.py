"""Convert a text file of any encoding to UTF-8 for the table readers."""

from __future__ import annotations

import codecs
import re

from banditlab.errors import FaultError, UsageError
from banditlab.validation import UNPACKED, refuse_beyond

MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""Byte order marks; the first begins with the third."""
UNDEFINED = frozenset(b"\x81\x8d\x8f\x90\x9d")
"""Bytes that are undefined in cp1252."""
LOOKED_AT = 4096
"""The number of bytes examined for a zero in every second byte."""


def as_utf8(path: str, data: bytes, encoding: str = "auto") -> bytes:
    """Return a text file's bytes as UTF-8.

    Parameters
    ----------
    path
        Name of the file in errors.
    data
        The file's content, unpacked.
    encoding
        An encoding that Python supports. "auto" accepts UTF-8, and UTF-16 or UTF-32 with a byte order mark.

    Raises
    ------
    UsageError
        The bytes are not text in that encoding, or the encoding does not exist; the message names the option.
    """
    if encoding == "auto":
        mark = next((mark for mark in MARKS if data.startswith(mark)), b"")
        if not mark:
            _refuse_no_utf8(path, data)
            return data
        encoding = "utf-32" if len(mark) == 4 else "utf-16"
    try:
        text = data.decode(encoding).encode("utf-8")
    except UnicodeError as error:
        at = f" (byte {error.start})" if isinstance(error, UnicodeDecodeError) else ""
        raise UsageError(f"{path}: not text in {encoding}{at}; give its encoding (--encoding)") from None
    except (LookupError, ValueError):  # ValueError for a name with a zero byte
        raise UsageError(
            f"encoding (--encoding) must be one that Python supports, for instance utf-16, cp1252 or latin-1, got {encoding!r}"
        ) from None
    refuse_beyond(UNPACKED, len(text), f"{path}: {len(data):,} bytes are {len(text):,} in UTF-8")
    return text


def _refuse_no_utf8(path: str, data: bytes) -> None:
    head = data[:LOOKED_AT]
    for first, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros = head[first::2]
        if len(zeros) > 1 and zeros.count(0) > 0.8 * len(zeros):  # ASCII in UTF-16 is also valid UTF-8
            raise FaultError(
                f"{path}: not UTF-8 text, but apparently UTF-16 without a byte order mark; give its encoding "
                f"(--encoding {name})",
                *("--encoding", name),
            )
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FaultError(
            f"{path}: not UTF-8 text (byte {error.start} is 0x{data[error.start]:02X}); give its encoding (--encoding), for "
            "instance cp1252 (Windows, western Europe) or latin-1",
            *(() if b"\0" in data else ("--encoding", "cp1252" if not UNDEFINED.intersection(data) else "latin-1")),
        ) from None


def in_ascii(text: str) -> str:
    """Return a text with non-ASCII characters escaped; `from_ascii` reverses it."""
    return (
        text if text.isascii() and "\2" not in text else re.sub("[^\0-\1\3-\x7f]", lambda m: f"\2{ord(m[0]):x}\3", text)
    )


def from_ascii(text: str) -> str:
    """Return the text that `in_ascii` escaped."""
    return re.sub("\2([0-9a-f]+)\3", lambda m: chr(int(m[1], 16)), text)
