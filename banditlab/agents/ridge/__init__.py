"""Agents with a ridge regression per class: LinUCB, LinTS and Confidit. They differ in the score that the chosen class
maximises.

This package does not depend on other agents.
"""
