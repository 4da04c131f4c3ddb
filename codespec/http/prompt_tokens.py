"""The token ids of a prompt."""

from __future__ import annotations

from functools import lru_cache

from codespec.completion.prompt.prompt import Prompts, text_header
from codespec.engine.engine import Generating, TextVocabulary
from codespec.errors import CodespecError
from codespec.http.apis.chat_template import begun, rendered
from codespec.http.errors import HttpError
from codespec.http.order import ChatPrompt, FittedPrompt, MiddlePrompt, Order, Prompt, TextPrompt
from codespec.models.fim import FimFormat

_NEAR = 64
"""Characters before and after a gap that are looked at, for each token that there is room for."""
_OF_A_TOKEN = 16
"""Characters of a text, for each token that there is room for, that are looked at first."""


def tokens_of(prompt: Prompt, engine: Generating, order: Order) -> list[int]:
    """The token ids of a prompt.

    Raises:
        HttpError: it is too long, names tokens that do not exist, or is of a kind that the model does not take.
    """
    vocabulary, room = engine.vocabulary, engine.context_length - 2  # a token of text, and exact decoding pads
    if isinstance(prompt, MiddlePrompt):
        tokens = _middle(prompt, engine, min(order.limits.max_tokens, room // 2))
    elif isinstance(prompt, ChatPrompt):
        tokens = _chat(prompt, engine)
    elif isinstance(prompt, TextPrompt):
        _check_length(prompt.text, engine, room, "prompt")
        tokens = _from_text(prompt.text, order.file_name, engine)
    else:
        assert not isinstance(prompt, FittedPrompt)
        for each in prompt.parts:
            _check_length(each if isinstance(each, str) else "", engine, room, "prompt")
        parts = (vocabulary.tokenize(each, special=True) if isinstance(each, str) else [each] for each in prompt.parts)
        tokens = [token for each in parts for token in each]
        if any(not 0 <= token < vocabulary.size for token in tokens):
            raise HttpError(400, f"prompt names tokens beyond the vocabulary, which has {vocabulary.size:,}", "prompt")
    if len(tokens) > room:
        field = "messages" if isinstance(prompt, ChatPrompt) else "prompt"
        raise _too_long(f"{len(tokens):,} tokens", engine, field)
    return tokens or sorted(vocabulary.end_tokens)[:1]


def _too_long(size: str, engine: Generating, field: str) -> HttpError:
    message = f"the prompt has {size}, this model's context {engine.context_length:,}"
    return HttpError(400, message, field, "context_length_exceeded")


def _check_length(text: str, engine: Generating, room: int, field: str) -> None:
    """Refuse a text that is far too long by a look at its beginning: others wait while megabytes are tokenized.

    Raises:
        HttpError: it is.
    """
    size = _OF_A_TOKEN * room
    while size < len(text):
        if len(engine.vocabulary.tokenize(text[:size], special=True)) > 2 * room:
            raise _too_long(f"more than {2 * room:,} tokens", engine, field)
        size *= 2


def _from_text(text: str, file_name: str, engine: Generating) -> list[int]:
    vocabulary = engine.vocabulary
    tokens = vocabulary.tokenize(text, special=True)
    # Only special tokens have no text: without one the text is cut into the same tokens either way.
    if all(map(vocabulary.token_bytes, tokens)) or tokens == vocabulary.tokenize(text):
        return [*text_header(vocabulary, engine.fim_format(), file_name), *tokens]
    # A client that names special tokens knows the model's layout.
    beginning = vocabulary.beginning
    return tokens if beginning is None or tokens[:1] == [beginning] else [beginning, *tokens]


def _chat(prompt: ChatPrompt, engine: Generating) -> list[int]:
    try:
        text = rendered(engine, prompt.messages, prompt.variables)
    except CodespecError as error:
        raise HttpError(400, str(error), "messages", "no_chat_template") from None
    _check_length(text, engine, engine.context_length, "messages")
    return begun(engine, text)


def _middle(prompt: MiddlePrompt, engine: Generating, text: int) -> list[int]:
    layout = engine.fim_format()
    if layout is None:
        raise HttpError(400, f"{engine.name} cannot fill in the middle; leave `suffix` out", "suffix", "no_fim")
    prompts = _prompts(engine.vocabulary, layout)
    budget, most = engine.context_length - text - 2, _NEAR * engine.context_length
    before, after = prompt.prefix[-most:], prompt.suffix[:most]
    return prompts.prompt(before, after, prompt.path, budget, context=prompt.context)


@lru_cache(maxsize=2)
def _prompts(vocabulary: TextVocabulary, layout: FimFormat) -> Prompts:
    """Kept between requests, since the next one mostly has the same lines, whose tokens are then known."""
    return Prompts(vocabulary, layout)
