"""banditlab: contextual bandits with one bit of feedback, compared with the best offline logistic model.

Public names are imported on first use, so `import banditlab` itself imports only the standard library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditlab.distributions import VERSION, report_others
from banditlab.lazy import lazy_names

if TYPE_CHECKING:
    from banditlab.analysis.report import write_report as write_report
    from banditlab.analysis.tables import load as load
    from banditlab.comparators.ball import best_in_ball as best_in_ball
    from banditlab.comparison import compare as compare
    from banditlab.engine.making import make_agent as make_agent
    from banditlab.engine.making import make_env as make_env
    from banditlab.engine.making import make_forecaster as make_forecaster
    from banditlab.engine.runner import play as play
    from banditlab.engine.spec import make_spec as make_spec
    from banditlab.engine.spec import read_spec as read_spec
    from banditlab.engine.sweep import Sweep as Sweep
    from banditlab.errors import BanditlabError as BanditlabError
    from banditlab.estimator import OnlineClassifier as OnlineClassifier
    from banditlab.policy.policy import Policy as Policy
    from banditlab.problem import Decision as Decision
    from banditlab.problem import Problem as Problem
    from banditlab.regression.estimator import OnlineRegressor as OnlineRegressor

_MODULES = {
    "banditlab.analysis.report": ("write_report",),
    "banditlab.analysis.tables": ("load",),
    "banditlab.comparators.ball": ("best_in_ball",),
    "banditlab.comparison": ("compare",),
    "banditlab.engine.making": ("make_agent", "make_env", "make_forecaster"),
    "banditlab.engine.runner": ("play",),
    "banditlab.engine.spec": ("make_spec", "read_spec"),
    "banditlab.engine.sweep": ("Sweep",),
    "banditlab.errors": ("BanditlabError",),
    "banditlab.estimator": ("OnlineClassifier",),
    "banditlab.policy.policy": ("Policy",),
    "banditlab.problem": ("Decision", "Problem"),
    "banditlab.regression.estimator": ("OnlineRegressor",),
}

__version__ = VERSION
report_others()

if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept any name
    __getattr__, __dir__, __all__ = lazy_names(__name__, _MODULES)
