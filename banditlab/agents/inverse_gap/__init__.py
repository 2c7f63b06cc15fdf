"""Inverse-gap weighting: FastCB and SquareCB over the same per-class oracles.

Independent of other agents.
"""
