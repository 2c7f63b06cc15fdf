"""The sweep of a comparison over many tables. Each table is prepared as for a comparison on this table alone. Tables
with faults are left out.
"""

from __future__ import annotations

import fnmatch
import glob
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from banditlab.comparison._agents import NON_LINEAR, block_of, chosen_agents
from banditlab.comparison._earlier import with_earlier
from banditlab.comparison._sweep import built, plain_name, prepared
from banditlab.engine.describe import describe_environment
from banditlab.engine.spec import Block, Spec, make_spec
from banditlab.envs import files
from banditlab.errors import FaultyTableError, UsageError, nearest
from banditlab.problem import Problem
from banditlab.validation import at_least

OPENML = "banditlab/OpenML-v0"
PREFIX = "openml:"
SKIP = "skip"
OF_ALL = ("passes", "rounds", "repetitions", "agents", "out", "feedback", "change", "path")
"""Options that cannot be set for a single table."""


class Comparisons(NamedTuple):
    """A comparison over many tables that is ready to run."""

    spec: Spec
    faults: list[str]
    """The faults of the tables that are left out, each with the table's name."""
    n_faulty: int
    """Number of tables left out because of faults."""
    left_out: list[str]
    """Agents that are left out, each with the reason."""
    sentences: list[str]
    """Notes about the tables, each with the table's name."""


class _Prepared(NamedTuple):
    environment: dict[str, Any]
    agents: list[Block]
    left_out: list[str]
    sentences: list[str]
    rounds: int


def is_many(data: Sequence[Any]) -> bool:
    """Return whether `data` is more than one file: several files, a folder, a pattern, or ids of OpenML."""
    first = str(data[0])
    several = len(data) > 1 or Path(first).is_dir() or first.startswith(PREFIX)
    return several or (glob.has_magic(first) and not Path(first).exists())


def name_of_many(data: Sequence[Any]) -> str:
    """Return the name of a sweep over tables: that of the folder, or "tables"."""
    path = Path(str(data[0]))
    folder = path if path.is_dir() else path.parent
    return plain_name(folder.resolve()) if len(data) == 1 and not str(path).startswith(PREFIX) else "tables"


def tables_of(data: Sequence[Any]) -> list[str]:
    """Return, without duplicates, the files that folders and patterns contain (sorted), and the OpenML ids.

    Raises
    ------
    UsageError
        A folder or pattern has no table, or an id of OpenML is invalid.
    """
    found: dict[str, None] = {}
    for each in map(str, data):
        if each.startswith(PREFIX):
            numbers = each.removeprefix(PREFIX).split(",")
            if not all(number.isdecimal() for number in numbers):
                raise UsageError(f"{each}: must be ids of openml.org, such as {PREFIX}21,54")
            found |= dict.fromkeys(f"{PREFIX}{number}" for number in numbers)
            continue
        here = [each]
        if Path(each).is_dir():
            here = sorted(str(path) for path in Path(each).iterdir() if _is_table(path))
        elif glob.has_magic(each) and not Path(each).exists():
            here = sorted(filter(_is_table, glob.glob(each, recursive=True)))
        if not here:
            raise UsageError(
                f"{each}: no table found (a table is a file ending in {', '.join(files.SUFFIXES)}, "
                "optionally followed by .gz)"
            )
        found |= dict.fromkeys(here)
    return list(found)


def _is_table(path: str | Path) -> bool:
    here = Path(path)  # a broken link is reported with the faults
    return (here.is_file() or here.is_symlink()) and Path(
        str(path).removesuffix(".gz")
    ).suffix.lower() in files.SUFFIXES


def read_exceptions(path: Path | None) -> dict[str, Any]:
    """Return `families` (patterns by name) and `table` (settings by pattern) from a file of exceptions.

    Raises
    ------
    UsageError
        The file does not exist or is not TOML, or has an unknown key or an entry of the wrong type.
    """
    if path is None:
        return {"families": {}, "table": {}}
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"--exceptions {path}: {getattr(error, 'strerror', None) or f'not TOML: {error}'}") from None
    made = {"families": {}, "table": {}} | read
    for key in read:
        if key not in ("families", "table"):
            raise UsageError(f"--exceptions {path}: unknown key {key!r}{nearest(key, ('families', 'table'))}")
        if not isinstance(read[key], dict):
            raise UsageError(f"--exceptions {path}: {key} must be a table, such as [{key}], got {read[key]!r}")
    for name, value in made["families"].items():
        if not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            raise UsageError(
                f"--exceptions {path}: families.{name} must be a list of file names or patterns, got {value!r}"
            )
    for name, value in made["table"].items():
        if not isinstance(value, dict):
            raise UsageError(
                f"--exceptions {path}: table.{name} must be settings, such as {{ skip = true }}, got {value!r}"
            )
        for key in (key for key in value if key in OF_ALL):
            raise UsageError(f"--exceptions {path}: table.{name}: {key} cannot be set per table; use --{key}")
    return made


def prepared_many(
    data: Sequence[Any],
    label: str = "",
    *,
    passes: int | None = None,
    rounds: int | None = None,
    repetitions: int = 10,
    agents: str | Sequence[str] | None = None,
    out: Path | None = None,
    exceptions: str | Path | None = None,
    **table: Any,
) -> Comparisons:
    """Return the spec of a comparison over many tables, with messages about tables and agents.

    An agent is included if separate comparisons on each of the tables would all include it. (An agent for two classes
    only is included if there is a table with two classes.) There are no comparators. A run
    has `passes` passes over the rows, but at most `rounds` rounds.

    Parameters
    ----------
    data
        Files, folders, patterns, "openml:ID" or "openml:ID,ID".
    exceptions
        A TOML file. `[table."NAME"]` sets options for the tables whose file name matches NAME (`skip = true` leaves
        them out). `[families]` lists tables that together count as one in means. Names may be patterns.
    table
        Settings that apply to all tables, and the options `feedback` and `change`; see `comparison`.

    Raises
    ------
    UsageError
        All tables have faults, or a pattern of `exceptions` matches no table.
    """
    own = read_exceptions(None if exceptions is None else Path(exceptions))
    names = {source: source if source.startswith(PREFIX) else Path(source).name for source in tables_of(data)}
    for pattern in [*own["table"], *(each for patterns in own["families"].values() for each in patterns)]:
        if not fnmatch.filter(names.values(), pattern):
            raise UsageError(f"--exceptions {exceptions}: no table matches {pattern!r}")
    if agents not in (None, "all"):
        chosen_agents(agents, Problem(2, 2, 1.0))  # a wrong option is not a fault of the table
    passes = at_least("passes", 1 if passes is None else passes, 1)
    common = {"passes": passes, "repetitions": repetitions, "agents": agents}
    found, faults, n_faulty = _prepared_each(names, own["table"], {"label": label} | table, common)
    if not found:
        raise FaultyTableError(faults or [f"--exceptions {exceptions} leaves out all tables"], "")
    played, left_out = _common(list(found.values()))
    longest = max(each.rounds for each in found.values())
    keys = {
        "name": name_of_many(data),
        "rounds": longest if rounds is None else min(longest, at_least("rounds", rounds, 1)),
        "passes": passes,
        "repetitions": repetitions,
        "environment": [each.environment for each in found.values()],
        "agent": [block.model_dump() for block in played],
        "families": own["families"],
        "feedback": dict(table.get("feedback") or {}),
        "change": dict(table.get("change") or {}),
    }
    spec, stay = make_spec(keys, str(data[0])), list[str]()
    if out is not None:
        spec, stay = with_earlier(spec, out)
    said = [f"{names[source]}: {sentence}" for source, each in found.items() for sentence in each.sentences]
    return Comparisons(spec, faults, n_faulty, left_out, [*stay, *said])


def _prepared_each(
    names: dict[str, str], own: dict[str, dict[str, Any]], given: dict[str, Any], common: dict[str, Any]
) -> tuple[dict[str, _Prepared], list[str], int]:
    """Return the tables without faults by source, the faults of the others, and the number of these others."""
    found: dict[str, _Prepared] = {}
    faults: list[str] = []
    n_faulty, seen = 0, dict[str, str]()
    for source, name in names.items():
        settings = dict(given)
        for pattern, more in own.items():
            settings |= more if fnmatch.fnmatchcase(name, pattern) else {}
        if settings.pop(SKIP, False):
            continue
        try:
            made = (_prepared_openml if source.startswith(PREFIX) else _prepared)(source, settings, common)
            _refuse_known(made.environment, source, seen)
            found[source] = made
        except UsageError as error:
            faults, n_faulty = [*faults, *getattr(error, "faults", [str(error)])], n_faulty + 1
    return found, faults, n_faulty


def _prepared(source: str, settings: dict[str, Any], common: dict[str, Any]) -> _Prepared:
    made = prepared(Path(source), **common, **settings)
    [environment] = made.spec.environment
    return _Prepared(environment.model_dump(), made.spec.agent, made.left_out, made.sentences, made.spec.rounds)


def _prepared_openml(source: str, settings: dict[str, Any], common: dict[str, Any]) -> _Prepared:
    given = {name: value for name, value in settings.items() if value and name not in ("feedback", "change")}
    written = {"data_id": int(source.removeprefix(PREFIX)), **given}
    env = built(written, source, OPENML)
    blocks, left_out = chosen_agents(common["agents"], env.problem)
    rounds = common["passes"] * env.rows_per_pass
    return _Prepared({"id": OPENML, **written}, [Block(**block) for block in blocks], left_out, [], rounds)


def _refuse_known(environment: dict[str, Any], source: str, seen: dict[str, str]) -> None:
    """Record a table, or raise a UsageError if another table has the same name or the same content."""
    written = {name: value for name, value in environment.items() if name not in ("id", "grid")}
    identity = repr(describe_environment(environment["id"], written, source)["identity"])
    name = repr(Path(source).name)
    for key, what in ((identity, "the same table as"), (name, "has the same name as")):
        if key in seen:
            raise UsageError(f"{source}: {what} {seen[key]}")
    seen |= {identity: source, name: source}


def _common(found: list[_Prepared]) -> tuple[list[Block], list[str]]:
    """Return the agents that all tables have in common, and messages about agents that are left out.

    The agent for two classes only is kept; the plan of the sweep skips it on the other tables.
    """
    every = [block for each in found for block in each.agents]
    first = [block for i, block in enumerate(every) if block not in every[:i]]
    two_classes = Block(**block_of(NON_LINEAR))
    played, left_out = [], [line for line in found[0].left_out if all(line in each.left_out for each in found)]
    for block in first:
        lacking = sum(block not in each.agents for each in found)
        if not lacking or block == two_classes:
            played.append(block)
        else:
            left_out.append(f"{block.id}: not selected on {lacking} of {len(found)} tables (too large, or not needed)")
    return played, left_out
