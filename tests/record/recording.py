"""What the package computes today, as rows of text: the record that a restructuring must leave as it is.

A unit is one thing to run: a player on a stream, a sweep, an environment, an estimator, a comparator. It leaves a row
for each door it goes through. `runs.csv` holds the rows, `machine.json` the machines on which they were made, `cases.py`
says what there is to run. Record some players again, after a change of their numbers that is meant, by

    python -m tests.record.recording --only fastcb,linucb

in the root of the repository (or by this file's path). It says which rows it wrote. Nothing else writes the table.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
if __name__ == "__main__" and str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # run by path: the package beside it, not another that is installed

# Everything of the package that is used here, by public names only: the one place to change where modules move.
from banditlab.analysis.tables import load as load_results  # noqa: E402
from banditlab.comparators import best_in_ball, best_in_frobenius_ball, collapse, comparators_along  # noqa: E402
from banditlab.engine import Sweep, make_spec, play  # noqa: E402
from banditlab.estimator import OnlineClassifier  # noqa: E402
from banditlab.registry import KINDS, Registry, registry  # noqa: E402

COMMAND_LINE = "banditlab"
"""The package whose `python -m` is the command line."""
TABLE, MACHINES = HERE / "runs.csv", HERE / "machine.json"
CASES = runpy.run_path(str(HERE / "cases.py"))
STREAMS = CASES["STREAMS"]
DATA_HOME = "BANDITLAB_DATA_HOME"
RELATIVE = 1e-9
"""How far sums may be apart on another machine, along the same actions."""
CUT, BY_CUT = "forecasters:kernel-", 1e-6
"""Players that keep a span of contexts up to their `tolerance`, 1e-6, and how far their sums may be apart: what is left of a
context that lies in the span nearly is rounding, of the root of its square's."""
SPLIT = 0.1
"""How far counts may be apart there, as a share of all rounds, once a last bit has turned an action over."""

LOOSE = 1e-3
"""A certified gap of more than this share of a loss: how far the solver came hangs on last bits, and only the gap binds."""

Settings = dict[str, Any]


# ---------------------------------------------------------------------------------------------------------------- rows


@dataclass
class Row:
    """What one door showed. Every value is text: numbers are whole or `float.hex`.

    `fixed` is the same on every machine (ids, seeds, settings), `counts` are whole numbers (mistakes), `hashes` are of
    arrays to the last bit, `sums` are numbers. `rounds` is 0 where nothing was played.
    """

    name: str
    rounds: int = 0
    players: str = ""
    libraries: str = ""
    machine: str = ""
    fixed: dict[str, str] = field(default_factory=dict)
    counts: dict[str, str] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    sums: dict[str, str] = field(default_factory=dict)

    @property
    def door(self) -> str:
        """The first part of the name."""
        return self.name.partition("/")[0]


TEXTS = ("name", "rounds", "players", "libraries", "machine")
PARTS = ("fixed", "counts", "hashes", "sums")


def read_rows(file: Path = TABLE) -> dict[str, Row]:
    """Return the recorded rows by name."""
    if not file.exists():
        return {}
    with open(file, encoding="utf-8", newline="") as opened:
        return {line["name"]: _row(line) for line in csv.DictReader(opened)}


def _row(line: dict[str, str]) -> Row:
    parts = {part: dict(item.split("=", 1) for item in line[part].split(" ") if item) for part in PARTS}
    texts = {name: line[name] for name in TEXTS}
    return Row(**texts | {"rounds": int(line["rounds"])}, **parts)  # type: ignore[arg-type]


def write_rows(rows: Iterable[Row], file: Path = TABLE) -> None:
    """Write the table, by name."""
    with open(file, "w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow([*TEXTS, *PARTS])
        for row in sorted(rows, key=lambda row: row.name):
            parts = [" ".join(f"{key}={value}" for key, value in getattr(row, part).items()) for part in PARTS]
            writer.writerow([*(getattr(row, name) for name in TEXTS), *parts])


def sha(*arrays: Any) -> str:
    """Return a short hash of arrays: their types, shapes and bytes."""
    found = hashlib.sha256()
    for array in map(np.ascontiguousarray, arrays):
        found.update(f"{array.dtype.str}{array.shape}".encode() + array.tobytes())
    return found.hexdigest()[:16]


def text_sha(data: Any) -> str:
    """Return a short hash of plain data."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def hexes(numbers: dict[str, Any]) -> dict[str, str]:
    """Return those of the values that are numbers, to the last bit; NaN says that there is none."""
    return {name: float(value).hex() for name, value in numbers.items() if value is not None and not math.isnan(value)}


# ----------------------------------------------------------------------------------------------------- machines, versions


@cache
def machine() -> dict[str, str]:
    """Return what last bits may depend on: the processor, and the libraries that compute."""
    import llvmlite.binding
    import numba
    import scipy.linalg  # noqa: F401  # its BLAS is then listed

    blas = {
        f"{info['internal_api']} {info.get('architecture')}" for info in threadpool_info() if info["user_api"] == "blas"
    }
    packages = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn")
    return {
        "processor": _processor(),
        "kernels_for": str(numba.config.CPU_NAME or llvmlite.binding.get_host_cpu_name()),
        "blas": ", ".join(sorted(blas)),
        **{name: importlib.metadata.version(name) for name in packages},
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        return f"{platform.machine()} {platform.processor()}"
    lines = dict(line.split(":", 1) for line in cpuinfo.read_text("utf-8").split("\n\n")[0].splitlines() if ":" in line)
    facts = {name.strip(): value.strip() for name, value in lines.items()}
    shown = [facts.get("model name", platform.machine())]
    shown += [f"{name} {facts[name]}" for name in ("cpu family", "model", "stepping") if name in facts]
    return ", ".join(shown)


def machine_id() -> str:
    """Return the name under which this machine stands in `machine.json`."""
    return text_sha(machine())[:8]


def other_machine(name: str) -> str:
    """Return how this machine differs from the recorded one of this name, "" where it does not."""
    if name == machine_id():
        return ""
    then = json.loads(MACHINES.read_text("utf-8")).get(name, {}) if MACHINES.exists() else {}
    moved = [f"{key} {then.get(key)} -> {now}" for key, now in machine().items() if then.get(key) != now]
    return "recorded elsewhere: " + "; ".join(moved)


def installed(library: str) -> str:
    """Return a library with its version, or its name alone where it is missing."""
    try:
        return f"{library} {importlib.metadata.version(library)}"
    except importlib.metadata.PackageNotFoundError:
        return library


# ------------------------------------------------------------------------------------------------------------ what meets


@cache
def lab() -> Registry:
    """Return a registry of our own that knows the lab of this repository: the process's own is not to."""
    found = Registry()
    found.open_lab(ROOT)
    return found


def load(kind: str, id_: str) -> Any:
    """Return a class by its id."""
    return (lab() if id_.startswith("lab") else registry()).load(kind, id_)


def met(kind: str, id_: str, settings: Settings) -> list[tuple[str, str]]:
    """Return a player and those inside it, as (kind, id)."""
    outer = getattr(load(kind, id_), "wraps", None)
    if outer is None:
        return [(kind, id_)]
    inner = settings.get(outer, load(kind, id_).own_settings()[outer].default)
    return [(kind, id_), *met(f"{outer}s", inner, settings)]


def libraries_of(players: Iterable[tuple[str, str]]) -> list[str]:
    """Return the libraries that players need; one that wraps another needs what that needs."""
    classes = [load(kind, id_) for kind, id_ in players]
    return sorted({name for cls in classes if not getattr(cls, "wraps", None) for name in getattr(cls, "requires", ())})


def versions(players: Iterable[tuple[str, str]]) -> str:
    """Return players and environments as text: kind:id@version."""
    return " ".join(f"{kind}:{id_}@{getattr(load(kind, id_), 'version', 1)}" for kind, id_ in players)


@dataclass(frozen=True)
class Unit:
    """One thing to run. `run` yields its rows, which are named and described here."""

    name: str
    players: tuple[tuple[str, str], ...]
    run: Callable[[], Iterable[Row]]
    rounds: int = 0
    needs: str = ""
    """An environment variable without which it cannot run."""

    @property
    def door(self) -> str:
        """The first part of the name; players' units say "players" and open several."""
        return self.name.partition("/")[0]

    @property
    def libraries(self) -> list[str]:
        """Other libraries that take part."""
        return libraries_of(self.players)

    def cannot(self) -> str:
        """Return why it cannot run here, or ""."""
        if self.needs and not os.environ.get(self.needs):
            return f"{self.needs} is not set: it names a folder that has the data"
        missing = [name for name in self.libraries if installed(name) == name]
        return f"not installed: {', '.join(missing)}" if missing else ""

    def rows(self) -> list[Row]:
        """Run it with one thread and return its rows."""
        with threadpool_limits(limits=1):
            rows = list(self.run())
        said = ", ".join(installed(name) for name in self.libraries)
        for row in rows:
            row.players = row.players or versions(self.players)
            row.libraries, row.machine = said, machine_id()
            row.rounds = row.rounds or self.rounds
        return rows


@dataclass(frozen=True)
class Stream:
    """A stream by its short name: environment, rounds, seed, and whether the horizon is told."""

    text: str

    @property
    def parts(self) -> tuple[str, Settings, int]:
        """Environment's id, its settings, rounds."""
        return STREAMS[self.text.partition("#")[0].rstrip("?")]  # type: ignore[no-any-return]

    @property
    def seed(self) -> int:
        """The environment's seed; the player's is another."""
        return int(self.text.partition("#")[2] or 1)

    @property
    def rounds(self) -> int:
        """How many."""
        return self.parts[2]

    def environment(self) -> Any:
        """Return the environment, not yet reset."""
        id_, settings, rounds = self.parts
        return load("envs", id_)(**settings, horizon=rounds)

    def arrays(self) -> tuple[Any, Any]:
        """Return all contexts and labels."""
        env = self.environment()
        env.reset(seed=self.seed)
        [(X, y)] = env.unwrapped.blocks(self.rounds, self.rounds)
        return X, y

    def player(self, kind: str, id_: str, settings: Settings) -> Any:
        """Return a fresh player for this stream."""
        problem = self.environment().unwrapped.problem
        if "?" in self.text:
            problem = dataclasses.replace(problem, horizon=None)
        return load(kind, id_)(problem, np.random.default_rng(1000 + self.seed), **settings)


def short(settings: Settings) -> str:
    """Return settings as a part of a name."""
    texts = [f"{name}={value}" for name, value in settings.items() if not isinstance(value, dict | list)]
    inner = [pair for value in settings.values() if isinstance(value, dict) for pair in value.items()]
    texts += [f"{name}={value}" for name, value in inner]
    return ",".join(texts).replace(" ", "") or "defaults"


# ------------------------------------------------------------------------------------------------ players, by three doors


def of_play(name: str, player: Any, played: Any) -> Row:
    """Return the row of what `play` returned with its trace kept."""
    trace = played.trace
    last = {name: getattr(played, name)[-1] for name in ("expected_mistakes", "log_loss", "bound", "certificate")}
    sums = {"p_true": math.fsum(trace.p_true), **last}
    sums |= {f"diagnostic.{key}": values[-1] for key, values in played.diagnostics.items()}
    counts = {"mistakes": str(played.mistakes[-1]), "explored": str(int(np.count_nonzero(trace.explored)))}
    hashes = {"actions": sha(trace.action), "p_true": sha(trace.p_true), "explored": sha(trace.explored)}
    if player.rng is not None:
        hashes["generator"] = text_sha(player.rng.bit_generator.state)
    return Row(name, counts=counts, hashes=hashes, sums=hexes(sums))


def play_doors(kind: str, id_: str, on: str, settings: Settings, first: bool) -> Iterator[Row]:
    """Blocks, steps, and blocks of a player that was saved half-way and loaded."""
    stream, name = Stream(on), f"{id_}/{on}/{short(settings)}"
    T, half = stream.rounds, stream.rounds // 2
    fresh = partial(stream.player, kind, id_, settings)
    go = partial(play, stream.environment(), seed=stream.seed, keep_trace=True)
    in_blocks, oblivious = fresh().plays_blocks, hasattr(stream.environment().unwrapped, "blocks")
    if in_blocks and oblivious:
        player = fresh()
        yield of_play(f"blocks/{name}", player, go(player=player, checkpoints=[half], path="blocks"))
    if settings.get("weak_learner") != "simulated":  # which observes the label in blocks only
        player = fresh()
        yield of_play(f"steps/{name}", player, go(player=player, path="steps"))
    if first and in_blocks:
        X, y = stream.arrays()
        player = fresh()
        go(player=player, rounds=half, blocks=[(X[:half], y[:half])])
        player = saved_and_loaded(player)
        played = go(player=player, rounds=T - half, blocks=[(X[half:], y[half:])])
        yield dataclasses.replace(of_play(f"saved/{name}", player, played), rounds=T - half)


def saved_and_loaded(player: Any) -> Any:
    """Return the player that a file brings back."""
    with tempfile.TemporaryDirectory() as folder:
        player.save(Path(folder) / "player.npz")
        return type(player).load(Path(folder) / "player.npz")


def forecast(forecaster: Any, X: Any, y: Any, *, one_by_one: bool) -> Any:
    """Return the logits (n, K), each before its label is told."""
    logits = np.empty((len(y), forecaster.problem.n_classes))
    if not one_by_one:
        forecaster.forecast_block(X, y, logits)
        return logits
    dense = X.toarray() if hasattr(X, "toarray") else X
    for t, label in enumerate(y.tolist()):
        logits[t] = forecaster.predict(dense[t])
        forecaster.update(dense[t], label)
    return logits


def of_forecasts(name: str, forecaster: Any, logits: Any, y: Any, ahead: Any) -> Row:
    """Return the row of forecasts and their labels; `ahead` are contexts forecast at the end, the state held still."""
    top = logits.max(axis=1)
    at_label = logits[np.arange(len(y)), y]
    losses = [math.log(math.fsum(math.exp(z - m) for z in row)) + m - a for row, m, a in zip(logits, top, at_label)]
    sums = {"log_loss": math.fsum(losses), "logits": math.fsum(np.abs(logits).ravel())}
    sums |= {"certificate": forecaster.certificate(), "bound": forecaster.bound(len(y))}
    sums |= {
        f"diagnostic.{k}": v for k, v in forecaster.diagnostics().items() if isinstance(v, int | float | np.number)
    }
    counts = {"mistakes": str(int(np.count_nonzero(logits.argmax(axis=1) != y)))}
    hashes = {
        "actions": sha(logits.argmax(axis=1)),
        "logits": sha(logits),
        "ahead": sha(forecaster.predict_many(ahead)),
    }
    return Row(name, rounds=len(y), counts=counts, hashes=hashes, sums=hexes(sums))


def forecast_doors(kind: str, id_: str, on: str, settings: Settings, first: bool) -> Iterator[Row]:
    """Predict and update one by one, the block path, and a forecaster that was saved half-way and loaded."""
    stream, name = Stream(on), f"{id_}/{on}/{short(settings)}"
    X, y = stream.arrays()
    ahead = (X.toarray() if hasattr(X, "toarray") else X)[:20]
    forecaster = stream.player(kind, id_, settings)
    logits = forecast(forecaster, X, y, one_by_one=True)
    yield of_forecasts(f"updates/{name}", forecaster, logits, y, ahead)
    if forecaster.plays_blocks:
        forecaster = stream.player(kind, id_, settings)
        logits = forecast(forecaster, X, y, one_by_one=False)
        yield of_forecasts(f"blocks/{name}", forecaster, logits, y, ahead)
    if first:
        half = len(y) // 2
        forecaster = stream.player(kind, id_, settings)
        forecast(forecaster, X[:half], y[:half], one_by_one=True)
        forecaster = saved_and_loaded(forecaster)
        logits = forecast(forecaster, X[half:], y[half:], one_by_one=not forecaster.plays_blocks)
        yield of_forecasts(f"saved/{name}", forecaster, logits, y[half:], ahead)


def player_units() -> Iterator[Unit]:
    """Every player on its streams."""
    tables = [*CASES["PLAYERS"].items(), *CASES["LAB"].items()]
    for kind, players in tables:
        doors = forecast_doors if kind == "forecasters" else play_doors
        for id_, cases in players.items():
            for i, (on, settings) in enumerate(cases):
                inside = (*met(kind, id_, settings), ("envs", Stream(on).parts[0]))
                run = partial(doors, kind, id_, on, settings, i == 0)
                name = f"players/{id_}/{on}/{short(settings)}"
                yield Unit(name, inside, run, Stream(on).rounds)


# --------------------------------------------------------------------------------------------------------------- sweeps

ROUNDS = 120
"""Of a sweep that does not say."""
NAMES = ("run_id", "stream_id", "kind", "label", "expected_kind", "bound_unit")
WHOLE = ("mistakes", "explored")
NUMBERS = ("expected_mistakes", "log_loss", "bound", "certificate")


def of_sweep(name: str, plan: Any, results: Any) -> Iterator[Row]:
    """Return a row for each run of a sweep and for each stream's comparators, all but the seconds."""
    met_twice: dict[str, int] = {}
    for run in plan.runs:
        stored = results.runs[results.runs["run_id"] == run.run_id].dropna(axis=1, how="all")
        written = ",".join(f"{key}={value}" for key, value in run.written.items())
        title = f"sweeps/{name}/{_plain(run.environment_label)}/{_plain(run.label)}/{text_sha(written)[:4]}/{run.repetition}"
        met_twice[title] = met_twice.get(title, 0) + 1
        assert met_twice[title] == 1, title
        first = stored.iloc[0]
        fixed = {key: str(first[key]) for key in NAMES if key in stored and str(first[key])}
        fixed |= {
            "environment_seed": f"{run.environment_seed():x}",
            "generator": text_sha(run.player_generator().bit_generator.state),
            "checkpoints": ",".join(str(r) for r in stored["round"]),
            "settings": text_sha(written),
        }
        diagnostics = [column for column in stored if column.startswith("diagnostic.")]
        counts, sums = {}, {}
        for _, at in stored.iterrows():
            here = at["round"]
            counts |= {f"{key}@{here}": str(int(at[key])) for key in WHOLE if key in stored and at[key] == at[key]}
            sums |= hexes({f"{key}@{here}": at[key] for key in (*NUMBERS, *diagnostics) if key in stored})
        resolved = {key: _cell(first[key]) for key in sorted(stored) if key.startswith(("param.", "setting."))}
        inside = met(run.player["kind"], run.player["id"], run.player["settings"])
        players = versions([*inside, ("envs", run.environment["id"])])
        hashes = {"params": text_sha(resolved)}
        yield Row(title, run.rounds, players, fixed=fixed, counts=counts, hashes=hashes, sums=sums)
    yield from _of_comparators(name, results.comparators)
    skipped = sorted((_plain(skip.environment), skip.player) for skip in results.skipped)
    if skipped:
        yield Row(f"sweeps/{name}/skipped", fixed={"pairs": text_sha(skipped), "number": str(len(skipped))})


def _of_comparators(name: str, table: Any) -> Iterator[Row]:
    for (env, repetition, stream_id), found in table.groupby(["environment", "repetition", "stream_id"], sort=True):
        counts, sums, hashes = {}, {}, {}
        for _, at in found.sort_values(["round", "norm_bound"]).iterrows():
            key = f"{at['round']}.{at['norm_bound']:g}"
            counts[f"mistakes@{key}"] = str(int(at["mistakes"]))
            sums |= hexes({f"loss_nats@{key}": at["loss_nats"], f"loss_bits@{key}": at["loss_bits"]})
            hashes |= hexes({f"gap@{key}": at["gap"]})
        title = f"sweeps/{name}/{_plain(env)}/comparators/{stream_id[:4]}/{repetition}"
        yield Row(title, fixed={"stream_id": stream_id}, counts=counts, hashes=hashes, sums=sums)


def _plain(text: str) -> str:
    return text.removeprefix("banditlab/").removeprefix("lab/").replace(", ", ",").replace(" ", "_")


def _cell(value: Any) -> str:
    return float(value).hex() if isinstance(value, float) else str(value)


def swept(name: str, spec: Settings) -> Iterator[Row]:
    """Plan and run a sweep as a user does, and read its results back."""
    with tempfile.TemporaryDirectory() as folder:
        environments = [_with_file(block, Path(folder)) for block in spec["environment"]]
        rounds = spec.get("rounds", ROUNDS)
        plain = {"name": name, "rounds": rounds, "checkpoints": [rounds // 2], **spec, "environment": environments}
        sweep = Sweep(make_spec(plain, name))
        result = sweep.run(Path(folder) / "out", jobs=1)
        if result.failures:
            raise RuntimeError(f"{name}: {result.failures[0]['error']}\n{result.failures[0]['traceback']}")
        yield from of_sweep(name, sweep.plan, load_results(Path(folder) / "out"))


_LAB_SWEEP = """
import contextlib, io, json, runpy, sys
path, sys.argv[:], spec = json.loads({path!r}), json.loads({command!r}), json.loads({spec!r})
sys.path[:0] = path
said = io.StringIO()
with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
    try:
        runpy.run_module(sys.argv[0], run_name="__main__")
    except SystemExit as left:
        code = left.code
if code:
    sys.exit(said.getvalue())
import {file_module} as recording
sweep = recording.Sweep(recording.make_spec(spec, "lab"))
rows = recording.of_sweep("lab", sweep.plan, recording.load_results({out!r}))
print(json.dumps([recording.dataclasses.asdict(row) for row in rows]))
"""


def swept_in_the_lab() -> Iterator[Row]:
    """Run a sweep of the lab's own files by the command line, and read it back, all in another process."""
    with tempfile.TemporaryDirectory() as folder:
        spec, out = Path(folder) / "lab.toml", str(Path(folder) / "out")
        spec.write_text(_toml(CASES["LAB_SWEEP"]), encoding="utf-8")
        command = [COMMAND_LINE, "run", str(spec), "-o", out, "-j", "1", "--no-report", "--lab", str(ROOT)]
        code = _LAB_SWEEP.format(
            path=json.dumps([str(ROOT), str(HERE)]),
            command=json.dumps(command),
            spec=json.dumps(CASES["LAB_SWEEP"]),
            file_module=Path(__file__).stem,
            out=out,
        )
        for row in json.loads(_process([sys.executable, "-c", code])):
            yield Row(**row)


def _process(command: list[str]) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the sweep in the lab: {done.stderr or done.stdout}")
    return done.stdout


def _toml(spec: Settings) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in spec.items() if key not in ("environment", "agent")]
    for key in ("environment", "agent"):
        for block in spec[key]:
            lines += [f"[[{key}]]", *(f"{name} = {json.dumps(value)}" for name, value in block.items())]
    return "\n".join(lines) + "\n"


def sweep_units() -> Iterator[Unit]:
    """A sweep of every player, some of several, and one in the lab."""
    specs = {id_: CASES["swept_alone"](kind, id_) for kind, players in CASES["PLAYERS"].items() for id_ in players}
    for name, spec in (specs | CASES["SWEEPS"]).items():
        yield Unit(f"sweeps/{name}", _in_spec(spec), partial(swept, name, spec), spec.get("rounds", ROUNDS))
    spec = CASES["LAB_SWEEP"]
    yield Unit("sweeps/lab", _in_spec(spec), swept_in_the_lab, spec["rounds"])


def _in_spec(spec: Settings) -> tuple[tuple[str, str], ...]:
    blocks = [(f"{kind}s", block) for kind in ("agent", "forecaster", "booster") for block in spec.get(kind, [])]
    found = [pair for kind, block in blocks for pair in met(kind, block["id"], block)]
    return tuple(dict.fromkeys([*found, *(("envs", block["id"]) for block in spec["environment"])]))


# --------------------------------------------------------------------------- environments, comparators, the estimator


def _with_file(settings: Settings, folder: Path) -> Settings:
    """Return settings whose relative path has become that of a file written here."""
    if "path" not in settings:
        return settings
    file = folder / settings["path"]
    if file.suffix == ".csv":
        colours = ("red", "green", "blue")
        rows = [f"{i * 7 % 23 / 4},{i * 5 % 17 * 3},{colours[i % 3]},{'abc'[i * i % 7 % 3]}" for i in range(60)]
        file.write_text("\n".join(["length,width,colour,kind", *rows, ""]), encoding="utf-8")
    else:
        rows = [f"{i % 4} {1 + i % 5}:{i % 9 / 8} {7 + i % 6}:{1 + i % 3}" for i in range(50)]
        file.write_text("\n".join([*rows, ""]), encoding="utf-8")
    return settings | {"path": str(file)}


def shown(id_: str, settings: Settings) -> Iterator[Row]:
    """The first contexts and labels of an environment, as blocks and by steps."""
    rounds, T, seed = 120, 300, 5
    with tempfile.TemporaryDirectory() as folder:
        env = load("envs", id_)(**_with_file(settings, Path(folder)), horizon=T)
    problem, name = env.unwrapped.problem, f"environments/{_plain(id_)}/{short(settings)}"
    sizes = {"n_features": str(problem.n_features), "n_classes": str(problem.n_classes)}
    context, _ = env.reset(seed=seed)
    contexts, rewards, labels = [np.array(context)], [], []
    for t in range(rounds):
        context, reward, *_ = env.step(t * t % problem.n_classes)
        contexts.append(np.array(context))
        rewards.append(reward)
        labels.append(env.unwrapped.label())
    X, y = np.array(contexts), np.array(labels)
    yield Row(
        f"{name}/steps",
        rounds,
        fixed=sizes,
        counts={"right": str(int(sum(rewards))), "labels": ",".join(map(str, np.bincount(y)))},
        hashes={"contexts": sha(X), "labels": sha(y)},
        sums=hexes({"contexts": math.fsum(np.abs(X).ravel()), "radius": problem.radius}),
    )
    if not hasattr(env.unwrapped, "blocks"):
        return
    env.reset(seed=seed)
    hashed, labelled, total = [], [], []
    for X, y in env.unwrapped.blocks(T, 128):
        parts = (X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)) if hasattr(X, "tocsr") else (X,)
        hashed += [sha(part) for part in parts]
        labelled.append(y)
        total += np.abs(parts[0]).ravel().tolist()
    y = np.concatenate(labelled)
    yield Row(
        f"{name}/blocks",
        T,
        fixed=sizes,
        counts={"labels": ",".join(map(str, np.bincount(y)))},
        hashes={"contexts": text_sha(hashed), "labels": sha(y)},
        sums=hexes({"contexts": math.fsum(total)}),
    )


def compared(on: str, norm_bound: float) -> Iterator[Row]:
    """The best model in a ball: of a whole stream, and along it."""
    stream = Stream(on)
    X, y = stream.arrays()
    problem = stream.environment().unwrapped.problem
    K, d, T = problem.n_classes, problem.n_features, stream.rounds
    U, counted = collapse(X.toarray() if hasattr(X, "toarray") else X, y, K)
    yield _of_comparator(f"comparators/{on}/{norm_bound:g}", {T: best_in_ball(U, counted, norm_bound)}, T)
    along = comparators_along([(X, y)], [T // 4, T], [norm_bound], d, K)
    yield _of_comparator(f"comparators/{on}/{norm_bound:g}/along", dict(along), T)


def solved(name: str) -> Iterator[Row]:
    """The best model of a problem made for one branch of the solvers, and the rounds that took."""
    kind, norm_bound, sizes = CASES["SOLVED"][name]
    m, d, K = (int(sizes[key]) for key in ("m", "d", "K"))
    rng = np.random.default_rng(6)
    X = rng.standard_normal((m, d))
    if kind == "badly scaled":
        X, y = X * 10.0 ** (-1.5 * np.arange(d)), rng.integers(0, K, m)
    else:
        X /= np.sqrt((X * X).sum(axis=1))[:, None]
        W = rng.standard_normal((K, d))
        W *= sizes["norm"] / np.sqrt((W * W).sum(axis=1))[:, None]
        y = np.argmax(X @ W.T + rng.gumbel(size=(m, K)), axis=1)
    U, counted = collapse(X, y, K)
    title = f"comparators/solver/{name.replace(' ', '-')}"
    if kind == "frobenius":
        found = best_in_frobenius_ball(U, counted, norm_bound)
        hashes = {"weights": sha(found.weights)} | hexes({"gap": found.gap})
        yield Row(title, m, {}, hashes=hashes, sums=hexes({"loss": found.loss}))
        return
    best = best_in_ball(U, counted, norm_bound, max_iterations=100)
    hashes = {"weights": sha(best.weights), "iterations": str(best.iterations)} | hexes({"gap": best.gap})
    yield Row(title, m, {}, counts={"mistakes": str(best.mistakes)}, hashes=hashes, sums=hexes({"loss": best.loss}))


def _of_comparator(name: str, found: dict[int, Any], rounds: int) -> Row:
    counts = {f"mistakes@{r}": str(each.mistakes) for r, each in found.items()}
    hashes = {f"weights@{r}": sha(each.weights) for r, each in found.items()}
    hashes |= hexes({f"gap@{r}": each.gap for r, each in found.items()})
    return Row(
        name, rounds, {}, counts=counts, hashes=hashes, sums=hexes({f"loss@{r}": e.loss for r, e in found.items()})
    )


def fitted(id_: str, on: str, settings: Settings, first: bool) -> Iterator[Row]:
    """The scikit-learn estimator: fitted, and (the first of a forecaster) fed in two parts."""
    stream, name = Stream(on), f"estimator/{id_}/{on}/{short(settings)}"
    X, y = stream.arrays()
    half = len(y) // 2
    K = stream.environment().unwrapped.problem.n_classes
    every = np.arange(K)
    model = OnlineClassifier(id_, random_state=3, **settings)
    known = np.concatenate([every, y[half:]])  # each class is seen
    yield _of_model(name, model.fit(np.vstack([X[:K], X[half:]]), known), X[:half], y[:half])
    if first:
        model = OnlineClassifier(id_, random_state=3, **{**settings, "passes": 1})
        model.partial_fit(X[half:], y[half:], classes=every).partial_fit(X[: half // 2], y[: half // 2])
        yield _of_model(f"{name}/parts", model, X[half // 2 : half], y[half // 2 : half])


def _of_model(name: str, model: Any, X: Any, y: Any) -> Row:
    logs = model.predict_log_proba(X)
    found = model.predict(X)
    losses = math.fsum(-logs[np.arange(len(y)), y])
    counts = {"mistakes": str(int(np.count_nonzero(found != y))), "rounds": str(int(model.n_rounds_))}
    hashes = {"actions": sha(found), "logs": sha(logs), "times": sha(model.times_)}
    sums = {"log_loss": losses, "logs": math.fsum(logs.ravel()), "bound": model.forecaster_.bound(model.n_rounds_)}
    return Row(name, len(y), counts=counts, hashes=hashes, sums=hexes(sums))


def other_units() -> Iterator[Unit]:
    """Environments, comparators and the estimator."""
    for id_, each in CASES["ENVIRONMENTS"].items():
        for settings in each:
            needs = DATA_HOME if id_ == CASES["OPENML"] else ""
            name = f"environments/{_plain(id_)}/{short(settings)}"
            yield Unit(name, (("envs", id_),), partial(shown, id_, settings), needs=needs)
    for on, norm_bound in CASES["COMPARATORS"]:
        inside = (("envs", Stream(on).parts[0]),)
        yield Unit(f"comparators/{on}/{norm_bound:g}", inside, partial(compared, on, norm_bound))
    for name in CASES["SOLVED"]:
        yield Unit(f"comparators/solver/{name.replace(' ', '-')}", (), partial(solved, name))
    for id_, cases in CASES["ESTIMATORS"].items():
        for i, (on, settings) in enumerate(cases):
            inside = (("forecasters", id_), ("envs", Stream(on).parts[0]))
            run = partial(fitted, id_, on, settings, i == 0)
            yield Unit(f"estimator/{id_}/{on}/{short(settings)}", inside, run)


@cache
def units() -> dict[str, Unit]:
    """Return everything there is to run, by name."""
    found: dict[str, Unit] = {}
    for unit in (*player_units(), *sweep_units(), *other_units()):
        assert unit.name not in found, unit.name
        found[unit.name] = unit
    return found


# ------------------------------------------------------------------------------------------------------------- comparing


def rows_of(unit: Unit, rows: Iterable[Row]) -> dict[str, Row]:
    """Return those of the recorded rows that are the unit's."""
    what = unit.name.partition("/")[2]
    if unit.door == "players":
        names = {f"{door}/{what}" for door in ("blocks", "steps", "saved", "updates")}
        return {row.name: row for row in rows if row.name in names}
    if unit.door == "sweeps":
        return {row.name: row for row in rows if row.name.startswith(f"{unit.name}/")}
    names = {unit.name, *(f"{unit.name}/{last}" for last in ("steps", "blocks", "along", "parts"))}
    return {row.name: row for row in rows if row.name in names}


def same_path(then: Row, now: Row) -> bool:
    """Return whether two rows show the same actions, as far as they say."""
    return then.counts == now.counts and then.hashes.get("actions") == now.hashes.get("actions")


def differences(then: Row, now: Row, *, exact: bool) -> list[str]:
    """Return what moved, a line each.

    With `exact` everything must be equal. Without, what `fixed` holds, settings and versions must be; along the same
    actions counts must be equal and sums within `RELATIVE` (a loss with a `LOOSE` gap within that gap: both are above the
    same minimum by no more); where a last bit has turned an action over counts must be within `SPLIT` of all rounds, and
    sums say nothing.
    """
    said = [f"players: {then.players} -> {now.players}"] if then.players != now.players else []
    said += [f"rounds: {then.rounds} -> {now.rounds}"] if then.rounds != now.rounds else []
    parts = PARTS if exact else ("fixed",)
    said += [line for part in parts for line in _moved(part, getattr(then, part), getattr(now, part))]
    if exact:
        return said
    for part in ("counts", "hashes", "sums"):
        if (one := set(getattr(then, part))) != (other := set(getattr(now, part))):
            said.append(f"{part}: {sorted(one ^ other)} on one side only")
    if same_path(then, now):
        pairs = [(name, float.fromhex(text), now.sums.get(name)) for name, text in then.sums.items()]
        far = [
            name
            for name, was, text in pairs
            if text and not _near(was, float.fromhex(text), _room(name, was, then, now))
        ]
        return said + _moved("sums", {n: then.sums[n] for n in far}, {n: now.sums[n] for n in far})
    room = 3 + SPLIT * max(then.rounds, 1)
    wholes = [(name, _total(text), _total(now.counts.get(name, text))) for name, text in then.counts.items()]
    return said + [f"counts.{name}: {was} -> {found}" for name, was, found in wholes if abs(was - found) > room]


def _near(was: float, found: float, room: float) -> bool:
    return math.isclose(was, found, rel_tol=RELATIVE, abs_tol=max(RELATIVE, room))


def _room(name: str, was: float, then: Row, now: Row) -> float:
    """Return how far a sum may move besides: a comparator's loss by its two certified gaps, of a kernel learner by its cut.

    0 for any other, and for gaps that are a small share of the loss.
    """
    if CUT in then.players:
        return BY_CUT * abs(was)
    gap_name = name.replace("loss", "gap", 1)
    if not name.startswith("loss") or not then.hashes.get(gap_name) or not now.hashes.get(gap_name):
        return 0.0
    gap = max(float.fromhex(row.hashes[gap_name]) for row in (then, now))
    return gap if gap > LOOSE * was else 0.0


def _total(text: str) -> int:
    return int(text) if "," not in text else 0


def _moved(part: str, then: dict[str, str], now: dict[str, str]) -> list[str]:
    names = [name for name in dict.fromkeys([*then, *now]) if then.get(name) != now.get(name)]
    return [f"{part}.{name}: {_said(then.get(name))} -> {_said(now.get(name))}" for name in names]


def _said(text: str | None) -> str:
    if text is None or "0x" not in text:
        return str(text)
    return f"{float.fromhex(text)!r} ({text})"


def complaint(row: Row, lines: Sequence[str]) -> str:
    """Return the message of a row that moved: the player, the door, what moved, and what to do."""
    ids = ",".join(dict.fromkeys(pair.partition(":")[2].partition("@")[0] for pair in row.players.split()))
    renewed = f"python -m tests.record.recording --only {ids.partition(',')[0]}"
    renewed = f"raise its `version`, then {renewed}" if ids else f"python -m tests.record.recording --door {row.door}"
    return "\n  ".join(
        [
            f"{row.name} ({row.players}{', ' + row.libraries if row.libraries else ''}), door {row.door!r}, moved:",
            *lines,
            f"if it was meant: {renewed}",
        ]
    )


def uncovered(recorded: Iterable[Row]) -> list[str]:
    """Return built-in ids of any kind, as kind:id, that no recorded row holds."""
    held = {pair.partition("@")[0] for row in recorded for pair in row.players.split()}
    known = [
        f"{kind}:{entry.id}" for kind in KINDS for entry in registry().entries(kind) if entry.origin == "banditlab"
    ]
    return [pair for pair in known if pair not in held]


# ------------------------------------------------------------------------------------------------------------ the command


def known_ids() -> set[str]:
    """Return every id that can be asked for, the lab's included."""
    return {entry.id for kind in KINDS for entry in lab().entries(kind)}


def select(only: Sequence[str], doors: Sequence[str]) -> list[Unit]:
    """Return the units that have to do with one of the ids, and one of the doors where some are given."""
    ids = set(only)
    return [
        unit
        for unit in units().values()
        if (not ids or ids & {id_ for _, id_ in unit.players}) and (not doors or unit.door in doors)
    ]


def ids_of(row: Row) -> set[str]:
    """Return the ids that a row holds."""
    return {pair.partition(":")[2].partition("@")[0] for pair in row.players.split()}


def record(chosen: Iterable[Unit], ids: set[str], say: Callable[[str], None] = print) -> None:
    """Run the units, write their rows (of a sweep of several, those of the ids and of the streams), and say which."""
    chosen = list(chosen)
    rows = read_rows()
    changed = same = 0
    for at, unit in enumerate(chosen, 1):
        before = rows_of(unit, rows.values())
        if why := unit.cannot():
            say(f"left as it was  {unit.name}: {why} ({len(before)} rows)")
            continue
        after = {row.name: row for row in unit.rows()}
        assert set(after) == set(rows_of(unit, after.values())), f"{unit.name}: rows of other names"
        for name in sorted({*before, *after}):
            then, now = before.get(name), after.get(name)
            asked = not ids or bool(ids & ids_of(now or then))
            if not asked and then and (now is None or differences(then, now, exact=True)):
                say(f"left as it was  {name}: moved, and not asked for")
            elif now is None:
                del rows[name]
                say(f"removed         {name}")
            elif then is None:
                rows[name] = now
                say(f"new             {name}")
            elif moved := differences(then, now, exact=True):
                rows[name] = now
                say(f"rewritten       {name}: {'; '.join(moved)}")
            else:
                rows[name] = now  # the machine may be another
                same += 1
                continue
            changed += 1
        print(f"[{at}/{len(chosen)}] {unit.name}", file=sys.stderr)
    run = {name for unit in units().values() for name in rows_of(unit, rows.values())}
    for name in sorted(set(rows) - run):
        if len(chosen) == len(units()) or ids & ids_of(rows[name]):
            say(f"removed         {name}: nothing runs it any more")
            del rows[name]
            changed += 1
    write_rows(rows.values())
    _keep_machines({row.machine for row in rows.values()})
    say(f"{changed} rows written anew, new or removed, {same} found as they were, {len(rows)} in {TABLE.name}")


def _keep_machines(used: set[str]) -> None:
    known = json.loads(MACHINES.read_text("utf-8")) if MACHINES.exists() else {}
    kept = {name: facts for name, facts in (known | {machine_id(): machine()}).items() if name in used}
    MACHINES.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Record again what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.record.recording", description="Record players' runs again.")
    parser.add_argument("--only", default="", help="ids, with commas: fastcb,linucb")
    parser.add_argument("--door", default="", help="players, sweeps, environments, comparators, estimator")
    parser.add_argument("--all", action="store_true", help="everything")
    given = parser.parse_args(arguments)
    only, doors = ([text for text in found.split(",") if text] for found in (given.only, given.door))
    if not (only or doors or given.all):
        parser.error("say what: --only ids, --door doors, or --all")
    if unknown := sorted(set(only) - known_ids()):
        parser.error(f"no such ids: {', '.join(unknown)}")
    if unknown := sorted(set(doors) - {unit.door for unit in units().values()}):
        parser.error(f"no such doors: {', '.join(unknown)}")
    chosen = select(only, doors)
    if not chosen:
        parser.error("nothing is recorded of that")
    record(chosen, set(only))
    return 0


if __name__ == "__main__":
    sys.exit(main())
