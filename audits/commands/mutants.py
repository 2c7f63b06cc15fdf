"""Do the tests notice a wrong line? Random single changes of the package, each against the tests that are meant to see it.

A mutant is one operator, comparison or constant of `banditlab/` made another, drawn from all of them by `--seed`. It is
noticed if one test that passes on the sources as they are fails, or never ends. The tests asked: those that name the module,
those of its room, recorded runs of the players that use it, the slow ones among the first, and for kernels those that name
what imports the module (`mutants/witnesses.py`).
A mutant that changes nothing anybody can see is equivalent: `mutants-equivalent.csv` has them, each with its reason;
they are not played.

What kernels are made of is looked at uncompiled first, by the tests that pass in the clean tree when every kernel is plain
Python: seconds for a mutant. `--baselines FOLDER` keeps which those are for the next call; `--only-uncompiled` stops there,
and what it does not notice may still be noticed compiled.

`--rooms bounds,engine` draws from these rooms only. One mutant takes seconds, or minutes where kernels are compiled again.
`--limit` is the most seconds for one; what is out of time counts as not noticed. `--keep` writes every mutant, its verdict and
the test that saw it to `docs/results/mutants.csv` as it comes, the counts to `mutants.md`, and does not play again those of
the same draw that are there: an audit takes hours and may be cut off (after a change of tests, delete the file).
`--only-show` draws and prints, and plays nothing.
"""

from __future__ import annotations

import csv
import io
import re
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from analysis.result_pages.mutants import EQUIVALENT, OUTCOMES, by_room, parts
from audits.mutants.playing import Ground, Verdict
from audits.mutants.sites import Mutant, drawn
from banditlab.analysis.pages import fill_page
from banditlab.errors import UsageError
from banditlab.results.files import write_bytes

ROOT = Path(__file__).parents[2]
KNOWN = ROOT / "audits/mutants-equivalent.csv"
PLACE = ROOT / "docs/results"
HEADER = ("path", "line", "before", "after", "text", "outcome", "by", "seconds")
PAGE = """\
# Do the tests notice a wrong line?

In all, <!-- text: count -->nothing yet<!-- end -->

A mutant is the package with one operator, comparison or constant changed. A test notices the mutant if it
passes on the package but, on the mutant, fails or takes more than 240 s. A mutant whose tests together exceed
the limit (`--limit`, in seconds) before one fails counts as out of time, not as noticed. `audits/mutants-equivalent.csv`
lists equivalent mutants, each with its reason. The tests first run with the kernels as
plain Python. Mutants that no test notices in this form are tested again with compiled kernels.

<!-- table: rooms -->
<!-- end -->

## Not noticed

<!-- table: left -->
<!-- end -->

## How to run it

`python -m audits mutants {options} --keep` writes this page and [`mutants.csv`](mutants.csv). `mutants.csv` lists every
mutant, and the test that noticed it, if any.
"""
Row = tuple[Mutant, str, str, float]
"""A mutant, what became of it, the test that saw it, seconds."""


def main(
    *,
    sample: int = 50,
    seed: int = 0,
    rooms: str = "",
    limit: float = 600.0,
    jobs: int = 1,
    keep: bool = False,
    only_show: bool = False,
    only_uncompiled: bool = False,
    baselines: str = "",
) -> None:
    """Draw mutants, play them, print each that is not noticed and the table by room."""
    mutants = drawn(ROOT, sample, seed, tuple(filter(None, rooms.split(","))))
    if only_show:
        for mutant in mutants:
            print(f"{mutant.path}:{mutant.line}: {mutant.before} -> {mutant.after}: {mutant.text}")
        return
    options = f"--sample {sample} --seed {seed}{f' --rooms {rooms}' * bool(rooms)} --limit {limit:g}"
    options += " --only-uncompiled" * only_uncompiled
    rows = _kept(mutants) if keep else []
    if keep and not rows:
        begin(options)
    if rows:
        print(f"{len(rows)} of {len(mutants)} are in the table", flush=True)
    for mutant, verdict in played(mutants[len(rows) :], limit, jobs, only_uncompiled, baselines):
        rows.append((mutant, verdict.outcome, verdict.by, round(verdict.seconds, 1)))
        print(f"{len(rows):4} {verdict.outcome:12} {shown(mutant)}  [{verdict.by}] {verdict.seconds:.0f} s", flush=True)
        if keep:
            write(rows)
            fill_page(PLACE / "mutants.md", parts(PLACE))
    print("\n" + by_room([(mutant.room, outcome) for mutant, outcome, _, _ in rows]))


def _kept(mutants: list[Mutant]) -> list[Row]:
    """Return what an earlier call of the same draw found: those in front of the draw that the table has, in order."""
    if not (PLACE / "mutants.csv").exists():
        return []
    with (PLACE / "mutants.csv").open(encoding="utf-8", errors="replace", newline="") as file:
        header, *table = [tuple(row) for row in csv.reader(file)] or [()]
    rows: list[Row] = []
    for mutant, row in zip(mutants, table):
        *site, outcome, by, seconds = row if len(row) == len(HEADER) else ("",) * len(HEADER)
        if site != [*map(str, _site(mutant))] or outcome not in OUTCOMES or not re.fullmatch(r"\d+\.\d", seconds):
            break
        rows.append((mutant, outcome, by, float(seconds)))
    if header != HEADER or len(rows) < len(table):
        raise UsageError(f"{PLACE / 'mutants.csv'} is damaged, of another draw or of other sources: move it away")
    return rows


def shown(mutant: Mutant) -> str:
    """Return a mutant in one line."""
    return f"{mutant.path}:{mutant.line}: {mutant.before} -> {mutant.after}: {mutant.text}"


def played(
    mutants: list[Mutant], limit: float, jobs: int, only_uncompiled: bool = False, baselines: str = ""
) -> Iterator[tuple[Mutant, Verdict]]:
    """Yield mutants with their verdicts, `jobs` at a time, each in a copy of the tree; known equivalents are not played."""
    reasons = equivalents()
    with tempfile.TemporaryDirectory(prefix="mutants-") as place, ThreadPoolExecutor(jobs) as threads:
        free: SimpleQueue[Ground] = SimpleQueue()
        for job in range(jobs):
            kept = Path(baselines).absolute() if baselines else None
            free.put(Ground(ROOT, Path(place) / str(job), kept, only_uncompiled))

        def trial(mutant: Mutant) -> tuple[Mutant, Verdict]:
            if reason := reasons.get((mutant.path, mutant.text, mutant.before, mutant.after)):
                return mutant, Verdict(EQUIVALENT, reason, 0.0)
            ground = free.get()
            try:
                return mutant, ground.tried(mutant, limit)
            finally:
                free.put(ground)

        try:
            yield from threads.map(trial, mutants)
        finally:
            for _ in range(jobs):
                free.get().close()


def equivalents() -> dict[tuple[str, str, str, str], str]:
    """Return why a mutant changes nothing that can be seen, by path, line of text, what stood there and what stands there."""
    with KNOWN.open(encoding="utf-8", newline="") as file:
        return {(row["path"], row["text"], row["before"], row["after"]): row["reason"] for row in csv.DictReader(file)}


def begin(options: str) -> None:
    """Write the page of a draw of which nothing is played yet."""
    (PLACE / "mutants.md").write_text(PAGE.format(options=options), encoding="utf-8")


def _site(mutant: Mutant) -> tuple[str, int, str, str, str]:
    return mutant.path, mutant.line, mutant.before, mutant.after, mutant.text


def write(rows: list[Row]) -> None:
    """Write what was found as `docs/results/mutants.csv`: whole, whenever this process ends."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for mutant, outcome, by, seconds in rows:
        writer.writerow([*_site(mutant), outcome, by, seconds])
    write_bytes(PLACE / "mutants.csv", text.getvalue().encode())
