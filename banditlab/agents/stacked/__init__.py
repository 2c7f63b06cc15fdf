"""StackCB: per-class models on several views of a context, their margins joined by one online logistic regression.

Takes the models' root and the weighting from `inverse_gap`; knows nothing of other agents.
"""
