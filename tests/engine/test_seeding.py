"""Seeds and ids are numbers that results were stored under: a few of them, pinned, and their rule written out."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from banditlab.engine import Sweep, make_spec
from banditlab.engine.seeding import canonical, digest, generator_for, seed_for

SPEC = {
    "name": "pinned",
    "rounds": 100,
    "base_seed": 7,
    "repetitions": 2,
    "checkpoints": [50],
    "environment": [{"id": "banditlab/Logistic-v0", "n_features": 3, "n_classes": 3}],
    "agent": [{"id": "linucb"}],
}


def test_the_text_of_plain_data_is_one() -> None:
    assert canonical({"b": [1, 2.5, None, True], "a": "ä"}) == '{"a":"\\u00e4","b":[1,2.5,null,true]}'
    with pytest.raises(ValueError, match="JSON"):
        canonical(float("nan"))


def test_a_seed_is_the_first_half_of_a_sha256() -> None:
    text = b'[0,"environment","banditlab/Logistic-v0",3]'
    seed = seed_for(0, "environment", "banditlab/Logistic-v0", 3)
    assert seed == int.from_bytes(hashlib.sha256(text).digest()[:16], "big") == 139594000636788091968941690321672636843
    assert digest([0, "environment", "banditlab/Logistic-v0", 3]) == hashlib.sha256(text).hexdigest()
    drawn = generator_for(0, "environment", "banditlab/Logistic-v0", 3).random(4)
    np.testing.assert_array_equal(drawn, np.random.default_rng(seed).random(4))


def test_ids_and_seeds_of_two_runs() -> None:
    first, second = Sweep(make_spec(SPEC, "test")).plan.runs
    assert (first.run_id, first.stream_id) == ("f57431698907dc4fa1268b08", "4e6bca946951fba05aa493f8")
    assert (second.run_id, second.stream_id) == ("cf907690a5de90086ec84adf", "8fe83882aa4543f06611b414")
    assert first.environment_seed() == 209713017538957000907229165494265811441
    assert second.environment_seed() == 310507710599386534577886372934859666285
    assert first.player_generator().integers(1000, size=3).tolist() == [918, 765, 329]
    assert second.player_generator().integers(1000, size=3).tolist() == [519, 423, 72]
