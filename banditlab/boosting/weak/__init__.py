"""Weak learners: their contract, forecasters, simulated ones of known edge, and what boosters draw for each of them."""
