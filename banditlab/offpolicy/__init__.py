"""Off-policy evaluation: what another policy would have earned, from a log of actions, propensities and reward bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditlab.doors import door

if TYPE_CHECKING:
    from banditlab.offpolicy.evaluation import Evaluation as Evaluation
    from banditlab.offpolicy.evaluation import evaluate as evaluate
    from banditlab.offpolicy.intervals import FixedBound as FixedBound
    from banditlab.offpolicy.intervals import RunningBound as RunningBound
    from banditlab.offpolicy.log import Log as Log
    from banditlab.offpolicy.models import estimated_propensities as estimated_propensities
    from banditlab.offpolicy.models import predicted_rewards as predicted_rewards

_PLACES = {
    "Evaluation": "banditlab.offpolicy.evaluation",
    "FixedBound": "banditlab.offpolicy.intervals",
    "Log": "banditlab.offpolicy.log",
    "RunningBound": "banditlab.offpolicy.intervals",
    "estimated_propensities": "banditlab.offpolicy.models",
    "evaluate": "banditlab.offpolicy.evaluation",
    "predicted_rewards": "banditlab.offpolicy.models",
}

if not TYPE_CHECKING:  # a type checker that saw it would take any name for right
    __getattr__, __dir__, __all__ = door(__name__, _PLACES)
