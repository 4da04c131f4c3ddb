"""What a completer has done since its models were loaded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from codespec.protocols import Statistics


@dataclass
class Counts:
    """Counters of generations.

    Attributes:
        totals: of all generations.
        completions: how many texts were generated.
        read_ahead: tokens that were prefilled before a request.
        pass_ms: what a target call over one token takes after the latest prompt.
    """

    totals: Statistics = field(default_factory=Statistics)
    completions: int = 0
    read_ahead: int = 0
    pass_ms: float = 0.0

    def add(self, latest: Statistics, pass_ms: float) -> None:
        """Count a completion that took ``pass_ms`` a pass of the target, and what its generation took."""
        self.totals.add(latest)
        self.completions += 1
        self.pass_ms = pass_ms

    def as_json(self) -> dict[str, Any]:
        """For ``Completer.status``: ``tokens_per_second`` of decoding, the prefill not counted; ``prefill_tokens`` of
        prompts of completions, prefetched ones included."""
        totals = self.totals
        decoding_s = (totals.total_ms - totals.prefill_ms) / 1e3
        return {
            "completions": self.completions,
            "tokens": totals.tokens,
            "tokens_per_second": round(totals.tokens / decoding_s, 1) if decoding_s > 0 else 0.0,
            "target_calls": totals.target_calls,
            "drafted": totals.drafted,
            "accepted": totals.accepted,
            "prefill_tokens": totals.prefill_tokens,
            "reused_tokens": totals.reused_tokens,
            "read_ahead": self.read_ahead,
            "pass_ms": round(self.pass_ms, 3),
        }
