"""Agents: one bit is seen. Importing this loads numba; the algorithms themselves are found through the registry."""

from banditlab.agents._base import Agent, KernelAgent, Trace

__all__ = ["Agent", "KernelAgent", "Trace"]
