"""Tables of rules: known forms of keys and tokens, and places where passwords stand; and what they find."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from codespec.privacy.budget import private_when_spent, spend
from codespec.privacy.placeholders import PLACEHOLDER, PUBLISHED
from codespec.privacy.secret_values import entropy, is_chosen, is_drawn, is_login, is_mixed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOKEN_RULES = Path(__file__).with_name("token_rules.toml")
VALUE_RULES = Path(__file__).with_name("value_rules.toml")
SHORTHANDS = {
    "<sign>": r"[ \t\w.-]{0,20}[\s'\"]{0,3}(?:=>|:{1,3}=|\|\||[=>:,]|\?=)[`'\"\s=]{0,5}",  # between a name and a value
    "<end>": r"(?![\w-])",
}
_ESCAPE = re.compile(r"\\(?:[abefnrtv]|[0-7]{1,3}|x[0-9A-Fa-f]{2}|[uU][0-9A-Fa-f]{4})\Z")
"""Of ``\\nAKIA...`` in a string the key is no part of ``nAKIA``."""
_CONTINUED = re.compile(r"[\\^`]\r?\n[ \t]*")
"""The end of a line of a command that goes on: of shells, of ``cmd`` and of PowerShell."""


@dataclass(frozen=True)
class Rule:
    """A form.

    Attributes:
        words: in lower case; one of them is in each text that holds such a token.
        pattern: its last group, if it has one, is the value.
        judge: of the value, see ``_JUDGES``.
        bits: entropy of a character that the value has at least.
        path: pattern of the names of files that the rule is for; empty: all.
        own: whether it is not one of others.
    """

    name: str
    words: tuple[str, ...]
    pattern: str
    judge: str = "token"
    bits: float = 0.0
    path: str = ""
    own: bool = True

    @property
    def named(self) -> bool:
        """Whether a name beside it tells the token, which has no form of its own."""
        return "<sign>" in self.pattern

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern as a regular expression, its shorthands written out."""
        pattern = self.pattern
        for short, meaning in SHORTHANDS.items():
            pattern = pattern.replace(short, meaning)
        return re.compile(_BEGINNING.sub(r"\1", pattern))  # a pattern that begins with a literal is found sooner

    def holds(self, text: str) -> bool:
        """Whether a text holds such a value, and not just an example of one."""
        judge, begins = _JUDGES[self.judge], bool(_BEGINNING.match(self.pattern))
        spend()
        for found in self.compiled.finditer(text):
            spend()
            value = found[found.lastindex or 0]
            if begins and not _begins_word(text, found.start()):
                continue
            if not judge(value) or (self.bits and entropy(value) < self.bits):
                continue
            if self.name != "url-password" or not _NO_PASSWORD.search(value):
                return True
        return False


def _begins_word(text: str, at: int) -> bool:
    if at == 0 or not (text[at - 1].isalnum() or text[at - 1] == "_"):
        return True
    return _ESCAPE.search(text, max(0, at - 6), at) is not None


_BEGINNING = re.compile(r"\A((?:\(\?i:)?\(?)\\b")
_NO_PASSWORD = re.compile(r"[\[\]]|^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|^(?:postgres|foobar|prefix)$")
"""What stands for a password in a URL: a form with brackets, the name of a variable, a database's default."""


def _is_token(value: str) -> bool:
    return value not in PUBLISHED and not PLACEHOLDER.search(value) and len(set(value)) > min(5, len(value) // 2)


_JUDGES: dict[str, Callable[[str], bool]] = {
    "token": _is_token,
    "chosen": is_chosen,
    "mixed": is_mixed,
    "drawn": is_drawn,
    "login": is_login,
}


@lru_cache(maxsize=1)
def token_rules() -> tuple[Rule, ...]:
    """The rules that find access tokens by their form, our own first."""
    table = tomllib.loads(TOKEN_RULES.read_text("utf-8"))
    return tuple(
        Rule(name, tuple(row["words"]), row["pattern"], bits=float(row["bits"]), own=part == "own")
        for part in ("own", "taken")
        for name, row in table.get(part, {}).items()
    )


@lru_cache(maxsize=1)
def value_rules() -> tuple[Rule, ...]:
    """Places where passwords and keys stand."""
    table = tomllib.loads(VALUE_RULES.read_text("utf-8"))
    return tuple(
        Rule(name, tuple(row["words"]), row["pattern"], row["judge"], path=row.get("path", ""))
        for name, row in table.items()
    )


_RUN = 3
"""Characters of which a word has one run at least."""
_ANY = 1 << 5 * _RUN
"""The number of runs, and the code of a word that is shorter."""


class _Words:
    """Rules by their words, of which hundreds are looked for at once."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        found: dict[str, list[Rule]] = defaultdict(list)
        for rule in rules:
            for word in rule.words:
                found[word].append(rule)
        self._words, self._rules = list(found), list(found.values())
        self._first = np.array([_codes(word)[0] if len(word) >= _RUN else _ANY for word in self._words])
        self._last = np.array([_codes(word)[-1] if len(word) >= _RUN else _ANY for word in self._words])

    def rules(self, text: str) -> Iterator[Rule]:
        """The rules of which a word is in the text, each once."""
        lower = text.lower()
        seen = np.zeros(_ANY + 1, dtype=bool)
        seen[_codes(lower)] = seen[_ANY] = True
        given = set()
        for number in np.flatnonzero(seen[self._first] & seen[self._last]):
            if self._words[number] in lower:
                for rule in self._rules[number]:
                    if rule.name not in given:
                        given.add(rule.name)
                        yield rule


def _codes(text: str) -> NDArray[np.int32]:
    """A number for each run of characters: the last five bits of each."""
    bits = np.frombuffer(text.encode("latin-1", "replace"), dtype=np.uint8).astype(np.int32) & 31
    return bits[:-2] << 10 | bits[1:-1] << 5 | bits[2:]


@lru_cache(maxsize=3)
def words(kind: str) -> _Words:
    """The rules of a kind: ``token``, ``named`` (tokens that a name tells) or ``value``."""
    if kind == "value":
        return _Words(value_rules())
    return _Words([rule for rule in token_rules() if rule.named == (kind == "named")])


@private_when_spent
def holds_token(text: str) -> bool:
    """Whether a text holds a private key, an access token of a known form, or a URL with a password, and not just an
    example of one. Takes a few milliseconds for 100 KB."""
    return any(rule.holds(text) for rule in words("token").rules(text))


@private_when_spent
def holds_named_token(text: str) -> bool:
    """Whether a text holds a value of the shape of a service's keys, with the name of that service beside it."""
    return any(rule.holds(text) for rule in words("named").rules(text))


@private_when_spent
def holds_placed(path: str, text: str) -> bool:
    """Whether a text holds a value where passwords and keys stand: in headers, commands and statements."""
    if "\n" in text:
        text = _CONTINUED.sub(" ", text)
    return any(rule.holds(text) for rule in words("value").rules(text) if not rule.path or re.search(rule.path, path))
