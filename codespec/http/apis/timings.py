"""Times as llama-server tells them."""

from __future__ import annotations

from typing import Any

from codespec.http.order import Totals


def timings_of(totals: Totals) -> dict[str, Any]:
    """``prompt_n`` tokens were read, ``cache_n`` were there, ``predicted_n`` were written."""
    spent = totals.spent
    predicted_ms = max(0.0, spent.total_ms - spent.prefill_ms)
    return {
        "cache_n": spent.reused_tokens,
        **_rates("prompt", spent.prefill_tokens, spent.prefill_ms),
        **_rates("predicted", spent.tokens, predicted_ms),
        "draft_n": spent.drafted,
        "draft_n_accepted": spent.accepted,
    }


def _rates(name: str, count: int, ms: float) -> dict[str, Any]:
    return {
        f"{name}_n": count,
        f"{name}_ms": round(ms, 3),
        f"{name}_per_token_ms": round(ms / count, 4) if count else 0.0,
        f"{name}_per_second": round(1e3 * count / ms, 3) if ms > 0 else 0.0,
    }
