"""OBAMA-lite and its samplers of the posterior: Gaussian (Laplace), net or grid, Langevin chains.

The numerics of the samplers are in `banditlab.numerics`; this package defines the weights of a bandit's hits in them.
"""
