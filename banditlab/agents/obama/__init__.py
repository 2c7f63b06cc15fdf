"""OBAMA-lite and its samplers of the posterior: Gaussian (Laplace), net or grid, Langevin chains.

The numerics of the samplers are in `banditlab.numerics`; this package computes the weights of the hits in the
posterior.
"""
