"""Stand-ins for engines that cannot run here: each takes the fields of its engine's own schema and no others.

They were written from these schemas, and are no proof that a real engine answers: Ollama's ``api/types.go``
(``GenerateRequest``, ``Options``), OpenAI's and DeepSeek's references of ``/completions``, Mistral's of
``/v1/fim/completions``, LM Studio's of ``/v1/completions``, llama-cpp-python's ``server/types.py``, SGLang's
``srt/entrypoints/openai/protocol.py`` and vLLM's ``entrypoints/openai/completion/protocol.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.remote.faulty_engine import Answer, Request

Number = (int, float)
_COMMON: dict[str, Any] = dict.fromkeys(("model", "prompt"), str) | {
    "stream": bool,
    "max_tokens": int,
    "stop": (str, list),
}
_COMMON |= dict.fromkeys(("temperature", "top_p"), Number)
_PENALTIES = dict.fromkeys(("frequency_penalty", "presence_penalty"), Number)
_OPENAI = _COMMON | _PENALTIES | dict.fromkeys(("seed", "logprobs", "n", "best_of"), int)
_OPENAI |= {"suffix": str, "user": str, "echo": bool, "logit_bias": dict, "stream_options": dict}
_SERVED = _OPENAI | dict.fromkeys(("top_k", "min_tokens"), int) | {"prompt": (str, list), "stop_token_ids": list}
_SERVED |= dict.fromkeys(("min_p", "repetition_penalty"), Number)
_SERVED |= dict.fromkeys(("ignore_eos", "skip_special_tokens", "return_token_ids"), bool)
FIELDS: dict[str, dict[str, Any]] = {
    "openai": _OPENAI,
    "deepseek": _COMMON | _PENALTIES | {"suffix": str, "echo": bool, "logprobs": int, "stream_options": dict},
    "mistral": _COMMON | {"suffix": str, "random_seed": int, "min_tokens": int, "metadata": dict},
    "lmstudio": _COMMON | _PENALTIES | {"seed": int, "top_k": int, "repeat_penalty": Number, "logit_bias": dict},
    "llama-cpp-python": _OPENAI | {"top_k": int, "min_p": Number, "repeat_penalty": Number, "grammar": str},
    "vllm": _SERVED | {"structured_outputs": dict, "cache_salt": str, "priority": int},
    "sglang": _SERVED | {"ebnf": str, "json_schema": str, "regex": str, "rid": str},
    "ollama": {
        "format": (str, dict),
        "keep_alive": (str, int),
        "options": dict,
        "stream": bool,
        "raw": bool,
        **dict.fromkeys(("model", "prompt", "suffix", "system", "template"), str),
    },
}
OPTIONS = {
    *("num_keep", "seed", "num_predict", "top_k", "top_p", "min_p", "typical_p", "repeat_last_n", "temperature"),
    *(
        "repeat_penalty",
        "presence_penalty",
        "frequency_penalty",
        "stop",
        "num_ctx",
        "num_batch",
        "num_gpu",
        "num_thread",
    ),
}
"""Of Ollama; others it only warns of."""
PATHS = {
    "deepseek": "/beta/completions",
    "mistral": "/v1/fim/completions",
    "ollama": "/api/generate",
}
MODELS = {"vllm": "Qwen/Qwen2.5-Coder-7B", "sglang": "Qwen/Qwen2.5-Coder-7B", "ollama": "qwen2.5-coder:7b"}
KINDS = sorted(FIELDS)


@dataclass
class StandIn:
    """An engine of one kind that writes a fixed text.

    Attributes:
        texts: the pieces that it streams.
        reason: why it says it ended.
        refuses: fields that it says it does not take.
        bodies: of the requests, in order.
    """

    kind: str
    texts: Sequence[str] = ("ret", "urn", " 1\n")
    reason: str = "stop"
    refuses: tuple[str, ...] = ()
    model: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    stream: Callable[[Request, StandIn], None] | None = None

    def answer(self, request: Request) -> None:
        """As ``faulty_engine.Answer``."""
        name = self.model or MODELS.get(self.kind, "stand-in")
        if request.command == "GET":
            if self.kind == "ollama" and request.path == "/api/tags":
                return request.answer({"models": [{"name": name, "model": name}]})
            if request.path == "/v1/models":
                card: dict[str, Any] = {"id": name, "object": "model", "owned_by": "me"}
                card = {**card, "max_model_len": 2048} if self.kind in ("vllm", "sglang") else card
                return request.answer({"object": "list", "data": [card]})
            return request.answer({"detail": "Not Found"}, 404)
        body = json.loads(request.engine.seen[-1][2])
        self.bodies.append(body)
        if request.path != PATHS.get(self.kind, "/v1/completions"):
            return request.answer({"detail": "Not Found"}, 404)
        if said := self._refusal(body):
            return request.answer({"error": {"message": said, "type": "invalid_request_error"}}, 400)
        if self.stream is not None:
            return self.stream(request, self)
        return request.pieces(*map(self.line, range(len(self.texts) + 1)), *self.done)

    @property
    def answers(self) -> list[Answer]:
        """For ``FaultyEngine.answers``."""
        return [self.answer]

    def _refusal(self, body: dict[str, Any]) -> str:
        fields = FIELDS[self.kind]
        for name, value in body.items():
            if name not in fields or name in self.refuses:
                return f"Extra inputs are not permitted: {name}"
            if not isinstance(value, fields[name]) or (isinstance(value, bool) and fields[name] is not bool):
                return f"Input should be another type: {name}"
        if unknown := set(body.get("options", ())) - OPTIONS:
            return f"unknown options {unknown}"
        if self.kind == "ollama" and body.get("raw") and "suffix" in body:
            return "raw mode does not support template, system, or context"
        if body.get("max_tokens", 1) < 1 or not body.get("stream"):
            return "max_tokens must be at least 1, and a stream was expected"
        return ""

    @property
    def done(self) -> list[bytes]:
        """The end of the stream."""
        return [] if self.kind == "ollama" else [b"data: [DONE]\n\n"]

    def line(self, index: int) -> bytes:
        """The piece of this index; the one after the last ends the text."""
        last = index == len(self.texts)
        text, reason = ("", self.reason) if last else (self.texts[index], None)
        if self.kind == "ollama":
            counts = {"prompt_eval_count": 9, "prompt_eval_duration": 2_000_000, "eval_count": index}
            more = {"done_reason": reason, **counts, "eval_duration": 3_000_000} if last else {}
            return json.dumps({"model": "m", "response": text, "done": last, **more}).encode() + b"\n"
        choice: dict[str, Any] = {"index": 0, "finish_reason": reason}
        choice.update({"delta": {"content": text}} if self.kind == "mistral" else {"text": text})
        event: dict[str, Any] = {"id": "x", "object": "text_completion", "model": "m", "choices": [choice]}
        if self.kind in ("vllm", "sglang", "mistral"):
            event["usage"] = {"prompt_tokens": 9, "completion_tokens": min(index + 1, len(self.texts))}
        return b"data: " + json.dumps(event).encode() + b"\n\n"
