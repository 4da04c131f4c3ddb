"""``POST /v1/completions`` as OpenAI has it, with vLLM's and codespec's own fields."""

from __future__ import annotations

from typing import Any

from codespec.http.apis.common_fields import (
    MOST_CHANCES,
    Defaults,
    check_repeated,
    fitted,
    limits_of,
    order_of,
)
from codespec.http.apis.constraints import Constrained
from codespec.http.apis.fields import Fields
from codespec.http.errors import HttpError
from codespec.http.order import MiddlePrompt, Order, Prompt, TextPrompt, TokenPrompt
from codespec.protocols import Limits

ANY_MODEL = frozenset({"gpt-3.5-turbo", "gpt-3.5-turbo-instruct", "davinci-002"})
"""Names that the examples of llama-server use for whatever model it has."""
USUAL_TOKENS = 16
"""OpenAI's default of ``max_tokens``."""


def check_model(fields: Fields, names: tuple[str, ...]) -> str:
    """The model that is asked for; this server has one.

    Raises:
        HttpError: 404, it is another one.
    """
    name = fields.short("model")
    if not name or name in ANY_MODEL:
        return names[0]
    if name not in names:
        raise HttpError(
            404, f"there is no such model here; ask for {names[0]!r}, or for none", "model", "model_not_found"
        )
    return name


def completion_order(fields: Fields, defaults: Defaults, constrained: Constrained) -> Order:
    """The order of a request.

    Raises:
        HttpError: a field is wrong.
    """
    count = fields.integer("n", 1, 1, 128)
    if fields.integer("best_of", count, 1) != count:
        raise fields.bad("best_of", "as `n`: no text is thrown away here")
    limits = limits_of(fields, defaults, USUAL_TOKENS, "max_tokens", "max_completion_tokens")
    prompts = prompts_of(fields, count, limits, defaults, constrained)
    echo, logprobs = fields.flag("echo"), _logprobs(fields)
    if echo and logprobs is not None:
        raise fields.bad("echo", "false where `logprobs` is given: those of a prompt are not computed")
    if echo:
        check_repeated(fields, "echo", "false", prompts, count, defaults.limits.body)
    return order_of(fields, defaults, constrained, prompts, limits, count, logprobs, echo)


def _logprobs(fields: Fields) -> int | None:
    return fields.integer("logprobs", 0, 0, MOST_CHANCES) if "logprobs" in fields else None


def prompts_of(
    fields: Fields, count: int, limits: Limits, defaults: Defaults, constrained: Constrained
) -> tuple[Prompt, ...]:
    """A text, token ids (texts may stand between them), or a list of some of both."""
    value = fields.any("prompt")
    if isinstance(value, list):
        value = [_own_text(fields, each) for each in value]
    value = _own_text(fields, value)
    several = value if isinstance(value, list) else [value if value is not None else ""]
    if isinstance(value, list) and any(map(_is_token, several)):
        several = [several]
    if not several or len(several) * count > defaults.limits.texts:
        raise fields.bad("prompt", f"texts or lists of token ids, with `n` at most {defaults.limits.texts} of them")
    suffix = fields.text("suffix")
    return tuple(_prompt(fields, each, suffix, count, limits, constrained) for each in several)


def _prompt(fields: Fields, value: Any, suffix: str, count: int, limits: Limits, constrained: Constrained) -> Prompt:
    if isinstance(value, list) and value and all(_is_token(each) or isinstance(each, str) for each in value):
        if suffix:
            raise fields.bad("suffix", "left out where the prompt is token ids")
        return TokenPrompt(tuple(value))
    if not isinstance(value, str):
        raise fields.bad("prompt", "a text, a list of texts, token ids, or a list of lists of them")
    place = fitted(fields, value, suffix, count, limits, constrained.grammar is not None)
    if place is not None:
        return place
    return MiddlePrompt(value, suffix, fields.short("path")) if suffix else TextPrompt(value)


def _own_text(fields: Fields, value: Any) -> Any:
    """The text of llama-server's object around one; pictures and sounds, which may stand beside it, are refused."""
    if not isinstance(value, dict):
        return value
    if not isinstance(value.get("prompt_string"), str) or value.keys() - {"prompt_string"}:
        raise fields.bad("prompt", "a text, a list of texts, token ids, or an object with a `prompt_string` alone")
    return value["prompt_string"]


def _is_token(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
