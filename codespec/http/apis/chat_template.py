"""Messages as the text that a model was trained on: its own template, in a sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from codespec.errors import CodespecError
from codespec.extras import remedy

if TYPE_CHECKING:
    from codespec.engine.engine import Generating

LONGEST = 1 << 22
"""Characters of a rendered conversation."""


def chat_tokens(engine: Generating, messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """The prompt of a conversation, up to where the answer begins.

    Raises:
        CodespecError: the model has no template, its template refuses the messages, or jinja2 is missing.
    """
    return begun(engine, rendered(engine, messages))


def begun(engine: Generating, text: str) -> list[int]:
    """The tokens of a rendered conversation, with the one that every text begins with."""
    vocabulary = engine.vocabulary
    start = [vocabulary.beginning] if vocabulary.beginning is not None else []
    return [*start, *vocabulary.tokenize(text, special=True)]


def rendered(
    engine: Generating, messages: Sequence[Mapping[str, Any]], variables: Mapping[str, Any] | None = None
) -> str:
    """The text of a conversation, without the token that every text begins with.

    Args:
        variables: more of the template's; those that it always has stay as they are.

    Raises:
        CodespecError: the model has no template, its template refuses the messages, or jinja2 is missing.
    """
    chat = engine.chat_template
    if chat is None:
        raise CodespecError(
            f"{engine.name} has no chat template (`tokenizer.chat_template`): it was not trained to answer; "
            "use an instruct model, or give a plain prompt"
        )
    template = _compiled(chat.source)
    always = {"messages": list(messages), "add_generation_prompt": True}
    names = {"bos_token": chat.beginning, "eos_token": chat.end}
    try:
        text = str(template.render({**(variables or {}), **always, **names}))
    except Exception as error:  # whatever a template does: it is part of the model file
        raise CodespecError(f"the model's chat template refuses these messages: {_reason(error)}") from None
    if len(text) > LONGEST:
        raise CodespecError(
            f"the conversation has {len(text):,} characters, more than the {LONGEST:,} that are read: send fewer"
        )
    return text.removeprefix(chat.beginning) if chat.beginning else text


def _reason(error: Exception) -> str:
    """What a template said by ``raise_exception``; of other errors only the kind: their texts may quote a message."""
    return " ".join(str(error).split())[:200] if isinstance(error, _RefusedError) else type(error).__name__


class _RefusedError(Exception):
    """Raised by a template."""


def _raise(message: object) -> None:
    raise _RefusedError(str(message))


@lru_cache(8)
def _compiled(source: str) -> Any:
    try:
        from jinja2 import TemplateError
        from jinja2.ext import loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError as error:
        raise CodespecError(f"chat templates need more packages ({error}): {remedy('http')}") from None
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.globals |= {"raise_exception": _raise, "strftime_now": _now}
    environment.filters["tojson"] = _to_json
    try:
        return environment.from_string(source)
    except TemplateError as error:
        raise CodespecError(f"the model's chat template cannot be read (line {getattr(error, 'lineno', 0)})") from None


def _now(form: str) -> str:
    from datetime import datetime

    return datetime.now().strftime(form)


def _to_json(value: Any, indent: int | None = None, ensure_ascii: bool = False) -> str:
    """As transformers has it: jinja2's own would write HTML's entities."""
    import json

    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)
