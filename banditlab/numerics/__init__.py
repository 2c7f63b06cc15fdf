"""Compiled functions (kernels) on arrays, independent of players, problems and settings.

Start reading with `jit` (how kernels are compiled), `contexts` (dense and sparse contexts in one kernel) and `draws`.
"""
