"""``POST /v1/fim/completions`` as Mistral has it: what it does not know is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codespec.http.common_fields import Defaults, fitted, language_of, limits_of, sampling_of, stops_of
from codespec.http.constraints import Constrained
from codespec.http.errors import HttpError
from codespec.http.fields import Fields
from codespec.http.openai_shapes import ChatShape, usage_of
from codespec.http.order import MiddlePrompt, Order, Totals

STATUS = 422
"""What a bad field is refused with."""
_KNOWN = frozenset({"model", "prompt", "suffix", "stream", "stop", "metadata"})
_SAMPLING = frozenset({"temperature", "top_p", "max_tokens", "min_tokens", "random_seed"})
_OWN = frozenset({"language", "path", "fit", "session"})


def fim_order(fields: Fields, defaults: Defaults, constrained: Constrained) -> Order:
    """The order of a request.

    Raises:
        HttpError: a field is wrong, unknown or missing.
    """
    for name in sorted(fields.names() - _KNOWN - _SAMPLING - _OWN):
        raise HttpError(STATUS, f"{name[:80]}: there is no such field here", name[:80], "extra_forbidden")
    if "prompt" not in fields:
        raise HttpError(STATUS, "prompt: a text is wanted", "prompt", "missing")
    prefix, suffix = fields.text("prompt"), fields.text("suffix")
    limits = limits_of(fields, defaults, defaults.max_tokens, "max_tokens")
    place = fitted(fields, prefix, suffix, 1, limits, False)
    return Order(
        (place or MiddlePrompt(prefix, suffix, fields.text("path")),),
        sampling_of(fields, defaults.sampling, seed="random_seed"),
        limits,
        stops=stops_of(fields),
        grammar=constrained.grammar,
        language=language_of(fields) or "python",
        draft=defaults.draft,
        session=fields.text("session"),
    )


class FimShape(ChatShape):
    """Answers as Mistral writes them: chats' messages; a stream's last chunk has the counts."""

    def last(self, totals: Totals) -> Iterator[dict[str, Any]]:
        """The counts, always."""
        yield {**self._chunk([]), "usage": usage_of(totals)}
