"""What each kind of engine is sent, and how its stream is read. Each is sent only fields that it knows."""

from __future__ import annotations

import json
from typing import Any

from codespec.protocols import Sampling
from codespec.remote.errors import Away
from codespec.remote.streaming.asked import Asked, Body, Streamer, Way
from codespec.remote.streaming.events import DONE, Piece, event, number, record, table, text_of, whole

_SAMPLERS = ["penalties", "top_k", "top_p", "min_p", "temperature"]


class LlamaServer(Streamer):
    """llama.cpp's ``llama-server`` (``tools/server/server-schema.cpp``)."""

    ways: tuple[Way, ...] = ("ids", "fields", "prefix")
    snippets = "files"
    prefill = 0
    written = frozenset(("gbnf", "json"))
    heals = True

    def request(self, asked: Asked) -> tuple[str, Body]:
        sampling, parts = asked.sampling, asked.parts
        body: Body = {
            "stream": True,
            "cache_prompt": True,
            # While it reads a prompt, it sees that nobody listens any more only when it has something to say.
            "return_progress": True,
            "n_predict": asked.max_tokens,
            "samplers": _SAMPLERS,
            "temperature": sampling.temperature,
            "top_k": sampling.top_k,
            "top_p": sampling.top_p,
            "min_p": sampling.min_p,
            "seed": asked.seed,
            "repeat_penalty": sampling.repeat_penalty,
            "frequency_penalty": sampling.frequency_penalty,
            "presence_penalty": sampling.presence_penalty,
            "repeat_last_n": sampling.penalty_window,
        }
        if asked.model:
            body["model"] = asked.model  # of use to a server with several
        if asked.grammar is not None:
            notation, text = asked.grammar
            body.update({"grammar": text} if notation == "gbnf" else {"json_schema": json.loads(text)})
        elif asked.lead:
            body["grammar"] = f"root ::= {_literal(asked.lead)} .*"
        if asked.way == "ids":
            bias: list[list[float]] = [[token, False] for token in asked.banned]
            bias += [[token, value] for token, value in sampling.logit_bias.items() if value > float("-inf")]
            return "/completion", {**body, "prompt": list(asked.prompt), "logit_bias": bias}
        if asked.way == "fields" and parts.fills:
            files = [{"filename": each.path, "text": each.text} for each in parts.files]
            fill = {"input_prefix": parts.prefix, "input_suffix": parts.suffix, "input_extra": files}
            return "/infill", {**body, **fill, "prompt": parts.begun}
        return "/completion", {**body, "prompt": asked.text}

    def piece(self, line: bytes, host: str) -> Piece | None:
        found = event(line, host)
        if found is None or found is DONE:
            return None if found is None else Piece(end="stop")
        if "prompt_progress" in found:
            progress = table(found["prompt_progress"])
            total, kept = whole(progress.get("total")), whole(progress.get("cache"))
            return Piece(prompt_tokens=None if total is None else total - min(total, kept or 0), reused_tokens=kept)
        timings = table(found.get("timings"))
        tokens = found.get("tokens")
        ended = found.get("stop") is True
        return Piece(
            text_of(found.get("content")),
            tuple(each for each in tokens if isinstance(each, int)) if isinstance(tokens, list) else (),
            "" if not ended else "length" if found.get("stop_type") == "limit" else "stop",
            whole(found.get("tokens_predicted")),
            whole(timings.get("prompt_n")),
            whole(timings.get("cache_n")),
            number(timings.get("prompt_ms")),
            number(timings.get("predicted_per_token_ms")),
        )


class OpenAi(Streamer):
    """Any engine that answers ``/v1/completions`` as OpenAI does."""

    path = "/v1/completions"
    most_suffix = 4096

    def request(self, asked: Asked) -> tuple[str, Body]:
        body: Body = {"model": asked.model, "stream": True, "max_tokens": asked.max_tokens, **self.prompt(asked)}
        return self.path, {**body, **self.sampling(asked), **self.constraint(asked)}

    def prompt(self, asked: Asked) -> Body:
        """The fields of the prompt."""
        if asked.way == "ids":
            return {"prompt": list(asked.prompt)}
        if asked.way == "fields" and asked.parts.suffix:
            return {"prompt": asked.text, "suffix": asked.parts.suffix}
        return {"prompt": asked.text}

    def sampling(self, asked: Asked) -> Body:
        """The fields of the sampling; truncation says nothing where it is greedy."""
        sampled = {"top_p": asked.sampling.top_p} if asked.sampling.temperature > 0 else {}
        return {"temperature": asked.sampling.temperature, "seed": asked.seed, **_penalties(asked.sampling), **sampled}

    def constraint(self, asked: Asked) -> Body:
        """The fields of the grammar."""
        return {}

    def piece(self, line: bytes, host: str) -> Piece | None:
        found = event(line, host)
        if found is None or found is DONE:
            return None if found is None else Piece(end="stop")
        usage = table(found.get("usage"))
        choices = found.get("choices")
        choice = table(choices[0]) if isinstance(choices, list) and choices else {}
        tokens = choice.get("token_ids")
        reason = choice.get("finish_reason")
        if reason in ("error", "insufficient_system_resource"):
            raise Away(f"{host} ended the text for want of resources")
        prompt = whole(usage.get("prompt_tokens"))
        cached = whole(table(usage.get("prompt_tokens_details")).get("cached_tokens"))
        return Piece(
            self.text(choice),
            tuple(each for each in tokens if isinstance(each, int)) if isinstance(tokens, list) else (),
            "" if not reason else "stop" if reason == "stop" else "length",
            whole(usage.get("completion_tokens")),
            None if prompt is None else prompt - min(prompt, cached or 0),
            cached,
        )

    def text(self, choice: dict[str, Any]) -> str:
        """The text of a choice."""
        return text_of(choice.get("text"))


class DeepSeek(OpenAi):
    """DeepSeek's FIM completion (beta)."""

    ways: tuple[Way, ...] = ("fields",)
    path = "/beta/completions"
    snippets = "paths"
    default_model = "deepseek-chat"
    models = ""

    def sampling(self, asked: Asked) -> Body:
        fields = super().sampling(asked)
        del fields["seed"]  # it knows none
        return fields


class Mistral(OpenAi):
    """Mistral's FIM completion (Codestral), whose layout has the suffix first."""

    ways: tuple[Way, ...] = ("fields",)
    path = "/v1/fim/completions"
    snippets = "pluses"
    most_suffix = 1 << 20
    default_model = "codestral-latest"
    models = ""

    def sampling(self, asked: Asked) -> Body:
        sampled = {"top_p": asked.sampling.top_p} if asked.sampling.temperature > 0 else {}
        return {"temperature": asked.sampling.temperature, "random_seed": asked.seed, **sampled}

    def text(self, choice: dict[str, Any]) -> str:
        content = table(choice.get("delta")).get("content")
        if isinstance(content, list):  # of chunks
            return "".join(text_of(table(each).get("text")) for each in content)
        return text_of(content)


class LmStudio(OpenAi):
    """LM Studio, whose ``/v1/completions`` takes no suffix."""

    ways: tuple[Way, ...] = ("markers", "prefix")
    most_suffix = 768

    def sampling(self, asked: Asked) -> Body:
        sampled = {"top_k": asked.sampling.top_k} if asked.sampling.temperature > 0 else {}
        return {**super().sampling(asked), "repeat_penalty": asked.sampling.repeat_penalty, **sampled}


class LlamaCppPython(OpenAi):
    """``python -m llama_cpp.server``."""

    most_suffix = 768
    written = frozenset(("gbnf",))

    def sampling(self, asked: Asked) -> Body:
        own = asked.sampling
        sampled = {"top_k": own.top_k, "min_p": own.min_p} if own.temperature > 0 else {}
        return {**super().sampling(asked), "repeat_penalty": own.repeat_penalty, **sampled}

    def constraint(self, asked: Asked) -> Body:
        return {"grammar": asked.grammar[1]} if asked.grammar is not None else {}


class _Served(OpenAi):
    """vLLM and SGLang: tokens in and out, and their counts along with them."""

    ways: tuple[Way, ...] = ("ids", "markers", "fields", "prefix")
    most_suffix = 768
    prefill = 1
    written = frozenset(("gbnf", "json"))
    any_top_k = -1

    def sampling(self, asked: Asked) -> Body:
        own = asked.sampling
        sampled = {"top_k": own.top_k or self.any_top_k, "min_p": own.min_p} if own.temperature > 0 else {}
        body = {**super().sampling(asked), "repetition_penalty": own.repeat_penalty, **sampled}
        body["stream_options"] = {"include_usage": True, "continuous_usage_stats": True}
        if asked.way == "ids":
            body.update({"return_token_ids": True, "stop_token_ids": [*asked.ends, *asked.banned]})
        return body


class Vllm(_Served):
    """vLLM (``entrypoints/openai/completion/protocol.py``)."""

    def constraint(self, asked: Asked) -> Body:
        if asked.grammar is None:
            return {}
        notation, text = asked.grammar
        return {"structured_outputs": {"grammar": text} if notation == "gbnf" else {"json": json.loads(text)}}


class Sglang(_Served):
    """SGLang (``srt/entrypoints/openai/protocol.py``)."""

    def constraint(self, asked: Asked) -> Body:
        if asked.grammar is None:
            return {}
        notation, text = asked.grammar
        return {"ebnf" if notation == "gbnf" else "json_schema": text}


class Ollama(Streamer):
    """Ollama (``api/types.go``): a prompt with a suffix goes through the model's template, any other is raw."""

    prefill = 1
    models = "/api/tags"
    written = frozenset(("json",))

    def request(self, asked: Asked) -> tuple[str, Body]:
        own = asked.sampling
        options: Body = {
            "num_predict": asked.max_tokens,
            "temperature": own.temperature,
            "seed": asked.seed,
            "top_k": own.top_k,
            "top_p": own.top_p,
            "min_p": own.min_p,
            "repeat_penalty": own.repeat_penalty,
            "repeat_last_n": own.penalty_window,
            **_penalties(own),
        }
        if asked.context:
            options["num_ctx"] = asked.context
        body: Body = {"model": asked.model, "stream": True, "options": options, "prompt": asked.text}
        if asked.grammar is not None:
            body["format"] = json.loads(asked.grammar[1])
        # Without a suffix a template makes a chat of the prompt.
        filled = asked.way == "fields" and asked.parts.suffix
        return "/api/generate", {**body, **({"suffix": asked.parts.suffix} if filled else {"raw": True})}

    def piece(self, line: bytes, host: str) -> Piece | None:
        found = record(line, host)
        if found is None:
            return None
        ended = found.get("done") is True
        count, spent = whole(found.get("eval_count")), number(found.get("eval_duration"))
        read = number(found.get("prompt_eval_duration"))
        return Piece(
            text_of(found.get("response")),
            (),
            "" if not ended else "length" if found.get("done_reason") == "length" else "stop",
            count,
            whole(found.get("prompt_eval_count")),
            None,
            None if read is None else read / 1e6,
            spent / 1e6 / count if spent is not None and count else None,
        )


def _literal(text: str) -> str:
    """A text as GBNF writes it."""
    signs = (each if each.isalnum() and each.isascii() else f"\\U{ord(each):08X}" for each in text)
    return f'"{"".join(signs)}"'


def _penalties(sampling: Sampling) -> Body:
    """The penalties of OpenAI's kind, where they do anything."""
    found = {"frequency_penalty": sampling.frequency_penalty, "presence_penalty": sampling.presence_penalty}
    return {name: value for name, value in found.items() if value}


STREAMERS: dict[str, Streamer] = {
    "llama-server": LlamaServer(),
    "vllm": Vllm(),
    "sglang": Sglang(),
    "llama-cpp-python": LlamaCppPython(),
    "ollama": Ollama(),
    "lmstudio": LmStudio(),
    "mistral": Mistral(),
    "deepseek": DeepSeek(),
    "openai": OpenAi(),
}
"""By the kinds of the settings."""
