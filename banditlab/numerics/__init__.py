"""Arrays in, arrays out: kernels and their algebra. Knows no player, no problem and no setting.

Newcomers begin with `jit` (how kernels are compiled), `contexts` (dense and sparse contexts in one kernel) and `draws`.
"""
