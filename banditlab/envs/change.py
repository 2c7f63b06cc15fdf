"""`[change]`: permute the labels after given rounds, at once or gradually."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.errors import UsageError, nearest
from banditlab.validation import at_least, one_of, true_or_false


class Change(NamedTuple):
    r"""How labels change during an episode. Contexts do not change.

    Parameters
    ----------
    labels
        "rotate": class k becomes :math:`(k + 1) \bmod K`; "swap": the classes 0 and 1 are exchanged.
    at
        Numbers of rounds after which a change begins. Each change is applied to the result of all earlier changes. An
        empty list means no change.
    over
        Number of rounds over which the fraction of changed labels rises linearly from 0 to 1. 0 means an abrupt change.
    back
        Whether every second change reverses the change before it.
    """

    labels: str
    at: tuple[int, ...]
    over: int = 0
    back: bool = False

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> Change:
        """Return the checked `[change]` table of a spec.

        Raises
        ------
        UsageError
            A key is unknown or missing, or a value is not allowed.
        """
        for name in written:
            if name not in cls._fields:
                raise UsageError(f"change: unknown key {name!r}{nearest(name, cls._fields)}")
        for name in ("labels", "at"):
            if name not in written:
                raise UsageError(f"change: the key {name!r} is required")
        at = written["at"] if isinstance(written["at"], list | tuple) else [written["at"]]
        rounds = tuple(sorted(at_least("change.at", value, 1) for value in at))
        if len(set(rounds)) < len(rounds):
            raise UsageError(f"change.at must not contain a number twice, got {written['at']!r}")
        labels = one_of("change.labels", written["labels"], ("rotate", "swap"))
        over = at_least("change.over", written.get("over", 0), 0)
        return cls(labels, rounds, over, true_or_false("change.back", written.get("back", False)))

    def as_settings(self) -> dict[str, Any]:
        """Return the change as plain data, which `of` reads."""
        return self._asdict() | {"at": list(self.at)}

    def applied(self, y: NDArray[Any], start: int, n_classes: int, rng: np.random.Generator) -> NDArray[Any]:
        """Apply all changes to labels (n,), or right/wrong indicators (n, K) of actions, of the rounds from `start` on.

        Each round and change draws one uniform.
        """
        k = self._counts(start, len(y), rng)
        if y.ndim == 1:
            return self._moved(y, k, n_classes)
        old = self._moved(np.arange(n_classes), -k[:, None], n_classes)  # the class whose bit each class receives
        return np.take_along_axis(y, old, axis=1)

    def _moved(self, classes: NDArray[Any], k: NDArray[np.int64], n_classes: int) -> NDArray[Any]:
        """Return the classes after k changes; a negative k undoes :math:`|k|` changes."""
        if self.labels == "rotate":
            return (classes + k) % n_classes
        return np.where((k % 2 == 1) & (classes < 2), 1 - classes, classes)

    def _counts(self, start: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return the number of changes that apply to each round (n,)."""
        since = np.arange(start, start + n)[:, None] - np.array(self.at)
        share = np.clip((since + 1) / self.over, 0.0, 1.0) if self.over else (since >= 0).astype(float)
        k = (rng.random(since.shape) < share).sum(axis=1)
        return k % 2 if self.back else k
