"""Base of agents that wrap a forecaster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from banditlab.bounds.decoding import mistakes_unit
from banditlab.errors import UsageError, nearest
from banditlab.numerics.decoding import DECODINGS
from banditlab.players.forecaster import Forecaster, KernelForecaster
from banditlab.players.player import Player
from banditlab.problem import Problem
from banditlab.registry import registry
from banditlab.validation import one_of


def forecaster_settings(outer: type[Player], inner: type[Forecaster], given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings without the prefix "forecaster." in their names; raise a UsageError for an unknown name."""
    known = inner.own_settings()
    settings = {}
    for key, value in given.items():
        name = key.removeprefix("forecaster.")
        if name not in known and inner.wraps is None:
            both = [*outer.own_settings(), *known]
            raise UsageError(f"{outer.id} of {inner.id} has no setting {key!r}{nearest(name, both)}")
        if name in settings:
            raise UsageError(f"the forecaster's setting {name!r} is given twice, also as {key!r}")
        settings[name] = value
    return settings


def build_forecaster(
    outer: type[Player], problem: Problem, rng: np.random.Generator, forecaster: str, given: dict[str, Any]
) -> Forecaster:
    """Return the forecaster with this id and these settings; its generator is spawned from `rng`.

    Raises
    ------
    UsageError
        Unknown forecaster or setting.
    IncompatibleError
        The forecaster does not support the problem.
    """
    cls: type[Forecaster] = registry().load("forecasters", forecaster)
    return cls(problem, rng.spawn(1)[0], **forecaster_settings(outer, cls, given))


class AroundForecaster(Player):
    """Base class of agents that turn the forecasts of a forecaster into actions."""

    rng: np.random.Generator

    def _play_through(self, forecaster: str, decoding: str, given: dict[str, Any]) -> None:
        """Store the agent's own settings, and build the forecaster with the settings in `given`."""
        self.forecaster = forecaster
        self._inner = build_forecaster(type(self), self.problem, self.rng, forecaster, given)
        self.plays_blocks, self.sparse = isinstance(self._inner, KernelForecaster), self._inner.sparse
        self.decoding = one_of("decoding", decoding, DECODINGS)

    @property
    def inner(self) -> Forecaster:
        """The forecaster."""
        return self._inner

    @property
    def bound_unit(self) -> str:  # type: ignore[override]
        """The unit of the bound: "nats" for the decoding "sample", otherwise a multiple of a bit such as "0.5 bits"."""
        return mistakes_unit(self.decoding, self.problem.n_classes)

    @classmethod
    def least_bytes(cls, problem: Problem, settings: Mapping[str, Any]) -> float:
        """Return a lower bound on the bytes of the forecaster's state, without building the forecaster."""
        inner, given = cls._forecaster_of(settings)
        return inner.least_bytes(problem, given)

    @classmethod
    def needs_dense(cls, problem: Problem, settings: Mapping[str, Any]) -> bool:
        """Return whether the forecaster needs dense contexts, without building it."""
        inner, given = cls._forecaster_of(settings)
        return issubclass(inner, KernelForecaster) and inner.needs_dense(problem, given)

    @classmethod
    def _forecaster_of(cls, settings: Mapping[str, Any]) -> tuple[type[Forecaster], dict[str, Any]]:
        own = cls.own_settings()
        given = {name: value for name, value in settings.items() if name not in own}
        inner = registry().load("forecasters", settings.get("forecaster", own["forecaster"].default))
        return inner, forecaster_settings(cls, inner, given)
