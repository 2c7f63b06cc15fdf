"""Train a policy: run an agent once over the rows of a table, as bandit rounds."""

from __future__ import annotations

import ast
import json
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from banditlab.comparison import CONTEXT_FREE, TABLE, Compared, surveyed
from banditlab.distributions import VERSION
from banditlab.engine.describe import build_environment, build_player, describe_environment, describe_player
from banditlab.engine.runner import play
from banditlab.engine.seeding import generator_for
from banditlab.envs.files import stored_table
from banditlab.errors import FaultyTableError, UsageError
from banditlab.players.agent import Agent
from banditlab.policy.choice import Name, short
from banditlab.policy.container import Parts, Training, class_names
from banditlab.policy.core import Core
from banditlab.policy.unanswered import Unanswered, checked
from banditlab.problem import Problem
from banditlab.validation import at_least

if TYPE_CHECKING:
    from banditlab.policy.policy import Policy

AGENT = "stackcb"
COUNTS = dict.fromkeys(("rows", "mistakes", "constant_mistakes", "expected_mistakes"), 0)
"""The counts of a policy that was not trained on labelled rows."""
ACTION = "action"
"""The label column for policies without training data."""


def train(data: Any, label: str = "", *, out: str | os.PathLike[str] | None = None, **options: Any) -> Policy:
    """Return a policy trained in one pass over a table, in random order or by `order`, and optionally write it.

    The agent observes only the bit, right or wrong. Its mistakes are counted before each update, so the mistake rate
    refers to rows that it had not seen. The recipe (ranges, categories) is fitted to the whole table. With `order`,
    each training row is scaled by the rows before it, and rows that the policy receives later by the whole table.

    Parameters
    ----------
    data, label
        The file, or a table in memory as for `banditlab.compare`, and the column to predict.
    out
        Path of the policy's file.
    agent, settings
        The agent's id, "stackcb" by default, and settings of its constructor.
    best_of
        A results folder of `compare`, or of any sweep, on one table. The policy uses the agent and setting ranked first
        there, among those that learn from one bit, with the recipe of that ranking. Settings of the table that are
        given here replace those of the recipe.
    other_table
        Whether `best_of` may refer to a table with other columns or classes.
    seed
        Seed of the order of the rows and of the agent's draws, 0 or above.
    table
        `floor`, the least probability of any allowed action in the policy's decisions (training ignores it);
        `unanswered` and `after`, the rule for a decision without feedback (see `Policy.open`); and settings of the
        table environment (`missing`, `scaling`, `drop_columns`, ...). None stands for the default value.

    Raises
    ------
    UsageError
        The table cannot be read or has faults (all are reported), the agent or a setting is unknown, the agent observes
        the label, or both an agent and `best_of` are given.
    HorizonRequiredError
        A setting needs the number of decisions, which a policy does not have.
    """
    from banditlab.policy.policy import Policy

    policy = Policy.train(data, label, **options)
    if out is not None:
        policy.save(out)
    return policy


def untaught(columns: Mapping[str, Any], actions: Sequence[Name], **options: Any) -> Parts:
    """Return the parts of an untrained policy, for use without labelled rows.

    Parameters
    ----------
    columns
        Examples by column name: the least and the largest expected number, or all categories.
    actions
        The names of two or more actions.
    options
        As for `train`. The default scaling is "minmax", and texts are nominal.

    Raises
    ------
    UsageError
        As for `train`; or a column is named "action", or an action occurs twice.
    """
    import pandas as pd

    if not isinstance(columns, Mapping) or ACTION in columns or isinstance(actions, str):
        raise UsageError(
            f"columns must map names to examples, without a column {ACTION!r}, and actions must be a list of names"
        )
    if len(set(map(str, actions))) < len(actions):
        raise UsageError(f"actions must be different names, got {short(actions)}")
    given = {**columns, ACTION: actions}
    frame = pd.DataFrame({name: pd.Series(values) for name, values in given.items()}).ffill()
    frame = pd.concat([frame] * 3, ignore_index=True)  # a name that occurs once is not a class
    texts = dict.fromkeys(frame[[*columns]].select_dtypes(exclude=["number", "bool"]), "nominal")
    recipe: dict[str, Any] = {"scaling": "minmax", "max_categories": max(2, len(frame)), "roles": texts}
    return trained(frame, ACTION, taught=False, **recipe | options)


def trained(
    data: Any,
    label: str = "",
    *,
    agent: str = "",
    settings: Mapping[str, Any] | None = None,
    best_of: str | os.PathLike[str] | None = None,
    other_table: bool = False,
    seed: int = 0,
    taught: bool = True,
    **table: Any,
) -> Parts:
    """Return the parts of a policy as `train` does; if not `taught`, fit the recipe but do not train the agent."""
    if not isinstance(data, str | os.PathLike):
        with tempfile.TemporaryDirectory() as folder:
            file = stored_table(data, Path(folder))
            table |= {"agent": agent, "settings": settings, "best_of": best_of, "other_table": other_table}
            return trained(file, label, seed=seed, taught=taught, **table)
    rule = checked(table.pop("unanswered", None), table.pop("after", None)) or Unanswered()
    floor = table.pop("floor", 0.0)
    at_least("seed", seed, 0)
    given = {name: value for name, value in table.items() if value is not None} | ({"label": label} if label else {})
    faults: list[str] = []
    against = None
    if best_of is not None:
        if agent or settings:
            faults.append("best_of (--best-of) determines agent and settings; leave out agent (--agent, --set)")
        try:
            against, (agent, settings) = Compared.of(Path(best_of), other_table), best_setting(Path(best_of))
        except UsageError as error:
            raise FaultyTableError([*faults, str(error)], "") from None
        given = against.recipe(Path(data)) | given
    given |= {"path": str(Path(data).absolute())}
    described = describe_environment(TABLE, given, str(data))
    surveyed(Path(data), given, against, faults, "train")
    rows = build_environment(described, rounds=1).unwrapped.n_rows
    env = build_environment(described, rounds=rows)
    table_ = env.unwrapped
    if table_.encoder is None:
        raise UsageError(f"{data}: a policy cannot be trained on a LIBSVM file that stays sparse; use another table")
    if against is not None:
        columns = {column.name: column.role for column in table_.encoder.columns}
        if another := against.differences(columns, list(map(str, table_.classes)), str(data)):
            raise another[0]
    if table_.per_features is not None and agent == CONTEXT_FREE:
        settings = {"per": table_.per_features, **(settings or {})}
    one_right = taught and not table_.several_right
    names = class_names(table_.classes)
    core = core_for(agent or AGENT, settings or {}, table_.problem, names, seed, one_right=one_right)
    core.set_floor(floor)
    played = play(env, core.agent, seed=seed, rounds=rows) if taught else None
    costs = table_.action_costs
    summary = {
        "content": described["identity"]["settings"]["content"],
        "label": given.get("label", ""),
        "classes": len(table_.classes),
        "several_right": table_.several_right,
        "costs": {} if costs is None else dict(zip(table_.classes, costs.mean(axis=0).tolist(), strict=True)),
        "mean_cost": played.diagnostics["mean_cost"][-1] if played and costs is not None else None,
    }
    counts = COUNTS
    if played is not None:
        counts = {"rows": rows} | {name: getattr(played, name)[-1] for name in COUNTS if name != "rows"}
    return Parts(os.urandom(16).hex(), table_.encoder, core, origin(core, seed, data, summary | counts), {}, rule)


def origin(core: Core, seed: int, file: str | os.PathLike[str], counts: dict[str, Any]) -> dict[str, Any]:
    """Return the provenance for a policy's file: counts, agent, training file, time and versions."""
    versions = {"banditlab": VERSION, "python": platform.python_version(), "numpy": np.__version__}
    made = counts | {
        "file": os.path.basename(file),
        "agent": core.agent.id,
        "settings": core.agent.params(),
        "seed": seed,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions | {"agent": core.agent.version},
        "machine": platform.machine(),
    }
    plain = json.loads(json.dumps(made), parse_constant=lambda _: None)  # infinite settings are None
    return Training(**plain).model_dump()


def core_for(
    id_: str, settings: Mapping[str, Any], known: Problem, names: Sequence[Name], seed: int, *, one_right: bool = False
) -> Core:
    """Return an untrained agent over named classes, for a problem with unknown horizon.

    `one_right`: whether exactly one action is right in a round, so with two actions a miss of one is a hit of the
    other.
    """
    if id_ == "stackcb" and len(names) == 2 and not one_right:
        settings = {"complement": False, **settings}
    problem = Problem(known.n_features, len(names), known.radius, None)
    described = describe_player("agents", id_, settings, f"agent {id_!r}")
    player = build_player(described, problem, generator_for(seed, "player", id_))
    if not isinstance(player, Agent):
        raise UsageError(f"{id_} observes the label after each round; a policy needs an agent that learns from one bit")
    return Core(player, names, generator_for(seed, "policy", player.id))


def summary_line(trained: Mapping[str, Any]) -> str:
    """Return one line on the result of the training."""
    n, K = trained["rows"], trained["classes"]
    share, expected = trained["mistakes"] / n, trained["expected_mistakes"] / n
    constant = "best single action" if trained["several_right"] else "most frequent class"
    cost = "" if trained["mean_cost"] is None else f"; mean cost {trained['mean_cost']:.4g}"
    return (
        f"{trained['agent']} on {trained['file']}: {n:,} rows in one pass, {trained['mistakes']:,} mistakes "
        f"({share:.1%}, expected {expected:.1%}); always the {constant}: {trained['constant_mistakes'] / n:.1%}; "
        f"by chance: {1 - 1 / K:.1%}{cost}"
    )


# ---------------------------------------------------------------------------------------------------------- the best of a sweep


def best_setting(folder: Path) -> tuple[str, dict[str, Any]]:
    """Return id and settings of the agent ranked first in a results folder, among those that learn from one bit.

    Raises
    ------
    UsageError
        The folder has no results, several environments, missing runs, or no finished run of an agent that learns from
        one bit.
    """
    from banditlab.analysis import load, summary_rows

    results = load(folder)
    if len(results.environments) > 1:
        raise UsageError(f"--best-of {folder}: {len(results.environments)} environments; a policy needs one table")
    if results.missing:
        raise UsageError(
            f"--best-of {folder}: {results.missing:,} of {results.planned:,} runs are missing; run the command that made the "
            "folder again"
        )
    first = next((row.label for row in summary_rows(results) if row.kind == "bit" and not row.constant), None)
    if first is None:
        raise UsageError(f"--best-of {folder}: no finished run of an agent that learns from one bit")
    runs = results.runs
    last = runs[(runs["round"] == results.last_round) & (runs["label"] == first)]
    names = [str(name) for name in last.columns if str(name).startswith("setting.")]
    groups = last.fillna(dict.fromkeys(names, "")).groupby(["player", *names], sort=True)["ranked"].mean()
    best: Any = groups.idxmin()
    player, *values = best if isinstance(best, tuple) else (best,)
    written = {name.removeprefix("setting."): value for name, value in zip(names, values, strict=True) if value != ""}
    return str(player), {name: _value(text) for name, text in written.items()}


def _value(text: str) -> Any:
    """Return a setting from its text in the results."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
