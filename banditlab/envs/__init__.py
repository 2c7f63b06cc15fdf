"""Environments, registered with Gymnasium under their ids. Classes are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditlab.lazy import after_import, lazy_names

if TYPE_CHECKING:
    from banditlab.envs._adaptive import AdaptiveEnv as AdaptiveEnv
    from banditlab.envs._base import BanditEnv as BanditEnv
    from banditlab.envs._base import Streams as Streams
    from banditlab.envs._stream import StreamEnv as StreamEnv
    from banditlab.envs.adversary import Adversary as Adversary
    from banditlab.envs.change import Change as Change
    from banditlab.envs.digits import Digits as Digits
    from banditlab.envs.foreign import GymnasiumEnv as GymnasiumEnv
    from banditlab.envs.logistic import Logistic as Logistic
    from banditlab.envs.lower_bound import LowerBound as LowerBound
    from banditlab.envs.openml import OpenML as OpenML
    from banditlab.envs.sparse import Sparse as Sparse
    from banditlab.envs.synsep import SynNonSep as SynNonSep
    from banditlab.envs.synsep import SynSep as SynSep
    from banditlab.envs.table import Table as Table
    from banditlab.problem import Problem as Problem

BUILT_IN = {
    "envs": {
        "Adversary": ("banditlab/Adversary-v0", "banditlab.envs.adversary"),
        "Digits": ("banditlab/Digits-v0", "banditlab.envs.digits"),
        "GymnasiumEnv": ("banditlab/Gymnasium-v0", "banditlab.envs.foreign"),
        "Logistic": ("banditlab/Logistic-v0", "banditlab.envs.logistic"),
        "Sparse": ("banditlab/Sparse-v0", "banditlab.envs.sparse"),
        "LowerBound": ("banditlab/LowerBound-v0", "banditlab.envs.lower_bound"),
        "OpenML": ("banditlab/OpenML-v0", "banditlab.envs.openml"),
        "SynNonSep": ("banditlab/SynNonSep-v0", "banditlab.envs.synsep"),
        "SynSep": ("banditlab/SynSep-v0", "banditlab.envs.synsep"),
        "Table": ("banditlab/Table-v0", "banditlab.envs.table"),
    },
}
"""For each kind, the ids of its classes and the modules that define them."""
_OTHERS = {
    "banditlab.envs._adaptive": ("AdaptiveEnv",),
    "banditlab.envs._base": ("BanditEnv", "Streams"),
    "banditlab.envs._stream": ("StreamEnv",),
    "banditlab.envs.change": ("Change",),
    "banditlab.problem": ("Problem",),
}

if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept any name
    __getattr__, __dir__, __all__ = lazy_names(__name__, _OTHERS, BUILT_IN)


def _register() -> None:
    """Register the environments with Gymnasium, which imports a class when it creates an environment."""
    import gymnasium

    for name, (id_, module) in BUILT_IN["envs"].items():
        if id_ not in gymnasium.registry:
            gymnasium.register(id_, entry_point=f"{module}:{name}")


after_import("gymnasium", _register)
