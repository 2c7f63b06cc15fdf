"""Which adversaries a theorem covers: each says so, with the line it rests on; a plug-in's that does not is oblivious."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from banditlab.bounds import THEOREMS, theorem

WEIGHTED = {
    *("exploration", "exploration_theorem_9", "exploration_well_specified"),
    *("decoded_exploration", "decoded_exploration_tuned", "decoded_exploration_well_specified"),
    *("label_efficient", "label_efficient_experts", "apple_tasting"),
    *("gaptron_bandit", "gaptron_bandit_hinge", "gaptron_bandit_smooth_hinge", "gaptron_fixed"),
    *("gaptron_wide", "gaptron_wide_hinge", "gaptron_wide_smooth_hinge", "template_bandit", "template_fixed"),
    *("obama_gaussian_prior", "obama_net", "decoded_obama", "decoded_obama_net"),
    *("rdue_bandit", "rdue_fixed", "rdue_decoded"),
}
"""Theorems whose proofs take the expectation, over the learner's draws, of a weighted loss of the comparator."""


@pytest.fixture(autouse=True)
def registry_as_it_was() -> Iterator[None]:
    before = dict(THEOREMS)
    yield
    THEOREMS.clear()
    THEOREMS.update(before)


def test_every_theorem_of_the_package_says_which_and_why() -> None:
    unsaid = theorem(source="s", unit="nats", assumes="a")(lambda rounds: 1.0)
    silence = THEOREMS[unsaid.__name__].rests_on
    for t in list(THEOREMS.values()):
        if t.function is not unsaid:
            assert len(t.rests_on) > 30, t.name
            assert t.rests_on != silence, t.name


def test_what_is_proved_through_weighted_losses_is_oblivious_and_the_rest_holds_for_every_sequence() -> None:
    assert {t.name for t in THEOREMS.values() if t.adversary == "oblivious"} == WEIGHTED
    assert {t.adversary for t in THEOREMS.values()} == {"oblivious", "adaptive"}


def test_a_theorem_that_does_not_say_is_taken_as_oblivious() -> None:
    @theorem(source="made here", unit="mistakes", assumes="nothing")
    def silent(rounds: float) -> float:
        return rounds

    assert THEOREMS["silent"].adversary == "oblivious"


@pytest.mark.parametrize("wrong", ["any", "", "Adaptive", None, 1])
def test_another_word_is_refused_in_one_line(wrong: object) -> None:
    def wrongly_said(rounds: float) -> float:
        return rounds

    said = "wrongly_said: adversary must be one of ('oblivious', 'adaptive'), got " + repr(wrong)
    with pytest.raises(ValueError, match="^" + re.escape(said) + "$"):
        theorem(source="s", unit="nats", assumes="a", adversary=wrong)(wrongly_said)  # type: ignore[arg-type]
    assert "wrongly_said" not in THEOREMS
