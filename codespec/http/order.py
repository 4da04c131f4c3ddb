"""What a client wants generated, whatever API it speaks, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from codespec.completion.request import Request
from codespec.languages import USUAL
from codespec.protocols import FinishReason, Limits, Sampling, Statistics

if TYPE_CHECKING:
    from codespec.grammar import Grammar
    from codespec.protocols import Snippet


@dataclass(frozen=True)
class TextPrompt:
    """A text of a file to go on from; where it names special tokens, those are meant and nothing is put before it."""

    text: str


@dataclass(frozen=True)
class TokenPrompt:
    """Token ids to go on from, as they are; texts between them are as in ``TextPrompt``."""

    parts: tuple[int | str, ...]


@dataclass(frozen=True)
class MiddlePrompt:
    """A gap between two texts to fill; ``path`` and ``context`` as in ``Prompts.prompt``."""

    prefix: str
    suffix: str
    path: str = ""
    context: tuple[Snippet, ...] = ()


@dataclass(frozen=True)
class ChatPrompt:
    """Messages, written out by the model's own template; ``variables`` are more of its variables."""

    messages: tuple[dict[str, Any], ...]
    variables: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FittedPrompt:
    """A place in a document, where the text must fit; completed as in an editor.

    Attributes:
        request: of a large document the part around the place.
        before: all that stands before the place.
    """

    request: Request
    before: str


Prompt: TypeAlias = "TextPrompt | TokenPrompt | MiddlePrompt | ChatPrompt | FittedPrompt"


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be generated.

    Attributes:
        prompts: each gets ``count`` texts, whose indices follow each other.
        stops: texts that end a text, and are no part of it.
        logprobs: how many of the best tokens are told at each place, beside the chosen one; None: nothing is told.
        prediction: a text that is probably repeated.
        language: whose draft is used, by LSP identifier.
        file_name: shown to models that were trained with file names, before a prompt that is a text.
        echo: whether a text begins with its prompt.
        text_biases: as ``sampling.logit_bias``, of all tokens of a text.
        endless: whether no token may end a text.
        session: a newer order of the same client and session takes this one's place; empty: none does.
        stream: whether the texts are told while they grow.
    """

    prompts: tuple[Prompt, ...]
    sampling: Sampling
    limits: Limits
    count: int = 1
    stops: tuple[str, ...] = ()
    grammar: Grammar | None = None
    logprobs: int | None = None
    prediction: str = ""
    language: str = USUAL
    draft: str = "auto"
    file_name: str = ""
    echo: bool = False
    session: str = ""
    text_biases: tuple[tuple[str, float], ...] = ()
    endless: bool = False
    stream: bool = False

    def documents(self) -> Iterator[Request]:
        """Texts of files that the prompts show."""
        for each in self.prompts:
            context: tuple[Snippet, ...] = ()
            if isinstance(each, FittedPrompt):
                yield each.request
                context = each.request.context
            elif isinstance(each, MiddlePrompt):
                yield Request(each.prefix + each.suffix, len(each.prefix), self.language, each.path)
                context = each.context
            elif isinstance(each, TextPrompt):
                yield Request(each.text, len(each.text), self.language, self.file_name)
            for snippet in context:
                yield Request(snippet.text, len(snippet.text), self.language, snippet.path)


@dataclass(frozen=True)
class ToldToken:
    """A generated token, the logarithm of its probability, and those of the best tokens at its place.

    Attributes:
        shown: what it adds to the text: nothing where its bytes are the beginning of a character that a later token
            ends.
        offset: characters of the text before it.
    """

    token: int
    text: bytes
    logprob: float
    best: tuple[tuple[int, bytes, float], ...] = ()
    shown: str = ""
    offset: int = 0


@dataclass(frozen=True)
class Piece:
    """Part of a text.

    Attributes:
        index: of the text.
        tokens: that it was made of; may be there before their text.
        reason: set on the last piece only.
        stopped_by: the stop text that ended it.
    """

    index: int
    text: str
    tokens: tuple[int, ...] = ()
    chances: tuple[ToldToken, ...] = ()
    reason: FinishReason | None = None
    stopped_by: str = ""


@dataclass
class Totals:
    """The counts of an order: ``prompt`` tokens of all prompts, ``spent`` by all texts.

    Attributes:
        texts: the same by the index of each text that was not written together with others.
    """

    prompt: int = 0
    spent: Statistics = field(default_factory=Statistics)
    context: int = 0
    texts: dict[int, Totals] = field(default_factory=dict)


Emit: TypeAlias = Callable[[Piece], None]
