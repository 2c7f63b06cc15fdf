"""Environments, registered with Gymnasium under their ids when this package is imported."""

from __future__ import annotations

import gymnasium

from banditlab.envs._adaptive import AdaptiveEnv
from banditlab.envs._base import BanditEnv, Streams
from banditlab.envs._stream import StreamEnv
from banditlab.envs.adversary import Adversary
from banditlab.envs.digits import Digits
from banditlab.envs.logistic import Logistic
from banditlab.envs.lower_bound import LowerBound
from banditlab.envs.openml import OpenML
from banditlab.envs.sparse import Sparse
from banditlab.envs.synsep import SynNonSep, SynSep
from banditlab.envs.table import Table

ENVIRONMENTS: tuple[type[BanditEnv], ...] = (
    Digits,
    Logistic,
    SynSep,
    SynNonSep,
    Sparse,
    LowerBound,
    OpenML,
    Table,
    Adversary,
)
"""All built-in environment classes."""

__all__ = [
    "ENVIRONMENTS",
    "AdaptiveEnv",
    "Adversary",
    "BanditEnv",
    "Digits",
    "Logistic",
    "LowerBound",
    "OpenML",
    "Sparse",
    "StreamEnv",
    "Streams",
    "SynNonSep",
    "SynSep",
    "Table",
]

for _cls in ENVIRONMENTS:
    if _cls.id not in gymnasium.registry:
        gymnasium.register(_cls.id, entry_point=f"{_cls.__module__}:{_cls.__name__}")
