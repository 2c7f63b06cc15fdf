"""Base classes of agents, references and forecasters, with their settings, saved states, checked inputs and rounds.

Algorithms are defined in `agents`, `forecasters` and `boosting`, not here.
"""
