"""How the library of the extra `boosting` is asked for."""

from __future__ import annotations

import importlib
from typing import Any

from banditlab.errors import UsageError


def river(module: str, learner: str) -> Any:
    """Return a module of river, imported now.

    Raises
    ------
    UsageError
        It is not installed; the line says how to install it. Any other failure to import is the library's own.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "river":
            raise
        raise UsageError(f'{learner} needs the library river: pip install "banditlab[boosting]"') from None
