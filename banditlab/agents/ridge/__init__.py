"""Ridge regression for every class: LinUCB, LinTS and Confidit, which differ in the index they choose by.

Independent of other agents.
"""
