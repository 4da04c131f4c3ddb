"""The table of known forms of keys and tokens, ``token_rules.toml``, and texts that hold one."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from codespec.privacy.budget import private_when_spent, spend
from codespec.privacy.placeholders import PLACEHOLDER, PUBLISHED
from codespec.privacy.secret_values import entropy

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RULES_FILE = Path(__file__).with_name("token_rules.toml")
SHORTHANDS = {
    "<sign>": r"[ \t\w.-]{0,20}[\s'\"]{0,3}(?:=>|:{1,3}=|\|\||[=>:,]|\?=)[`'\"\s=]{0,5}",  # between a name and a value
    "<end>": r"(?![\w-])",
}

_START = r"(?:\\b|(?<=\\\\[abefnrtv0]))"
"""A word's beginning, which may follow an escape in a string: of ``\\nAKIA...`` the key is no part of ``nAKIA``."""


@dataclass(frozen=True)
class TokenRule:
    """A form.

    Attributes:
        words: in lower case; one of them is in each text that holds such a token.
        bits: entropy of a character that the token has at least.
        pattern: its last group, if it has one, is what is drawn at random.
        own: whether it is not one of others.
    """

    name: str
    words: tuple[str, ...]
    bits: float
    pattern: str
    own: bool

    @property
    def named(self) -> bool:
        """Whether a name beside it tells the token, which has no form of its own."""
        return "<sign>" in self.pattern

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern without shorthands."""
        pattern = self.pattern
        for short, meaning in SHORTHANDS.items():
            pattern = pattern.replace(short, meaning)
        return re.compile(re.sub(r"\A((?:\(\?i:)?\(?)\\b", rf"\1{_START}", pattern))

    def holds(self, text: str) -> bool:
        """Whether a text holds such a token, and not just an example of one."""
        spend()
        for found in self.compiled.finditer(text):
            spend()
            if self._is_drawn(found):
                return True
        return False

    def _is_drawn(self, found: re.Match[str]) -> bool:
        drawn = found[found.lastindex or 0]
        if drawn in PUBLISHED or (found[0].find("://") > 0 and _NO_PASSWORD.search(drawn)):
            return False
        if PLACEHOLDER.search(drawn) or len(set(drawn)) <= min(5, len(drawn) // 2):
            return False
        return self.bits == 0 or entropy(drawn) >= self.bits


_NO_PASSWORD = re.compile(r"[\[\]]|^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|^(?:postgres|foobar|prefix)$")
"""What stands for a password in a URL: a form with brackets, the name of a variable, a database's default."""


@lru_cache(maxsize=1)
def read_rules() -> tuple[TokenRule, ...]:
    """The table."""
    table = tomllib.loads(RULES_FILE.read_text("utf-8"))
    return tuple(
        TokenRule(name, tuple(row["words"]), float(row["bits"]), row["pattern"], part == "own")
        for part in ("own", "taken")
        for name, row in table.get(part, {}).items()
    )


_RUN = 3
"""Characters of which a word has one run at least."""
_ANY = 1 << 5 * _RUN
"""The number of runs, and the code of a word that is shorter."""


class _Words:
    """The rules by their words, of which hundreds are looked for at once."""

    def __init__(self, rules: Sequence[TokenRule]) -> None:
        found: dict[str, list[TokenRule]] = defaultdict(list)
        for rule in rules:
            for word in rule.words:
                found[word].append(rule)
        self._words, self._rules = list(found), list(found.values())
        self._first = np.array([_codes(word)[0] if len(word) >= _RUN else _ANY for word in self._words])
        self._last = np.array([_codes(word)[-1] if len(word) >= _RUN else _ANY for word in self._words])

    def rules(self, text: str) -> Iterator[TokenRule]:
        """The rules of which a word is in the text; some of them twice."""
        lower = text.lower()
        seen = np.zeros(_ANY + 1, dtype=bool)
        seen[_codes(lower)] = seen[_ANY] = True
        for number in np.flatnonzero(seen[self._first] & seen[self._last]):
            if self._words[number] in lower:
                yield from self._rules[number]


def _codes(text: str) -> NDArray[np.uint16]:
    """A number for each run of characters: the last five bits of each."""
    bits = np.frombuffer(text.encode("latin-1", "replace"), dtype=np.uint8).astype(np.uint16) & 31
    return bits[:-2] << 10 | bits[1:-1] << 5 | bits[2:]


@lru_cache(maxsize=2)
def _words(named: bool) -> _Words:
    return _Words([rule for rule in read_rules() if rule.named == named])


@private_when_spent
def holds_token(text: str) -> bool:
    """Whether a text holds a private key, an access token of a known form, or a URL with a password, and not just an
    example of one. Takes a few milliseconds for 100 KB."""
    return any(rule.holds(text) for rule in _words(False).rules(text))


@private_when_spent
def holds_named_token(text: str) -> bool:
    """Whether a text holds a value of the shape of a service's keys, with the name of that service beside it."""
    return any(rule.holds(text) for rule in _words(True).rules(text))
