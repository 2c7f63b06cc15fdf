"""ISOLET from a file of one's own: spoken letters, 617 features on their first principal components.

The boosting paper's tables (runs/boosting-tables-isolet.toml) need it; nothing is fetched.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from banditlab.envs import Table
from banditlab.errors import UsageError
from banditlab.validation import at_least

FEATURES, LETTERS = 617, 26
WANTED = (
    "ISOLET is not fetched: give the file isolet1+2+3+4.data with isolet5.data of UCI appended to it (7,797 rows of 617 "
    "features and a letter 1 ... 26, no header), plain or gzipped, or OpenML's data set 300 as ARFF"
)


class Isolet(Table):
    """The rows of a user's ISOLET file projected onto their first principal components, in a fresh seeded order per pass.

    Components are those of the whole file, centred, not scaled, the largest loading of each above 0: the paper's
    "first 50 principal components, which contained 80% of the variation"; `variation` says what share they hold. No
    intercept, no normalisation: the features are for trees.

    Parameters
    ----------
    path
        The file. A run's identity contains its content (sha256), not its place.
    components
        How many principal components are kept, 1 to 617.
    horizon
        T, rounds of an episode; in a sweep, set by the sweep's `rounds`.

    Raises
    ------
    UsageError
        There is no such file, or it is not laid out as ISOLET is.
    """

    id: ClassVar[str] = "lab/Isolet-v0"
    summary: ClassVar[str] = "ISOLET, spoken letters, from your own file, on its first principal components"
    reference: ClassVar[str] = "Fanty, Cole: Spoken letter recognition, NIPS 1990; UCI machine learning repository"
    version: ClassVar[int] = 1

    def __init__(self, *, path: str, components: int = 50, horizon: int = 10_000) -> None:
        self.components = at_least("components", components, 1)
        if self.components > FEATURES:
            raise UsageError(f"components must be at most {FEATURES}, got {components}")
        super().__init__(
            path=there(path),
            label="class" if ".arff" in Path(path).suffixes else str(FEATURES),
            header="no",
            scaling="none",
            normalize=False,
            intercept=False,
            horizon=horizon,
        )

    @classmethod
    def identity(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the settings with the file's content hash, and its format, in the place of its path."""
        there(str(settings["path"]))
        return super().identity({**settings, "header": "no"})

    def _load(self) -> Any:
        try:
            rows = super()._load()
        except UsageError as error:
            raise UsageError(f"{error} ({WANTED})") from None
        X = np.asarray(rows.X)
        if X.shape[1] != FEATURES or len(rows.classes) != LETTERS:
            found = f"{X.shape[1]} features and {len(rows.classes)} classes"
            raise UsageError(f"{self.path}: has {found}, not {FEATURES} and {LETTERS} ({WANTED})")
        Z, self.variation = projected(X, self.components)
        Z.flags.writeable = False
        radius = float(np.linalg.norm(Z, axis=1).max()) * (1.0 + 1e-12)
        return rows._replace(X=Z, radius=radius, encoder=None)


def there(path: str) -> str:
    """Return the path of a file that is there, or say what is wanted."""
    if not Path(path).is_file():
        raise UsageError(f"path: there is no file {path} ({WANTED})")
    return str(path)


def projected(X: np.ndarray, components: int) -> tuple[np.ndarray, float]:
    """Return the rows (n, d), centred, on their first principal components (n, m), and the share of the variance these hold."""
    centred = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    V = vectors[:, ::-1][:, :components]
    V = V * np.sign(V[np.abs(V).argmax(axis=0), np.arange(V.shape[1])])
    return np.ascontiguousarray(centred @ V), float(values[::-1][:components].sum() / values.sum())
