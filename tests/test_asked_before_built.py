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
    ("stackcb", {"second_order": "diagonal"}),
]
LEFT_OUT = {"boosted-exploration": "trees grow with what they see; it plays dense contexts only"}


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
        *("ons", "folklore", "ftrl", "gaf-fresh", "b-grid"),
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
        "gaf-fresh: its covariance needs 6.7 GiB at K = 10, d = 4,000, above 4: use fewer features, or gaf, whose dual "
        "form only stores the span of the updates' contexts"
    )
    dual = ", or folklore, whose dual form only stores the span of the updates' contexts"
    with pytest.raises(IncompatibleError) as refusal:
        BGrid(Problem(2000, 10, 1.0), None)
    assert str(refusal.value) == (
        f"b-grid: its 9 members need 15.1 GiB at K = 10, d = 2,000, above 4: use a size of 2 or less{dual}"
    )
    with pytest.raises(IncompatibleError, match=r"its member needs 6\.7 GiB .*: use fewer features, or folklore"):
        BGrid(Problem(4000, 10, 1.0), None, norm_bound=0.25, size=1)
    with pytest.raises(IncompatibleError, match=r"its 9 members need 26\.8 GiB .*: use a size of 1 or less$"):
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
