"""Base classes of agents, references and forecasters, with their settings, saved states, input checks and round loops.

The algorithms are in `agents`, `forecasters` and `boosting`.
"""
