"""Bounds: one function per theorem, with numbers as arguments; `THEOREMS` lists them with their sources.

A bound is NaN if the hypotheses of its theorem do not hold, and infinite if it overflows. The same holds for settings
that are computed from theorems, except that functions for a number of nodes raise a `ValueError` instead.
"""

from __future__ import annotations

import importlib
import pkgutil

from banditlab.bounds._theorem import ADVERSARIES, THEOREMS, Theorem, theorem

for _module in pkgutil.iter_modules(__path__):  # importing a module registers its theorems
    if not _module.name.startswith("_"):
        importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["ADVERSARIES", "THEOREMS", "Theorem", "theorem"]
