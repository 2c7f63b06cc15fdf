"""Where a bound or certificate ends: at the last admissible curvature, context and regularization, and not before."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from banditlab.agents.gaptron import Gaptron
from banditlab.agents.randomized_decoding import RandomizedDecoding
from banditlab.bounds.curvature import margin_range, tight_curvature
from banditlab.errors import UsageError
from banditlab.forecasters.aioli import AIOLI
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.forecasters.folklore_direct import FolkloreDirect
from banditlab.forecasters.fourier_aioli import FourierAIOLI
from banditlab.forecasters.gaf import GAF
from banditlab.forecasters.grid import BGrid
from banditlab.forecasters.kernel_aioli import KernelAIOLI
from banditlab.forecasters.ons import ONS
from banditlab.problem import Problem

TWO, THREE = Problem(4, 2, 2.0, 100), Problem(4, 3, 2.0, 100)


def made(cls: Any, problem: Problem, **settings: Any) -> Any:
    return cls(problem, np.random.default_rng(0), **{"norm_bound": 1.5} | settings)


@pytest.mark.parametrize(
    ("cls", "problem", "largest", "promise"),
    [
        (FOLKLORE, THREE, tight_curvature(margin_range(3, 1.5, 2.0)), "certificate"),
        (GAF, THREE, tight_curvature(margin_range(3, 1.5, 2.0)), "certificate"),
        (FolkloreDirect, THREE, tight_curvature(margin_range(3, 1.5, 2.0)), "certificate"),
        (AIOLI, TWO, tight_curvature(6.0), "certificate"),
        (KernelAIOLI, TWO, tight_curvature(3.0), "space_certificate"),  # features of norm 1
        (FourierAIOLI, TWO, tight_curvature(3.0), "space_certificate"),
    ],
)
def test_the_last_admissible_curvature(cls: Any, problem: Problem, largest: float, promise: str) -> None:
    player = made(cls, problem)
    for factor, holds in ((1.0, True), (1.0 + 1e-12, True), (1.0 + 1.6e-12, False), (1.1, False)):
        player.curvature = largest * factor
        assert math.isfinite(getattr(player, promise)()) is holds, factor


def test_the_last_frobenius_ball() -> None:
    """lambda D^2 where nothing was learnt; the curvature must be admissible for rows that differ by sqrt(2) D."""
    for D in (0.5, 2.0):
        player = made(FOLKLORE, THREE, regularization=0.3)
        player.curvature = tight_curvature(margin_range(3, D / math.sqrt(2.0), 2.0))
        assert player.frobenius_certificate(D) == pytest.approx(0.3 * D**2, rel=1e-12)
        assert math.isfinite(player.frobenius_certificate(D * (1.0 - 1e-6)))
        assert math.isnan(player.frobenius_certificate(D * (1.0 + 1e-6)))
        last = player.curvature
        for factor, holds in ((1.0 + 1e-12, True), (1.0 + 1.6e-12, False)):
            player.curvature = last * factor
            assert math.isfinite(player.frobenius_certificate(D)) is holds
        with pytest.raises(UsageError, match="frobenius_bound"):
            player.frobenius_certificate(0.0)
    assert math.isnan(made(FOLKLORE, THREE, linear_term="printed", norm_bound=0.1).frobenius_certificate(0.01))


@pytest.mark.parametrize("cls", [FOLKLORE, GAF, FolkloreDirect, ONS])
def test_a_context_beyond_the_radius_ends_the_certificate(cls: Any) -> None:
    player = made(cls, THREE)
    for length, holds in ((2.0, True), (2.0 * (1.0 + 1e-9), True), (2.0 * (1.0 + 1.1e-9), False)):
        where = player.state.doubt[2:] if cls is ONS else getattr(player, "learner", player.state).longest
        where[0] = length**2
        assert math.isfinite(player.certificate()) is holds, length


@pytest.mark.parametrize(
    ("cls", "problem", "last", "promise"),
    [
        (AIOLI, TWO, 4.0e-14, "certificate"),  # R^2 / lambda = 1e14
        (FolkloreDirect, THREE, 4.0e-6, "certificate"),
        (FourierAIOLI, TWO, 1e-7, "space_certificate"),
    ],
)
def test_the_least_regularization_that_leaves_digits(cls: Any, problem: Problem, last: float, promise: str) -> None:
    for factor, holds in ((1.001, True), (1.0, True), (0.999, False)):
        assert math.isfinite(getattr(made(cls, problem, regularization=last * factor), promise)()) is holds


def test_the_longest_step_that_is_proved() -> None:
    ons = made(ONS, THREE)
    for factor, holds in ((1.0, True), (1.0 - 0.7e-12, True), (1.0 - 1.6e-12, False)):
        ons.step = 2.0 * 2.0 * math.exp(6.0) * factor
        assert (ons.bound(10) is not None) is holds
    for cls, name in ((RandomizedDecoding, "step"), (Gaptron, "step")):
        player = made(cls, THREE)
        assert player.bound(100) is not None
        theory = getattr(player, name)
        for factor, holds in ((1.0 + 0.7e-12, True), (1.0 + 1.6e-12, False)):
            setattr(player, name, largest_step(player, theory) * factor)
            assert (player.bound(100) is not None) is holds, (cls, factor)


def largest_step(player: Any, theory: Any) -> float:
    """Return the longest step that the player's bound holds for."""
    step = theory if isinstance(theory, float) else 1.0
    for exponent in range(-20, 21):  # doubled until nothing is proved any more, then halved in
        player.step = step * 2.0**exponent
        if player.bound(100) is None:
            low, high = player.step / 2.0, player.step
            break
    for _ in range(200):
        player.step = 0.5 * (low + high)
        low, high = (low, player.step) if player.bound(100) is None else (player.step, high)
    return low / (1.0 + 1e-12)


def test_a_grid_reaches_its_largest_ball_and_no_further() -> None:
    grid = made(BGrid, TWO, norm_bound=64.0)
    assert grid.norm_bounds == [0.25 * 2.0**i for i in range(9)]
    assert made(BGrid, TWO, norm_bound=64.0 * (1.0 + 0.7e-12)).bound(10) > 0.0
    with pytest.raises(UsageError, match="norm_bound must lie within the grid, at most 64, got 64"):
        made(BGrid, TWO, norm_bound=64.0 * (1.0 + 1.6e-12))
    assert BGrid.settings_at(64.0, {})["size"] == 9
    assert BGrid.settings_at(64.1, {})["size"] == 10
    assert BGrid.settings_at(1.0, {})["size"] == 9
    # the ball of 4 is held by the members from 4 on: none of those below may promise anything
    four, more = made(BGrid, TWO, norm_bound=4.0), made(BGrid, TWO, norm_bound=4.0 * (1.0 + 1.6e-12))
    assert four.bound(1000) < more.bound(1000)
    assert made(BGrid, TWO, norm_bound=4.0 * (1.0 + 0.7e-12)).bound(1000) == four.bound(1000)
