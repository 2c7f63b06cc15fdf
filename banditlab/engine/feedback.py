"""`[feedback]`: rules for when and whether the bits of a run arrive, and which are wrong.

Delays, lost bits and flips are drawn from separate streams.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from banditlab.engine.seeding import generator_for
from banditlab.errors import UsageError, nearest
from banditlab.numerics.pending import NEVER, Draws, Rules
from banditlab.validation import at_least, positive, probability

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
PLAIN = {"delay": 0, "batch": 1, "answered": 1.0, "timeout": None, "flip": 0.0}
"""Immediate feedback: every bit arrives before the next decision."""
SIDES = ("wrong", "right")
NO_DRAWS = Draws(np.zeros((0, 2), np.int64), np.zeros(0), np.zeros(0, np.bool_))
DELAYS = (
    "a whole number of rounds, { geometric = MEAN }, { lognormal = MEAN, sigma = 1.0 }, { column = NAME }, or "
    "{ right = ..., wrong = ... } of these"
)
LARGEST = 1.0 - 2.0**-53
"""The largest uniform that can be drawn."""


def as_feedback(written: Mapping[str, Any]) -> dict[str, Any]:
    """Check a `[feedback]` table and return the settings that differ from the defaults (immediate feedback), as
    canonical plain data.

    Raises
    ------
    UsageError
        A key is unknown, or a value is not allowed.
    """
    found = {}
    for name, value in written.items():
        if name not in _CHECKS:
            raise UsageError(f"feedback: unknown key {name!r}{nearest(name, _CHECKS)}")
        found[name] = _CHECKS[name](f"feedback.{name}", value)
    return {name: value for name, value in found.items() if value != PLAIN[name]}


def _by_outcome(check: Callable[[str, Any], Any], name: str, value: Any) -> Any:
    """Check a setting and return its value, or its values for right and wrong actions if these differ."""
    if not (isinstance(value, Mapping) and set(value) & set(SIDES)):
        return check(name, value)
    if set(value) != set(SIDES):
        raise UsageError(f"{name} by outcome must have the keys right and wrong, got {value!r}")
    sides = {side: check(f"{name}.{side}", value[side]) for side in SIDES}
    return sides if sides["right"] != sides["wrong"] else sides["right"]


def _delay(name: str, value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return _whole(name, value, 0)
    kinds = {("geometric",), ("lognormal",), ("lognormal", "sigma"), ("column",)}
    if not isinstance(value, Mapping) or tuple(sorted(value)) not in kinds:
        raise UsageError(f"{name} must be {DELAYS}, got {value!r}")
    if "column" in value:
        return {"column": str(value["column"])}
    spread = {"sigma": 1.0} if "lognormal" in value else {}
    return {key: positive(f"{name}.{key}", number) for key, number in (spread | dict(value)).items()}


def _answered(name: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [probability(f"{name}[{action}]", share) for action, share in enumerate(value)]
    return probability(name, value)


def _whole(name: str, value: Any, least: int) -> int:
    return min(at_least(name, value, least), NEVER)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "delay": partial(_by_outcome, _delay),
    "batch": partial(_whole, least=1),
    "answered": partial(_by_outcome, _answered),
    "timeout": partial(_whole, least=0),
    "flip": probability,
}


def _sides(feedback: Mapping[str, Any], name: str) -> list[Any]:
    """Return a setting's values for a wrong and for a right action."""
    value = feedback.get(name, PLAIN[name])
    return [value[side] for side in SIDES] if isinstance(value, Mapping) and "right" in value else [value, value]


def rules_of(feedback: Mapping[str, Any], rounds: int, n_classes: int) -> Rules:
    """Return the feedback rules of a run; raise a UsageError if the number of shares in `answered` is not K."""
    delays, shares = _sides(feedback, "delay"), _sides(feedback, "answered")
    for share in shares:
        if isinstance(share, list) and len(share) != n_classes:
            raise UsageError(f"feedback.answered must have {n_classes} shares, one per action, got {len(share)}")
    answered = np.array([np.broadcast_to(np.array(share, float), n_classes) for share in shares])
    fixed = feedback.keys() <= {"delay"} and all(isinstance(delay, int) for delay in delays)
    wrong, right = delays if fixed else (-1, -1)
    return Rules(wrong, right, answered, feedback.get("timeout", NEVER), feedback.get("batch", 1), rounds)


def columns_of(feedback: Mapping[str, Any], env: Any) -> dict[str, Whole]:
    """Return the columns of the environment's table that contain delays, by name."""
    names = {delay["column"] for delay in _sides(feedback, "delay") if isinstance(delay, Mapping) and "column" in delay}
    if names and not hasattr(env, "column"):
        raise UsageError("feedback.delay: a column of delays requires a table environment, such as banditlab/Table-v0")
    return {name: _rounded(env.column(name)) for name in names}


def window_of(feedback: Mapping[str, Any], rounds: int, columns: Mapping[str, Whole]) -> int:
    """Return the largest number of pending rounds at any time: the longest delay plus `batch`."""
    longest = 0
    for kind in _sides(feedback, "delay"):
        delays = _delays(kind, np.array([LARGEST]), _column(kind, columns))
        longest = max(longest, int(delays[delays < NEVER].max(initial=0)))
    if "timeout" in feedback:
        lost = "answered" in feedback or any((column == NEVER).any() for column in columns.values())
        longest = feedback["timeout"] if lost else min(longest, feedback["timeout"])
    return min(rounds, longest + feedback.get("batch", 1))


def _delays(kind: Any, u: Floats, given: Whole | None) -> Whole:
    """Return the delays (n,) of a rule: a constant, a function of the uniforms u (n,), or the given column."""
    if isinstance(kind, int):
        return np.full(len(u), kind)
    if given is not None:
        return given
    if "geometric" in kind:  # P(delay >= k) = (mean / (1 + mean))^k
        return _rounded(np.floor(np.log1p(-u) / -math.log1p(1.0 / kind["geometric"])))
    sigma = kind["sigma"]
    with np.errstate(over="ignore"):
        return _rounded(np.exp(math.log(kind["lognormal"]) - sigma**2 / 2 + sigma * ndtri(u)))


def _rounded(delays: Floats) -> Whole:
    """Return delays as whole rounds, or NEVER if there is none."""
    return np.where(delays < NEVER, np.rint(delays), NEVER).astype(np.int64)


class Schedule:
    """The arrival of the bits of one run. Its random generators are seeded by the environment's seed.

    Parameters
    ----------
    feedback
        The output of `as_feedback`.
    env
        The environment without wrappers, reset before the first draws.
    seed
        The environment's seed, so all players have the same delays, lost bits and flips on a stream.
    rounds
        Rounds of the run.
    """

    def __init__(self, feedback: Mapping[str, Any], env: Any, seed: int, rounds: int) -> None:
        self.feedback, self.env, self.done = feedback, env, 0
        self.columns = columns_of(feedback, env)
        self.rules = rules_of(feedback, rounds, env.problem.n_classes)
        self.kinds = _sides(feedback, "delay")
        self.window = window_of(feedback, rounds, self.columns)
        self.streams = {name: generator_for(int(seed), "feedback", name) for name in ("delay", "answered", "flip")}
        self.too_late = np.zeros(1, np.int64)

    def draws(self, n: int) -> Draws:
        """Return the draws for the next n rounds, or none if the rules are deterministic."""
        if self.rules.right >= 0:
            self.done += n
            return NO_DRAWS
        drawn = self.feedback.keys() - ({"delay"} if all(isinstance(kind, int) for kind in self.kinds) else set())
        u, answer, flip = (s.random(n) if name in drawn else np.zeros(n) for name, s in self.streams.items())
        if self.columns and self.done == 0:
            self._rows = self.env.row_order(self.rules.rounds)
        given = {name: values[self._rows[self.done : self.done + n]] for name, values in self.columns.items()}
        self.done += n
        delays = np.empty((n, 2), np.int64)
        for side, kind in enumerate(self.kinds):
            delays[:, side] = kind if isinstance(kind, int) else _delays(kind, u, _column(kind, given))
        return Draws(delays, answer, flip < self.feedback.get("flip", 0.0))

    def latest(self) -> float:
        """Return the largest delay of a bit in rounds, or infinity if bits may be lost or wrong."""
        lost = set(self.feedback) - {"delay", "batch"} or any(
            (column == NEVER).any() for column in self.columns.values()
        )
        return math.inf if lost else self.window - 1

    def diagnostics(self) -> dict[str, int]:
        """Return how many bits arrived after the timeout and were dropped."""
        return {"feedback_too_late": int(self.too_late[0])} if "timeout" in self.feedback else {}


def _column(kind: Any, columns: Mapping[str, Whole]) -> Whole | None:
    """Return the column that a delay rule reads, or None."""
    return columns[kind["column"]] if isinstance(kind, Mapping) and "column" in kind else None
