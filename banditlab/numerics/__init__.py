"""Kernels on arrays and their algebra, independent of players, problems and settings.

Start with `jit` (how kernels are compiled), `contexts` (dense and sparse contexts in one kernel) and `draws`.
"""
