"""Streams that are made, not recorded, of kinds that tables come in: the world is fixed, a seed draws the rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Drawn = tuple[NDArray[np.float64], NDArray[np.int64]]


class Kind(NamedTuple):
    """How a stream is called, its number of classes and of rounds, and what draws so many rounds from a generator."""

    name: str
    n_classes: int
    rounds: int
    draw: Callable[[np.random.Generator, int], Drawn]


def waveforms(rng: np.random.Generator, T: int) -> Drawn:
    """Mixtures of two of three triangles in 21 columns, noise of variance 1, and 19 columns of noise.

    L. Breiman, J. Friedman, R. Olshen, C. Stone. Classification and regression trees. 1984, section 2.6.1.
    """
    places = np.arange(1, 22)
    one, two, three = (np.maximum(6.0 - np.abs(places - top), 0.0) for top in (7, 15, 11))
    first, second = np.stack([one, one, two]), np.stack([two, three, three])
    y, u = rng.integers(3, size=T), rng.random((T, 1))
    X = u * first[y] + (1.0 - u) * second[y] + rng.standard_normal((T, 21))
    return np.hstack([X, rng.standard_normal((T, 19))]), y


def spoken(rng: np.random.Generator, T: int) -> Drawn:
    """26 clusters in 40 directions of falling strength, seen through 617 columns that saturate."""
    world = np.random.default_rng([7, 26, 617])
    L = world.standard_normal((40, 617)) * np.arange(1, 41)[:, None] ** -0.5
    centres = 1.6 * world.standard_normal((26, 40))
    y = rng.integers(26, size=T)
    Z = centres[y] + rng.standard_normal((T, 40))
    return np.tanh(0.5 * (Z @ L) + 0.7 * rng.standard_normal((T, 617))), y


def clusters(rng: np.random.Generator, T: int, world: np.random.Generator, K: int) -> Drawn:
    """K clusters in 400 columns, each class's mean 0 but in 8 % of them."""
    centres = 1.2 * world.standard_normal((K, 400)) * (world.random((K, 400)) < 0.08)
    y = rng.integers(K, size=T)
    return centres[y] + rng.standard_normal((T, 400)), y


def genes(rng: np.random.Generator, T: int) -> Drawn:
    """Five `clusters`."""
    return clusters(rng, T, np.random.default_rng(13), 5)


def sequences(rng: np.random.Generator, T: int) -> Drawn:
    """Sixty places of four letters, one-hot; the ten in the middle tell three classes apart, one of them the more frequent."""
    world = np.random.default_rng(11)
    shares = np.repeat(world.dirichlet(3.0 * np.ones(4), size=(1, 60)), 3, axis=0)
    shares[:, 25:35] = world.dirichlet(0.3 * np.ones(4), size=(3, 10))
    y = rng.choice(3, p=[0.25, 0.25, 0.5], size=T)
    letters = (rng.random((T, 60, 1)) > np.cumsum(shares[y], axis=2)).sum(axis=2).clip(max=3)
    return np.eye(4)[letters].reshape(T, 240), y


def marks(rng: np.random.Generator, T: int) -> Drawn:
    """Ten classes in 256 columns of 0 and 1, each set with a probability of its class, from .2 to .6."""
    often = 0.2 + 0.4 * (np.random.default_rng(6).random((10, 256)) < 0.3)
    y = rng.integers(10, size=T)
    return (rng.random((T, 256)) < often[y]).astype(np.float64), y


def words(rng: np.random.Generator, T: int) -> Drawn:
    """Nine classes of texts of forty words out of 800: three in five from a few of the class's own, the others from all."""
    own = np.random.default_rng(7).dirichlet(0.05 * np.ones(800), size=9)
    y = rng.integers(9, size=T)
    return np.array([rng.multinomial(40, 0.6 * own[k] + 0.4 / 800) for k in y], dtype=np.float64), y


def glyphs(rng: np.random.Generator, T: int) -> Drawn:
    """26 classes of three shapes each in 16 columns of whole numbers from 0 to 15."""
    centres = np.random.default_rng(8).integers(0, 16, size=(26, 3, 16))
    y = rng.integers(26, size=T)
    X = centres[y, rng.integers(3, size=T)] + 2.0 * rng.standard_normal((T, 16))
    return np.clip(np.round(X), 0.0, 15.0), y


def vowels(rng: np.random.Generator, T: int) -> Drawn:
    """Eleven clusters in ten columns, moved by which of fifteen speakers it is."""
    world = np.random.default_rng(10)
    centres, speakers = world.standard_normal((11, 10)), 0.6 * world.standard_normal((15, 10))
    y = rng.integers(11, size=T)
    return centres[y] + speakers[rng.integers(15, size=T)] + 0.35 * rng.standard_normal((T, 10)), y


def counts(rng: np.random.Generator, T: int) -> Drawn:
    """Two classes of 57 counts, most of them 0, of rates that vary from row to row."""
    world = np.random.default_rng(9)
    tells, rate = world.standard_normal(57) * (world.random(57) < 0.5), np.exp(1.5 * world.standard_normal(57) - 2.0)
    y = (rng.random(T) < 0.4).astype(np.int64)
    rates = rate * np.exp(0.9 * tells * (y[:, None] - 0.5)) * rng.gamma(1.0, size=(T, 57))
    return rng.poisson(rates) * rng.exponential(0.5, size=(T, 1)), y


def patients(rng: np.random.Generator, T: int) -> Drawn:
    """Two noisy classes of a logistic model over twelve columns and thirteen yes/no ones, in units of their own."""
    world = np.random.default_rng(12)
    w, often, units = world.standard_normal(25), world.standard_normal(13), np.exp(2.0 * world.standard_normal(25))
    X = rng.standard_normal((T, 25))
    X[:, 12:] = X[:, 12:] > often
    return X * units, (rng.random(T) < 1.0 / (1.0 + np.exp(-(X - 0.3) @ w / 2.0))).astype(np.int64)


def tissues(rng: np.random.Generator, T: int) -> Drawn:
    """Two `clusters`."""
    return clusters(rng, T, np.random.default_rng(14), 2)


def faults(rng: np.random.Generator, T: int) -> Drawn:
    """One row in ten is of the second class, which all of 400 columns tell a little."""
    tells = np.random.default_rng(15).standard_normal(400)
    y = (rng.random(T) < 0.1).astype(np.int64)
    return rng.standard_normal((T, 400)) + 0.2 * np.outer(y, tells), y


def chatter(rng: np.random.Generator, T: int) -> Drawn:
    """Nothing in 400 columns tells which of five classes it is; four rows in five are of the first."""
    y = rng.choice(5, p=[0.8, 0.05, 0.05, 0.05, 0.05], size=T)
    return rng.standard_normal((T, 400)), y


KINDS = (
    Kind("waveforms", 3, 5000, waveforms),
    Kind("spoken letters", 26, 3000, spoken),
    Kind("genes", 5, 400, genes),
    Kind("sequences", 3, 3000, sequences),
    Kind("marks", 10, 1500, marks),
    Kind("words", 9, 1000, words),
    Kind("glyphs", 26, 5000, glyphs),
    Kind("vowels", 11, 990, vowels),
    Kind("counts", 2, 4500, counts),
    Kind("patients", 2, 300, patients),
    Kind("tissues", 2, 200, tissues),
    Kind("faults", 2, 500, faults),
    Kind("chatter", 5, 500, chatter),
)


def scaled(X: NDArray[np.float64], scaling: str) -> NDArray[np.float64]:
    """Return contexts of norm at most 1: "norm" as `banditlab compare` scales a table, or "standard", by their columns.

    "norm" brings columns to [0, 1] where their ranges differ by more than ten times. The longest row has norm 1.
    """
    ranges = np.ptp(X, axis=0)
    varying = ranges > 0.0
    if scaling == "standard":
        X = (X - X.mean(axis=0)) / np.where(varying, X.std(axis=0), 1.0)
    elif ranges[varying].max() > 10.0 * ranges[varying].min():
        X = (X - X.min(axis=0)) / np.where(varying, ranges, 1.0)
    return X * ((1.0 - 1e-12) / np.linalg.norm(X, axis=1).max())
