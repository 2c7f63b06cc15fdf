"""The contracts of agents, references and forecasters, and what they share: settings, saved states, checked inputs, rounds.

No algorithm is defined here: these are in `agents`, `forecasters` and `boosting`.
"""
