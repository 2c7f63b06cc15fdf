"""Text columns as features: TF-IDF weights of words, or their truncated SVD, fitted by scikit-learn.

The words, their frequencies and the SVD's axes are saved, not scikit-learn's objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from banditlab.envs._planted import JUST_BELOW_ONE
from banditlab.errors import UsageError

Floats = NDArray[np.float64]
WORDS = 1000
"""The number of words to which an SVD is applied."""
MOST = {"words": 100_000, "svd": WORDS - 1}
PART = 8
"""If rows are in order, the first of this many equal parts determines the words, and its own text features are 0."""


def parsed(written: str) -> tuple[str, int]:
    """Return, for example, "svd" and 64 for "svd:64", or raise a UsageError."""
    kind, _, number = written.partition(":")
    if kind in MOST and number.isdecimal() and number.isascii() and 1 <= int(number) <= MOST[kind]:
        return kind, int(number)
    raise UsageError(
        f"text_features (--text-features) must be words:N, N up to {MOST['words']:,}, or svd:N, N up to {MOST['svd']:,}, "
        f"got {written!r}"
    )


@dataclass(frozen=True, eq=False)
class TextFeatures:
    """The features of one text column: rows of norm at most 1.

    Attributes
    ----------
    name
        The column.
    words, idf
        The words, and their inverse document frequencies (n_words,).
    axes
        The SVD's axes (m, n_words), orthonormal; empty if the features are the words' TF-IDF weights.
    """

    name: str
    words: tuple[str, ...]
    idf: Floats
    axes: Floats

    @classmethod
    def fit(cls, name: str, texts: Sequence[str], written: str, source: str) -> Self:
        """Fit the features to texts (n,); raise a UsageError if these have too few words."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        kind, number = parsed(written)
        made, least = TfidfVectorizer(max_features=number if kind == "words" else WORDS), number if kind == "svd" else 0
        try:
            counted = made.fit_transform(texts)
            n = counted.shape[1]
        except ValueError:  # an empty vocabulary
            n = 0
        if n <= least:
            raise UsageError(
                f"{source}: text (--text): column {name!r} has {n} words of two or more letters, but {written} "
                f"requires more than {least}"
            )
        axes = TruncatedSVD(number, random_state=0).fit(counted).components_ if least else np.zeros((0, n))
        return cls(name, tuple(map(str, made.get_feature_names_out())), made.idf_, axes)

    @property
    def names(self) -> list[str]:
        """The features' names."""
        return [f"{self.name}: {word}" for word in (self.words if not len(self.axes) else range(1, len(self.axes) + 1))]

    @cached_property
    def vectorizer(self) -> Any:
        """The fitted TfidfVectorizer."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        made = TfidfVectorizer(vocabulary=list(self.words))
        made.idf_ = self.idf
        return made

    def rows(self, texts: Sequence[str]) -> Any:
        """Return the features (n, m) of texts (n,), in CSR form unless they come from an SVD."""
        counted = self.vectorizer.transform(texts) * JUST_BELOW_ONE
        return counted @ self.axes.T if len(self.axes) else counted

    def plain(self) -> dict[str, Any]:
        """Return the object as plain data."""
        return {"name": self.name, "words": list(self.words), "idf": self.idf.tolist(), "axes": self.axes.tolist()}

    @classmethod
    def of(cls, name: str, words: list[str], idf: list[float], axes: list[list[float]]) -> Self:
        """Return the object that `plain` described, or raise a ValueError if its parts are inconsistent."""
        n = len(words)
        found = np.array(axes) if axes else np.zeros((0, n))
        if not words or len(set(words)) < n or len(idf) != n or found.shape != (len(axes), n):
            raise ValueError(f"the words of column {name[:60]!r} do not match their frequencies")
        if not np.allclose(found @ found.T, np.eye(len(found)), rtol=0.0, atol=1e-9):
            raise ValueError(f"the axes of column {name[:60]!r} are not orthonormal")
        return cls(name, tuple(words), np.array(idf), found)
