"""What Prometheus scrapes: requests by route and status, texts, batches and queues by model."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """One application's figures, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._requests = Counter("wenlei_requests", "Requests answered", ["route", "status"], registry=self.registry)
        self._seconds = Histogram(
            "wenlei_request_seconds",
            "Time to the end of the answer",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._texts = Counter("wenlei_texts", "Texts classified", ["model"], registry=self.registry)
        self._batches = Histogram(
            "wenlei_batch_texts", "Texts run together", ["model"], buckets=TEXTS, registry=self.registry
        )
        self._queued = Gauge("wenlei_queue_texts", "Texts that wait or run", ["model"], registry=self.registry)

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self._requests.labels(route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def batch(self, model: str, size: int) -> None:
        """Count one batch that ran."""
        self._texts.labels(model).inc(size)
        self._batches.labels(model).observe(size)

    def render(self, queues: dict[str, int]) -> bytes:
        """All figures, as text; `queues`: texts that wait or run now, by model."""
        for model, depth in queues.items():
            self._queued.labels(model).set(depth)
        return generate_latest(self.registry)
