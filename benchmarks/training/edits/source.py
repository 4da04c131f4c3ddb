"""A source file that edits are made on."""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from codespec.languages import LANGUAGES, by_id
from codespec.syntax.occurrences import Occurrences, occurrences
from codespec.train.corpus import CorpusDocument

EDITED = {each.id: each.edits for each in LANGUAGES.values() if each.edits is not None}
"""The edits that are made, by language."""
LARGEST = 60_000
SHORTEST = 400


class Replacement(NamedTuple):
    """``text`` in the place of the characters from ``start`` to ``end``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Source:
    """A file without syntax errors, all of whose characters are ASCII: offsets are bytes and characters."""

    document: CorpusDocument
    found: Occurrences

    @property
    def text(self) -> str:
        return self.document.text

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of every line."""
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def line(self, offset: int) -> int:
        """The line of an offset, 0-based."""
        return bisect_right(self.line_starts, offset) - 1


def source_of(document: CorpusDocument) -> Source | None:
    """The source of a document; None where no edits can be made on it."""
    text = document.text
    if document.language not in EDITED or not SHORTEST <= len(text) <= LARGEST or not text.isascii():
        return None
    found = occurrences(by_id(document.language), text.encode())
    if found is None or len(found.names) < 8:
        return None
    found.names.sort()
    return Source(document, found)


def apply(text: str, replacements: Iterable[Replacement]) -> str:
    """The text with replacements that do not overlap made."""
    parts, at = [], 0
    for each in sorted(replacements):
        parts += [text[at : each.start], each.text]
        at = each.end
    return "".join([*parts, text[at:]])


def case_of(name: str) -> str:
    """How a name is written: words in it are told apart by what."""
    bare = name.strip("_")
    if bare.isupper():
        return "upper"
    if "_" in bare:
        return "snake"
    if bare[:1].isupper():
        return "pascal"
    return "camel" if not bare.islower() else "word"


class Names:
    """New names, drawn from those of a corpus and made from the old ones."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_case: dict[str, list[str]] = {}
        for name in sorted(set(names)):
            if 2 <= len(name) <= 28:
                self._by_case.setdefault(case_of(name), []).append(name)
        self._words = sorted({each.lower() for names in self._by_case.values() for name in names for each in words(name)
                              if 2 <= len(each) <= 10 and each.isalpha()}) or ["value"]  # fmt: skip

    def new(self, old: str, rnd: random.Random, taken: frozenset[str]) -> str:
        """A name for what was called ``old``, in its style."""
        for _ in range(20):
            name = self._draw(old, rnd)
            if name != old and name not in taken and name.isidentifier() and name not in KEYWORDS:
                return name
        return old + "2"

    def word(self, rnd: random.Random) -> str:
        """A word in lower case."""
        return rnd.choice(self._words)

    def any(self, case: str, rnd: random.Random) -> str:
        """A name of the corpus written so, if it has one."""
        return rnd.choice(self._by_case.get(case) or self._by_case.get("word") or self._words)

    def _draw(self, old: str, rnd: random.Random) -> str:
        case = case_of(old)
        if rnd.random() < 0.4:
            wanted = case if case not in ("word", "snake", "camel") or rnd.random() < 0.6 else _other(case, rnd)
            return self.any(wanted, rnd)
        parts = words(old) or [old]
        way = rnd.randrange(5)
        if way == 0:
            parts = [*parts, self.word(rnd)]
        elif way == 1:
            parts = [self.word(rnd), *parts]
        elif way == 2:
            parts[rnd.randrange(len(parts))] = self.word(rnd)
        elif way == 3 and len(parts) > 1:
            del parts[rnd.randrange(len(parts))]
        elif way == 3:
            parts = [self.word(rnd), self.word(rnd)]
        else:
            last = parts[-1]
            parts[-1] = last[:-1] if last.endswith("s") and len(last) > 2 else last + "s"
        lead = old[: len(old) - len(old.lstrip("_"))]
        return lead + joined(parts, case if case != "word" else rnd.choice(["snake", "camel"]))


def _other(case: str, rnd: random.Random) -> str:
    return rnd.choice([each for each in ("word", "snake", "camel") if each != case])


def words(name: str) -> list[str]:
    """The words of a name."""
    return [each for each in re.split(r"_+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", name) if each]


def joined(parts: Sequence[str], case: str) -> str:
    """Words as a name."""
    if case == "upper":
        return "_".join(parts).upper()
    if case in ("snake", "word"):
        return "_".join(parts).lower()
    text = "".join(each[:1].upper() + each[1:] for each in parts)
    return text if case == "pascal" else text[:1].lower() + text[1:]


KEYWORDS = frozenset(
    {
        "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
        "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
        "not", "or", "pass", "raise", "return", "try", "while", "with", "yield", "var", "let", "const", "function",
        "new", "this", "super", "switch", "case", "default", "do", "enum", "export", "extends", "delete", "instanceof",
        "typeof", "void", "throw", "catch", "interface", "package", "type", "range", "map", "chan", "go", "defer",
        "select", "struct", "func", "fallthrough", "goto", "static", "public", "private", "protected", "implements",
        "null", "true", "false", "int", "string", "bool", "error", "nil", "self", "cls", "fn", "impl", "mod", "pub",
        "ref", "use", "where", "loop", "match", "mut", "move", "trait", "unsafe", "dyn", "crate", "char", "long",
        "short", "unsigned", "signed", "float", "double", "sizeof", "typedef", "union", "volatile", "register",
        "extern", "auto", "inline", "any",
    }
)  # fmt: skip
"""Words that name nothing, or that no name should be."""
