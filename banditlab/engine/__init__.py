"""The engine: descriptions and execution of runs, sweeps, and storage. It depends on no particular algorithm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditlab.lazy import lazy_names

if TYPE_CHECKING:
    from banditlab.engine.making import make_agent as make_agent
    from banditlab.engine.making import make_env as make_env
    from banditlab.engine.making import make_forecaster as make_forecaster
    from banditlab.engine.progress import Progress as Progress
    from banditlab.engine.runner import Played as Played
    from banditlab.engine.runner import play as play
    from banditlab.engine.spec import Spec as Spec
    from banditlab.engine.spec import make_spec as make_spec
    from banditlab.engine.spec import read_spec as read_spec
    from banditlab.engine.sweep import Estimate as Estimate
    from banditlab.engine.sweep import Result as Result
    from banditlab.engine.sweep import Sweep as Sweep

_MODULES = {
    "banditlab.engine.making": ("make_agent", "make_env", "make_forecaster"),
    "banditlab.engine.progress": ("Progress",),
    "banditlab.engine.runner": ("Played", "play"),
    "banditlab.engine.spec": ("Spec", "make_spec", "read_spec"),
    "banditlab.engine.sweep": ("Estimate", "Result", "Sweep"),
}

if not TYPE_CHECKING:  # with __getattr__ a type checker would accept any name
    __getattr__, __dir__, __all__ = lazy_names(__name__, _MODULES)
