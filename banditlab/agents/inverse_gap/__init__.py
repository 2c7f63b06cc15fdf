"""Inverse-gap weighting: FastCB and SquareCB over the same per-class oracles.

Knows nothing of other agents.
"""
