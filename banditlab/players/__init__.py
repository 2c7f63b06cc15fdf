"""The contracts of agents, references and forecasters, and what they share: settings, saved states, checked inputs, rounds.

Knows no algorithm; the algorithms stand in `agents`, `forecasters` and `boosting`.
"""
