"""``POST /v1/chat/completions`` as OpenAI has it, with vLLM's and codespec's own fields."""

from __future__ import annotations

from typing import Any

from codespec.http.apis.common_fields import (
    MOST_CHANCES,
    Defaults,
    content_of,
    limits_of,
    order_of,
)
from codespec.http.apis.constraints import Constrained
from codespec.http.apis.fields import Fields
from codespec.http.order import ChatPrompt, Order

MOST_MESSAGES = 10_000
_ROLES = ("system", "developer", "user", "assistant", "tool")
_NO = {
    "tools": "left out: tools are not called here; ask for `response_format` instead",
    "functions": "left out: functions are not called here; ask for `response_format` instead",
    "audio": "left out: this model writes text only",
}


def chat_order(fields: Fields, defaults: Defaults, constrained: Constrained) -> Order:
    """The order of a request.

    Raises:
        HttpError: a field is wrong.
    """
    for name, rule in _NO.items():
        if fields.any(name):
            raise fields.bad(name, rule)
    if not fields.flag("add_generation_prompt", True) or fields.flag("continue_final_message"):
        raise fields.bad("continue_final_message", "false: a message that was begun is not gone on with here")
    variables = fields.object("chat_template_kwargs")
    limits = limits_of(fields, defaults, -1, "max_completion_tokens", "max_tokens", "n_predict")
    count, logprobs = fields.integer("n", 1, 1, 128), _logprobs(fields)
    prompt = ChatPrompt(messages_of(fields), variables.all() if variables is not None else {})
    return order_of(fields, defaults, constrained, (prompt,), limits, count, logprobs)


def messages_of(fields: Fields) -> tuple[dict[str, Any], ...]:
    """The messages of a conversation.

    Raises:
        HttpError: there are none, or one is wrong.
    """
    messages = tuple(_message(each) for each in fields.objects("messages", MOST_MESSAGES))
    if not messages:
        raise fields.bad("messages", "a list of at least one message")
    return messages


def _message(fields: Fields) -> dict[str, Any]:
    role = fields.choice("role", "", *_ROLES)
    content = content_of(fields)
    # To templates that know four roles, a developer's message is the system's.
    message = {"role": "system" if role == "developer" else role, "content": content}
    return {**message, **({"name": fields.short("name")} if "name" in fields else {})}


def _logprobs(fields: Fields) -> int | None:
    best = fields.integer("top_logprobs", 0, 0, MOST_CHANCES)
    if best and not fields.flag("logprobs"):
        raise fields.bad("top_logprobs", "left out where `logprobs` is not true")
    return best if fields.flag("logprobs") else None
