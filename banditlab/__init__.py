"""banditlab: contextual bandits with one bit of feedback, read against the best offline logistic model."""

from __future__ import annotations

__version__ = "0.1.0"
