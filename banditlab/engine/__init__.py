"""The engine: how runs are described, played, swept and stored. It names no particular algorithm."""

from banditlab.engine.play import Played, play
from banditlab.engine.spec import Spec, make_spec, read_spec
from banditlab.engine.sweep import Estimate, Progress, Result, Sweep

__all__ = ["Estimate", "Played", "Progress", "Result", "Spec", "Sweep", "make_spec", "play", "read_spec"]
