"""Columns of texts: their features are scikit-learn's, a row's are the table's, and a file of somebody else's is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from banditlab import Policy
from banditlab.comparison import prepared
from banditlab.envs import Table
from banditlab.envs.encoding import Encoder
from banditlab.envs.options import OPTIONS, with_words, words_of
from banditlab.errors import UsageError

WORDS = ["write", "sort", "prove", "a", "the", "list", "of", "theorem", "haiku", "rain", "python", "in", "two", "café"]
WORDS += [f"word{i}" for i in range(40)]


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 8))) for _ in range(48)]
    texts[9] = "a"  # no word of two letters
    return pd.DataFrame(
        {"prompt": texts, "n": rng.random(48), "kind": list("uvw") * 16, "ok": rng.integers(2, size=48)}
    )


@pytest.fixture
def table(tmp_path: Any, frame: pd.DataFrame) -> Any:
    def make(changed: pd.DataFrame | None = None, **settings: Any) -> Table:
        path = tmp_path / "t.csv"
        (frame if changed is None else changed).to_csv(path, index=False)
        given: dict[str, Any] = {"label": "ok", "text": ["prompt"], "horizon": 48, "order": "file", "scaling": "auto"}
        return Table(path=str(path), **given | settings)

    return make


def contexts(env: Table) -> np.ndarray:
    env.reset(seed=0)
    X = next(iter(env.blocks(48, 48)))[0]
    return X if isinstance(X, np.ndarray) else X.toarray()


def rows_of(env: Table, frame: pd.DataFrame) -> list[dict[str, Any]]:
    return frame[[column.name for column in env.encoder.columns]].to_dict("records")


@pytest.mark.parametrize("features", ["words:1000", "words:1", "svd:3"])
def test_features_are_those_of_scikit_learn_behind_the_others(table: Any, frame: pd.DataFrame, features: str) -> None:
    env = table(text_features=features, order="shuffle")
    env.reset(seed=4)
    X = next(iter(env.blocks(48, 48)))[0][np.argsort(env.row_order(48))]
    words = TfidfVectorizer(max_features=1 if features == "words:1" else 1000)
    expected = words.fit_transform(frame["prompt"])
    if features == "svd:3":
        expected = TruncatedSVD(3, random_state=0).fit(expected).transform(expected)
    else:
        expected = expected.toarray()
    p = expected.shape[1]
    np.testing.assert_allclose(X[:, -p:], expected / np.sqrt(2.0), rtol=1e-9, atol=1e-12)
    other = Table(path=env.path, label="ok", drop_columns=["prompt"], horizon=48)
    other.reset(seed=4)
    rest = next(iter(other.blocks(48, 48)))[0][np.argsort(other.row_order(48))]
    np.testing.assert_allclose(X[:, :-p], rest / np.sqrt(2.0), rtol=1e-12)
    assert np.linalg.norm(X, axis=1).max() <= env.problem.radius == 1.0
    assert np.linalg.norm(X[:, -p:], axis=1).max() < np.sqrt(0.5)
    assert not env._table.X.flags.writeable
    assert env.encoder.feature_names[-p:] == (
        ("prompt: 1", "prompt: 2", "prompt: 3")
        if features == "svd:3"
        else tuple(f"prompt: {word}" for word in words.get_feature_names_out())
    )


@pytest.mark.parametrize(
    "settings", [{}, {"drop_columns": ["n", "kind"]}, {"normalize": False, "text_features": "svd:2"}]
)
def test_a_row_and_a_saved_encoder_give_the_tables_contexts(
    table: Any, frame: pd.DataFrame, settings: dict[str, Any]
) -> None:
    env = table(order="shuffle", **settings)
    X = env._table.X
    saved = Encoder.from_bytes(env.encoder.to_bytes())
    assert saved.to_bytes() == env.encoder.to_bytes()
    assert saved.recipe == env.encoder.recipe
    assert (saved.d, saved.radius, saved.columns) == (env.problem.n_features, env.problem.radius, env.encoder.columns)
    for encoder in (env.encoder, saved):
        np.testing.assert_array_equal(encoder.transform(frame), X)
        np.testing.assert_array_equal([encoder.encode(row) for row in rows_of(env, frame)], X)
        np.testing.assert_array_equal([encoder.encode_counted(row)[0] for row in rows_of(env, frame)], X)


def test_in_order_the_words_are_those_of_the_first_eighth(table: Any, frame: pd.DataFrame) -> None:
    env, changed = table(), frame.copy()
    X, words = contexts(env), TfidfVectorizer().fit(frame["prompt"][:6])
    p = len(words.get_feature_names_out())
    assert not X[:6, -p:].any()
    np.testing.assert_allclose(X[6:, -p:], words.transform(frame["prompt"][6:]).toarray() / np.sqrt(2.0), rtol=1e-9)
    changed.loc[30:, "prompt"] = "unheard of"
    np.testing.assert_array_equal(contexts(table(changed))[:30], X[:30])


def test_missing_texts_have_no_words(table: Any, frame: pd.DataFrame) -> None:
    gaps = frame.copy()
    gaps.loc[7, "prompt"] = None
    with pytest.raises(UsageError, match="text column 'prompt' has 1 missing entries"):
        table(gaps)
    env = table(gaps, missing="indicator", order="shuffle")
    p = len(env.encoder.texts[0].words)
    assert not env._table.X[7, -p:].any()
    x, filled, _ = env.encoder.encode_counted({"n": 0.5, "kind": "u"})
    assert filled == ["prompt"]
    assert not x[-p:].any()
    strict = table(order="shuffle").encoder
    for row, message in (
        ({"n": 0.5, "kind": "u"}, "'prompt' must have"),
        ({"prompt": 3, "n": 1, "kind": "u"}, "be text"),
    ):
        with pytest.raises(UsageError, match=message):
            strict.encode(row)


def test_large_tables_of_words_stay_sparse(table: Any, frame: pd.DataFrame, monkeypatch: Any) -> None:
    dense = contexts(table())
    monkeypatch.setattr("banditlab.envs._sparse_table.LARGE", 10)
    monkeypatch.setattr("banditlab.envs._sparse_table.SHARE", 0.9)
    monkeypatch.setattr("banditlab.envs.table._CACHE", type(Table.__init__.__globals__["_CACHE"])())
    env = table()
    assert env.sparse
    np.testing.assert_array_equal(contexts(env), dense)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"text": ["promt"]}, "text (--text): there is no column 'promt'; did you mean 'prompt'?"),
        ({"text": ["ok"]}, "text (--text): there is no column 'ok'"),
        ({"text": ["n"], "drop_columns": ["prompt"]}, "text (--text): column 'n' is not text"),
        (
            {"text_features": "svd:999", "order": "shuffle"},
            "words of two or more letters, but svd:999 requires more than 999",
        ),
        ({"text": ["kind"]}, "column 'kind' has 0 words of two or more letters, but words:1000 requires more than 0"),
        ({"text_features": "svd:0"}, "must be words:N, N up to 100,000, or svd:N, N up to 999, got 'svd:0'"),
        ({"text_features": "words"}, "got 'words'"),
        ({"text_features": "words:²"}, "got 'words:²'"),
    ],
)
def test_a_fault_is_one_line(table: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        table(**settings)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_identity_names_texts_only_where_there_are_some(table: Any) -> None:
    path = table().path
    plain = Table.identity({"path": path, "label": "ok"})
    assert Table.identity({"path": path, "label": "ok", "text": [], "text_features": "words:1000"}) == plain
    assert Table.identity({"path": path, "label": "ok", "text": ["prompt"]})["text"] == ["prompt"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"words": ["rain", "rain"]}, "do not match"),
        ({"idf": [1.0]}, "do not match"),
        ({"idf": [1.0, -1.0]}, "idf"),
        ({"axes": [[1.1, 0.0]]}, "not orthonormal"),
        ({"axes": [[1.0]]}, "do not match"),
        ({"axes": [[1.0, 0.0], [1.0]]}, "not a saved encoder"),
        ({"words": [], "idf": []}, "do not match"),
        ({"name": "n"}, "two columns with the same name"),
        ({"code": "import os"}, "code"),
    ],
)
def test_texts_of_a_file_are_checked(table: Any, changed: dict[str, Any], message: str) -> None:
    saved = json.loads(table(order="shuffle").encoder.to_bytes())
    saved["texts"] = [{"name": "prompt", "words": ["rain", "sort"], "idf": [1.0, 2.0], "axes": [[0.0, 1.0]]}]
    assert Encoder.from_bytes(json.dumps(saved).encode()).feature_names[-1] == "prompt: 1"
    saved["texts"][0] |= changed
    with pytest.raises(UsageError, match=message) as error:
        Encoder.from_bytes(json.dumps(saved).encode())
    assert "not a saved encoder" in str(error.value)


@pytest.mark.parametrize("others", [["n", "kind"], []])
def test_a_policy_of_texts_decides_what_it_did_before_it_was_saved(
    table: Any, frame: pd.DataFrame, tmp_path: Any, others: list[str]
) -> None:
    path = table(frame[["prompt", *others, "ok"]]).path
    policy = Policy.train(path, "ok", text=["prompt"], text_features="svd:4", agent="uniform", settings={})
    policy.save(tmp_path / "p.policy")
    loaded = Policy.load(tmp_path / "p.policy")
    row = {"prompt": "prove the theorem", **{name: {"n": 0.5, "kind": "u"}[name] for name in others}}
    assert policy.describe()["columns"]["prompt"] == loaded.describe()["columns"]["prompt"] == "text"
    assert policy.decide(row).action == loaded.decide(row).action


def test_a_comparison_takes_a_column_of_texts(table: Any) -> None:
    path = table().path
    made = prepared(Path(path), "ok", text=["prompt"], agents="uniform")
    assert made.spec.environment[0].model_dump()["text"] == ["prompt"]
    assert {"text", "text_features"} <= set(OPTIONS)


def test_words_of_the_command_line_give_the_settings_that_they_are_made_of() -> None:
    settings = {"label": "y", "roles": {"a=b": "time", "c": "drop"}, "drop_rows": [3, 5]}
    words = ["--label", "y", "--role", "a=b=time", "--role", "c=drop", "--drop-row", "3", "--drop-row", "5"]
    assert [*words_of(settings | {"text": None, "missing": ""})] == words
    assert with_words({"label": "x", "drop_rows": [3], "roles": {"c": "time"}}, words) == settings
    assert [[*words_of({"header": value})] for value in ("yes", "no", "auto")] == [["--header"], ["--no-header"], []]
    assert [*words_of({"seed": 7})] == ["--seed", "7"]
