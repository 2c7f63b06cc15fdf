"""The lab's ISOLET: a file of the user's own, in the layout of UCI's, on its principal components."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA

from banditlab.errors import UsageError
from banditlab.registry import classes_of, load_file

LAB = Path(__file__).parents[2]
FILE = LAB / "envs" / "isolet.py"
ROWS = 104


@pytest.fixture(scope="module")
def Isolet() -> Any:
    [(kind, cls)] = classes_of(load_file(FILE))
    assert kind == "envs"
    return cls


def features(columns: int = 617) -> np.ndarray:
    """Rows in [-1, 1] of rank about 60, as ISOLET's are of few directions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, 60)) * np.linspace(3.0, 0.1, 60) @ rng.standard_normal((60, columns))
    return np.round(X / np.abs(X).max(), 4)


def written(path: Path, X: np.ndarray, classes: int = 26) -> Path:
    """Write rows as UCI's file has them: no header, a comma and a blank between entries, letters 1. ... 26."""
    lines = [", ".join([*(f"{value:.4f}" for value in row), f"{i % classes + 1}."]) for i, row in enumerate(X)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def whole(env: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the file's rows in their own order."""
    env.reset(seed=0)
    [(X, y)] = env.blocks(ROWS, ROWS)
    back = np.argsort(env.row_order(ROWS))
    return X[back], y[back]


@pytest.mark.slow
def test_it_is_projected_onto_its_first_components(Isolet: Any, tmp_path: Path) -> None:
    given = features()
    env = Isolet(path=str(written(tmp_path / "isolet.data", given)), horizon=ROWS)
    X, y = whole(env)
    assert env.problem.n_features == 50
    assert env.classes == list(range(1, 27))
    np.testing.assert_array_equal(y, np.arange(ROWS) % 26)
    pca = PCA(50, svd_solver="full").fit(given)
    np.testing.assert_allclose(np.abs(X), np.abs(pca.transform(given)), atol=1e-9)
    assert env.variation == pytest.approx(pca.explained_variance_ratio_.sum())
    assert np.linalg.norm(X, axis=1).max() <= env.problem.radius
    few = Isolet(path=str(tmp_path / "isolet.data"), components=3, horizon=ROWS)
    np.testing.assert_allclose(whole(few)[0], X[:, :3], atol=1e-12)


@pytest.mark.slow
def test_the_file_is_what_counts_not_its_place(Isolet: Any, tmp_path: Path) -> None:
    plain = written(tmp_path / "isolet.data", features())
    packed = tmp_path / "other.data.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    moved = plain.rename(tmp_path / "moved.data")
    one, two = (Isolet(path=str(path), horizon=ROWS) for path in (moved, packed))
    np.testing.assert_array_equal(whole(one)[0], whole(two)[0])
    told = Isolet.identity({"path": str(moved), "components": 50})
    assert "path" not in told
    moved.write_bytes(moved.read_bytes().replace(b"1.\n", b"2.\n", 1))
    assert Isolet.identity({"path": str(moved), "components": 50}) != told


def test_as_arff(Isolet: Any, tmp_path: Path) -> None:
    given = features()
    head = "\n".join(["@relation isolet", *(f"@attribute f{j + 1} numeric" for j in range(617))])
    letters = ",".join(str(k) for k in range(1, 27))
    rows = "\n".join(",".join([*(f"{v:.4f}" for v in row), str(i % 26 + 1)]) for i, row in enumerate(given))
    text = f"{head}\n@attribute class {{{letters}}}\n@data\n{rows}\n"
    (tmp_path / "isolet.arff").write_text(text, encoding="utf-8")
    plain = written(tmp_path / "isolet.data", given)
    arff, data = (whole(Isolet(path=str(path), horizon=ROWS)) for path in (tmp_path / "isolet.arff", plain))
    np.testing.assert_allclose(arff[0], data[0], atol=1e-12)
    np.testing.assert_array_equal(arff[1], data[1])


@pytest.mark.few(1)
@pytest.mark.slow
def test_what_is_not_isolet_is_refused(Isolet: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no file .*nowhere.data \(ISOLET is not fetched: give"):
        Isolet(path=str(tmp_path / "nowhere.data"))
    with pytest.raises(UsageError, match=r"there is no file .*ISOLET is not fetched"):
        Isolet.identity({"path": str(tmp_path / "nowhere.data"), "components": 50})
    with pytest.raises(UsageError, match="there is no file"):
        Isolet(path=str(tmp_path))  # a folder
    narrow = written(tmp_path / "narrow.data", features(30))
    with pytest.raises(UsageError, match=r"no column '617'.*ISOLET is not fetched"):
        Isolet(path=str(narrow))
    wide = written(tmp_path / "wide.data", features(640))
    with pytest.raises(UsageError, match="ISOLET is not fetched"):
        Isolet(path=str(wide))
    fewer = written(tmp_path / "fewer.data", features(), classes=25)
    with pytest.raises(UsageError, match=r"617 features and 25 classes, not 617 and 26"):
        Isolet(path=str(fewer))
    for components, said in ((0, "at least 1"), (618, "at most 617")):
        with pytest.raises(UsageError, match=said):
            Isolet(path=str(fewer), components=components)
    holed = features()
    holed[3, 5] = np.nan
    written(tmp_path / "holed.data", holed)
    with pytest.raises(UsageError, match=r"numeric except for 1 of 104 entries .*in row 3"):
        Isolet(path=str(tmp_path / "holed.data"))


PLAN = """
import sys
from banditlab.registry import registry
registry().open_lab(".")
from banditlab.engine import Sweep, read_spec
from banditlab.errors import UsageError
spec, path, *small = sys.argv[1:]
plan = Sweep(read_spec(spec, [f"environment.0.path={path}", *small])).plan
print(len(plan.runs), len(plan.skipped))
try:
    Sweep(read_spec(spec, ["environment.0.path=/nowhere/isolet.data"]))
except UsageError as error:
    print(error)
"""


@pytest.mark.slow
def test_the_spec_plans_on_a_file_of_its_layout(tmp_path: Path) -> None:
    """In another process: this one's registry is not to know the lab."""
    path = written(tmp_path / "isolet.data", features())
    command = [
        sys.executable,
        "-c",
        PLAN,
        "runs/boosting-tables-isolet.toml",
        str(path),
        f"rounds={ROWS}",
        "checkpoints=[83]",
    ]
    out = subprocess.run(command, cwd=LAB, capture_output=True, text=True, check=True).stdout.splitlines()
    assert out[0] == "13 0"  # DT twice, the paper's nine others, ours, and the exact derivative
    assert "there is no file /nowhere/isolet.data (ISOLET is not fetched" in out[1]
