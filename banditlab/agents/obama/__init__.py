"""OBAMA-lite and its samplers of the posterior: Gaussian (Laplace), net or grid, Langevin chains.

The numerics of the samplers stand in `banditlab.numerics`; here is how a bandit's hits weigh in them.
"""
