"""What leaves the machine: the body of each request to an engine elsewhere is read here before it is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from codespec.privacy.budget import private_when_spent
from codespec.privacy.key_places import is_named_secret
from codespec.privacy.public_files import changed_part, is_being_typed
from codespec.privacy.secrets import is_secret

NEAR = 600
"""Characters before the end of a text in which a value that is being typed is looked for."""
LEAST = 4
"""Ids of a list that may hold something."""
_PROBE = "Xq7Rk2vW9pL4zT8b"
"""What would be private where a text ends in the middle of an assignment."""
_KINDS = ("a.py", "a")
"""Names of files, as whose texts a body's are read: code, and prose. Which language it is, a body does not tell."""


class PrivateText(Exception):  # no fault of anybody
    """A body holds something that must not leave the machine."""


@dataclass(frozen=True)
class Checked:
    """A body that may leave, as it is sent. Only ``Leaving.checked`` makes one.

    Attributes:
        content: JSON in UTF-8.
    """

    content: bytes


@dataclass
class Leaving:
    """Reads what is to be sent to one engine. Not for two threads at a time.

    Attributes:
        token_bytes: the text of a token of the engine, empty for special ones; None: it is not known, and lists of
            token ids do not leave.
    """

    token_bytes: Callable[[int], bytes] | None = None
    _public: str = field(default="", repr=False)  # the longest text of the last body that was sent
    _rest: str = field(default="", repr=False)  # the others

    def checked(self, body: Mapping[str, Any]) -> Checked:
        """The body, written out.

        Raises:
            PrivateText: a text in it, also between or in token ids, in a grammar, a schema or a choice, holds what
                looks like a secret, or would if it went on or ended.
        """
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        if self._is_private(body):
            raise PrivateText
        return Checked(content.encode())

    @private_when_spent
    def _is_private(self, body: Mapping[str, Any]) -> bool:
        texts = list(self._texts(body))
        if any(is_named_secret(name, text) for name, text in texts):
            return True
        longest = max((text for _, text in texts), key=len, default="")
        others = [text for name, text in texts if text != longest and name != "model"]
        # What was sent before goes on: what is new is read, with what stands around it.
        if longest != self._public and _is_private_text(changed_part(self._public, longest)):
            return True
        rest = "\n".join(others)
        if rest and rest != self._rest:
            if _is_private_text(rest):
                return True
            near = longest[-NEAR:]
            if _is_private_text(near + _PROBE) and any(_is_private_text(near + each[:NEAR]) for each in others):
                return True
        self._public, self._rest = longest, rest
        return False

    def _texts(self, value: Any, name: str = "") -> Iterator[tuple[str, str]]:
        """The texts in a value, with the name that each has been given; ids become the text that they are of."""
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, Mapping):
            if value and all(str(each).isdigit() for each in value):  # ids and their biases
                yield from self._texts([int(each) for each in value], name)
                return
            for key, each in value.items():
                yield "", str(key)
                yield from self._texts(each, name if str(key) in _OF_A_SCHEMA else str(key))
        elif isinstance(value, (list, tuple)):
            yield from self._of_list(value, name)

    def _of_list(self, value: Sequence[Any], name: str) -> Iterator[tuple[str, str]]:
        if value and all(_is_pair(each) for each in value):
            value = [each[0] for each in value]
        if any(_is_id(each) for each in value) and all(_is_id(each) or isinstance(each, str) for each in value):
            yield from ((name, each) for each in self._joined(value))
            return
        for each in value:
            yield from self._texts(each, name)

    def _joined(self, parts: Sequence[int | str]) -> Iterator[str]:
        """The texts that ids and texts between them are, cut where a special token stands; and each two that follow
        each other, in both orders: which of them stands before the cursor differs between models."""
        if self.token_bytes is None:
            if sum(map(_is_id, parts)) >= LEAST:
                raise PrivateText
            return
        segments, data = [], b""
        for each in parts:
            piece = each.encode() if isinstance(each, str) else self.token_bytes(each)
            if piece:
                data += piece
            elif data:
                segments.append(data)
                data = b""
        segments.append(data)
        texts = [each.decode("utf-8", "replace") for each in segments if each]
        yield from texts
        for one, other in pairwise(texts):
            yield one[-NEAR:] + other[:NEAR]
            yield other[-NEAR:] + one[:NEAR]


_OF_A_SCHEMA = frozenset(("const", "enum", "default", "examples", "pattern", "anyOf", "oneOf", "allOf", "items"))


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_pair(value: Any) -> bool:
    """Whether a value is an id and its bias."""
    return isinstance(value, (list, tuple)) and len(value) == 2 and _is_id(value[0]) and isinstance(value[1], float)


def _is_private_text(text: str) -> bool:
    """Whether a text holds a secret, or would if what is being typed at its end ended there."""
    if any(is_secret(kind, text) for kind in _KINDS):
        return True
    return is_being_typed(_KINDS[0], text[-NEAR:], NEAR)
