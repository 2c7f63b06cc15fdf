"""The runs of a spec: every (environment, player, repetition) as plain data with its identity."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from banditlab.engine.anchors import anchors
from banditlab.engine.describe import (
    build_environment,
    build_player,
    describe_environment,
    describe_player,
    entries_of,
    is_foreign,
    player_class,
    with_change,
    written_names,
)
from banditlab.engine.feedback import as_feedback, columns_of, rules_of, window_of
from banditlab.engine.memory import memory
from banditlab.engine.processes import ASK_SECONDS, LostError, ask
from banditlab.engine.runner import refuse_contexts, refuse_feedback, refuse_unlabelled
from banditlab.engine.seeding import digest, generator_for, seed_for
from banditlab.engine.spec import Spec
from banditlab.errors import IncompatibleError, UsageError
from banditlab.numerics.sparse_rows import refuse_dense
from banditlab.players.player import Player
from banditlab.problem import Problem
from banditlab.results.schema import FORMAT

GIB = 2.0**30


@dataclass(frozen=True)
class Run:
    """One run as plain data, which is sent to workers. Its hash is the run's identity."""

    environment: dict[str, Any]
    player: dict[str, Any]
    written: dict[str, Any]
    environment_label: str
    label: str
    rounds: int
    checkpoints: tuple[int, ...]
    base_seed: int
    repetition: int
    horizon_known: bool
    adaptive: bool
    feedback: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def foreign(self) -> bool:
        """Whether the run involves code of a lab or a plug-in."""
        return is_foreign(self.environment, self.player)

    @cached_property
    def description(self) -> dict[str, Any]:
        """The complete identity of the run."""
        return {
            "format": FORMAT,
            "environment": self.environment["identity"],
            "player": self.player,
            "rounds": self.rounds,
            "checkpoints": list(self.checkpoints),
            "base_seed": self.base_seed,
            "repetition": self.repetition,
            "horizon_known": self.horizon_known,
            **({"feedback": self.feedback} if self.feedback else {}),
        }

    @cached_property
    def run_id(self) -> str:
        """Hash of the run's description, 24 hex digits."""
        return digest(self.description)[:24]

    @cached_property
    def stream_id(self) -> str:
        """Hash of (base_seed, repetition, environment): the stream depends neither on the player nor on the rounds.

        In an adaptive environment labels depend on the actions, so each run has its own stream.
        """
        if self.adaptive:
            return self.run_id
        return digest([FORMAT, self.base_seed, self.repetition, self.environment["identity"]])[:24]

    def environment_seed(self) -> int:
        """Return the seed for `env.reset`."""
        return seed_for(self.base_seed, "environment", *_names(self.environment["identity"]), self.repetition)

    def player_generator(self) -> np.random.Generator:
        """Return the player's generator, seeded by the settings of environment and player and by the repetition."""
        names = (*_names(self.environment["identity"]), self.player["kind"], *_names(self.player))
        return generator_for(self.base_seed, "player", *names, self.repetition)

    def problem(self, env: Any) -> Problem:
        """Return the player's problem: the environment's problem, without the horizon if the sweep hides it."""
        problem: Problem = env.unwrapped.problem
        return problem if self.horizon_known else dataclasses.replace(problem, horizon=None)

    def build_environment(self) -> Any:
        """Return the run's environment."""
        return build_environment(self.environment, self.rounds)

    def build_player(self, env: Any) -> Player:
        """Return the run's player before its first round."""
        return build_player(self.player, self.problem(env), self.player_generator())


def _names(identity: dict[str, Any]) -> tuple[Any, Any]:
    """Return what seeds depend on: ids and settings, not versions or sources.

    Correcting a source file therefore does not change the draws.
    """
    return identity["id"], identity["settings"]


@dataclass
class Plan:
    """All runs of a spec, and the impossible pairs as (environment, player, reason)."""

    spec: Spec
    runs: list[Run] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    data: dict[str, dict[str, float]] = field(default_factory=dict)
    """For each environment with a data set, by label: `rows`, `features` (d), `classes` (K), and the frequency of the
    `largest` class or, if several actions may be right, the values of `engine.anchors`. Where they apply: the number of
    `groups` of rows, `in_order`, `follows_time` (see `Table`), and `scaling.NAME` for a scaling that uses the whole
    table.
    """
    uncompared: dict[str, str] = field(default_factory=dict)
    """The reason why there is no comparator, for each environment without one, by label."""
    pending: dict[str, tuple[int, int]] = field(default_factory=dict)
    """For each environment with late feedback, by label: the largest number of pending rounds, and the bytes of their
    contexts and probabilities.
    """

    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    """For each table, by the environment's label: the file's `content` hash, `columns` (role by name, empty for sparse
    rows) and `classes`.
    """
    shard: dict[str, Any] = field(default_factory=dict)
    """For a part of a plan: its number, the number of parts, the whole plan's hash, and the indices of its runs in that
    plan.
    """

    def part(self, index: int, of: int) -> Plan:
        """Return part `index` (from 1) of `of` parts; whole streams are assigned to the parts in turn.

        Raises
        ------
        UsageError
            The part does not exist.
        """
        if not 1 <= index <= of:
            raise UsageError(f"shard {index}/{of}: must be i/n with 1 <= i <= n")
        mine = set(list(self.streams())[index - 1 :: of])
        places = [place for place, run in enumerate(self.runs) if run.stream_id in mine]
        shard = {"index": index, "of": of, "plan": self.digest(), "places": places}
        return dataclasses.replace(self, runs=[self.runs[place] for place in places], shard=shard)

    def digest(self) -> str:
        """Return a hash of the plan: the runs in order, and the comparators' norm bounds."""
        return digest([[run.run_id for run in self.runs], self.balls()])[:24]

    def streams(self) -> dict[str, Run]:
        """Return one run of each stream, by stream id; in an adaptive environment every run has its own stream."""
        return {run.stream_id: run for run in self.runs}

    def balls(self) -> list[float]:
        """Return the norm bounds of the comparators: those in `norm_bounds` and those of all players.

        The result is empty if `norm_bounds` is empty. A player's setting that is not a number ("auto") is left out.
        """
        if not self.spec.norm_bounds:
            return []
        settings = [item for run in self.runs for item in run.player["settings"].items()]
        own = {value for name, value in settings if name.split(".")[-1] == "norm_bound" and isinstance(value, float)}
        return sorted({*map(float, self.spec.norm_bounds), *own})

    def record(self) -> dict[str, Any]:
        """Return the content of `runs.json`."""
        return {
            "runs": [run.run_id for run in self.runs],
            "streams": sorted({run.stream_id for run in self.runs}),
            "skipped": self.skipped,
            "data": self.data,
            "tables": self.tables,
            **({"shard": self.shard} if self.shard else {"plan": self.digest()}),
            "groups": self.groups(),
        }

    def groups(self) -> dict[str, str]:
        """Return the group of each player's class ("theory", "practice", "reference", ...), by label."""
        players = {run.label: run.player for run in self.runs}
        return {label: str(getattr(player_class(players[label]), "group", "")) for label in sorted(players)}


def make_plan(spec: Spec, where: str = "spec") -> Plan:
    """Return the plan of a spec; every environment and player is built once as a check.

    Raises
    ------
    UsageError
        An id or a setting is unknown, a value is out of range, or the spec contains a run twice.
    """
    try:
        return _make_plan(spec, where)
    except UsageError as error:
        raise UsageError(str(error) if str(error).startswith(where) else f"{where}: {error}") from error


def _make_plan(spec: Spec, where: str) -> Plan:
    plan = Plan(spec)
    players = list(described_players(spec, where))
    seen: dict[str, str] = {}
    for env_description, env_label, env, rounds, feedback, window in _environments(spec, where):
        if env.data:
            plan.data[env_label] = env.data
        if env.table:
            plan.tables[env_label] = env.table
        if env.uncompared:
            plan.uncompared[env_label] = env.uncompared
        if window > 1:
            plan.pending[env_label] = window, window * (env.row_bytes + 8 * env.problem.n_classes)
        for description, written, label in players:
            probe = Run(
                environment=env_description,
                player=description,
                written=written,
                environment_label=env_label,
                label=label,
                rounds=rounds,
                checkpoints=tuple(spec.checkpoint_rounds(rounds)),
                base_seed=spec.base_seed,
                repetition=0,
                horizon_known=spec.horizon_known,
                adaptive=env.adaptive,
                feedback=feedback,
            )
            shown = _shown(label, {k: v for k, v in written.items() if f"({v})" not in label})
            reason = _why_not(probe, env, shown, spec.run_timeout or ASK_SECONDS)
            if reason:
                plan.skipped.append({"environment": env_label, "player": shown, "reason": reason})
                continue
            if probe.run_id in seen:
                raise UsageError(f"{shown} on {env_label} is requested twice")
            seen[probe.run_id] = label
            plan.runs += [dataclasses.replace(probe, repetition=r) for r in range(spec.repetitions)]
    return plan


@dataclass(frozen=True)
class Seen:
    """The properties of an environment that a plan needs. For a lab or a plug-in they are determined in another process."""

    problem: Problem
    sparse: bool
    adaptive: bool
    data: dict[str, float]
    uncompared: str
    labelled: bool
    several_right: bool
    table: dict[str, Any]
    row_bytes: int

    @property
    def unwrapped(self) -> Seen:
        """This object, as for an environment without wrappers."""
        return self

    @classmethod
    def of(cls, env: Any) -> Seen:
        """Return the properties of an environment."""
        base = env.unwrapped
        return cls(
            base.problem,
            bool(base.sparse),
            not hasattr(base, "blocks"),
            _facts_of_data(base),
            _why_no_comparator(env),
            labelled=bool(base.labelled),
            several_right=bool(base.several_right),
            table=_table_of(base),
            row_bytes=int(base.row_bytes),
        )


def inspect_environment(description: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Build an environment and return its properties as plain data."""
    return dataclasses.asdict(Seen.of(build_environment(description, rounds)))


def _seen(description: dict[str, Any], spec: Spec, where: str) -> tuple[Seen, int]:
    """Return the properties of an environment, and the rounds of its runs: `rounds`, or fewer because of `passes`."""
    seen = _seen_for(description, spec, spec.rounds, where)
    rounds = min(spec.rounds, int(seen.data["rows"]) * spec.passes) if spec.passes and seen.data else spec.rounds
    return (seen if rounds == spec.rounds else _seen_for(description, spec, rounds, where)), rounds


def _seen_for(description: dict[str, Any], spec: Spec, rounds: int, where: str) -> Seen:
    if not is_foreign(description):
        return Seen.of(build_environment(description, rounds))
    try:
        found = ask("environment", (description, rounds), spec.run_timeout or ASK_SECONDS)
    except (LostError, UsageError) as error:
        raise UsageError(f"{where} cannot be built: {error}") from None
    return Seen(**found | {"problem": Problem(**found["problem"])})


def _facts_of_data(env: Any) -> dict[str, float]:
    """Return a data set's size for reports; empty for other environments."""
    rows = getattr(env, "rows_per_pass", None)
    if rows is None:
        return {}
    shares = getattr(env, "class_shares", None)
    units = getattr(env, "row_units", None)
    several = env.several_right
    shares = None if getattr(env, "change", None) else shares
    more = anchors(env) if several and hasattr(env, "ranked_rows") else {}
    more |= {} if shares is None or several else {"largest": float(max(shares))}
    more |= {} if units is None else {"groups": int(units.max()) + 1}
    more |= {name: 1 for name in ("in_order", "follows_time") if getattr(env, name, False)}
    scaling = getattr(env, "scaling", "")
    more |= {"text": 1} if getattr(env, "text", None) else {}
    more |= {} if scaling in ("", "running", "rowwise") else {f"scaling.{scaling}": 1}
    return {"rows": rows, "features": env.problem.n_features, "classes": env.problem.n_classes} | more


def _table_of(env: Any) -> dict[str, Any]:
    """Return the identity of a table (see `Plan`); empty for other environments."""
    if not isinstance(getattr(env, "content", None), str):
        return {}
    encoder = getattr(env, "encoder", None)
    columns = {column.name: column.role for column in encoder.columns} if encoder else {}
    return {"content": env.content, "columns": columns, "classes": [str(name) for name in env.classes]}


def _why_not(run: Run, env: Seen, shown: str, seconds: float) -> str:
    """Return why no repetition of a run is possible, or ""; players of labs and plug-ins are built in another process."""
    try:
        return str(ask("why_not", run, seconds)) if _is_foreign_player(run) else why_not(run, env)
    except UsageError as error:
        raise UsageError(f"{shown}: {error}") from error
    except LostError:  # its runs will fail in the same way and are then recorded
        return ""


def _is_foreign_player(run: Run) -> bool:
    return any(
        e.origin != "banditlab" for e in entries_of(run.player["kind"], run.player["id"], run.player["settings"])
    )


def why_not(run: Run, env: Any) -> str:
    """Return why no repetition of a run is possible, or "".

    The class is checked before a player is built, so skipping allocates no memory.

    Raises
    ------
    UsageError
        A setting is out of its range.
    """
    cls, problem, settings = player_class(run.player), run.problem(env), run.player["settings"]
    try:
        if env.unwrapped.sparse and cls.needs_dense(problem, settings):
            refuse_dense(problem.n_features)
        least, there = cls.least_bytes(problem, settings), memory()
        if there is not None and least > there:
            raise MemoryError(f"{least / GIB:,.0f} GiB at least, {there / GIB:,.0f} GiB available")
        player = run.build_player(env)
        refuse_unlabelled(player, env)
        refuse_feedback(player, run.feedback)
        refuse_contexts(player, env)
    except IncompatibleError as error:
        return str(error)
    except MemoryError as error:
        return f"its state does not fit in memory: {error}"
    except UsageError:
        raise
    except (Exception, SystemExit):  # its runs will fail and are then recorded
        pass
    return ""


def described_players(spec: Spec, where: str) -> Iterator[tuple[dict[str, Any], dict[str, Any], str]]:
    """Yield (description, settings as written by the user, label) of every player of a spec."""
    for kind, block in spec.players():
        for written in block.written():
            description = describe_player(kind, block.id, written, f"{where}: {kind[:-1]} {block.id!r}")
            yield description, written_names(written, description["settings"]), _player_label(description)


def _player_label(description: dict[str, Any]) -> str:
    from banditlab.registry import registry

    inner = registry().load(description["kind"], description["id"]).wraps
    return f"{description['id']}({description['settings'][inner]})" if inner else description["id"]


def _environments(spec: Spec, where: str) -> Iterator[tuple[dict[str, Any], str, Seen, int, dict[str, Any], int]]:
    """Yield (description, label, properties, rounds, feedback, window) of every environment and feedback of the spec."""
    seen = set()
    feedbacks = [(as_feedback(written), written) for written in spec.feedback.written()]
    for block in spec.environment:
        for written, change in itertools.product(block.written(), spec.change.written()):
            place = f"{where}: environment {block.id!r}"
            description = with_change(describe_environment(block.id, written, place), change)
            env, rounds = _seen(description, spec, place)
            if max(description.get("change", {"at": [0]})["at"]) >= rounds:
                raise UsageError(f"{where}: change.at must lie below rounds = {rounds:,}, got {change['at']!r}")
            shown = {k: v for k, v in written.items() if k != "path"} | _file_name(written)
            shown |= {f"change.{name}": value for name, value in change.items()}
            label = _shown(block.id, shown)
            if spec.norm_bounds and env.uncompared:
                raise UsageError(
                    f"{where}: norm_bounds: no comparator on {label} ({env.uncompared}); set norm_bounds = []"
                )
            for feedback, given in feedbacks:
                label = _shown(block.id, shown | {f"feedback.{name}": value for name, value in given.items()})
                if label in seen:
                    raise UsageError(f"{place}: {label} is requested twice")
                seen.add(label)
                yield description, label, env, rounds, feedback, _window(feedback, description, env, rounds)


def _window(feedback: dict[str, Any], description: dict[str, Any], env: Seen, rounds: int) -> int:
    """Return the largest number of pending rounds; raise a UsageError if the environment does not support the feedback."""
    rules_of(feedback, rounds, env.problem.n_classes)
    reads = "column" in str(feedback.get("delay")) and not is_foreign(description)
    columns = columns_of(feedback, build_environment(description, rounds).unwrapped if reads else env)
    return window_of(feedback, rounds, columns)


def _why_no_comparator(env: Any) -> str:
    """Return why there is no comparator (there are no labels, or contexts are too long for dense vectors), or ""."""
    if env.unwrapped.several_right:
        return "no single label per round, which a comparator requires, because several actions may be right"
    if not env.unwrapped.labelled:
        return "no labels, which a comparator requires"
    if env.unwrapped.sparse:
        try:
            refuse_dense(env.unwrapped.problem.n_features)
        except IncompatibleError as reason:
            return str(reason)
    return ""


def _file_name(written: dict[str, Any]) -> dict[str, str]:
    return {"path": str(written["path"]).replace("\\", "/").rpartition("/")[2]} if "path" in written else {}


def _shown(label: str, written: dict[str, Any]) -> str:
    inside = ", ".join(f"{name}={value}" for name, value in written.items())
    return f"{label}({inside})" if inside else label
