"""banditlab: contextual bandits with one bit of feedback, read against the best offline logistic model.

Nothing is imported before it is asked for: `import banditlab` needs the standard library only.
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
    "BanditlabError": "banditlab.errors",
    "Decision": "banditlab.problem",
    "OnlineClassifier": "banditlab.estimator",
    "OnlineRegressor": "banditlab.regression.estimator",
    "Policy": "banditlab.policy.policy",
    "Problem": "banditlab.problem",
    "Sweep": "banditlab.engine.sweep",
    "best_in_ball": "banditlab.comparators.ball",
    "compare": "banditlab.comparison",
    "load": "banditlab.analysis.tables",
    "make_agent": "banditlab.engine.making",
    "make_env": "banditlab.engine.making",
    "make_forecaster": "banditlab.engine.making",
    "make_spec": "banditlab.engine.spec",
    "play": "banditlab.engine.runner",
    "read_spec": "banditlab.engine.spec",
    "write_report": "banditlab.analysis.report",
}

__version__ = VERSION
report_others()

if not TYPE_CHECKING:  # a type checker that saw it would take any name for right
    __getattr__, __dir__, __all__ = lazy_names(__name__, _MODULES)
