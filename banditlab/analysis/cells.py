"""CSV files in which spreadsheets evaluate no formulas."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd

STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Characters with which a spreadsheet formula may begin."""


def write_csv(table: pd.DataFrame, file: Path, **options: Any) -> None:
    """Write a table without its index, with an apostrophe before strings that could be formulas."""
    safe = table.copy()
    for i in range(len(safe.columns)):
        if not pd.api.types.is_numeric_dtype(safe.iloc[:, i].dtype):
            safe.isetitem(i, [_shown(cell) for cell in safe.iloc[:, i]])
    safe.columns = pd.Index([_shown(name) for name in safe.columns])
    safe.to_csv(file, index=False, **options)


def _shown(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\r\n", "\n").replace("\r", "\n")  # a single \r would not be quoted and would start a new row
    return f"'{text}" if cell.startswith(STARTS) and not _is_number(cell) else text


def _is_number(text: str) -> bool:
    try:
        return not math.isnan(float(text)) and text.strip() == text and "_" not in text
    except ValueError:
        return False
