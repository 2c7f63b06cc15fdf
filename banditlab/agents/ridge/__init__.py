"""Agents with a ridge regression per class: LinUCB, LinTS and Confidit, which differ in their index.

This package does not depend on other agents.
"""
