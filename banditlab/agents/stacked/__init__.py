"""StackCB: per-class models on several views of a context, their margins joined by one online logistic regression.

Uses the models' root and the weighting of `inverse_gap`; independent of other agents.
"""
