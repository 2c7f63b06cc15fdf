"""StackCB: per-class models on several views of a context, whose margins an online logistic regression combines.

The package uses the models' root and the weighting of `inverse_gap`, and depends on no other agent.
"""
