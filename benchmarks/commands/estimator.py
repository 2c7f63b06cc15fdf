"""Log loss of `OnlineClassifier` and of scikit-learn's LogisticRegression on three small data sets, as Markdown.

`python -m benchmarks estimator > docs/results/estimator.md`. Vehicle is OpenML's data set 54, read from the cache in
BANDITLAB_DATA_HOME (or scikit-learn's own) and fetched once where it is not there.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from banditlab.errors import UsageError
from banditlab.estimator import OnlineClassifier

FOLDS = 5
DRAWS = 10
"""Seeds over which the loss of a sampled state is averaged."""
C_GRID = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
B_GRID = (10.0, 30.0, 100.0, 300.0)
RIDGE = 0.001

PROPER = "LogisticRegression"
THEORY = r"folklore, theory $\lambda$"
TUNED = rf"folklore, $\lambda = {RIDGE:g}$"
GRID = "b-grid, B = 1/4 ... 64"
SAMPLED = "folklore, state sampled"

HEAD = rf"""# The scikit-learn wrapper against LogisticRegression

Is `OnlineClassifier` as good as scikit-learn's `LogisticRegression`? With its default settings, which have a
guarantee against an adversary, `OnlineClassifier` is worse. With $\lambda = {RIDGE:g}$, chosen on `vehicle` and
`wine`, the differences are small.

The table shows the mean log loss in nats over {FOLDS} stratified folds (seed 0), with features standardised on the
training part. `C` is LogisticRegression's setting (lbfgs, tol 1e-8). `B` is `norm_bound` of `OnlineClassifier` with R
= 1, and `passes` its passes over the training part. In the rows "state sampled", the
prediction is the mean of m states drawn at random from the rounds, and the loss is the mean over {DRAWS} seeds.
The best value of each estimator is in bold. "CPU s" is the time of one fit on four fifths of `digits` with one
thread, the median over the folds. `python -m benchmarks estimator > docs/results/estimator.md` makes this page.
`BANDITLAB_DATA_HOME` names a folder with OpenML's data set 54.
"""

VERDICTS = """
The next table shows each estimator at its best setting on these folds. `OnlineClassifier` (the wrapper) was run with
more settings. A positive gain means that the wrapper has the lower loss (± one standard error of the mean over the folds).

| | LogisticRegression | wrapper | gain, nats | folds won | LogisticRegression, default | wrapper, default | \
wrapper, theory's $\\lambda$ |
|---|---|---|---:|---:|---:|---:|---:|"""

NOTES = r"""
At the defaults ($\lambda = 2 R/B$, one pass) the curvature constant shrinks as $1/B$. So a large B makes $\lambda$ small,
but it also makes the quadratic surrogates of the loss flat. No theorem covers a smaller $\lambda$ or more
passes. The wrapper is slower, because an update takes $K^3 d^2/2$ multiplications. It has `partial_fit`, which uses each
example once. It also has a regret certificate, and a bound on the expected excess risk of a state sampled from
the rounds."""


class Row(NamedTuple):
    """One line of the table: family, setting in words, estimator."""

    family: str
    setting: str
    estimator: Any


class Score(NamedTuple):
    """Log loss on each fold (FOLDS,), and the median CPU seconds of a fit."""

    losses: NDArray[np.float64]
    seconds: float


def data_sets() -> dict[str, tuple[NDArray[np.float64], NDArray[Any]]]:
    """Return rows (n, d) and labels (n,) by name."""
    home = os.environ.get("BANDITLAB_DATA_HOME") or None
    try:
        vehicle = fetch_openml(data_id=54, data_home=home, as_frame=False, parser="liac-arff")
    except OSError as error:
        where = f"the cache in {home or 'scikit-learn_data'} (BANDITLAB_DATA_HOME)"
        raise UsageError(f"vehicle (OpenML 54) is not in {where} and could not be fetched: {error}") from None
    return {
        "digits": load_digits(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "vehicle": (vehicle.data.astype(np.float64), vehicle.target),
    }


def rows() -> list[Row]:
    """Return the table's lines, family by family."""
    found = []
    for C in C_GRID:
        regression = LogisticRegression(C=C, tol=1e-8, max_iter=10_000)
        found.append(Row(PROPER, f"C = {C:g}", make_pipeline(StandardScaler(), regression)))
    for passes in (1, 3):
        for B in B_GRID:
            found.append(online(THEORY, norm_bound=B, passes=passes))
    for passes in (1, 3, 10):
        for B in (10.0, 30.0):
            found.append(online(TUNED, norm_bound=B, passes=passes, settings={"regularization": RIDGE}))
    found.append(online(GRID, forecaster="b-grid", norm_bound=64.0))
    for m in (1, 16):
        found.append(online(SAMPLED, norm_bound=100.0, average="sample", samples=m))
    return found


def online(family: str, **settings: Any) -> Row:
    """Return the line of a wrapped forecaster."""
    passes = settings.get("passes", 1)
    words = [] if family == GRID else [f"B = {settings['norm_bound']:g}"]
    words += [f"m = {settings['samples']}"] if "samples" in settings else []
    words += [f"{passes} pass" + "es" * (passes > 1)]
    return Row(family, ", ".join(words), OnlineClassifier(**settings))


def score(line: Row, X: NDArray[np.float64], y: NDArray[Any]) -> Score:
    """Return a line's log loss on each fold, the others being its sample."""
    losses, seconds = [], []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        drawn = []
        for seed in range(DRAWS if line.family == SAMPLED else 1):
            estimator = line.estimator
            if line.family != PROPER:
                estimator.set_params(random_state=seed)
            start = time.process_time()
            estimator.fit(X[train], y[train])
            seconds.append(time.process_time() - start)
            drawn.append(log_loss(y[test], estimator.predict_proba(X[test]), labels=estimator.classes_))
        losses.append(np.mean(drawn))
    return Score(np.array(losses), float(np.median(seconds)))


def markdown(lines: list[Row], scores: dict[str, list[Score]]) -> str:
    """Return the table."""
    names = list(scores)
    text = ["| method | setting | " + " | ".join(names) + " | CPU s |", "|---|---|" + "---:|" * (len(names) + 1)]
    for i, line in enumerate(lines):
        cells = []
        for name in names:
            loss = f"{scores[name][i].losses.mean():.4f}"
            cells.append(f"**{loss}**" if i == best(lines, scores[name], line.family == PROPER) else loss)
        seconds = f"{scores['digits'][i].seconds:.2f}"
        text.append(f"| {line.family} | {line.setting} | " + " | ".join([*cells, seconds]) + " |")
    return "\n".join(text)


def best(lines: list[Row], scores: list[Score], proper: bool, family: str | None = None) -> int:
    """Return the line of least mean loss: of LogisticRegression or of the wrapper, or of one family of it."""
    among = [i for i, line in enumerate(lines) if (line.family == PROPER) == proper and family in (None, line.family)]
    return min(among, key=lambda i: float(scores[i].losses.mean()))


def verdict(name: str, lines: list[Row], scores: list[Score]) -> str:
    """Return a data set's row: both at their best settings, the wrapper's gain with its standard error, both at defaults."""
    theirs, ours = best(lines, scores, True), best(lines, scores, False)
    gain = scores[theirs].losses - scores[ours].losses
    theory, default = best(lines, scores, False, THEORY), find(lines, THEORY, "B = 100, 1 pass")
    shown = [theirs, ours, find(lines, PROPER, "C = 1"), default, theory]
    losses = [f"{scores[i].losses.mean():.4f}" for i in shown]
    settings = [f"({lines[theirs].setting})", f"({lines[ours].family}, {lines[ours].setting})"]
    cells = [f"{loss} {setting}" for loss, setting in zip(losses[:2], settings, strict=True)]
    error = gain.std(ddof=1) / np.sqrt(FOLDS)
    wins = f"{int((gain > 0).sum())} of {FOLDS}"
    return f"| {name} | " + " | ".join([*cells, f"{gain.mean():+.4f} ± {error:.4f}", wins, *losses[2:]]) + " |"


def find(lines: list[Row], family: str, setting: str) -> int:
    """Return the number of a line."""
    [found] = [i for i, line in enumerate(lines) if (line.family, line.setting) == (family, setting)]
    return found


def main() -> None:
    """Print the page; progress goes to stderr."""
    lines, sets = rows(), data_sets()
    for line in lines:
        line.estimator.fit(*sets["wine"])  # compiles, so that no measured fit does
    scores: dict[str, list[Score]] = {}
    for name, (X, y) in sets.items():
        scores[name] = []
        for line in lines:
            scores[name].append(score(line, X, y))
            loss = scores[name][-1].losses.mean()
            print(f"{name:10}{line.family:28}{line.setting:28}{loss:.4f}", file=sys.stderr, flush=True)
    print(HEAD)
    print(markdown(lines, scores))
    print(VERDICTS)
    print("\n".join(verdict(name, lines, scores[name]) for name in scores))
    print(NOTES)
