"""A ridge regression per class: LinUCB, LinTS and Confidit, which differ in their index.

Independent of other agents.
"""
