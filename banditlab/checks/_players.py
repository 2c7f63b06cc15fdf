"""Checks of both agents and forecasters: metadata, settings, seeds, memory, saving, and the use of arrays."""

from __future__ import annotations

import copy
import inspect
import json
import math
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from banditlab.bounds import ADVERSARIES
from banditlab.checks._core import CheckExcluded, fail, one_line, require_metadata, require_setting
from banditlab.checks._probe import LONG, ROUNDS, PlayerProbe, clone, first_difference, run, tell
from banditlab.errors import UsageError
from banditlab.players.agent import Agent
from banditlab.players.saved import same
from banditlab.validation import loss_unit

GROUPS = ("theory", "practice", "reference", "baseline", "adapter")
MEMORY_SLACK = 256
"""Tolerance, in bytes, of the size of a pickle, because integers in generators have varying lengths."""


def metadata(probe: PlayerProbe) -> None:
    """The class defines id, feedback, group, summary, reference and version."""
    cls = probe.cls
    require_metadata(cls)
    if cls.feedback not in ("bit", "label"):
        fail(f"feedback is {cls.feedback!r}: it must be 'bit' or 'label'")
    observed = "bit" if issubclass(cls, Agent) else "label"
    if cls.feedback != observed:
        fail(f"feedback is {cls.feedback!r}: subclasses of Agent observe the bit, all others the label")
    if cls.group not in GROUPS:
        fail(f"group is {cls.group!r}: it must be one of {', '.join(map(repr, GROUPS))}")


def settings(probe: PlayerProbe) -> None:
    """The constructor is (problem, rng, *, annotated settings), and stores each setting in an attribute as plain JSON
    data.
    """
    cls, player = probe.cls, probe.make()
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    if [p.name for p in parameters[:2]] != ["problem", "rng"]:
        fail(f"the constructor begins with {[p.name for p in parameters[:2]]}: it must begin with (problem, rng)")
    for parameter in parameters[2:]:
        passes_on = parameter.kind is inspect.Parameter.VAR_KEYWORD and cls.wraps is not None
        if not passes_on:
            require_setting(parameter)
    for name in cls.own_settings():
        if not hasattr(player, name):
            fail(f"the setting {name!r} is not stored in an attribute: store its resolved value under its name")
    for name, value in player.params().items():
        if not _plain(value):
            fail(f"the setting {name!r} is stored as {value!r}: it must be a bool, int, finite float, str or None")
    again = cls(probe.problem, np.random.default_rng(1), **player.params())
    for name, value in player.params().items():
        if again.params()[name] != value:
            fail(f"{name!r} was {value!r} and is {again.params()[name]!r} after it is built again from params()")


def _plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_plain, value))
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    if isinstance(value, dict):
        return all(isinstance(name, str) and _plain(inside) for name, inside in value.items())
    return value is None or isinstance(value, bool | int | float | str)


def bad_settings(probe: PlayerProbe) -> None:
    """gamma outside [0, 1] and norm_bound <= 0 raise a UsageError of one line."""
    cls, params = probe.cls, probe.make().params()
    refused = {"gamma": (-1.0, 1.5, math.nan), "norm_bound": (0.0, -1.0, math.nan)}
    cases = [(name, value) for name in params for value in refused.get(name.rpartition(".")[2], ())]
    if not cases:
        raise CheckExcluded("has neither a gamma nor a norm_bound")
    for name, value in cases:
        try:
            cls(probe.problem, np.random.default_rng(1), **(params | {name: value}))
        except UsageError as error:
            if "\n" in str(error):
                fail(f"{name} = {value:g} raised an error of several lines: a UsageError must be one line")
        except Exception as error:
            fail(f"{name} = {value:g} raised {one_line(error)}: invalid settings must raise UsageError")
        else:
            fail(f"{name} = {value:g} was accepted: it must raise UsageError")


VERBS = {"act": ("context",), "predict": ("context",), "update": ("context", "label")}


def verbs(probe: PlayerProbe) -> None:
    """act, learn, predict and update are plain methods with the arguments of the contract."""
    cls = probe.cls
    learn = ("context", "decision", "correct" if issubclass(cls, Agent) else "label")
    for verb, arguments in (VERBS | {"learn": learn}).items():
        method = getattr(cls, verb, None)
        if method is None:
            continue
        if inspect.isgeneratorfunction(method):
            fail(f"{verb} contains yield, so a call would not execute it; it must be a plain method")
        if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            fail(f"{verb} is async, so a call would not execute it; it must be a plain method")
        try:
            inspect.signature(method).bind(cls, *arguments)
        except TypeError:
            taken = ", ".join(list(inspect.signature(method).parameters)[1:])
            fail(f"{verb} takes ({taken}): it must take ({', '.join(arguments)})")


def own_state(probe: PlayerProbe) -> None:
    """Rounds change the instance only, not its class."""
    mutable = (np.ndarray, list, dict, set, bytearray)
    shared = {
        name: value
        for base in probe.cls.__mro__
        if not base.__module__.startswith("banditlab.")
        for name, value in vars(base).items()
        if isinstance(value, mutable) and not name.startswith("__")
    }
    if not shared:
        return
    before = {name: copy.deepcopy(value) for name, value in shared.items()}
    run(probe.make(), probe.contexts[:ROUNDS], probe.labels[:ROUNDS])
    for name, value in shared.items():
        if not same(before[name], value):
            fail(f"{name} belongs to the class, which all instances share, and changed: create it in the constructor")


def seeds(probe: PlayerProbe) -> None:
    """The same seed gives the same run, whatever the state of numpy's global generator."""
    # An agent that explores with probability 1/20 by another generator may choose the same actions for sixty rounds.
    rounds = LONG if issubclass(probe.cls, Agent) else ROUNDS
    before = np.random.get_state()  # noqa: NPY002 - the check is that this state is not used
    try:
        np.random.seed(1)  # noqa: NPY002
        one = run(probe.make(), probe.contexts[:rounds], probe.labels[:rounds])
        np.random.seed(2)  # noqa: NPY002
        other = run(probe.make(), probe.contexts[:rounds], probe.labels[:rounds])
    finally:
        np.random.set_state(before)  # noqa: NPY002
    t = first_difference(one, other)
    if t is not None:
        fail(f"two runs from one seed differ at round {t}: all randomness must come from the argument rng")


def inputs(probe: PlayerProbe) -> None:
    """Contexts are neither changed nor referenced later, because a caller may reuse its arrays."""
    X, y = probe.contexts[:ROUNDS], probe.labels[:ROUNDS]
    expected = run(probe.make(), X, y)
    player = probe.make()
    seen = []
    for t in range(ROUNDS):
        x = X[t].copy()
        if hasattr(player, "act"):
            decision = player.act(x)
            seen.append((decision.action, np.array(decision.probabilities)))
            _unchanged(x, X[t], "act", t)
            x[:] = 1e9  # the caller reuses its array between act and learn
            x = X[t].copy()
            tell(player, x, decision, y[t])
            _unchanged(x, X[t], "learn", t)
        else:
            seen.append((None, np.array(player.predict(x))))
            _unchanged(x, X[t], "predict", t)
            player.update(x, int(y[t]))
            _unchanged(x, X[t], "update", t)
        x[:] = 1e9
    changed = first_difference(expected, seen)
    if changed is not None:
        fail(f"overwriting the caller's context changed round {changed}: copy the parts of a context that are stored")


def _unchanged(x: Any, original: Any, verb: str, t: int) -> None:
    if not np.array_equal(x, original):
        fail(f"{verb} changed the context at round {t}: inputs must not be changed")


def pickling(probe: PlayerProbe) -> None:
    """A pickled player continues identically, because worker processes exchange pickled players."""

    def pickled(player: Any) -> Any:
        try:
            return clone(player)
        except (AttributeError, TypeError, pickle.PicklingError) as error:
            fail(
                f"it cannot be pickled ({one_line(error)}): attributes must be numbers, arrays or strings, not "
                "functions or files"
            )

    _continues(probe, pickled, "pickled and unpickled")


def saving(probe: PlayerProbe) -> None:
    """run(a + b) equals run(a), save, load, run(b), without pickle."""

    def through_a_file(player: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "player.npz"
            player.save(file)
            try:
                return type(player).load(file)
            except UsageError:
                later = sorted(set(vars(player)) - set(vars(probe.make())))
                if later:
                    fail(
                        f"{', '.join(later)}: created after the constructor; all of the state must exist from the start"
                    )
                raise

    _continues(probe, through_a_file, "saved and loaded")


def _continues(probe: PlayerProbe, carry: Any, how: str) -> None:
    X, y, half = probe.contexts[:ROUNDS], probe.labels[:ROUNDS], ROUNDS // 2
    whole = run(probe.make(), X, y)
    player = probe.make()
    run(player, X[:half], y[:half])
    t = first_difference(whole[half:], run(carry(player), X[half:], y[half:]))
    if t is not None:
        fail(
            f"{how} after {half} rounds, the run differs {t} rounds later: everything that changes must be in the state"
        )


def bounded_memory(probe: PlayerProbe) -> None:
    """The memory of a player does not grow with the number of rounds."""
    player = probe.make()
    quarter = LONG // 4
    run(player, probe.contexts[:quarter], probe.labels[:quarter])
    early = len(pickle.dumps(player))
    run(player, probe.contexts[quarter:], probe.labels[quarter:])
    late = len(pickle.dumps(player))
    if late > early + MEMORY_SLACK:
        fail(
            f"the state takes {early} bytes after {quarter} rounds and {late} after {LONG}: "
            "memory must not grow with T (or excluded_checks must give the reason)"
        )


def bounds(probe: PlayerProbe) -> None:
    """bound(rounds) is None or a number in the unit bound_unit, bound_adversary is one of the permitted values, and
    certificate() is a float.
    """
    player = probe.make()
    if player.bound_adversary not in ADVERSARIES:
        fail(f"bound_adversary must be one of {ADVERSARIES}, got {player.bound_adversary!r}")
    run(player, probe.contexts[:ROUNDS], probe.labels[:ROUNDS])
    for rounds in (1, ROUNDS, LONG):
        value: Any = player.bound(rounds)
        if value is None:
            continue
        if not isinstance(value, int | float) or math.isnan(value) or value < 0:
            fail(f"bound({rounds}) is {value!r}: it must be None or a number of at least 0")
        try:
            loss_unit(player.bound_unit)
        except UsageError:
            fail(
                f"bound({rounds}) is {value:g} but bound_unit is {player.bound_unit!r}: "
                "it must be 'nats', 'bits' or a part of them such as '0.5 bits'"
            )
    certificate = player.certificate()
    if not isinstance(certificate, float):
        fail(f"certificate() is {certificate!r}: it must be a float, or NaN without a certificate")


BEFORE = (metadata, settings, bad_settings, verbs)
"""Checks without rounds, and later checks. Those of a player's decisions come between, so an invalid decision is
reported as such."""
AFTER = (own_state, seeds, inputs, pickling, saving, bounded_memory, bounds)
