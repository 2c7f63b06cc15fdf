"""Inverse-gap weighting: FastCB and SquareCB with the same per-class oracles.

This package does not depend on other agents.
"""
