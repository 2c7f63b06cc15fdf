"""The keys of a spec file, which is read with tomllib and validated by pydantic."""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from banditlab.errors import UsageError, nearest
from banditlab.validation import RUNS, refuse_beyond

Norm = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Settings(BaseModel):
    """Settings and a grid of settings, for `[feedback]` and `[change]`."""

    model_config = ConfigDict(extra="allow")
    grid: dict[str, list[Any]] = {}

    @field_validator("grid", mode="before")
    @classmethod
    def _lists(cls, grid: Any) -> Any:
        for name, values in grid.items() if isinstance(grid, dict) else ():
            if not isinstance(values, list):
                raise ValueError(f"grid.{name} must be a list of values, for instance [{values!r}]")
            if not values:
                raise ValueError(f"grid.{name} is an empty list; give at least one value")
        return grid

    def points(self) -> int:
        """Return the number of points of the grid."""
        return math.prod(map(len, self.grid.values()))

    def written(self) -> Iterator[dict[str, Any]]:
        """Yield the settings of every point of the grid, as written by the user."""
        fixed = dict(self.model_extra or {})
        clash = sorted(set(fixed) & set(self.grid))
        if clash:
            block = f"{self.id!r}: " if isinstance(self, Block) else ""
            raise UsageError(f"{block}{clash[0]!r} is given twice, in the block and in its grid")
        for values in itertools.product(*self.grid.values()):
            yield fixed | dict(zip(self.grid, values, strict=True))


class Block(Settings):
    """One `[[agent]]`, `[[forecaster]]`, `[[booster]]` or `[[environment]]`: an id, settings, and a grid of settings."""

    id: str


class Spec(BaseModel):
    """A sweep: environments x players x repetitions.

    Attributes are the keys of a spec file. `name` names the results folder, and all seeds are derived from `base_seed`.
    `environment`, `agent`, `forecaster` and `booster` are lists of blocks, each an id with settings. `checkpoints` is
    "log" (1, 2, 5 times powers of ten, plus the last round) or a list of rounds. `norm_bounds` are the norm bounds of
    the comparators. `horizon_known = false` hides the number of rounds from the players, so players with "theory"
    settings that need it are skipped, and the reason is reported.

    `run_timeout` is the number of seconds after which a run is ended as a failure, or 0 for no limit. The default is an
    hour for players and environments of labs (project folders) and plug-ins, and no limit for all other runs.
    Compilation of the package's own kernels does not count. Runs that differ only in `run_timeout` have the same id.
    `feedback` determines when the agents' bits arrive, whether they arrive, and which are wrong (`engine.feedback`).
    `change` determines how labels change during an episode (`envs.change`). `passes` limits runs over a data set to
    this number of passes over its rows. `families` are groups of data sets that count as one in a mean over data sets,
    each with a name and patterns such as "fri-*.csv" for the short names of its data sets.
    """

    model_config = ConfigDict(extra="forbid")

    name: str = "sweep"
    rounds: int = Field(ge=1)
    passes: int | None = Field(default=None, ge=1)
    repetitions: int = Field(default=1, ge=1)
    base_seed: int = Field(default=0, ge=0)
    checkpoints: Literal["log"] | list[Annotated[int, Field(ge=1)]] = "log"
    norm_bounds: list[Norm] = []
    horizon_known: bool = True
    run_timeout: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    environment: list[Block] = Field(min_length=1)
    agent: list[Block] = []
    forecaster: list[Block] = []
    booster: list[Block] = []
    feedback: Settings = Settings()
    change: Settings = Settings()
    families: dict[str, list[str]] = {}

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if not re.fullmatch(r"[\w][\w.+-]*", name):
            raise ValueError(
                "may contain only letters, digits and the characters . + - _, because it names the results folder"
            )
        return name

    @model_validator(mode="after")
    def _checkpoints_within(self) -> Spec:
        if self.checkpoints != "log" and max(self.checkpoints, default=0) > self.rounds:
            raise ValueError(f"checkpoints: {max(self.checkpoints)} is beyond rounds = {self.rounds}")
        return self

    def checkpoint_rounds(self, rounds: int | None = None) -> list[int]:
        """Return, in increasing order, the rounds at which a run of this length stores a row, including the last round."""
        rounds = self.rounds if rounds is None else rounds
        if self.checkpoints == "log":
            scale = [m * 10**e for e in range(len(str(rounds))) for m in (1, 2, 5)]
        else:
            scale = list(self.checkpoints)
        return sorted({r for r in scale if r < rounds} | {rounds})

    def size(self) -> int:
        """Return the number of runs of the sweep, counting every point of its grids."""
        environments = sum(block.points() for block in self.environment) * self.feedback.points() * self.change.points()
        return environments * sum(block.points() for _, block in self.players()) * self.repetitions

    def players(self) -> list[tuple[str, Block]]:
        """Return ("agents", "forecasters" or "boosters", block) for every player block, by kind, then in the file's order."""
        kinds = {"agents": self.agent, "forecasters": self.forecaster, "boosters": self.booster}
        return [(kind, block) for kind, blocks in kinds.items() for block in blocks]


def read_spec(path: str | Path, overrides: list[str] | None = None) -> Spec:
    """Return the validated `Spec` of a spec file.

    Parameters
    ----------
    path
        A TOML file; paths in its environments are relative to its folder.
    overrides
        Strings "key=value" that replace values of the file, with dotted keys ("agent.0.gamma=0.1"); the value is read
        as TOML.

    Raises
    ------
    UsageError
        The file does not exist or is not TOML, a key is unknown, or a value is out of range; the message names file and
        key.
    """
    path = Path(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not TOML: {error}") from None
    for written_by_a_run in ("store", "versions"):  # allows running the spec.toml of a results folder
        data.pop(written_by_a_run, None)
    for override in overrides or []:
        _override(data, override)
    for block in data.get("environment", []) if isinstance(data.get("environment"), list) else []:
        _anchor(block, path.parent)
    return make_spec(data, str(path))


def make_spec(data: dict[str, Any], where: str) -> Spec:
    """Return plain data as a validated `Spec`.

    Parameters
    ----------
    data
        The content of a spec file, as a dictionary.
    where
        Prefix of errors, for instance the file.

    Raises
    ------
    UsageError
        A key is unknown, or a value is out of range; the message names the key and what is allowed.
    """
    try:
        spec = Spec.model_validate(data)
    except ValidationError as failure:
        raise UsageError(f"{where}: {_first_error(failure)}") from None
    if not spec.players():
        raise UsageError(f"{where}: nothing to run; add an [[agent]], [[forecaster]] or [[booster]] block with an id")
    runs = spec.size()
    refuse_beyond(
        RUNS, runs, f"{where}: the sweep has {runs:,} runs (grids multiplied out, {spec.repetitions:,} repetitions)"
    )
    return spec


def _first_error(failure: ValidationError) -> str:
    error = min(failure.errors(), key=lambda e: e["type"] != "extra_forbidden")  # misspelt keys before missing ones
    key = ".".join(str(part) for part in error["loc"] if not str(part).startswith(("literal[", "list[")))
    if error["type"] == "extra_forbidden":
        return f"unknown key {key!r}{nearest(key, Spec.model_fields)}"
    if error["type"] == "missing":
        return f"the key {key!r} is missing"
    message = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    if key == "checkpoints" or key.startswith("checkpoints."):
        message = 'must be "log" or a list of rounds, each at least 1'
    if not key:
        return message
    shown = "" if isinstance(error["input"], dict) else f" = {error['input']!r}"
    return f"{key}{shown}: {message[0].lower()}{message[1:]}"


def _override(data: dict[str, Any], text: str) -> None:
    [(key, parsed)] = settings_of([text]).items()
    place: Any = data
    *inner, last = key.split(".")
    for depth, part in enumerate([*inner, last]):
        step: Any = part
        if isinstance(place, list):
            if not (part.isdigit() and int(part) < len(place)):
                raise UsageError(f"--set {text}: {part!r} is not an index of a list of length {len(place)}")
            step = int(part)
        elif not isinstance(place, dict):
            raise UsageError(f"--set {text}: {part!r} has no parts")
        if depth == len(inner):
            place[step] = parsed
        else:
            place = place[step] if isinstance(place, list) else place.setdefault(part, {})


def settings_of(written: Iterable[str], option: str = "--set") -> dict[str, Any]:
    """Return the settings of an option from strings key=value. A value that is not TOML is a string."""
    found: dict[str, Any] = {}
    for text in written:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{option} {text}: must be key=value")
        try:
            found[key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[key.strip()] = value.strip()
    return found


def _anchor(block: Any, folder: Path) -> None:
    """Make a data file's relative path absolute: relative to the spec's folder if it exists there, else to the working
    folder.
    """

    def absolute(path: Any) -> Any:
        if not isinstance(path, str):
            return path
        return str((folder / path if (folder / path).exists() else Path(path)).absolute())

    if isinstance(block, dict) and "path" in block:
        block["path"] = absolute(block["path"])
    if isinstance(block, dict) and isinstance(block.get("grid"), dict) and isinstance(block["grid"].get("path"), list):
        block["grid"]["path"] = [absolute(path) for path in block["grid"]["path"]]
