"""``POST /v1/fim/completions`` as Mistral has it: what it does not know is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from codespec.http.apis.common_fields import Defaults, fitted, language_of, limits_of, sampling_of, stops_of
from codespec.http.apis.constraints import Constrained
from codespec.http.apis.fields import Fields
from codespec.http.apis.openai_shapes import ChatShape, counts_of, reason_of
from codespec.http.errors import HttpError
from codespec.http.order import MiddlePrompt, Order, Piece, Totals
from codespec.languages import USUAL

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
    for name in sorted(fields.all().keys() - _KNOWN - _SAMPLING - _OWN):
        raise HttpError(STATUS, f"{name[:80]}: there is no such field here", name[:80], "extra_forbidden")
    if "prompt" not in fields:
        raise HttpError(STATUS, "prompt: a text is wanted", "prompt", "missing")
    prefix, suffix = fields.text("prompt"), fields.text("suffix")
    limits = limits_of(fields, defaults, defaults.max_tokens, "max_tokens")
    place = fitted(fields, prefix, suffix, 1, limits, False)
    return Order(
        prompts=(place or MiddlePrompt(prefix, suffix, fields.short("path")),),
        sampling=sampling_of(fields, defaults.sampling, seed="random_seed"),
        limits=limits,
        stops=stops_of(fields),
        grammar=constrained.grammar,
        language=language_of(fields) or USUAL,
        draft=defaults.draft,
        session=fields.short("session"),
    )


class FimShape(ChatShape):
    """Answers as Mistral writes them: chats' messages; a stream's last chunk has the reason of the end and the counts,
    and every chunk has a choice with a content, which clients read unasked."""

    _reason: str | None = None

    def piece(self, piece: Piece) -> Iterator[dict[str, Any]]:
        """The chunks of a text; the reason of its end waits for the counts."""
        self._reason = reason_of(piece)
        yield from super().piece(replace(piece, reason=None))

    def last(self, totals: Totals) -> Iterator[dict[str, Any]]:
        """The reason of the end, and the counts."""
        yield {**self._delta(0, {"content": ""}, reason=self._reason), **counts_of(totals)}
