"""Answers, whole or streamed, as one form: what a client learns of each text, without times, names and paths."""

from __future__ import annotations

import json
from typing import Any

from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.http.any_request import Asked

Form = dict[str, Any]
"""``texts`` by index, and ``usage``."""


def events(body: str) -> list[Any]:
    """The data of server-sent events."""
    lines = [line for line in body.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines), body[:300]
    return [json.loads(line[6:]) for line in lines if line != "data: [DONE]"]


def form_of(asked: Asked, body: str, streamed: bool) -> Form:
    """The form of an answer."""
    if asked.path in ("/completion", "/infill"):
        return _llama_server(events(body) if streamed else json.loads(body), streamed)
    chat = asked.path != "/v1/completions"
    return _openai(events(body) if streamed else [json.loads(body)], chat, streamed)


def _openai(answers: list[Any], chat: bool, streamed: bool) -> Form:
    kind: Any = Completion if not chat else ChatCompletionChunk if streamed else ChatCompletion
    texts: dict[int, Form] = {}
    usage = None
    for answer in answers:
        kind.model_validate(_finished(answer) if streamed and not chat else answer)
        usage = answer.get("usage") or usage
        for choice in answer["choices"]:
            text = texts.setdefault(choice["index"], {"text": "", "reason": None, "told": {}})
            content = choice.get("delta", choice.get("message")) if chat else choice
            text["text"] += content.get("content" if chat else "text") or ""
            text["reason"] = choice["finish_reason"] or text["reason"]
            for name, values in (choice.get("logprobs") or {}).items():
                text["told"].setdefault(name, []).extend(values or [])
    counts = ("prompt_tokens", "completion_tokens", "total_tokens")
    return {"texts": texts, "usage": {name: usage[name] for name in counts} if usage else None}


def _finished(answer: Any) -> Any:
    """A chunk with the reason of an end, which the older type wants of every chunk, though only the last one has it."""
    choices = [{**each, "finish_reason": each["finish_reason"] or "stop"} for each in answer["choices"]]
    return {**answer, "choices": choices}


_FACTS = ("tokens_predicted", "tokens_evaluated", "stop_type", "stopping_word", "has_new_line", "truncated",
          "tokens_cached", "prompt", "model")  # fmt: skip


def _llama_server(answer: Any, streamed: bool) -> Form:
    answers = answer if isinstance(answer, list) else [answer]
    texts: dict[int, Form] = {}
    for each in answers:
        text = texts.setdefault(each["index"], {"text": "", "told": [], "tokens": []})
        text["text"] += each["content"]
        text["told"] += each.get("completion_probabilities", [])
        text["tokens"] += each["tokens"]
        if each["stop"]:
            text |= {name: each[name] for name in _FACTS}
            text["predicted_n"] = each["timings"]["predicted_n"]
            settings = each["generation_settings"]
            text["settings"] = {name: settings[name] for name in settings if name != "seed"}
    return {"texts": texts, "usage": None}
