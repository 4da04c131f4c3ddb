"""``/completion`` and ``/infill`` as llama-server has them: the fields that llama.vim and llama.vscode send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from codespec.http.apis.common_fields import (
    MOST_CHANCES,
    Defaults,
    check_repeated,
    fitted,
    limits_of,
    order_of,
)
from codespec.http.apis.completions import prompts_of
from codespec.http.apis.constraints import Constrained
from codespec.http.apis.fields import Fields
from codespec.http.apis.openai_shapes import joined
from codespec.http.apis.timings import timings_of
from codespec.http.order import MiddlePrompt, Order, Piece, TextPrompt, Totals
from codespec.protocols import Snippet

MOST_SNIPPETS, MOST_RESPONSE_FIELDS = 1000, 100
_STOPPED = {"stop": "eos", "grammar": "eos", "length": "limit", "time": "limit", "cancelled": "none"}


def completion_order(fields: Fields, defaults: Defaults, constrained: Constrained) -> Order:
    """The order of ``POST /completion``; ``n_predict`` of -1, the default, is as many tokens as the server gives.

    Raises:
        HttpError: a field is wrong.
    """
    limits, count = limits_of(fields, defaults, -1, "n_predict", "max_tokens"), fields.integer("n_cmpl", 1, 1, 128)
    prompts = prompts_of(fields, count, limits, defaults, constrained)
    check_repeated(fields, "n_cmpl", "smaller", prompts, count, defaults.limits.body)
    return order_of(fields, defaults, constrained, prompts, limits, count, _logprobs(fields))


def infill_order(fields: Fields, defaults: Defaults, constrained: Constrained) -> Order:
    """The order of ``POST /infill``: the gap between ``input_prefix`` with ``prompt``, and ``input_suffix``.

    Raises:
        HttpError: a field is wrong.
    """
    limits = limits_of(fields, defaults, -1, "n_predict", "max_tokens")
    prefix, suffix = fields.text("input_prefix") + fields.text("prompt"), fields.text("input_suffix")
    extra = fields.objects("input_extra", MOST_SNIPPETS)
    for each in extra:
        if "text" not in each:
            raise each.bad("text", "a text")
    snippets = tuple(Snippet(each.short("filename", "tmp"), each.text("text")) for each in extra)
    place = fitted(fields, prefix, suffix, 1, limits, constrained.grammar is not None, snippets)
    prompt = place or MiddlePrompt(prefix, suffix, fields.short("path"), snippets)
    return order_of(fields, defaults, constrained, (prompt,), limits, logprobs=_logprobs(fields))


def _logprobs(fields: Fields) -> int | None:
    return fields.integer("n_probs", 0, 0, MOST_CHANCES) or None


def response_fields(fields: Fields) -> tuple[str, ...]:
    """The paths of the fields that the answer shall have, an empty one among them that is nowhere; empty: all.

    Raises:
        HttpError: one is no text.
    """
    found = fields.entries("response_fields", MOST_RESPONSE_FIELDS)
    if not all(isinstance(each, str) for each in found):
        raise fields.bad("response_fields", "a list of texts")
    return tuple(found)


class LlamaServerShape:
    """Answers as llama-server writes them.

    Args:
        several: whether the prompts were a list, as the answers are then.
        wanted: paths of fields, such as ``timings/prompt_n``: the whole answer has those alone.
        tokens: whether the whole answer tells the token ids.
    """

    done = b""

    def __init__(self, model: str, order: Order, several: bool, wanted: tuple[str, ...], tokens: bool) -> None:
        self._model, self._order, self._several, self._wanted = model, order, several, wanted
        self._tokens = tokens
        self._pieces: list[Piece] = []
        self._made: Counter[int] = Counter()  # tokens, by the index of the text

    def piece(self, piece: Piece) -> Iterator[dict[str, Any]]:
        """One event, where there is something to tell."""
        self._pieces.append(piece)
        self._made[piece.index] += len(piece.tokens)
        if piece.text or piece.tokens or piece.chances:
            yield {
                "index": piece.index,
                "content": piece.text,
                "tokens": list(piece.tokens),
                "stop": False,
                "id_slot": 0,
                "tokens_predicted": self._made[piece.index],
                **_probabilities(piece),
            }

    def last(self, totals: Totals) -> Iterator[dict[str, Any]]:
        """The counts and times of each text, without the text."""
        for each in joined(self._pieces):
            yield {**self._answer(each, totals), "content": "", "tokens": []}

    def whole(self, pieces: list[Piece], totals: Totals) -> Any:
        """The answer, or a list of them."""
        answers = [{**self._answer(each, totals), **_probabilities(each)} for each in joined(pieces)]
        if not self._tokens:
            answers = [{**each, "tokens": []} for each in answers]
        if self._wanted:
            answers = [_only(each, self._wanted) for each in answers]
        return answers if self._several else answers[0]

    def _answer(self, piece: Piece, totals: Totals) -> dict[str, Any]:
        prompt = self._order.prompts[min(piece.index // self._order.count, len(self._order.prompts) - 1)]
        own = totals.texts.get(piece.index, totals)
        return {
            "index": piece.index,
            "content": piece.text,
            "tokens": list(piece.tokens),
            "id_slot": 0,
            "stop": True,
            "model": self._model,
            "tokens_predicted": len(piece.tokens),
            "tokens_evaluated": own.prompt,
            "generation_settings": settings_of(self._order, totals.context),
            "prompt": prompt.text if isinstance(prompt, TextPrompt) else "",
            "has_new_line": "\n" in piece.text,
            "truncated": False,
            "stop_type": "word" if piece.stopped_by else _STOPPED.get(piece.reason or "", "none"),
            "stopping_word": piece.stopped_by,
            "tokens_cached": own.prompt + own.spent.tokens,
            "timings": timings_of(own),
        }


def settings_of(order: Order, context: int) -> dict[str, Any]:
    """``generation_settings`` of an answer: the sampling and the limits that were used."""
    sampling = order.sampling
    return {
        "n_ctx": context,
        "n_predict": order.limits.max_tokens,
        "seed": sampling.seed,
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "repeat_last_n": sampling.penalty_window,
        "repeat_penalty": sampling.repeat_penalty,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "stop": list(order.stops),
        "n_probs": order.logprobs or 0,
    }


def _probabilities(piece: Piece) -> dict[str, Any]:
    if not piece.chances:
        return {}

    def told(token: int, text: bytes, value: float) -> dict[str, Any]:
        return {"id": token, "token": text.decode("utf-8", "replace"), "bytes": list(text), "logprob": value}

    found = [
        {**told(each.token, each.text, each.logprob), "top_logprobs": [told(*best) for best in each.best]}
        for each in piece.chances
    ]
    return {"completion_probabilities": found}


def _only(answer: dict[str, Any], paths: tuple[str, ...]) -> dict[str, Any]:
    """The fields of these paths, under their paths; those that are not there are left out."""
    found: dict[str, Any] = {}
    for path in paths:
        value: Any = answer
        for part in path.split("/"):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            found[path] = value
    return found
