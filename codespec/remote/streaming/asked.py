"""What an engine is asked for, whatever its kind, and the ways in which a prompt can be put."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from codespec.models.fim import FAMILIES, Family, Snippets
from codespec.protocols import Sampling
from codespec.remote.streaming.byte_vocabulary import Parts
from codespec.remote.streaming.events import Piece

Way = Literal["ids", "fields", "markers", "prefix"]
"""How a prompt is put: as ``ids`` of the model's tokens; in the engine's own ``fields`` for prefix and suffix; as a
text with the ``markers`` of the model's family; as the text before the cursor alone, ``prefix``."""

Body = dict[str, Any]

_NAMED = (
    (r"qwen.*coder", "qwen"),
    (r"starcoder-?2", "starcoder2"),
    (r"starcoder", "starcoder"),
    (r"granite.*code", "granite"),
    (r"granite-?4", "granite4"),
    (r"seed-?coder", "seed-coder"),
    (r"falcon-h1.*coder", "falcon-h1"),
    (r"deepseek.*coder", "deepseek"),
    (r"codegemma", "codegemma"),
    (r"mellum", "mellum"),
    (r"codespec", "codespec"),
)
"""Names of models whose families' markers are read in plain texts, the more special ones first."""


@dataclass(frozen=True)
class Asked:
    """A text that an engine is asked for.

    Attributes:
        model: the name that the engine knows; empty where it has one only.
        prompt: token ids of the model, the beginning of the text included; empty where texts are sent.
        parts: the prompt as texts.
        way: how it is put.
        family: whose markers stand in the text.
        grammar: notation and text of what the whole text must match; see ``Grammar.written``.
        lead: what the text must begin with, where the engine is to generate that again.
        ends: token ids that end the text.
        banned: token ids that are no text.
        context: tokens that the engine is to have room for; 0 leaves it to the engine.
    """

    model: str
    sampling: Sampling
    max_tokens: int
    parts: Parts
    way: Way
    prompt: tuple[int, ...] = ()
    family: Family | None = None
    grammar: tuple[str, str] | None = None
    lead: str = ""
    ends: tuple[int, ...] = ()
    banned: tuple[int, ...] = ()
    context: int = 0

    @property
    def seed(self) -> int:
        """A seed of the sample's own, as most engines take them: 31 bits."""
        return (self.sampling.seed + 1_000_003 * self.sampling.sample) % (1 << 31)

    @property
    def text(self) -> str:
        """The prompt as one text; not empty, which engines refuse."""
        text = marked(self.parts, self.family) if self.way == "markers" and self.family else self.parts.before
        return text or "\n"


class Streamer:
    """The requests and streams of one kind of engine.

    Attributes:
        ways: how a prompt can be put, the best one first; those that an engine refuses are not tried again.
        snippets: how other files are shown in texts.
        most_suffix: bytes of the text after the cursor that are sent at most. Where the engine's own layout has it
            after the text before the cursor, every key has it read again.
        prefill: tokens that are asked for to have a prompt read ahead, as few as the engine takes; None: it is not
            worth while, or costs money.
        default_model: asked for where the settings name none and the engine is not asked.
        models: the path of the list of models; empty: there is none of use.
        written: notations of grammars that it takes for a whole text.
        heals: whether it can be held to a beginning, which it then generates itself (token healing); where not, that
            beginning is a part of its prompt, cut into tokens as it stands.
    """

    ways: tuple[Way, ...] = ("fields", "markers", "prefix")
    snippets: Snippets = "comments"
    most_suffix: int = 768
    prefill: int | None = None
    default_model: str = ""
    models: str = "/v1/models"
    written: frozenset[str] = frozenset()
    heals: bool = False

    def request(self, asked: Asked) -> tuple[str, Body]:
        """Path and body of the POST."""
        raise NotImplementedError

    def piece(self, line: bytes, host: str) -> Piece | None:
        """What a line of the stream says; None where it says nothing.

        Raises:
            Away: it is none, or tells of an error.
        """
        raise NotImplementedError


def family_named(model: str) -> Family | None:
    """The family of a model by its name; None where that does not tell it, or its markers cannot be sent as text."""
    for pattern, name in _NAMED:
        if re.search(pattern, model, re.IGNORECASE):
            return next(each for each in FAMILIES if each.name == name and each.markers)
    return None


def marked(parts: Parts, family: Family) -> str:
    """A prompt as a text with the names of a family's markers in it."""
    assert family.markers is not None
    prefix, suffix, middle = family.markers
    if not parts.fills:
        return parts.before
    if family.orders[0] == "psm":
        return f"{prefix}{parts.prefix}{suffix}{parts.suffix}{middle}{parts.begun}"
    if family.suffix_first:
        return f"{suffix}{parts.suffix}{prefix}{parts.prefix}{middle}{parts.begun}"
    return f"{prefix}{suffix}{parts.suffix}{middle}{parts.prefix}{parts.begun}"
