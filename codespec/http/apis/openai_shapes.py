"""Answers as OpenAI writes them."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any

from codespec.http.apis.timings import timings_of
from codespec.http.order import Piece, ToldToken, Totals
from codespec.http.sse import DONE

FINGERPRINT = "b-codespec"
"""Of what answers; a ``b`` and a number at llama-server."""
_REASONS = {"stop": "stop", "length": "length", "time": "length", "grammar": "length", "cancelled": "stop"}


def counts_of(totals: Totals) -> dict[str, Any]:
    """OpenAI's counts, and the times that llama-server tells beside them."""
    return {"usage": usage_of(totals), "timings": timings_of(totals)}


def usage_of(totals: Totals) -> dict[str, Any]:
    """Tokens that were read and written, and what of a prediction was accepted."""
    spent, window = totals.spent, totals.spent.by_source["window"]
    return {
        "prompt_tokens": totals.prompt,
        "completion_tokens": spent.tokens,
        "total_tokens": totals.prompt + spent.tokens,
        "prompt_tokens_details": {"cached_tokens": min(spent.reused_tokens, totals.prompt)},
        "completion_tokens_details": {
            "accepted_prediction_tokens": window.accepted,
            "rejected_prediction_tokens": window.drafted - window.accepted,
            "reasoning_tokens": 0,
            "audio_tokens": 0,
        },
    }


class CompletionShape:
    """``text_completion``.

    Args:
        usage: whether a stream ends with the counts.
    """

    kind, prefix, done = "text_completion", "cmpl-", DONE
    chunk_kind = "text_completion"

    def __init__(self, model: str, usage: bool = False) -> None:
        self._head = {"id": self.prefix + secrets.token_hex(12), "created": int(time.time()), "model": model}
        self._head["system_fingerprint"] = FINGERPRINT
        self._usage = usage
        self._latest: list[dict[str, Any]] = []  # the chunk that may be the last one, to which the times belong

    def piece(self, piece: Piece) -> Iterator[dict[str, Any]]:
        """The chunks of a piece, where there is something to tell; that of a text's end comes before the next one."""
        yield from self._latest
        self._latest = []
        chunks = list(self._chunks(piece))
        if piece.reason is not None and not self._usage:
            self._latest = [chunks.pop()]
        yield from chunks

    def last(self, totals: Totals) -> Iterator[dict[str, Any]]:
        """The counts, where they were asked for, and the times, in the last chunk as at llama-server."""
        if self._usage:
            yield {**self._chunk([]), **counts_of(totals)}
        for chunk in self._latest:
            yield {**chunk, "timings": timings_of(totals)}

    def _chunks(self, piece: Piece) -> Iterator[dict[str, Any]]:
        if piece.text or piece.reason is not None or piece.chances:
            yield self._chunk([self._choice(piece)])

    def whole(self, pieces: list[Piece], totals: Totals) -> dict[str, Any]:
        """The body of an answer that is not streamed: all choices, and the tokens counted."""
        choices = [self._whole_choice(each) for each in joined(pieces)]
        return {**self._head, "object": self.kind, "choices": choices, **counts_of(totals)}

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        extra = {"usage": None} if self._usage else {}
        return {**self._head, "object": self.chunk_kind, "choices": choices, **extra}

    def _choice(self, piece: Piece) -> dict[str, Any]:
        chances = completion_logprobs(piece.chances) if piece.chances else None
        return {"index": piece.index, "text": piece.text, "logprobs": chances, "finish_reason": reason_of(piece)}

    def _whole_choice(self, piece: Piece) -> dict[str, Any]:
        return self._choice(piece)


class ChatShape(CompletionShape):
    """``chat.completion``."""

    kind, prefix, chunk_kind = "chat.completion", "chatcmpl-", "chat.completion.chunk"

    def __init__(self, model: str, usage: bool = False) -> None:
        super().__init__(model, usage)
        self._begun: set[int] = set()

    def _chunks(self, piece: Piece) -> Iterator[dict[str, Any]]:
        """The role before the first text, the reason of the end after the last."""
        if piece.index not in self._begun:
            self._begun.add(piece.index)
            yield self._delta(piece.index, {"role": "assistant", "content": ""})
        if piece.text or piece.chances:
            yield self._delta(piece.index, {"content": piece.text}, _chat_chances(piece))
        if piece.reason is not None:
            yield self._delta(piece.index, {}, reason=reason_of(piece))

    def _delta(
        self, index: int, delta: dict[str, Any], chances: dict[str, Any] | None = None, reason: str | None = None
    ) -> dict[str, Any]:
        told = chances or {"logprobs": None}
        return self._chunk([{"index": index, "delta": delta, **told, "finish_reason": reason}])

    def _whole_choice(self, piece: Piece) -> dict[str, Any]:
        message = {"role": "assistant", "content": piece.text, "refusal": None}
        return {"index": piece.index, "message": message, **_chat_chances(piece), "finish_reason": reason_of(piece)}


def joined(pieces: Sequence[Piece]) -> list[Piece]:
    """One piece for each text."""
    texts: dict[int, list[Piece]] = {}
    for piece in pieces:
        texts.setdefault(piece.index, []).append(piece)
    return [
        Piece(
            index,
            "".join(each.text for each in parts),
            tuple(token for each in parts for token in each.tokens),
            tuple(chance for each in parts for chance in each.chances),
            parts[-1].reason,
            parts[-1].stopped_by,
        )
        for index, parts in sorted(texts.items())
    ]


def reason_of(piece: Piece) -> str | None:
    """Why a text has ended, in OpenAI's words; None before."""
    return None if piece.reason is None else _REASONS[piece.reason]


def completion_logprobs(chances: Sequence[ToldToken]) -> dict[str, Any]:
    """The older form, lists side by side: ``tokens`` are what each token adds to the text, ``text_offset`` the
    characters of the text before it."""
    return {
        "tokens": [each.shown for each in chances],
        "token_logprobs": [each.logprob for each in chances],
        "top_logprobs": [_best(each) for each in chances],
        "text_offset": [each.offset for each in chances],
    }


def _best(chance: ToldToken) -> dict[str, float]:
    """The best tokens by their texts; that of the chosen one is as in ``tokens``."""
    return {chance.shown if each == chance.token else _named(text): value for each, text, value in chance.best}


def _named(text: bytes) -> str:
    """The text of a token or, of one that is a part of a character, its bytes as OpenAI writes them."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in text)


def _chat_chances(piece: Piece) -> dict[str, Any]:
    if not piece.chances:
        return {"logprobs": None}

    def told(text: bytes, value: float) -> dict[str, Any]:
        return {"token": text.decode("utf-8", "replace"), "logprob": value, "bytes": list(text)}

    content = [
        {**told(each.text, each.logprob), "top_logprobs": [told(text, value) for _, text, value in each.best]}
        for each in piece.chances
    ]
    return {"logprobs": {"content": content, "refusal": None}}
