"""A server's metrics in Prometheus' format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily

BUCKETS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
PATHS = ("/decide", "/feedback", "/policy", "/health", "/ready", "/metrics", "/openapi.json", "/")


class _Counts:
    """A counter per value of a label, read from the policy's own counts."""

    def __init__(self, name: str, text: str, label: str, counts: Mapping[str, float]) -> None:
        self._name, self._text, self._label, self._counts = name, text, label, counts

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yield the current counts."""
        found = CounterMetricFamily(f"banditlab_{self._name}", self._text, labels=[self._label])
        for value, count in dict(self._counts).items():
            found.add_metric([value], count)
        yield found


class Metrics:
    """One server's counters in their own registry: requests, answers, and missing entries by column."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(
        self,
        imputed: Mapping[str, int],
        unknown: Mapping[str, int],
        late: Mapping[str, int],
        spent: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        own = CollectorRegistry()
        own.register(_Counts("imputed_fields", "Fields of rows that were filled in", "column", imputed))
        text = "Fields of rows whose category training did not have"
        own.register(_Counts("unknown_categories", text, "column", unknown))
        own.register(_Counts("late_feedback", "Answers to decisions that were closed as wrong", "correct", late))
        own.register(
            _Counts("cost", "Summed costs of the choices, each the mean of its class in training", "action", spent)
        )
        self.registry = own
        self.decisions = Counter("banditlab_decisions", "Decisions taken", registry=own)
        self._answers = Counter("banditlab_feedback", "Answers accepted", ["correct"], registry=own)
        self._requests = Counter("banditlab_requests", "Requests", ["path", "status"], registry=own)
        self._seconds = Histogram(
            "banditlab_request_seconds", "Seconds a request", ["path"], buckets=BUCKETS, registry=own
        )
        self.commits = Histogram(
            "banditlab_commit_seconds",
            "Seconds in which what came together was done and stored",
            buckets=BUCKETS,
            registry=own,
        )
        self.failures = Counter("banditlab_log_failures", "Commits that failed", registry=own)

    def feedback(self, correct: object) -> None:
        """Count an answer."""
        self._answers.labels("true" if correct else "false").inc()

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request; all unknown paths share one counter."""
        path = path if path in PATHS else "other"
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def text(self) -> bytes:
        """Return the metrics as text."""
        return generate_latest(self.registry)
