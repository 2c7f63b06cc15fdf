"""The earlier comparison in a results folder: its settings, which `train` uses, and its agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from banditlab.engine.plan import described_players, make_plan
from banditlab.engine.spec import Block, Spec, make_spec
from banditlab.envs import files
from banditlab.errors import FaultError, UsageError
from banditlab.results.reading import finished_runs, read_plan, read_spec

SHOWN = 5
"""The largest number of columns and classes in a message."""


class Compared(NamedTuple):
    """The settings and the table of a comparison."""

    folder: Path
    settings: dict[str, Any]
    """The settings of the table environment as given, without the path."""
    content: str
    """The hash of the file."""
    columns: dict[str, str]
    """The role of each feature column, by name."""
    classes: list[str]
    any_table: bool
    """Whether another table is allowed."""

    @classmethod
    def of(cls, folder: Path, any_table: bool) -> Compared:
        """Return the comparison in a results folder.

        Raises
        ------
        UsageError
            The folder is not a results folder, or its sweep is not a comparison on one table with named columns.
        """
        spec, tables = _spec(folder), list(read_plan(folder)["tables"].values())
        if len(tables) != 1 or len(spec.environment) != 1 or not tables[0]["columns"]:
            raise UsageError(f"--best-of {folder}: must be a comparison on one table with named columns")
        settings = {name: value for name, value in next(spec.environment[0].written()).items() if name != "path"}
        return cls(folder, settings, **tables[0], any_table=any_table)

    def recipe(self, data: Path) -> dict[str, Any]:
        """Return the table settings of the comparison; `drop_rows` is included only if `data` is the same file."""
        same = files.content_hash(files.read_bytes(str(data))) == self.content
        return {name: value for name, value in self.settings.items() if same or name != "drop_rows"}

    def differences(self, columns: dict[str, str], classes: list[str], source: str) -> list[FaultError]:
        """Return one fault if the feature columns (roles by name, "" without a role) or the classes differ from those
        of the comparison.
        """
        new = [name for name in columns if name not in self.columns]
        other = [f"column {name!r}" for name, role in self.columns.items() if columns.get(name) not in ("", role)]
        other += [f"class {name!r}" for name in sorted({*classes} ^ {*self.classes}) if classes]
        said = [*other, *(f"column {name!r}" for name in new)]
        if self.any_table or not said:
            return []
        shown = ", ".join(said[:SHOWN]) + ", ..." * (len(said) > SHOWN)
        return [
            FaultError(
                f"{source}: not the table of the comparison in {self.folder} ({shown}: only in one of the two, or with "
                "another role); --other-table allows another table",
                *(word for name in new if not other for word in ("--drop-column", name)),
            )
        ]


def with_earlier(spec: Spec, folder: Path) -> tuple[Spec, list[str]]:
    """Return the spec of a comparison with the agents of an earlier one in a folder, and messages about them.

    An agent is included if the folder contains all of its runs for the table, settings and streams of the spec.
    """
    if not (folder / "runs.json").exists():
        return spec, []
    try:
        now = [description for description, *_ in described_players(spec, str(folder))]
        others = [
            (label, Block(id=description["id"], **written))
            for description, written, label in described_players(_spec(folder), str(folder))
            if description["kind"] == "agents" and description not in now
        ]
    except UsageError as error:
        return spec, [f"agents of the earlier comparison are not included: {error}"]
    if not others:
        return spec, []
    runs = make_plan(spec.model_copy(update={"agent": [point for _, point in others]})).runs
    finished = finished_runs(folder)
    lacking = {run.label for run in runs if run.run_id not in finished}
    kept = {run.label for run in runs} - lacking
    said = [f"agents included from the earlier comparison in {folder}: {', '.join(sorted(kept))}"] if kept else []
    if lacking:
        why = "some of their runs on this table with these settings are missing"
        said.append(
            f"agents not included from the earlier comparison in {folder}: {', '.join(sorted(lacking))} ({why})"
        )
    points = [point for label, point in others if label in kept]
    return spec.model_copy(update={"agent": [*spec.agent, *points]}), said


def _spec(folder: Path) -> Spec:
    written = {name: value for name, value in read_spec(folder).items() if name in Spec.model_fields}
    return make_spec(written, str(folder / "spec.toml"))
