"""The intermediate form that every grammar front end produces: a set of rules over code points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

MAX_CODE_POINT = 0x10FFFF


@dataclass(frozen=True)
class Literal:
    """These code points in order; empty matches the empty text. They need not be valid Unicode."""

    code_points: tuple[int, ...]


@dataclass(frozen=True)
class CharClass:
    """One code point that lies (or, ``negated``, does not lie) in an inclusive range; ``(5, 3)`` holds nothing."""

    ranges: tuple[tuple[int, int], ...]
    negated: bool = False


@dataclass(frozen=True)
class RuleRef:
    """The texts that the rule of this name matches."""

    name: str
    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class TokenRef:
    """Exactly one token of the model's vocabulary, or (``negated``) any other ordinary one.

    Attributes:
        id: the token, or None where ``text`` names it.
        text: as written, angle brackets included.
    """

    id: int | None
    text: str
    negated: bool = False
    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class Sequence:
    """All items in order."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """Any one of the options; none of them matches nothing at all."""

    options: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """``item`` at least ``min`` and at most ``max`` times (None: without limit)."""

    item: Node
    min: int
    max: int | None


@dataclass(frozen=True)
class Except:
    """The texts of ``item`` that are not texts of ``excluded``; neither may be recursive."""

    item: Node
    excluded: Node


@dataclass(frozen=True)
class Boundary:
    """No text, where the next character is none of ``barred`` (None: no word character), or the text ends."""

    barred: CharClass | None = None


Node: TypeAlias = "Literal | CharClass | RuleRef | TokenRef | Sequence | Choice | Repeat | Except | Boundary"

EMPTY = Literal(())


@dataclass(frozen=True)
class Rule:
    """A named node and where its name stands in the source."""

    name: str
    body: Node
    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class Rules:
    """A whole grammar.

    Attributes:
        name: file or name, for messages.
        rules: by name; every reference in them resolves.
        root: the start rule.
    """

    name: str
    rules: dict[str, Rule]
    root: str = "root"


def walk(node: Node) -> Iterator[tuple[Node, int]]:
    """``node`` and everything in it, in order, each with its depth."""
    stack = [(node, 0)]
    while stack:
        top, depth = stack.pop()
        yield top, depth
        parts: tuple[Node, ...] = ()
        if isinstance(top, Repeat):
            parts = (top.item,)
        elif isinstance(top, Except):
            parts = (top.item, top.excluded)
        elif isinstance(top, Sequence):
            parts = top.items
        elif isinstance(top, Choice):
            parts = top.options
        stack.extend((part, depth + 1) for part in reversed(parts))


def references(node: Node) -> Iterator[RuleRef]:
    """Every reference to a rule in ``node``, in order."""
    return (inner for inner, _ in walk(node) if isinstance(inner, RuleRef))
