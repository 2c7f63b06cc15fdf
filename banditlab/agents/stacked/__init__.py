"""StackCB: per-class models on several views of a context, whose margins an online logistic regression combines.

Uses the models' root and the weighting of `inverse_gap`; independent of other agents.
"""
