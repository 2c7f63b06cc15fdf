"""Forecasters: full-information learners, which observe the label after each round. Classes are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditlab.lazy import lazy_names

if TYPE_CHECKING:
    from banditlab.forecasters.aggregating import Aggregating as Aggregating
    from banditlab.forecasters.aioli import AIOLI as AIOLI
    from banditlab.forecasters.aioli_direct import AIOLIDirect as AIOLIDirect
    from banditlab.forecasters.folklore import FOLKLORE as FOLKLORE
    from banditlab.forecasters.folklore_direct import FolkloreDirect as FolkloreDirect
    from banditlab.forecasters.fourier import FourierAIOLI as FourierAIOLI
    from banditlab.forecasters.fourier import FourierFOLKLORE as FourierFOLKLORE
    from banditlab.forecasters.ftrl import FTRL as FTRL
    from banditlab.forecasters.gaf import GAF as GAF
    from banditlab.forecasters.gaf_fresh import GAFFresh as GAFFresh
    from banditlab.forecasters.grid import BGrid as BGrid
    from banditlab.forecasters.kernel_aioli import KernelAIOLI as KernelAIOLI
    from banditlab.forecasters.kernel_folklore import KernelFOLKLORE as KernelFOLKLORE
    from banditlab.forecasters.kernel_gaf import KernelGAF as KernelGAF
    from banditlab.forecasters.ogd import OGD as OGD
    from banditlab.forecasters.ons import ONS as ONS
    from banditlab.players.forecaster import Forecaster as Forecaster
    from banditlab.players.forecaster import KernelForecaster as KernelForecaster
    from banditlab.problem import Problem as Problem

BUILT_IN = {
    "forecasters": {
        "OGD": ("ogd", "banditlab.forecasters.ogd"),
        "AIOLI": ("aioli", "banditlab.forecasters.aioli"),
        "FOLKLORE": ("folklore", "banditlab.forecasters.folklore"),
        "ONS": ("ons", "banditlab.forecasters.ons"),
        "FTRL": ("ftrl", "banditlab.forecasters.ftrl"),
        "Aggregating": ("aggregating", "banditlab.forecasters.aggregating"),
        "BGrid": ("b-grid", "banditlab.forecasters.grid"),
        "KernelAIOLI": ("kernel-aioli", "banditlab.forecasters.kernel_aioli"),
        "FourierAIOLI": ("fourier-aioli", "banditlab.forecasters.fourier"),
        "GAF": ("gaf", "banditlab.forecasters.gaf"),
        "GAFFresh": ("gaf-fresh", "banditlab.forecasters.gaf_fresh"),
        "FolkloreDirect": ("folklore-direct", "banditlab.forecasters.folklore_direct"),
        "AIOLIDirect": ("aioli-direct", "banditlab.forecasters.aioli_direct"),
        "KernelFOLKLORE": ("kernel-folklore", "banditlab.forecasters.kernel_folklore"),
        "FourierFOLKLORE": ("fourier-folklore", "banditlab.forecasters.fourier"),
        "KernelGAF": ("kernel-gaf", "banditlab.forecasters.kernel_gaf"),
    },
}
"""For each kind, the ids of its classes and the modules that define them."""
_OTHERS = {
    "banditlab.players.forecaster": ("Forecaster", "KernelForecaster"),
    "banditlab.problem": ("Problem",),
}

if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept any name
    __getattr__, __dir__, __all__ = lazy_names(__name__, _OTHERS, BUILT_IN)
