"""What a server counts, for Prometheus. Numbers only: no text, no client."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from codespec.protocols import Statistics

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The counts of one server, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()

        def counter(name: str, what: str, *labels: str) -> Counter:
            return Counter(f"codespec_{name}", what, labels, registry=registry)

        self._requests = counter("requests", "Requests answered", "path", "status")
        self._waiting = Gauge("codespec_requests_waiting", "Requests in the queue", registry=registry)
        self._running = Gauge("codespec_requests_running", "Requests that generate", registry=registry)
        self._wait = Histogram("codespec_queue_seconds", "Time in the queue", buckets=_SECONDS, registry=registry)
        self._first = Histogram(
            "codespec_time_to_first_token_seconds", "From request to first token", buckets=_SECONDS, registry=registry
        )
        self._prompt = counter("prompt_tokens", "Tokens of prompts", "kept")
        self._tokens = counter("generated_tokens", "Tokens generated")
        self._drafted = counter("drafted_tokens", "Tokens proposed by drafts", "source")
        self._accepted = counter("accepted_tokens", "Tokens of drafts that were accepted", "source")
        self._passes = counter("target_passes", "Forward passes of the target")
        self._masks = counter("grammar_seconds", "Time in grammars: masks, and states moved on")
        self._prefill = counter("prefill_seconds", "Time reading prompts")
        self._spent = counter("generation_seconds", "Time generating, prompts included")

    def answered(self, path: str, status: int) -> None:
        """Count an answer; ``path`` is a route, not what a client wrote."""
        self._requests.labels(path, str(status)).inc()

    def queued(self, waiting: int, running: int) -> None:
        """How many requests wait and run now."""
        self._waiting.set(waiting)
        self._running.set(running)

    def begun(self, waited_s: float) -> None:
        """A request runs that waited so long."""
        self._wait.observe(waited_s)

    def first(self, seconds: float) -> None:
        """A request's first piece is there so long after it came."""
        self._first.observe(seconds)

    def spent(self, spent: Statistics) -> None:
        """A request was worked on, to its end or until it was stopped."""
        self._prompt.labels("cached").inc(spent.reused_tokens)
        self._prompt.labels("read").inc(spent.prefill_tokens)
        self._tokens.inc(spent.tokens)
        self._passes.inc(spent.target_calls)
        for source, counts in spent.by_source.items():
            self._drafted.labels(source).inc(counts.drafted)
            self._accepted.labels(source).inc(counts.accepted)
        self._masks.inc(spent.grammar_ms / 1e3)
        self._prefill.inc(spent.prefill_ms / 1e3)
        self._spent.inc(spent.total_ms / 1e3)

    def text(self) -> bytes:
        """All counts in the text format of Prometheus."""
        return generate_latest(self.registry)
