"""Agents: one bit is seen (`Agent`), or, for scale, the label (`LabelAgent`).

Importing this loads numba; the algorithms themselves are found through the registry.
"""

from banditlab.agents._base import Agent, KernelAgent, Trace
from banditlab.agents._label import KernelLabelAgent, LabelAgent

__all__ = ["Agent", "KernelAgent", "KernelLabelAgent", "LabelAgent", "Trace"]
