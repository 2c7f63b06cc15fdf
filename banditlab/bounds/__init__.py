"""Bounds: one function per theorem, from numbers to a number; `THEOREMS` lists them with their sources.

A bound is NaN outside its hypotheses and infinite if it overflows. Otherwise it is a number that the theorem proves.
The same holds for settings that are computed from theorems. A number of nodes cannot be NaN and raises a `ValueError`
instead.
"""

from __future__ import annotations

import importlib
import pkgutil

from banditlab.bounds._theorem import ADVERSARIES, THEOREMS, Theorem, theorem

for _module in pkgutil.iter_modules(__path__):  # every file registers its theorems: none can be forgotten here
    if not _module.name.startswith("_"):
        importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["ADVERSARIES", "THEOREMS", "Theorem", "theorem"]
