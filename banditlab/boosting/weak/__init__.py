"""Weak learners: the base class, forecasters, simulated learners with a known edge, and random tuning."""
