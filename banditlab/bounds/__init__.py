"""Bounds: one function per theorem, numbers in, number out; `THEOREMS` lists them with their sources.

A bound is NaN outside its hypotheses, infinite where it overflows, and otherwise true: never a number that the theorem does
not give. The same holds of the settings computed beside it; a count of nodes, which cannot be NaN, is a `ValueError`.
"""

from __future__ import annotations

import importlib
import pkgutil

from banditlab.bounds._theorem import ADVERSARIES, THEOREMS, Theorem, theorem

for _module in pkgutil.iter_modules(__path__):  # every file registers its theorems: none can be forgotten here
    if not _module.name.startswith("_"):
        importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["ADVERSARIES", "THEOREMS", "Theorem", "theorem"]
