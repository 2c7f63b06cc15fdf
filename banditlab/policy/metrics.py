"""A server's metrics in the Prometheus format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily

BUCKETS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
PATHS = ("/decide", "/feedback", "/policy", "/health", "/ready", "/metrics", "/openapi.json", "/")


COUNTS = (
    ("imputed_fields", "Fields of rows that were imputed", "column"),
    ("unknown_categories", "Fields of rows with a category that did not occur in training", "column"),
    ("late_feedback", "Feedback on decisions that were already closed as wrong", "correct"),
    ("cost", "Sum of the costs of the choices, each the mean cost of its class in training", "action"),
)
"""The counters of a policy: name, text and label of each."""


class Metrics:
    """A server's counters, in a separate registry.

    `counts` are one mapping per entry of `COUNTS`: from each value of the metric's label (such as a column's name) to
    the policy's count.
    """

    media_type = CONTENT_TYPE_LATEST

    def __init__(self, *counts: Mapping[str, float]) -> None:
        own, self._counts = CollectorRegistry(), counts
        own.register(self)  # it has the methods of a collector
        self.registry = own
        self.decisions = Counter("banditlab_decisions", "Decisions taken", registry=own)
        self._answers = Counter("banditlab_feedback", "Answers accepted", ["correct"], registry=own)
        self._requests = Counter("banditlab_requests", "Requests", ["path", "status"], registry=own)
        self._seconds = Histogram(
            "banditlab_request_seconds", "Seconds a request", ["path"], buckets=BUCKETS, registry=own
        )
        self.commits = Histogram(
            "banditlab_commit_seconds",
            "Seconds for processing and storing a batch of requests",
            buckets=BUCKETS,
            registry=own,
        )
        self.failures = Counter("banditlab_log_failures", "Commits that failed", registry=own)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yield the policy's current counts."""
        for (name, text, label), counts in zip(COUNTS, self._counts, strict=True):
            found = CounterMetricFamily(f"banditlab_{name}", text, labels=[label])
            for value, count in dict(counts).items():
                found.add_metric([value], count)
            yield found

    def feedback(self, correct: object) -> None:
        """Count one feedback."""
        self._answers.labels("true" if correct else "false").inc()

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request; all unknown paths share one counter."""
        path = path if path in PATHS else "other"
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def text(self) -> bytes:
        """Return the metrics as text."""
        return generate_latest(self.registry)
