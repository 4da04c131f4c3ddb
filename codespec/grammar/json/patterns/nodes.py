"""Regular expressions as trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from codespec.grammar.json.patterns import characters
from codespec.grammar.json.patterns.characters import ANY, Characters, union


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after the other; without parts the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of the options; without options nothing matches."""

    options: frozenset[Node]


@dataclass(frozen=True, slots=True)
class Repeat:
    """``low`` to ``high`` times; None for any number."""

    node: Node
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Look:
    """What stands ahead, or behind, or not."""

    node: Node
    ahead: bool
    negative: bool


@dataclass(frozen=True, slots=True)
class Anchor:
    """The start of the text, or its end."""

    start: bool


@dataclass(frozen=True, slots=True)
class Both:
    """The texts that all ``parts`` match."""

    parts: frozenset[Node]


@dataclass(frozen=True, slots=True)
class Not:
    """What ``node`` does not match."""

    node: Node


@dataclass(frozen=True, slots=True)
class Before:
    """A place such that the text from its start up to there is one that ``node`` matches, or is none."""

    node: Node
    negative: bool


@dataclass(frozen=True, slots=True)
class Loop:
    """``node`` any number of times, which looks around, and ``then``."""

    node: Node
    then: Node


Node: TypeAlias = "Characters | Sequence | Either | Repeat | Look | Anchor | Both | Not | Before | Loop"
"""A regular expression. The parser makes the first six; the others say what those six mean."""

EMPTY, NOTHING = Sequence(()), Either(frozenset())
ALL = Repeat(ANY, 0, None)


def sequence(*parts: Node) -> Node:
    """The parts one after the other."""
    flat: list[Node] = []
    for part in parts:
        if part == NOTHING:
            return NOTHING
        for each in part.parts if isinstance(part, Sequence) else (part,):
            if not (flat and each == ALL == flat[-1]):
                flat.append(each)
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def either(*options: Node) -> Node:
    """Any of the options."""
    flat = {each for option in options for each in (option.options if isinstance(option, Either) else (option,))}
    if ALL in flat:
        return ALL
    known = [each for each in flat if isinstance(each, Characters) and each.known]
    if len(known) > 1:
        flat = flat.difference(known) | {Characters(union(part for each in known for part in each.plain()))}
    return next(iter(flat)) if len(flat) == 1 else Either(frozenset(flat))


def both(*parts: Node) -> Node:
    """What all parts match."""
    flat = {each for part in parts for each in (part.parts if isinstance(part, Both) else (part,))} - {ALL}
    if NOTHING in flat or any(isinstance(each, Not) and each.node in flat for each in flat):
        return NOTHING
    return ALL if not flat else next(iter(flat)) if len(flat) == 1 else Both(frozenset(flat))


def opposite(node: Node) -> Node:
    """What ``node`` does not match."""
    if isinstance(node, Not):
        return node.node
    return ALL if node == NOTHING else NOTHING if node == ALL else Not(node)


def repeat(node: Node, low: int, high: int | None) -> Node:
    """``node`` again and again."""
    if (low, high) == (1, 1):
        return node
    if high == 0 or node == EMPTY or (node == NOTHING and low == 0):
        return EMPTY
    if isinstance(node, Repeat) and node.low == 0 and node.high is None:
        return node
    return NOTHING if node == NOTHING else Repeat(node, low, high)


def text(value: str) -> Node:
    """Exactly this text."""
    return sequence(*(Characters(characters.of_text(char)) for char in value))
