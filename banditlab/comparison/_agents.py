"""The agents of a comparison: a given selection, or by default the recommended agents and one with a guarantee."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from banditlab.engine.describe import build_player, describe_player
from banditlab.errors import BanditlabError, IncompatibleError, UsageError
from banditlab.problem import Problem
from banditlab.registry import registry

GAMMAS = [0.01, 0.03, 0.1, 0.3]
SECOND_ORDER = ("fastcb", "squarecb", "linucb", "lints")
STACK = "stackcb"
CONTEXT_FREE = "beta-ts"
NON_LINEAR = "exploration(fourier-aioli)"
SLOW = {"boosted-exploration": "it updates its trees after explored hits only, so it needs many rounds"}
SETTINGS: dict[str, dict[str, Any]] = {
    "epsilon-greedy-direct": {"grid": {"gamma": GAMMAS}},
    "epsilon-greedy": {"grid": {"gamma": GAMMAS}},
    "banditron": {"grid": {"gamma": GAMMAS}},
    "boosted-exploration": {"grid": {"gamma": GAMMAS[1:]}},
    "gaptron": {"step": "wide", "norm_bound": 10.0},
    "exploration(fourier-aioli)": {"grid": {"gamma": GAMMAS[1:]}},
}
"""Settings of agents in a comparison, if they are not the defaults; a setting that needs tuning has several values."""
LARGEST_STATE: dict[str, float] = {**dict.fromkeys(SECOND_ORDER, 2**25), STACK: 2**26}
"""The largest state in bytes of an agent in the default selection. At this size a round takes about 1 ms, and 2 ms for
`stackcb`."""


def chosen_agents(
    asked: str | Sequence[str] | None, problem: Problem, *, several_right: bool = False
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the agents for a spec, and those left out, each as "id: reason".

    Parameters
    ----------
    asked
        None selects the recommended agents, one with a guarantee, and "uniform". "all" selects every agent that
        observes one bit and can be built. Otherwise ids, as a list or as a string such as
        "fastcb,linucb,exploration(folklore)".
    several_right
        Whether several actions may be right in a round; "beta-ts", which ignores contexts, is then one of the
        recommended agents.

    Raises
    ------
    UsageError
        An id is unknown (the message suggests the nearest), an id occurs twice, or an agent observes the label.
    """
    blocks, left_out = _asked_for(asked, problem, several_right)
    for block in blocks:
        if block["id"] == STACK and several_right and problem.n_classes == 2:
            block["complement"] = False  # with several right actions, a miss of one action is not a hit of the other
    return blocks, left_out


def _asked_for(
    asked: str | Sequence[str] | None, problem: Problem, several_right: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    if asked is None:
        return _of_practice(problem, [CONTEXT_FREE] if several_right else [])
    if asked == "all":
        return _all(problem)
    names = re.split(r",(?![^(]*\))", asked) if isinstance(asked, str) else list(asked)
    names = [str(name).strip() for name in names if str(name).strip()]
    if not names:
        raise UsageError("agents (--agents) must be all, or at least one id, such as stackcb,fastcb")
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"agents (--agents) names {name!r} twice")
        if _class(name).feedback != "bit":
            raise UsageError(
                f"agents (--agents): {name} observes every label and cannot be compared with agents that observe one bit"
            )
    blocks = [block_of(name) for name in names]
    for block in blocks:
        written = {key: value for key, value in block.items() if key not in ("id", "grid")}
        describe_player("agents", block["id"], written, f"agents (--agents): {block['id']}")
    return blocks, []


def _of_practice(problem: Problem, more: list[str]) -> tuple[list[dict[str, Any]], list[str]]:
    names, left_out = [], []
    for name in (*SECOND_ORDER, STACK, "epsilon-greedy-direct", NON_LINEAR, "gaptron", *more, "uniform"):
        if name in LARGEST_STATE and (size := _class(name).least_bytes(problem, {})) > LARGEST_STATE[name]:
            left_out.append(f"{name}: a round is slow, with a state of {size / 2**20:,.0f} MiB")
        elif name == NON_LINEAR and problem.n_classes != 2:
            left_out.append(f"{name}: used for two classes only")
        else:
            names.append(name)
    sketched = [name for name in LARGEST_STATE if _is_sketched(name, problem)]
    if sketched:
        played_so, numbers = [name for name in sketched if name in names], problem.n_classes * problem.n_features**2
        why = f"a round is slow for K d^2 = {numbers:,}; used with a sketch or a diagonal instead"
        left_out += [f"{', '.join(played_so)} with whole matrices: {why}"] if played_so else []
        names.insert(names.index("epsilon-greedy-direct") + 1, "soba-diag")
    left_out += [f"{name}: {why}" for name, why in SLOW.items()]
    played = {*names, *SECOND_ORDER, STACK, *SLOW, "exploration"}
    others = [e.id for e in registry().entries("agents") if e.id not in played and _is_ranked(e.id)]
    left_out.append(
        f"{', '.join(others)}: older agents, agents with the settings of a theorem, or agents of other libraries"
    )
    return [block_of(name) for name in names], left_out


def _is_sketched(name: str, problem: Problem) -> bool:
    """Return whether an agent by default uses a sketch or a diagonal in place of whole second-order matrices."""
    cls = _class(name)
    return bool(cls.least_bytes(problem, {}) < cls.least_bytes(problem, {"second_order": "full"}))


def _all(problem: Problem) -> tuple[list[dict[str, Any]], list[str]]:
    names, left_out = [], []
    for entry in registry().entries("agents"):
        try:
            if _class(entry.id).feedback != "bit":
                left_out.append(f"{entry.id}: observes the label")
                continue
            if entry.origin == "banditlab":  # the user's own code runs in separate processes only
                written = {key: value for key, value in block_of(entry.id).items() if key not in ("id", "grid")}
                described = describe_player("agents", entry.id, written, entry.id)
                build_player(described, problem, np.random.default_rng(0))
            names.append(entry.id)
        except IncompatibleError:
            names.append(entry.id)  # the plan gives the reason
        except (BanditlabError, MemoryError) as error:
            left_out.append(f"{entry.id}: {' '.join(str(error).split())}")
    if problem.n_classes == 2:
        names.append(NON_LINEAR)
    return [block_of(name) for name in names], left_out


def _is_ranked(id_: str) -> bool:
    try:
        return bool(_class(id_).feedback == "bit")
    except BanditlabError:
        return False


def _class(name: str) -> Any:
    return registry().load("agents", _parts(name)[0])


def _parts(name: str) -> tuple[str, str]:
    """Return "exploration" and "folklore" of "exploration(folklore)"."""
    found = re.fullmatch(r"([^()]+)\(([^()]*)\)", name)
    return (found.group(1).strip(), found.group(2).strip()) if found else (name, "")


def block_of(name: str) -> dict[str, Any]:
    """Return an agent's block in a spec: its id, the forecaster or booster that it wraps, and its settings."""
    id_, inner = _parts(name)
    wraps = {}
    if inner:
        key = getattr(_class(name), "wraps", None)
        if key is None:
            raise UsageError(
                f"agents (--agents): {id_} takes no other algorithm in parentheses, so {name!r} is not an agent"
            )
        wraps = {key: inner}
    return {"id": id_, **wraps, **SETTINGS.get(name, {})}
