"""Seeds as hashes of names, so they do not depend on the order of the runs.

Adding a player therefore changes no other run, and serial, parallel and resumed sweeps draw the same numbers.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np


def canonical(data: Any) -> str:
    """Return the canonical JSON text of plain data: sorted keys, no spaces, no NaN."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def digest(data: Any) -> str:
    """Return the sha256 of the canonical JSON, as 64 hex digits."""
    return hashlib.sha256(canonical(data).encode()).hexdigest()


def seed_for(base_seed: int, role: str, *names: Any) -> int:
    """Return a 128-bit seed for a role ("environment", "player") and its names."""
    return int(digest([base_seed, role, *names])[:32], 16)


def generator_for(base_seed: int, role: str, *names: Any) -> np.random.Generator:
    """Return a generator seeded with `seed_for` of these names."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed_for(base_seed, role, *names))))
