"""Sparse LIBSVM files stay sparse: the same rows as dense ones, in the memory of the entries that are there."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from banditlab.cli.console import print_dry_run
from banditlab.comparison import comparison
from banditlab.engine import Sweep
from banditlab.envs import _sparse_table
from banditlab.envs._sparse_table import stays_sparse
from banditlab.envs.table import _CACHE, COPIES, Table
from banditlab.errors import UsageError


@pytest.fixture
def file(tmp_path):
    """Return a function that writes rows and labels as a LIBSVM file."""

    def write(X, y, name="t.svm"):
        ends = X.indptr
        lines = [
            f"{label} " + " ".join(f"{j + 1}:{float(v)!r}" for j, v in zip(X.indices[a:b], X.data[a:b], strict=True))
            for label, a, b in zip(y, ends[:-1], ends[1:], strict=True)
        ]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return str(tmp_path / name)

    return write


@pytest.fixture
def small_ones_too(monkeypatch):
    """Let small files stay sparse, so that they can be compared with their dense form."""
    _CACHE.clear()
    monkeypatch.setattr(_sparse_table, "LARGE", 0)
    yield
    _CACHE.clear()


def entries(seed=0, n=60, d=30, negative=False):
    """Return sparse rows whose last column is never 0, one column constant and one of zeros."""
    X = random_array((n, d), density=0.1, rng=np.random.default_rng(seed)).toarray()
    X[:, 3] *= 100.0
    X[:, d - 1] = np.linspace(2.0, 3.0, n)
    X[:, 5], X[:, 6] = 4.0, 0.0
    X[2, 7] = -1.0 if negative else 0.5
    return csr_array(X), np.random.default_rng(seed + 1).integers(0, 3, n)


RECIPES = [
    {},
    {"scaling": "none"},
    {"scaling": "minmax", "intercept": False},
    {"normalize": False},
    {"scaling": "maxabs"},
    {"scaling": "rowwise", "drop_columns": ["5", "29"]},  # some rows are short, some are zeros
    {"drop_columns": ["3", "0", "29"], "drop_rows": [0, 7]},
]


@pytest.mark.parametrize("settings", RECIPES, ids=str)
def test_rows_are_those_of_the_dense_table(file, small_ones_too, monkeypatch, settings):
    path = file(*entries(negative=settings.get("scaling") == "maxabs"))
    sparse = Table(path=path, horizon=130, **settings)
    assert sparse.sparse
    assert not sparse._table.X.data.flags.writeable
    _CACHE.clear()
    monkeypatch.setattr(_sparse_table, "LARGE", 2**40)
    dense = Table(path=path, horizon=130, **settings)
    assert not dense.sparse
    assert sparse.params() == dense.params()
    assert sparse.problem.n_features == dense.problem.n_features
    assert sparse.problem.radius == pytest.approx(dense.problem.radius, rel=1e-14)
    assert Table.identity(sparse.params()) == Table.identity(dense.params())
    for env in (sparse, dense):
        env.reset(seed=3)
    for (X, y), (U, v) in zip(sparse.blocks(130, 50), dense.blocks(130, 50), strict=True):
        assert X.format == "csr"
        np.testing.assert_allclose(X.toarray(), U, rtol=1e-14, atol=0.0)
        np.testing.assert_array_equal(y, v)
        assert np.linalg.norm(X.toarray(), axis=1).max() <= sparse.problem.radius
    for _ in range(130):
        steps = [env.step(0) for env in (sparse, dense)]
        np.testing.assert_allclose(steps[0][0], steps[1][0], rtol=1e-14, atol=0.0)
    np.testing.assert_array_equal(sparse.labels(), dense.labels())


def test_rows_of_tiny_numbers_have_norm_1_rowwise(file, small_ones_too):
    X, y = entries()
    X.data *= np.where(np.arange(X.nnz) % 2, 1e-200, 1e-300)
    table = Table(path=file(X, y), scaling="rowwise", intercept=False)._table
    norms = np.sqrt(table.X.power(2).sum(axis=1))
    np.testing.assert_allclose(norms[norms > 0.0], 1.0, rtol=1e-11)


@pytest.mark.parametrize("case", ["negative", "gap"])
def test_a_table_that_the_recipe_fills_becomes_dense(file, small_ones_too, case):
    X, y = entries(negative=case == "negative")
    settings = {"scaling": "minmax"} if case == "negative" else {"missing": "mean"}
    if case == "gap":
        X.data[0] = np.nan
    assert not Table(path=file(X, y), **settings).sparse
    if case == "negative":
        assert not Table(path=file(X, y), scaling="standard").sparse
        assert Table(path=file(X, y), scaling="none").sparse
        assert not Table(path=file(*entries()), order="file").sparse
        assert not Table(path=file(X, y), scaling="none", group=COPIES).sparse


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        (lambda X, y: X.data.fill(0.0), {}, "every feature is zero in every row"),
        (lambda X, y: y.fill(1), {}, "label column 'label' has one class only, 1"),
        (lambda X, y: None, {"drop_columns": ["30"]}, r"drop_columns \(--drop-column\): there is no column '30'"),
        (lambda X, y: None, {"drop_columns": [str(j) for j in range(30)]}, "no feature column is left"),
        (lambda X, y: X.data.__setitem__(0, np.nan), {}, "has 1 missing or infinite entries"),
        (lambda X, y: None, {"drop_rows": [60]}, "there is no row 60; rows are 0 ... 59"),
    ],
)
def test_wrong_ones_are_refused_in_the_words_for_tables(file, small_ones_too, change, settings, message):
    X, y = entries()
    change(X, y)
    with pytest.raises(UsageError, match=message):
        Table(path=file(X, y), **settings)


def test_which_files_stay_sparse():
    def large(nnz):
        return SimpleNamespace(shape=(1000, 10_000), nnz=nnz)

    assert stays_sparse(large(2_500_000))
    assert not stays_sparse(large(2_500_001))
    assert not stays_sparse(SimpleNamespace(shape=(1024, 8192), nnz=1))


def documents(file, n=3000, d=40_000, nonzeros=20):
    """Return a file of documents, 0.96 GB if they were dense, and with labels that depend on the first words."""
    rng = np.random.default_rng(5)
    places = np.sort(rng.integers(0, d // nonzeros, (n, nonzeros)) + np.arange(nonzeros) * (d // nonzeros), axis=1)
    y = places[:, 0] % 3
    places[:, 0] = y
    values = rng.uniform(0.5, 1.0, places.size)
    X = csr_array((values, places.ravel(), np.arange(0, places.size + 1, nonzeros)), shape=(n, d))
    return file(X, y, "documents.svm")


def test_long_rows_are_read_and_played_in_the_memory_of_their_entries(file, tmp_path):
    path = documents(file)
    tracemalloc.start()
    env = Table(path=path, horizon=2000)
    env.reset(seed=0)
    [(X, _)] = env.blocks(2000, 2000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * 2**20  # the file's text is 1.3 MB; dense it would be 960 MB
    assert env.row_bytes * 2000 == 12 * X.nnz + 8 * 2000


@pytest.mark.slow
def test_compare_on_long_sparse_rows(file, tmp_path, capsys):
    """No comparator, which needs dense rows; players without sparse kernels are skips."""
    spec = comparison(Path(documents(file)), "", rounds=300, repetitions=1)
    assert spec.norm_bounds == []
    sweep = Sweep(spec)
    print_dry_run(sweep, 1, tmp_path / "nothing")
    said = capsys.readouterr().out
    assert "norm_bounds" not in said  # which nobody gave
    [line] = [line for line in said.splitlines() if line.startswith("without comparators")]
    assert re.search(r"which on banditlab/Table-v0\(path=documents\.svm\) have .* d = 40,001 is too large", line)
    assert {run.label for run in sweep.plan.runs} >= {"gaptron", "epsilon-greedy-direct", "soba-diag", "uniform"}
    assert not {run.label for run in sweep.plan.runs} & {"fastcb", "squarecb", "linucb", "lints"}
    result = sweep.run(tmp_path / "out")
    assert not result.failures
    assert result.played == len(sweep.plan.runs)
    with pytest.raises(
        UsageError, match=r"norm_bounds: no comparator on .* d = 40,001 is too large .*; set norm_bounds"
    ):
        Sweep(spec.model_copy(update={"norm_bounds": [1.0]}))
