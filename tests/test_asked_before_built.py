"""What a class answers before it is built, its memory and whether it takes sparse contexts, holds of what is built."""

from __future__ import annotations

import numpy as np
import pytest

from banditlab.errors import IncompatibleError
from banditlab.forecasters.folklore import FOLKLORE
from banditlab.forecasters.gaf_fresh import GAFFresh
from banditlab.forecasters.grid import BGrid
from banditlab.forecasters.primal_dual import GIB
from banditlab.players.player import Player
from banditlab.problem import Problem
from banditlab.registry import Registry

ENTRIES = [e for kind in ("agents", "forecasters") for e in Registry().entries(kind) if e.origin == "banditlab"]
SETTINGS = [(entry.id, {}) for entry in ENTRIES if not entry.load().requires] + [
    ("exploration", {"forecaster": "ogd", "gamma": 0.1}),
    ("exploration", {"forecaster": "folklore", "form": "dual", "gamma": 0.1}),
    ("exploration", {"forecaster": "folklore", "form": "primal", "gamma": 0.1}),
    ("exploration", {"forecaster": "ftrl", "gamma": 0.1}),
    ("sampled", {"forecaster": "ons", "projection": "none"}),
    ("folklore", {"form": "dual"}),
    ("folklore", {"max_memory": 1e-6}),
    ("gaf", {"form": "dual"}),
    ("b-grid", {"size": 3}),
    ("obama-lite", {"sampler": "net", "members": 10}),
    ("fastcb", {"challenger": 0}),
    ("fastcb", {"oracle": "logistic"}),
    ("squarecb", {"oracle": "b-grid", "grid_size": 3}),
    ("stackcb", {"blocks": 0}),
    ("stackcb", {"blocks": 0, "second_order": "sketch"}),
    ("stackcb", {"second_order": "diagonal"}),
]
LEFT_OUT = {"boosted-exploration": "trees grow with what they see; it plays dense contexts only"}

LEAST = [
    (
        1440.0,
        "banditron epsilon-greedy epsilon-greedy-direct decoded-descent gaptron ogd ovr-perceptron perceptron pnewtron",
    ),
    (1440.0, "randomized-decoding rdue soba-diag river-linucb river-logistic vw"),
    (172800.0, "confidit lints linucb newtron"),
    (518400.0, "folklore-direct ftrl ons soba"),
    (345600.0, "fastcb squarecb"),
    (884160.0, "exploration folklore sampled"),
    (57600.0, "aioli aioli-direct"),
    (21504.0, "kernel-folklore kernel-gaf"),
    (519600.0, "gaf-fresh obama-lite"),
    (885360.0, "gaf"),
    (2840448.0, "stackcb"),
    (5760000.0, "aggregating"),
    (4665600.0, "b-grid"),
    (96000.0, "fourier-aioli"),
    (360000.0, "fourier-folklore"),
    (4.0, "uniform kernel-aioli"),
]
"""Bytes at K = 3, d = 120: half of a matrix (Kd, Kd) of float64 is 518400, half of weights (K, d) is 1440."""
LEAST_SET = [
    (960.0, "folklore", {"form": "dual"}),
    (2160.0, "gaf", {"form": "dual"}),
    (1555200.0, "b-grid", {"size": 3}),
    (28800.0, "obama-lite", {"sampler": "net", "members": 10}),
    (691200.0, "obama-lite", {"sampler": "mala"}),
    (11520000.0, "obama-lite", {"sampler": "grid"}),
    (4613760.0, "aggregating", {"sampler": "quadrature"}),
    (1843200.0, "aggregating", {"sampler": "mala"}),
    (172800.0, "fastcb", {"challenger": 0}),
    (1440.0, "fastcb", {"oracle": "logistic"}),
    (518400.0, "squarecb", {"oracle": "b-grid", "grid_size": 3}),
    (2398080.0, "stackcb", {"blocks": 0}),
    (2311680.0, "stackcb", {"blocks": 0, "ridge": 0}),
    (2118912.0, "stackcb", {"blocks": 0, "second_order": "sketch"}),
    (2431488.0, "stackcb", {"second_order": "diagonal"}),
    (518520.0, "gaf-fresh", {"samples": 10}),
    (11040.0, "mabwiser-linucb", {"batch": 10}),
    (11040.0, "contextualbandits-sgd", {"batch": 10}),
    (27040.0, "adaboost-olm", {}),
    (3232.0, "adaboost-olm", {"n_learners": 7}),
    (3232.0, "online-mbbm", {"n_learners": 7}),
]


def arrays(value: object) -> int:
    """Return the bytes of all arrays in a state."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, Player):
        return arrays(value.get_state())
    if isinstance(value, dict):
        return sum(map(arrays, value.values()))
    return sum(map(arrays, value)) if isinstance(value, list | tuple) else 0


def class_of(id_: str) -> type[Player]:
    [entry] = [entry for entry in ENTRIES if entry.id == id_]
    return entry.load()


@pytest.mark.parametrize(
    ("least", "id_", "settings"), [*((n, id_, {}) for n, ids in LEAST for id_ in ids.split()), *LEAST_SET], ids=str
)
def test_the_least_bytes_are_those_of_the_arrays(least: float, id_: str, settings: dict) -> None:
    """What a sweep is refused for on a small machine, and how large a file of a player must be: by number."""
    every = [entry for kind in ("agents", "forecasters", "boosters") for entry in Registry().entries(kind)]
    [cls] = [entry.load() for entry in every if entry.id == id_]
    assert cls.least_bytes(Problem(120, 3, 1.0, 1000), settings) == least


@pytest.mark.parametrize(("id_", "settings"), [s for s in SETTINGS if s[0] not in LEFT_OUT], ids=str)
def test_what_is_asked_before_building_holds_afterwards(id_: str, settings: dict) -> None:
    cls = class_of(id_)
    for K, d in ((2, 40), (2, 3), (5, 24), (3, 120)):
        problem = Problem(d, K, 1.0, 1000)
        try:
            player = cls(problem, np.random.default_rng(0), **settings)
        except IncompatibleError:
            assert K > 2
            continue
        assert cls.least_bytes(problem, settings) <= arrays(player), (K, d)
        takes_sparse = getattr(player, "sparse", False)
        assert cls.needs_dense(problem, settings) == (player.plays_blocks and not takes_sparse), (K, d)


@pytest.mark.parametrize(
    "id_",
    [
        *("linucb", "lints", "confidit", "fastcb", "squarecb", "newtron", "soba", "obama-lite"),
        *("ons", "folklore", "ftrl", "gaf-fresh"),
    ],
)
def test_second_order_players_say_so(id_: str) -> None:
    least = [class_of(id_).least_bytes(Problem(d, 3, 1.0), {"form": "primal"}) for d in (100, 200)]
    assert least[1] > 3.5 * least[0]


def test_players_in_the_primal_form_only_name_what_can_be_changed() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(IncompatibleError) as refusal:
        GAFFresh(Problem(4000, 10, 1.0), rng)
    assert str(refusal.value) == (
        "gaf-fresh: its covariance takes 6.7 GiB at K = 10, d = 4,000, above 4: give fewer features, or take gaf, whose dual "
        "form needs the span of the contexts learnt only"
    )
    dual = ", or take folklore, whose dual form needs the span of the contexts learnt only"
    with pytest.raises(IncompatibleError) as refusal:
        BGrid(Problem(2000, 10, 1.0), None)
    assert str(refusal.value) == (
        f"b-grid: its 9 members take 15.1 GiB at K = 10, d = 2,000, above 4: give size as 2 or less{dual}"
    )
    with pytest.raises(IncompatibleError, match=r"its member takes 6\.7 GiB .*: give fewer features, or take folklore"):
        BGrid(Problem(4000, 10, 1.0), None, norm_bound=0.25, size=1)
    with pytest.raises(IncompatibleError, match=r"its 9 members take 26\.8 GiB .*: give size as 1 or less$"):
        BGrid(Problem(20_000, 2, 1.0), None, member="aioli")
    assert BGrid(Problem(40, 3, 1.0), None).size == 9
    assert (
        FOLKLORE.least_bytes(Problem(4000, 10, 1.0), {"form": "primal"}) > 6 * GIB
    )  # its own message names max_memory


def test_a_challenger_and_a_grid_count_and_a_diagonal_oracle_is_small() -> None:
    cls, problem = class_of("fastcb"), Problem(1000, 3, 1.0)

    def least(**settings: object) -> float:
        return cls.least_bytes(problem, settings)

    assert least() == 2 * least(challenger=0)
    assert least(oracle="b-grid", grid_size=8) == 4 * least()
    assert least(oracle="logistic") < least() / 500
    assert least(oracle="b-grid", grid_size="many") == least(challenger=0)  # whose constructor says so, as here:
    assert least(oracle="no such") <= least(oracle="logistic")
