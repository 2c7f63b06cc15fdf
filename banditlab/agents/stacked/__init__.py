"""StackCB: per-class models on several views of a context, whose margins an online logistic regression combines.

The weighting and the update of an AIOLI model are those of `inverse_gap`; the package depends on no other agent.
"""
