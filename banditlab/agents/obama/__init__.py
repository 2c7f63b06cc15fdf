"""OBAMA-lite and its samplers of the posterior: Gaussian (Laplace), net or grid, Langevin chains.

The numerics of the samplers are in `banditlab.numerics`; this package computes the weight with which
each hit enters the posterior.
"""
