"""Agents with a ridge regression per class: LinUCB, LinTS and Confidit. They compute the score that the chosen class
maximises in different ways.

This package does not depend on other agents.
"""
