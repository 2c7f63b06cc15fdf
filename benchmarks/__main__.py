"""What is measured: `python -m benchmarks` (the speed of every player) or `python -m benchmarks NAME [--setting VALUE]`.

A part is a module of `commands` with `main(*, setting=default, ...)`: its settings become options (`--setting`), their
types those of the annotations; a bool that defaults to False is switched on. A new part is one line in PARTS.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import sys
import typing
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any, NoReturn

from banditlab.errors import BanditlabError, nearest

PARTS = {
    "cluster": "a Dask cluster: milliseconds a task, faults drawn at random, namespaces: docs/cluster.md",
    "adaptive": "a bound that an adaptive adversary exceeds: docs/results/adaptive.md",
    "estimator": "log loss of the scikit-learn wrapper against LogisticRegression",
    "large": "exploration around folklore at d = 10,000 in the dual form; where the primal form pays",
    "figures": "a small study for each page of the site that no other study plays: docs/results/small-studies.csv",
    "speed": "every agent and forecaster beside other libraries and another checkout (without a name: this)",
    "boosters": "what boosters of 100 trees cost apart from their trees",
    "conformance": "45-digit forms, a search for false certificates, hidden labels: docs/results/conformance.md",
    "papers": "the papers' remaining rows: bounds searched, inexact roots, SMP: docs/results/papers.md",
    "lemmas": "Figure 1 of Online multiclass boosting; its lemmas searched: docs/results/papers-002.md",
    "minimax": "regret of forecasters beside the least that any can guarantee: docs/results/minimax.md",
    "queries": "mistakes of a forecaster that queries few labels; its bounds searched: docs/results/label-efficient.md",
    "comparator": "the best model in a ball over a million contexts, beside scikit-learn's LogisticRegression",
    "sparse": "first-order agents on a Reuters4-like sparse stream: rounds/s, memory",
    "peers": "our agents and other libraries' methods on identical digits streams",
    "pages": "sizes and opening times of a report, a board of 10^5 runs, Optuna's and benchopt's pages: docs/report-checks.md",
    "policy": "a policy that decides: microseconds, requests/s by wrk, kills: docs/results/policy.md",
    "stream": "a stream longer than memory: rounds/s and the peak of memory",
    "lockin": "runs of agents of practice that stay on a wrong class, on one context",
    "defaults": "agents of practice at other settings than their defaults: docs/results/defaults.md",
    "changes": "stackcb and fastcb after a change of the labels, false alarms: docs/results/changes.md",
    "sketch": "full matrices, sketches, diagonals at d = 1,024: rounds/s and mistakes: docs/results/second-order.csv",
    "stack": "stackcb against fastcb, its other settings and 600 Fourier features, over a folder of tables",
    "ablation": "stackcb without each of its parts, over folders of tables: docs/results/ablation.csv",
    "alarms": "changes that stackcb calls where contexts drift and labels stand: docs/results/alarms.csv",
    "made": "stackcb beside linear agents on made streams of kinds that tables come in: docs/results/made-streams.csv",
    "rivals": "stackcb and fastcb beside other libraries' agents, tuned, over tables: docs/results/rivals.md",
    "newaction": "when a new action of a policy is found, and its price: docs/results/new-actions.md",
    "life": "late, batched, lost and wrong feedback, changed labels: docs/results/late-lost-wrong.md",
    "late": "late, lost and one-sided answers: false alarms, rises found, mistakes: docs/results/late-answers.md",
    "scaling": "the default scaling beside others, with numbers far from the others: docs/results/scaling.md",
    "offpolicy": "coverage, width and error of off-policy evaluation over logs of known value: docs/results/offpolicy.md",
    "logs": "long logs: rows/s and memory of `banditlab evaluate` beside Vowpal Wabbit: docs/theory/off-policy.md",
    "reading": "one-against-all loss by Vowpal Wabbit beside the published one: docs/results/bakeoff-reading.md",
    "bakeoff": "agents of practice and of theory, and Vowpal Wabbit's, over many tables: docs/results/bakeoff.md",
    "several": "several right actions, routers and tags: docs/results/routing.md, docs/results/tags.md",
    "noise": "coverage of the intervals; what `compare` asserts over tables of noise and of known truth",
    "kinds": "what `compare` asserts over noise and signals in rows of six kinds: docs/results/intervals.md",
    "sweep": "what a sweep costs beside its rounds: milliseconds a run, one process and two",
}
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the part that was asked for; see `run_part`."""
    run_part("benchmarks", __doc__, PARTS, "speed", list(sys.argv[1:] if arguments is None else arguments))


def run_part(package: str, text: str | None, parts: dict[str, str], default: str, arguments: list[str]) -> None:
    """Run the part of a package that was asked for, with BLAS on one thread (and numba, where the program is `python -m`).

    What is wrong with the request, or missing on this machine, is one line and exit code 2.
    """
    wanted = bool(arguments) and not arguments[0].startswith("-")
    part = arguments.pop(0) if wanted else default
    if (arguments[:1] in (["-h"], ["--help"]) and not wanted) or not part:
        print(f"{text}\n" + "\n".join(f"  {name:12} {line}" for name, line in parts.items()))
        return
    if part not in parts:
        refuse(package, f"no part is called {part!r}{nearest(part, parts, keep_order=True)}")
    run = importlib.import_module(f"{package}.commands.{part}").main
    settings = vars(options(f"{package} {part}", run).parse_args(arguments))

    from threadpoolctl import threadpool_limits

    try:
        with threadpool_limits(1):
            run(**settings)
    except BanditlabError as error:
        refuse(f"{package} {part}", str(error))


def refuse(part: str, why: str) -> NoReturn:
    """Say in one line what is wrong and exit with 2, as argparse does."""
    print(f"python -m {part}: {why}", file=sys.stderr)
    raise SystemExit(2) from None


def options(part: str, run: Callable[..., Any]) -> argparse.ArgumentParser:
    """Return the parser of a part's settings: the keyword arguments of its `main`."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {part}",
        description=sys.modules[run.__module__].__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    types = typing.get_type_hints(run)
    for setting in inspect.signature(run).parameters.values():
        flag, kind = f"--{setting.name.replace('_', '-')}", types[setting.name]
        if kind is bool:
            parser.add_argument(flag, action="store_true", dest=setting.name)
            continue
        read = next(given for given in (*typing.get_args(kind), kind) if given is not NoneType)
        parser.add_argument(flag, type=read, default=setting.default, dest=setting.name, help=f"{setting.default}")
    return parser


def use_one_thread() -> None:
    """Say so to numpy and numba, which read it when they are first imported: no part has done that yet."""
    for name in THREADS:
        os.environ.setdefault(name, "1")


if __name__ == "__main__":
    use_one_thread()
    main()
