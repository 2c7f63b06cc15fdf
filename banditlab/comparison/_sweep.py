"""The sweep of a comparison, and `compare`, which runs it and reads the results."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from banditlab.comparison._agents import CONTEXT_FREE, chosen_agents
from banditlab.comparison._earlier import Compared, with_earlier
from banditlab.comparison._faults import refuse_faults
from banditlab.engine.describe import build_environment, describe_environment
from banditlab.engine.spec import Spec, make_spec
from banditlab.envs import files
from banditlab.envs.survey import Survey, about_classes, survey
from banditlab.envs.table import COPIES, ReadFrame, Reading, read_frame
from banditlab.errors import FaultError, FaultyTableError, UsageError
from banditlab.numerics.sparse_rows import MOST_DENSE
from banditlab.validation import at_least

if TYPE_CHECKING:
    from banditlab.analysis import Results

TABLE = "banditlab/Table-v0"


class Comparison(NamedTuple):
    """A comparison that is ready to run, with lines about its table and its agents."""

    spec: Spec
    survey: Survey | None
    """The survey of the table, or None for a LIBSVM file, whose columns have no names, and for a table of arms."""
    left_out: list[str]
    """Agents that are left out, each with the reason."""
    sentences: list[str]
    """Notes about the file and the classes."""
    classes: dict[Any, int]
    """For each class, the number of rows in which it is right."""
    n_rows: int


def compare(
    data: Any,
    label: str = "",
    *,
    out: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    **options: Any,
) -> Results:
    """Rank agents and exploration rates on your own table, as `banditlab compare` does, and return the results.

    Parameters
    ----------
    data
        A file, or a table in memory: a pandas DataFrame, a pyarrow Table or an object with Arrow data (polars). A table
        in memory is first written to `table.parquet` in the results folder. Several tables: a list of files, a folder,
        a pattern, or "openml:ID,ID". Tables with faults are left out, with a warning for each.
    label
        The column to predict.
    out
        The results folder. The default is that of the command line, runs/results/NAME or results/NAME, with NAME
        "table" for a table in memory. Finished runs of the same comparison in the folder are not repeated, and its
        other agents are included in the ranking. The report of another comparison is moved to the subfolder `earlier`.
    jobs
        Number of worker processes; with 1, runs are executed in this process.
    options
        `passes`, `rounds`, `repetitions` (10), `agents`, and the settings of the table environment: see `comparison`.
        With several tables also `exceptions`, a file of settings for single tables.

    Returns
    -------
    Results
        The results: `banditlab.analysis.summary_rows` ranks them, `banditlab.write_report(results.out)` writes the
        report.

    Raises
    ------
    UsageError
        The file or the column does not exist; the table cannot be read as features and labels (the message lists all
        faults); both `passes` and `rounds` are given; or the folder cannot be written.
    """
    from banditlab.analysis import load
    from banditlab.comparison._many import is_many, name_of_many, prepared_many
    from banditlab.engine.sweep import Sweep

    sources = data if isinstance(data, list | tuple) else [data]
    if all(isinstance(each, str | os.PathLike) for each in sources) and is_many(sources):
        folder = default_folder(name_of_many(sources)) if out is None else Path(out)
        made = prepared_many(sources, label, out=folder, **options)
        for fault in made.faults:
            warnings.warn(f"left out: {fault}", stacklevel=2)
        Sweep(made.spec, where=str(sources[0])).run(folder, jobs=jobs)
        return load(folder)
    path = Path(data) if isinstance(data, str | os.PathLike) else None
    folder = default_folder("table" if path is None else plain_name(path)) if out is None else Path(out)
    path = path or files.stored_table(data, folder)
    spec = prepared(path, label, out=folder, **options).spec
    Sweep(spec, where=str(path)).run(folder, jobs=jobs)
    return load(folder)


def default_folder(name: str) -> Path:
    """Return the default results folder: runs/results/<name> in a lab (a folder with your own agents and environments),
    otherwise ./results/<name>.
    """
    return Path("runs/results") / name if Path("runs").is_dir() else Path("results") / name


def comparison(data: Path, label: str, **options: Any) -> Spec:
    """Return the spec of a comparison; it has no comparators if rows are sparse and too long to be stored densely.

    Parameters
    ----------
    data, label
        The file and the column to predict ("" for a LIBSVM file, which has its own labels).
    passes
        Number of passes of each run over all n rows, each in a new order; 1 by default. The ranking uses only the first
        pass, because agents may remember rows of earlier passes.
    rounds
        Number of rounds per run instead of n times `passes`; with fewer than n, some rows are left out.
    repetitions
        Number of runs of each agent and setting, each with its own order of the rows.
    agents
        Ids, "all", or None for the recommended agents: see `chosen_agents`.
    feedback, change
        The settings of a spec's `[feedback]` and `[change]`.
    table
        Settings of the table environment; a setting that is None has its default value.

    Raises
    ------
    UsageError
        The file or the column does not exist; the table cannot be read as features and labels (the message lists all
        faults); or both `passes` and `rounds` are given.
    """
    return prepared(data, label, **options).spec


def prepared(
    data: Path,
    label: str = "",
    *,
    passes: int | None = None,
    rounds: int | None = None,
    repetitions: int = 10,
    agents: str | Sequence[str] | None = None,
    out: Path | None = None,
    feedback: Mapping[str, Any] | None = None,
    change: Mapping[str, Any] | None = None,
    **table: Any,
) -> Comparison:
    """Return the spec of a comparison with lines about its table and agents; see `comparison`.

    The agents of an earlier comparison in the results folder `out` are included if the table and the settings are the
    same.
    """
    if passes is not None and rounds is not None:
        raise UsageError(f"{data}: --passes and --rounds both set the number of rounds; give one of them")
    passes = 1 if passes is None else at_least("passes", passes, 1)
    settings = {name: value for name, value in table.items() if value is not None}
    settings |= {"path": str(data.absolute())} | ({"label": label} if label else {})
    with contextlib.suppress(FaultError):  # an encoding error is reported with the other faults
        describe_environment(TABLE, settings, str(data))
    found, sentences = surveyed(data, settings)
    env = built(settings, str(data))
    if not settings.get("group") and not env.sparse:
        alike = built(settings | {"group": COPIES}, str(data))
        if alike.row_units is not None:
            settings, env = settings | {"group": COPIES}, alike
            sentences = [_about_copies(env.row_units), *sentences]
    sentences += [
        *_about_order(env, found),
        *(_about_arms(env) if env.several_right else about_classes(env.class_counts)),
    ]
    problem, n = env.problem, env.n_rows
    # The comparator needs dense rows with one label each.
    uncompared = env.several_right or (env.sparse and problem.n_features > MOST_DENSE)
    players, left_out = chosen_agents(agents, problem, several_right=env.several_right)
    if env.per_features and any(player["id"] == CONTEXT_FREE for player in players):
        players.append({"id": CONTEXT_FREE, "per": env.per_features})
    spec = make_spec(
        {
            "name": plain_name(data),
            "rounds": passes * n if rounds is None else rounds,
            "repetitions": repetitions,
            "norm_bounds": [] if uncompared else [10.0],
            "environment": [{"id": TABLE, **settings}],
            "agent": players,
            "feedback": dict(feedback or {}),
            "change": dict(change or {}),
        },
        str(data),
    )
    spec, stay = (spec, []) if out is None else with_earlier(spec, out)
    return Comparison(spec, found, left_out, [*sentences, *stay], env.class_counts, n)


def built(settings: dict[str, Any], source: str, id_: str = TABLE) -> Any:
    """Return the environment of a table."""
    return build_environment(describe_environment(id_, settings, source), rounds=1).unwrapped


def _about_arms(table: Any) -> list[str]:
    right = table.ranked_rows.y
    shares = right.mean(axis=0)
    best = table.classes[shares.argmax()]
    return [
        f"several actions may be right in a row: {best!r} is right in {shares.max():.1%} of the rows, and some action is right "
        f"in {right.any(axis=1).mean():.1%}; there are no bounds, because theorems assume one right action"
    ]


def _about_copies(units: Any) -> str:
    n, distinct = len(units), int(units.max()) + 1
    found = f"{n - distinct:,} of {n:,} rows are copies or near copies of others"
    used = f"the ranking uses the first row of each set of copies, {distinct:,} rows"
    return f"{found}; {used}; --group COLUMN uses the groups of a column instead"


def _about_order(table: Any, found: Survey | None) -> list[str]:
    times = [note.name for note in (found.notes if found else []) if note.role in ("time", "time-like")]
    said = [
        f"column {name!r} looks like a time: --order {shlex.quote(f'time:{name}')} sorts the rows by it"
        for name in times
    ]
    if table.looks_ordered and not table.in_order:
        said.append(
            "neighbouring rows of the file are similar, so agents can learn from them if rows are shuffled; "
            "--order file does not shuffle"
        )
    if table.follows_time:
        said.append("the labels may depend on time only, so no difference between agents is called significant")
    return said


def surveyed(
    data: Path,
    settings: dict[str, Any],
    against: Compared | None = None,
    others: Sequence[str] = (),
    verb: str = "compare",
) -> tuple[Survey | None, list[str]]:
    """Return the survey of a table, and the properties detected from its file.

    `against` is the earlier comparison from which some of the settings come, `others` are faults of the request, and
    `verb` is the name of the command.

    Raises
    ------
    FaultyTableError
        The table or the request has faults; the error lists all of them.
    UsageError
        The file cannot be read.
    """
    path = settings["path"]
    format_ = files.format_of(path, settings.get("format", "auto"))
    if format_ == "libsvm" or settings.get("arms"):
        if others:
            raise FaultyTableError(others, "")
        return None, []
    data_ = files.read_bytes(path)
    read: list[ReadFrame] = []

    def look(settings: dict[str, Any]) -> Survey:
        label = settings.get("label", "")
        encoding, separator, header = (settings.get(name, "auto") for name in ("encoding", "separator", "header"))
        codes = tuple(settings.get("na_values") or ())
        reading = Reading(settings.get("decimal", "."), settings.get("thousands", ""), codes)
        rows = {name: settings.get(name) or () for name in ("comments", "drop_rows")}
        try:
            content = files.content_of(str(data), data_, format_, encoding)
            found = read_frame(str(data), content, format_, separator, header, reading, **rows, label=label)
        except FaultError as fault:  # without a table there are no other faults
            return Survey([], [fault], [])
        read.append(found)
        kept = {
            name: settings[name]
            for name in ("roles", "drop_columns", "text", "max_categories", "missing")
            if name in settings
        }
        no_features = {settings.get("group"), str(settings.get("order")).partition("time:")[2]}
        kept["drop_columns"] = [*(kept.get("drop_columns") or ()), *(no_features & set(found.frame.columns))]
        seen = survey(found.frame, label, **kept, source=str(data))
        columns = seen.columns | dict.fromkeys(settings.get("text") or (), "text")
        another = [] if against is None else against.differences(columns, list(map(str, seen.classes)), str(data))
        return seen._replace(faults=[*found.faults, *seen.faults, *another])

    given = {name: value for name, value in settings.items() if name != "path"}
    found = refuse_faults(look, str(data), given, against, others, verb)
    return found, _about_file(read[-1], settings)


def _about_file(read: ReadFrame, settings: dict[str, Any]) -> list[str]:
    if read.header != "no" or settings.get("header", "auto") != "auto":
        return []
    return [
        "the first line looks like the others, so it is read as a row, and columns are named 0, 1, ...; with --header it "
        "is read as the names of the columns"
    ]


def plain_name(data: Path) -> str:
    """Return a file's name without extensions, as a name for a sweep and a folder: "my table.csv.gz" gives
    "my-table".
    """
    name = unicodedata.normalize("NFC", data.name).removesuffix(".gz")
    stem, dot, ending = name.rpartition(".")
    if f"{dot}{ending}".lower() in files.SUFFIXES:
        name = stem
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.+") or "table"
