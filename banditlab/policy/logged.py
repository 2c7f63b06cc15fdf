"""A log for evaluation: the names of its actions, and its rounds in parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditlab.offpolicy.log import Floats, Log
from banditlab.policy.choice import Name
from banditlab.policy.container import Parts

CHUNK = 2**16
"""Number of rounds of a part."""
OBJECTS = 2**14
"""Number of rounds of a part whose rounds are first Python objects, which take more memory."""
HASHES = 64
"""Number of features to which the texts of a row are hashed. Hashing is not fitted, so features do not depend on later
rounds.
"""
LARGEST = 1e100
"""Largest absolute value of a context's entries; larger ones are clipped, because models square them."""


class Source(NamedTuple):
    """A log with a summary of all its parts."""

    names: Sequence[Name]
    """The names of the K actions."""
    rounds: int
    parts: Iterable[tuple[Log, Floats, Any]]
    """Each part has m rounds, with finite contexts (m, d), and with the rows that a policy encodes, or with encoded
    contexts. The target is the policy that the log names, otherwise uniform choice; unknown propensities are 1.
    """
    faults: Counter[str]
    """Each fault in the log, with the number of lines that have it."""
    notes: list[str]
    """Notes on the log, one sentence each."""
    estimated: bool = False
    """Whether the propensities are not known."""
    learning: bool = False
    """Whether the policy that made the decisions is known to learn."""
    policy: Parts | None = None
    """The policy that made the decisions, if the log contains it."""


def hashed(words: Iterable[list[tuple[str, float]]]) -> Any:
    """Return hashed features (m, HASHES) in CSR form; each of the m rows is a list of words with their values."""
    from sklearn.feature_extraction import FeatureHasher

    return FeatureHasher(HASHES, input_type="pair").transform(words)


def hashes(ids: Iterable[str | float]) -> NDArray[np.uint64]:
    """Return the hashes (n,) of the ids."""
    import pandas as pd

    return pd.util.hash_array(np.array([*ids], object), categorize=False)


def doubled(ids: list[NDArray[np.uint64]]) -> Counter[str]:
    """Count the ids, by their hashes, that repeat an earlier id."""
    every = np.sort(np.concatenate([np.zeros(0, np.uint64), *ids]))  # np.unique takes 60 bytes for each
    return +Counter({"repeated ids": int(np.count_nonzero(every[1:] == every[:-1]))})
