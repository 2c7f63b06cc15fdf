"""The study of sketches: its streams, and how lines take their place in the table; no long run is played here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.commands import sketch


def test_the_stream_is_what_its_page_says() -> None:
    X, y = sketch.embedding(5, 60, 4000, 0)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, rtol=1e-9)
    centres = np.array([X[y == k].mean(axis=0) for k in range(5)])
    s = np.square(np.linalg.svd(X - centres[y], compute_uv=False))
    assert s[5:].sum() / s.sum() < 0.5  # within a cluster: K directions, and a third noise
    assert 0.8 < s[12] / s[40] < 1.6  # the flipped labels add K - 1 directions more, the rest is even
    nearest = np.argmax(X @ centres.T, axis=1)
    assert 0.8 < np.mean(nearest == y) < 0.965
    X, y = sketch.digits(10, 65, 50, 1)
    assert X.shape == (50, 65)
    assert y.shape == (50,)
    X, y = sketch.fourier(10, 2048, 1900, 1)
    assert (X.shape, np.bincount(y[:1797]).tolist()) == (
        (1900, 2048),
        [178, 182, 177, 183, 181, 182, 181, 179, 174, 180],
    )
    again = {label: X[:1797][y[:1797] == label] for label in range(10)}
    assert all((again[label] == x).all(axis=1).any() for x, label in zip(X[1797:], y[1797:], strict=True))
    assert 0.85 < np.square(X).sum(axis=1).min() <= np.square(X).sum(axis=1).max() <= 1.0


def test_lines_replace_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketch, "TABLE", tmp_path / "second-order.csv")
    for form, rate in (("full", 1), ("diagonal", 2), ("full", 3)):
        sketch.write([["embedding", 20, 1024, "fastcb", form, 10, 1, "1.00", "2.00", str(rate)]])
    head, full, diagonal = sketch.TABLE.read_text().splitlines()
    assert head == ",".join(sketch.COLUMNS)
    assert full == "embedding,20,1024,fastcb,full,10,1,1.00,2.00,3"
    assert diagonal.endswith(",diagonal,10,1,1.00,2.00,2")
