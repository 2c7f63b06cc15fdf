"""OpenML through scikit-learn's cache: a fabricated one, and a real one if BANDITLAB_DATA_HOME names it."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import socket
import time

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from banditlab.comparison import prepared_many
from banditlab.engine.plan import make_plan
from banditlab.envs import OpenML
from banditlab.envs.openml import DATA_HOME_VARIABLE
from banditlab.errors import UsageError

COLUMNS = [("weight", "numeric"), ("colour", "nominal"), ("id", "numeric"), ("kind", "nominal")]
ROWS = ["1.5,red,1,plum", "2.5,?,2,pear", "0.5,blue,3,pear", "1,red,4,plum"]


def cache(home, data_id, rows=ROWS, targets=("kind",), columns=COLUMNS):
    """Write one data set in the layout that scikit-learn's fetch_openml reads."""
    values = {"colour": "{red,blue,green}", "kind": "{plum,pear,fig}"}
    head = [f"@ATTRIBUTE {name} {values.get(name, 'NUMERIC')}" for name, _ in columns]
    arff = "\n".join(["@RELATION fruit", *head, "@DATA", *rows]) + "\n"
    features = [
        {
            "index": str(i),
            "name": name,
            "data_type": kind,
            "is_target": "true" if name in targets else "false",
            "is_ignore": "false",
            "is_row_identifier": "true" if name == "id" else "false",
            "number_of_missing_values": "0",
        }
        for i, (name, kind) in enumerate(columns)
    ]
    description = {
        "id": str(data_id),
        "name": "fruit",
        "version": "1",
        "description": "made up",
        "format": "ARFF",
        "status": "active",
        "file_id": str(data_id),
        "url": f"https://www.openml.org/data/v1/download/{data_id}/fruit.arff",
        "md5_checksum": hashlib.md5(arff.encode()).hexdigest(),
    }
    qualities = [{"name": "NumberOfInstances", "value": str(float(len(rows)))}]
    base = home / "openml" / "openml.org"
    for path, content in {
        f"api/v1/json/data/{data_id}": json.dumps({"data_set_description": description}),
        f"api/v1/json/data/features/{data_id}": json.dumps({"data_features": {"feature": features}}),
        f"api/v1/json/data/qualities/{data_id}": json.dumps({"data_qualities": {"quality": qualities}}),
        f"data/v1/download/{data_id}/fruit.arff": arff,
    }.items():
        file = base / f"{path}.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(content.encode()))


@pytest.fixture
def offline(monkeypatch):
    def refuse(*args, **kw):
        raise socket.gaierror("Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # scikit-learn waits between its attempts


@pytest.fixture
def home(tmp_path, offline):
    cache(tmp_path, 7)
    return tmp_path


def test_the_cached_set_through_the_recipe(home):
    env = OpenML(data_id=7, data_home=str(home), missing="indicator", normalize=False, intercept=False)
    # blue, red, colour missing; green never occurs; the row identifier is no feature.
    assert np.allclose(env._table.X, [[1.5, 0, 1, 0], [2.5, 0, 0, 1], [0.5, 1, 0, 0], [1, 0, 1, 0]])
    assert env._table.y.tolist() == [1, 0, 0, 1]
    assert env.classes == ["pear", "plum"]


def test_check_env_and_stream(home):
    made = gymnasium.make("banditlab/OpenML-v0", data_id=7, data_home=str(home), missing="mean", horizon=20)
    check_env(made.unwrapped)
    env = made.unwrapped
    env.reset(seed=0)
    [(X, y)] = env.blocks(20, 20)
    assert np.array_equal(np.concatenate([b[0] for b in env.blocks(20, 3)]), X)
    assert np.linalg.norm(X, axis=1).max() <= 1.0
    assert np.bincount(y).tolist() == [10, 10]  # five passes over two rows of each class


def test_the_variable_names_the_cache(home, monkeypatch):
    monkeypatch.setenv(DATA_HOME_VARIABLE, str(home))
    assert OpenML(data_id=7, missing="drop_rows").n_rows == 3


def test_numbers_are_compared_as_many_tables(home, monkeypatch):
    monkeypatch.setenv(DATA_HOME_VARIABLE, str(home))
    cache(home, 8, rows=["1,red,1,plum", "2,blue,2,pear", "3,red,3,plum", "3,blue,4,pear", "1,blue,5,plum"])
    made = prepared_many(["openml:7,8,9"], missing="mean", agents="uniform", repetitions=1)
    runs = make_plan(made.spec).runs
    assert [run.environment_label for run in runs] == [
        f"banditlab/OpenML-v0(data_id={i}, missing=mean)" for i in (7, 8)
    ]
    assert [run.rounds for run in runs] == [4, 5]
    assert made.n_faulty == 1
    assert made.faults[0].startswith("OpenML data set 9 is not cached")


def test_other_label_and_dropped_columns(home):
    env = OpenML(data_id=7, data_home=str(home), label="colour", missing="drop_rows", drop_columns=["kind"])
    assert env.classes == ["blue", "red"]
    assert env.problem.n_features == 2
    assert env.params()["label"] == "colour"


def test_identity_leaves_the_place_and_an_empty_list_out():
    settings = {"data_id": 7, "missing": "mean"}
    assert (
        OpenML.identity(settings | {"data_home": "here"}) == OpenML.identity(settings | {"data_home": ""}) == settings
    )
    none, empty = ({**settings, "drop_columns": value} for value in (None, []))
    assert OpenML.identity(none) == OpenML.identity(empty) == none


def test_offline_and_not_cached_is_one_line(home):
    with pytest.raises(UsageError) as caught:
        OpenML(data_id=8, data_home=str(home))
    message = str(caught.value)
    assert message.startswith(f"OpenML data set 8 is not cached in {home} and openml.org cannot be reached (")
    assert DATA_HOME_VARIABLE in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"data_id": 0}, "data_id must be at least 1"),
        (
            {"label": "kinds"},
            r"OpenML data set 7: label \(--label\): there is no column 'kinds'; did you mean 'kind'\?",
        ),
        (
            {"drop_columns": ["color"]},
            r"drop_columns \(--drop-column\): there is no column 'color'; did you mean 'colour'",
        ),
        (
            {},
            r"OpenML data set 7: column 'colour' has 1 missing or infinite entries \(the first in row 1, counted from 0\)",
        ),
        ({"label": "weight", "missing": "mean"}, "4 different values in 4 rows: it looks like a measurement"),
        ({"max_categories": 1}, "max_categories must be at least 2"),
        ({"drop_columns": ["weight", "colour"]}, "OpenML data set 7: no feature column is left"),
    ],
)
def test_errors(home, settings, message):
    with pytest.raises(UsageError, match=message):
        OpenML(**{"data_id": 7, "data_home": str(home)} | settings)


def test_no_target_and_one_class(home):
    cache(home, 9, targets=())
    with pytest.raises(UsageError, match=r"OpenML data set 9 has 0 targets \[\]; give label"):
        OpenML(data_id=9, data_home=str(home))
    assert OpenML(data_id=9, data_home=str(home), label="kind", missing="mean").problem.n_classes == 2
    cache(home, 10, rows=["1,red,1,plum", "2,blue,2,plum"])
    with pytest.raises(UsageError, match="OpenML data set 10: label column 'kind' has one class only, plum"):
        OpenML(data_id=10, data_home=str(home))


REAL = {54: (846, 19, 4), 36: (2310, 20, 7), 11: (625, 5, 3), 21: (1728, 22, 4), 26: (12960, 28, 5)}


@pytest.mark.skipif(not os.environ.get(DATA_HOME_VARIABLE), reason=f"{DATA_HOME_VARIABLE} names no cache of real sets")
@pytest.mark.parametrize("data_id", REAL)
def test_real_sets(data_id, tmp_path, offline):
    # A copy: scikit-learn deletes cached files it finds invalid.
    shutil.copytree(os.environ[DATA_HOME_VARIABLE], tmp_path / "home")
    env = OpenML(data_id=data_id, data_home=str(tmp_path / "home"))
    assert (env.n_rows, env.problem.n_features, env.problem.n_classes) == REAL[data_id]
    assert np.linalg.norm(env._table.X, axis=1).max() <= 1.0
