"""What a results folder holds of an earlier comparison: the recipe that `train` goes on with, the agents that stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from banditlab.engine.plan import described_players, make_plan
from banditlab.engine.spec import Block, Spec, make_spec
from banditlab.envs import files
from banditlab.envs.table import Table
from banditlab.errors import FaultError, UsageError
from banditlab.results.reading import finished_runs, read_plan, read_spec

OF_A_FILE = ("format", "encoding", "separator", "header", "decimal", "thousands", "comments")
"""Settings that say how a file is written: another file of the same table may be written otherwise."""
SHOWN = 5
"""Names of columns or classes that a message lists."""
DEFAULTS = {name: parameter.default for name, parameter in Table.own_settings().items()}


class Compared(NamedTuple):
    """The recipe of a comparison and the table that it was of."""

    folder: Path
    settings: dict[str, Any]
    """Of the table environment, as they were given, without the path."""
    content: str
    """The hash of the file."""
    columns: dict[str, str]
    """The role of each feature column, by name."""
    classes: list[str]
    any_table: bool
    """Whether another table, and options that contradict the recipe, are meant."""

    @classmethod
    def of(cls, folder: Path, any_table: bool = False) -> Compared:
        """Return the comparison in a results folder.

        Raises
        ------
        UsageError
            No results folder, or one of other environments than one table with columns.
        """
        spec, tables = _spec(folder), list(read_plan(folder)["tables"].values())
        if len(tables) != 1 or len(spec.environment) != 1 or not tables[0]["columns"]:
            raise UsageError(f"--best-of {folder}: must hold the comparison of one table that has columns")
        settings = {name: value for name, value in next(spec.environment[0].written()).items() if name != "path"}
        return cls(folder, settings, **tables[0], any_table=any_table)

    def joined(self, given: dict[str, Any], data: Path) -> tuple[dict[str, Any], list[str]]:
        """Return the recipe joined with settings given for a file, and a sentence on each that contradicts it.

        Numbers of rows are those of one file. Roles, and columns to leave out, add to the recipe's.
        """
        same = files.content_hash(files.read_bytes(str(data))) == self.content
        joined = {name: value for name, value in self.settings.items() if same or name != "drop_rows"}
        faults = []
        for name, value in given.items():
            was = joined.get(name, DEFAULTS[name])
            free = (name in OF_A_FILE and (not same or was == "auto")) or (name, was) == ("missing", "error")
            if isinstance(value, list):
                value, free = list(dict.fromkeys([*(was or ()), *value])), True
            elif isinstance(value, dict):
                old = was or {}
                value, free = old | value, all(value.get(key, role) == role for key, role in old.items())
            if free or value == was or self.any_table:
                joined[name] = value
            else:
                asked = f"{name} ({option(name, given[name])}) {given[name]!r}"
                faults.append(
                    f"{asked}: the comparison in {self.folder} had {was!r}; leave it out, or say --other-table"
                )
        return joined, faults

    def beyond(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return of settings what the recipe does not have."""
        found = {name: value for name, value in settings.items() if value != self.settings.get(name)}
        for name, value in found.items():
            was = self.settings.get(name) or ()
            if isinstance(value, list):
                found[name] = [each for each in value if each not in was]
            elif isinstance(value, dict):
                found[name] = {key: each for key, each in value.items() if key not in was}
        return found

    def within(self, settings: dict[str, Any], names: list[str]) -> dict[str, Any]:
        """Return settings without the recipe's columns to leave out that a table with columns of these names does not have."""
        ours = set(self.settings.get("drop_columns", ())) - set(names)
        drop = [name for name in settings.get("drop_columns", ()) if name not in ours]
        return settings | ({"drop_columns": drop} if ours else {})

    def differences(self, columns: dict[str, str], classes: list[str], source: str) -> list[FaultError]:
        """Return one fault where feature columns (roles by name, "" for one without) or classes are not those compared."""
        more = [name for name in columns if name not in self.columns]
        roles = [name for name, role in self.columns.items() if columns.get(name, "") not in ("", role)]
        said = _lists("it has no", "column", [name for name in self.columns if name not in columns])
        said += [f"column {name!r} is {columns[name]}, not {self.columns[name]}" for name in roles[:SHOWN]]
        said += _lists("it has no", "class", [name for name in self.classes if classes and name not in classes])
        said += _lists("new is", "class", [name for name in classes if name not in self.classes])
        mends = [] if said else [word for name in more for word in ("--drop-column", name)]
        said += _lists("new is", "column", more)
        if self.any_table or not said:
            return []
        told = f"{source}: not the table that {self.folder} compared ({'; '.join(said)})"
        return [FaultError(f"{told}; --other-table trains on it all the same", *mends)]


def _lists(what: str, kind: str, names: list[str]) -> list[str]:
    shown = ", ".join(map(repr, names[:SHOWN])) + ", ..." * (len(names) > SHOWN)
    return [f"{what} {kind} {shown}"] if names else []


def option(name: str, value: Any) -> str:
    """Return the option of a table's setting: of a list or roles that of one entry."""
    return "--" + (name[:-1] if isinstance(value, dict | list) and name != "na_values" else name).replace("_", "-")


def with_earlier(spec: Spec, folder: Path) -> tuple[Spec, list[str]]:
    """Return the spec of a comparison with the agents that a folder has of an earlier one, and what is to be said of them.

    An agent stays where the folder holds all of its runs on the table, recipe and streams of the spec.
    """
    if not (folder / "runs.json").exists():
        return spec, []
    try:
        tables, earlier = read_plan(folder)["tables"], _spec(folder)
        now = [description for description, *_ in described_players(spec, str(folder))]
        others = [
            (label, Block(id=description["id"], **written))
            for description, written, label in described_players(earlier, str(folder))
            if description["kind"] == "agents" and description not in now
        ]
    except UsageError as error:
        return spec, [f"no agents of an earlier comparison are kept: {error}"]
    if not others:
        return spec, []
    plan = make_plan(spec.model_copy(update={"agent": [point for _, point in others]}))
    finished = finished_runs(folder)
    lacking = {run.label for run in plan.runs if run.run_id not in finished}
    kept = {run.label for run in plan.runs} - lacking
    said = [f"of the earlier comparison in {folder} stay: {', '.join(sorted(kept))}"] if kept else []
    if lacking:
        why = _changes(earlier, spec, tables, plan.tables) or "runs of theirs are not finished"
        said.append(f"of the earlier comparison in {folder} are not kept: {', '.join(sorted(lacking))} ({why})")
    points = [point for label, point in others if label in kept]
    return spec.model_copy(update={"agent": [*spec.agent, *points]}), said


def _spec(folder: Path) -> Spec:
    written = {name: value for name, value in read_spec(folder).items() if name in Spec.model_fields}
    return make_spec(written, str(folder / "spec.toml"))


def _changes(earlier: Spec, spec: Spec, tables: dict[str, Any], now: dict[str, Any]) -> str:
    """Return in what a comparison differs from an earlier one, "" where agents alone may."""
    old, new = (_facts(each) for each in (earlier, spec))
    names = [name for name in (*old, *new) if old.get(name, DEFAULTS.get(name)) != new.get(name, DEFAULTS.get(name))]
    said = [f"{name} was {old.get(name)}, is {new.get(name)}" for name in dict.fromkeys(names)]
    if [table["content"] for table in tables.values()] != [table["content"] for table in now.values()]:
        said.insert(0, "the file's content is another")
    if spec.repetitions > earlier.repetitions:
        said.append(f"repetitions were {earlier.repetitions}, are {spec.repetitions}")
    return "; ".join(said[:SHOWN])


def _facts(spec: Spec) -> dict[str, Any]:
    """Return what runs on one table depend on beside agent and content."""
    facts = {name: value for each in spec.environment for name, value in each.model_dump().items() if name != "path"}
    return facts | {name: getattr(spec, name) for name in ("rounds", "base_seed", "horizon_known")}
