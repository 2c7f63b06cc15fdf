"""Read a results folder: tables, statistics, figures and a report.

results = load("runs/results/quickstart")
for row in summary_rows(results): ...
write_report("runs/results/quickstart")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditlab.lazy import lazy_names

if TYPE_CHECKING:
    from banditlab.analysis.joins import relative as relative
    from banditlab.analysis.report import write_report as write_report
    from banditlab.analysis.summary import summary_rows as summary_rows
    from banditlab.analysis.tables import Results as Results
    from banditlab.analysis.tables import load as load

_MODULES = {
    "banditlab.analysis.joins": ("relative",),
    "banditlab.analysis.report": ("write_report",),
    "banditlab.analysis.summary": ("summary_rows",),
    "banditlab.analysis.tables": ("Results", "load"),
}

if not TYPE_CHECKING:  # with it, a type checker would accept any name
    __getattr__, __dir__, __all__ = lazy_names(__name__, _MODULES)
