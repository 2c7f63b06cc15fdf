"""Read a results folder: tidy tables, statistics, figures, a report. Nothing here builds an agent or an environment.

results = load("runs/results/quickstart")
for row in summary_rows(results): ...
write_report("runs/results/quickstart")
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from banditlab.analysis.joins import relative
from banditlab.analysis.summary import summary_rows
from banditlab.analysis.tables import Results, load

if TYPE_CHECKING:
    import os

__all__ = ["Results", "load", "relative", "summary_rows", "write_report"]


def write_report(out: str | os.PathLike[str]) -> Path:
    """Write OUT/report.html, figures/ and tables/ (see `banditlab.analysis.report`); plotting loads only here."""
    from banditlab.analysis.report import write_report

    return write_report(out)
