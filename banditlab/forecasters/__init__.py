"""Forecasters: the label is seen. Importing this loads numba; the algorithms are found through the registry."""

from banditlab.forecasters._base import Forecaster, KernelForecaster

__all__ = ["Forecaster", "KernelForecaster"]
