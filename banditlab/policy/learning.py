"""Train a policy on another policy's log, and evaluate it on the later part of the log."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import numpy as np

from banditlab.envs.encoding import Encoder
from banditlab.errors import UsageError
from banditlab.offpolicy.log import Floats, Rows
from banditlab.players.saved import write_whole
from banditlab.policy.choice import Name
from banditlab.policy.container import Parts, packed
from banditlab.policy.evaluating import Evaluated, Stream, source_of
from banditlab.policy.replay import Decider
from banditlab.policy.training import AGENT, COUNTS, core_for, origin
from banditlab.policy.unanswered import Unanswered
from banditlab.problem import Problem

LEARNT = 0.8
"""The fraction of the decisions, in order of time, that are used for training."""


def train_from_log(
    log: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    agent: str = "",
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    floor: float = 0.0,
    recipe: Mapping[str, Any] | None = None,
    logger: Literal["fixed", "learning"] | None = None,
    **columns: str,
) -> Evaluated:
    """Train a policy on the first 80 % of a log's decisions, write it, and evaluate it on the other decisions.

    The agent is updated with each decision's action and probabilities in the log. Where only the probability of the
    logged action is known, the other actions share the rest equally. From a policy's log, the new policy takes over
    that policy's columns, classes and rule for unanswered decisions, so either policy can be the other's holdback
    policy. From any other log, the classes are the log's actions as texts, and the columns are the contexts, with
    ranges and categories from the first part of at most 65,536 rows.

    Parameters
    ----------
    log, logger, columns
        As in `evaluate_log`. Decisions without feedback are left out.
    out
        Path of the policy's file.
    agent, settings, seed, floor
        As in `Policy.train`.
    recipe
        Settings of `Encoder.fit` for a log that has no policy: `scaling`, `missing` ("indicator" by default),
        `max_categories`, `roles`.

    Returns
    -------
    Evaluated
        The estimated value of the policy on the decisions that it was not trained on.

    Raises
    ------
    UsageError
        There are fewer than two decisions, the log has faults, the agent, a setting or a column is unknown, or the agent
        cannot be updated with actions that it did not choose.
    LogError
        The event log cannot be read.
    """
    # The smallest problem shows unsuitable agents and settings before the log is read.
    core_for(agent or AGENT, settings or {}, Problem(1, 2, 1.0), ["0", "1"], seed).require_replaceable("--from-log")
    source = source_of(os.fspath(log), "", [], columns)
    learnt, parts, own = max(1, int(LEARNT * source.rounds)), iter(source.parts), source.policy
    first = next(parts, None)
    if first is None or source.rounds < 2 or len(source.names) < 2:
        faults = "".join(f"; {count:,} x {what}" for what, count in source.faults.items())
        raise UsageError(f"{log}: fewer than two decisions or actions to learn from{faults}")
    if own is None:
        encoder = Encoder.fit(first[2][:learnt], **{"missing": "indicator", "source": str(log), **(recipe or {})})
        about = {"content": "", "label": "", "classes": len(source.names)}
    elif recipe:
        raise UsageError(
            f"{log}: the log's policy determines the encoding of the columns; leave out {', '.join(sorted(recipe))}"
        )
    else:
        encoder, about = own.encoder, own.trained
    problem = Problem(encoder.d, len(source.names), encoder.radius)
    core = core_for(agent or AGENT, settings or {}, problem, source.names, seed)
    about = origin(core, seed, log, about | COUNTS)
    policy = Parts(os.urandom(16).hex(), encoder, core, about, {}, own.rule if own else Unanswered())
    pupil = _Pupil(policy, source.names, floor, own.core.retired if own else ())
    made = Stream(source._replace(parts=chain([first], parts)), "", learnt, pupil).evaluated(log, logger)
    write_whole(out, pupil.packed)
    return made


class _Pupil(Decider):
    """A policy that learns from the rounds before a cut.

    In later rounds retired classes are excluded, and every other class has at least the probability `floor`.
    """

    def __init__(self, policy: Parts, names: Sequence[Name], floor: float, retired: Iterable[int]) -> None:
        super().__init__(policy, names)
        self._floor, self._retired = floor, set(retired)
        self.packed = b""
        """The file of the policy, once it has learnt."""

    def target(self, rows: Any, log: Rows, cut: int) -> Floats:
        """Learn from the first `cut` rows, then return what `Decider.target` does."""
        core, X, p = self.core, self.contexts(rows), log.propensities
        if p is None:
            p = np.tile((1.0 - log.chosen[:, None]) / (log.target.shape[1] - 1), log.target.shape[1])
            p[np.arange(len(p)), log.actions] = log.chosen
        for i in range(cut):
            core.learn_of_another(X[i], int(log.actions[i]), p[i], bool(log.rewards[i]))
        if cut < len(X) and not self.packed:
            core.decisions = core.answered = core.right = 0
            core.retired = self._retired
            core.set_floor(self._floor)
            self.packed = packed(self.policy)
        return super().target(X, log, cut)
