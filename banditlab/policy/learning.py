"""Train a policy on another policy's log, and evaluate it on the later part of the log."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import islice
from typing import Any

from banditlab.errors import UsageError
from banditlab.players.saved import write_whole
from banditlab.policy.container import SQLITE, Parts, packed
from banditlab.policy.evaluating import Evaluated, evaluate_log, first_bytes
from banditlab.policy.log_events import AnsweredDecisions
from banditlab.policy.training import AGENT, core_for, origin

LEARNT = 0.8
"""The fraction of the answered decisions, in order of time, that are used for training."""


def train_from_log(
    log: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    agent: str = "",
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    floor: float = 0.0,
) -> Evaluated:
    """Train a policy on the first 80 % of a log's answered decisions, write it, and evaluate it on the other decisions.

    The agent is updated with each decision's action and probabilities in the log. The new policy has the columns,
    classes and rule for unanswered decisions of the log's policy, so each can be the other's holdback policy.

    Parameters
    ----------
    log
        The log, as for `Policy.resume`.
    out
        Path of the policy's file.
    agent, settings, seed, floor
        As in `Policy.train`.

    Returns
    -------
    Evaluated
        The estimated value of the policy on the decisions that it was not trained on.

    Raises
    ------
    UsageError
        There are fewer than two answered decisions, the agent or a setting is unknown, or the agent cannot be updated
        with actions that it did not choose.
    LogError
        The log cannot be read.
    """
    if not first_bytes(os.fspath(log)).startswith(SQLITE):
        raise UsageError(f"{log}: --from-log requires the log of a policy, not a table or a dsjson file")
    decisions = AnsweredDecisions(os.fspath(log))
    own = decisions.policy
    core = core_for(agent or AGENT, settings or {}, own.core.agent.problem, decisions.names, seed)
    core.require_replaceable("--from-log")
    learnt = max(1, int(LEARNT * decisions.rounds))
    for each, right, p, _ in islice(decisions, learnt):
        core.learn_of_another(each.record.context, each.record.action, p, right)
    core.decisions = core.answered = core.right = 0
    core.retired = set(own.core.retired)
    core.set_floor(floor)
    about = own.trained | dict.fromkeys(("rows", "mistakes", "constant_mistakes", "expected_mistakes"), 0)
    parts = Parts(os.urandom(16).hex(), own.encoder, core, origin(core, seed, log, about), {}, own.rule)
    write_whole(out, packed(parts))
    return evaluate_log(log, os.fspath(out), after=learnt)
