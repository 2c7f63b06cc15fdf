"""Checks of whether banditlab can use a Gymnasium environment of another package, with advice on what is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from banditlab.checks._core import CheckExcluded, fail
from banditlab.checks._envs import own_round
from banditlab.errors import EnvironmentContractError, UsageError
from banditlab.registry import registry

ROUNDS = 400
SEED = 7


@dataclass
class ForeignProbe:
    """The name of an environment and its settings."""

    cls: Any
    """`GymnasiumEnv`, from the registry."""
    name: str
    settings: dict[str, Any]
    note: str = ""
    exclusions: dict[str, str] = field(default_factory=dict)

    def make(self, horizon: int = ROUNDS) -> Any:
        """Return the environment, or raise a UsageError if it cannot be created."""
        return self.cls(name=self.name, horizon=horizon, **self.settings)

    @cached_property
    def env(self) -> Any:
        """The environment, created once."""
        return self.make()

    @cached_property
    def shown(self) -> list[tuple[int, float | None, dict[str, Any]]]:
        """Return (action, reward, info) of each round with uniform actions."""
        return list(self.env.peek(ROUNDS, SEED))

    @property
    def rewards(self) -> list[float]:
        """The rewards that are numbers."""
        return [reward for _, reward, _ in self.shown if reward is not None]


def foreign_probe(name: str, settings: dict[str, Any]) -> ForeignProbe:
    """Return an object for checks of Gymnasium's environment `name`; `settings` are those of `GymnasiumEnv`."""
    cls = registry().load("envs", "banditlab/Gymnasium-v0")
    known = set(cls.own_settings()) - {"name"}
    for setting in settings:
        if setting not in known:
            raise UsageError(f"--set {setting}: must be one of {', '.join(sorted(known))}")
    return ForeignProbe(cls, name, settings)


def can_be_made(probe: ForeignProbe) -> None:
    """Gymnasium can create the environment, its actions are Discrete(K) with K of at least 2, and its observations can
    be flattened to numbers.
    """
    try:
        problem = probe.env.problem
    except UsageError as error:
        fail(str(error))
    probe.note = f"K = {problem.n_classes}, d = {problem.n_features}, including the constant"


def one_bit(probe: ForeignProbe) -> None:
    """Rewards are 0 and 1; otherwise right_above is set to the reward above which an action is right, or label_key to
    the name of the entry of info that is the label.
    """
    probe.note = ""
    if probe.env.labelled:
        raise CheckExcluded("an action is right if it equals the label, whatever the reward")
    for t, (_, reward, _) in enumerate(probe.shown):
        if reward is None:
            fail(f"the reward of round {t + 1} is not a finite number: it must be 0 or 1, or finite with right_above")
    found = sorted(set(probe.rewards))
    told = ", ".join(f"{value:g}" for value in found[:5]) + (" ..." if len(found) > 5 else "")
    if probe.env.right_above is None and not set(found) <= {0.0, 1.0}:
        fail(
            f"rewards are {told}: they must be 0 and 1; otherwise set the number above which a reward means right: "
            f"--set right_above={_between(found):g}"
        )


def _between(found: list[float]) -> float:
    """Return the middle of the widest gap between the observed rewards."""
    gaps = np.diff(found)
    if not len(gaps):
        return found[0] - 1.0
    at = int(np.argmax(gaps))
    return float(f"{(found[at] + found[at + 1]) / 2.0:.3g}")


def something_to_learn(probe: ForeignProbe) -> None:
    """Uniform actions are right in some rounds and wrong in others."""
    if probe.env.labelled:
        raise CheckExcluded("it has labels")
    above = probe.env.right_above
    bits = {reward > (0.5 if above is None else above) for reward in probe.rewards}
    if len(bits) == 1:
        which = "right" if bits == {True} else "wrong"
        values = sorted({f"{reward:g}" for reward in probe.rewards})
        fail(
            f"every one of {ROUNDS} uniform actions was {which} (rewards {', '.join(values[:5])}): the bits of single "
            "steps carry no information; an environment with delayed rewards, such as CartPole, is not a bandit"
        )


def labels(probe: ForeignProbe) -> None:
    """After every step, the entry of info that label_key names is an action."""
    if probe.env.labelled:
        plays(probe)
        return
    found = _looks_like_labels(probe)
    hint = f"; info[{found!r}] may be one: --set label_key={found}" if found else ""
    raise CheckExcluded(
        f"without labels, set norm_bounds = [], and leave out forecasters and agents that observe labels{hint}"
    )


def _looks_like_labels(probe: ForeignProbe) -> str:
    """Return the name of an entry of info that is always an action, and is the chosen one whenever the reward is the
    largest of the episode; "" if there is none.
    """
    K = probe.env.problem.n_classes
    best = max(probe.rewards, default=0.0)
    for name in probe.shown[0][2]:
        found = [(action, reward, info.get(name)) for action, reward, info in probe.shown]
        if any(value is None or value not in range(K) for _, _, value in found):
            continue
        agree = [value == action for action, reward, value in found if reward == best]
        if all(agree) and len({value for _, _, value in found}) > 1:
            return str(name)
    return ""


def _played(probe: ForeignProbe) -> tuple[list[Any], str]:
    """Return the contexts and bits of an episode with uniform actions, and the reason if it ended early."""
    rng, found = np.random.default_rng(SEED), []
    env = probe.make()
    try:
        context, _ = env.reset(seed=SEED)
        for _ in range(ROUNDS):
            following, bit, *_ = env.step(int(rng.integers(env.problem.n_classes)))
            found.append((context, bit))
            context = following
    except EnvironmentContractError as error:
        return found, str(error)
    return found, ""


def plays(probe: ForeignProbe) -> None:
    """An episode can be run: observations are in their space, rewards are bits, and a new episode can follow."""
    _, error = _played(probe)
    if error:
        fail(error)


def repeatable(probe: ForeignProbe) -> None:
    """The same seed gives the same episode."""
    one, other = _played(probe)[0], _played(probe)[0]
    for t, ((x, bit), (x_other, bit_other)) in enumerate(zip(one, other, strict=True)):
        if bit != bit_other or not np.array_equal(x, x_other):
            fail(
                f"two episodes from one seed differ at round {t}: it uses a generator other than its own and "
                "the global ones of NumPy and Python, so runs cannot be repeated"
            )


FOREIGN = (can_be_made, one_bit, something_to_learn, labels, plays, own_round, repeatable)
