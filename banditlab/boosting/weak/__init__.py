"""Weak learners: their base class, forecasters, simulated learners of known edge, and tuning drawn by boosters."""
