"""`Policy`, a trained agent that makes decisions, with its durable log, its server, and statistics of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditlab.lazy import lazy_names

if TYPE_CHECKING:
    from banditlab.policy.choice import Choice as Choice
    from banditlab.policy.evaluating import Evaluated as Evaluated
    from banditlab.policy.evaluating import evaluate_log as evaluate_log
    from banditlab.policy.exporting import export_log as export_log
    from banditlab.policy.learning import train_from_log as train_from_log
    from banditlab.policy.policy import Policy as Policy
    from banditlab.policy.status import LogStatus as LogStatus
    from banditlab.policy.status import status_of_log as status_of_log
    from banditlab.policy.status import verify_log as verify_log
    from banditlab.policy.training import train as train

_MODULES = {
    "banditlab.policy.choice": ("Choice",),
    "banditlab.policy.evaluating": ("Evaluated", "evaluate_log"),
    "banditlab.policy.exporting": ("export_log",),
    "banditlab.policy.learning": ("train_from_log",),
    "banditlab.policy.policy": ("Policy",),
    "banditlab.policy.status": ("LogStatus", "status_of_log", "verify_log"),
    "banditlab.policy.training": ("train",),
}

if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept any name
    __getattr__, __dir__, __all__ = lazy_names(__name__, _MODULES)
