"""What a pattern finds, as one expression for a whole text that looks around no more: derivatives by characters.

The derivative of a language by a character is what may follow the character (Brzozowski, 1964; with intersections and
complements). What looks ahead is an intersection with the rest of the text. What looks back is a condition on the text
so far, which moves on with each character.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from codespec.grammar.json.patterns.characters import Characters, holds
from codespec.grammar.json.patterns.nodes import (
    ALL,
    EMPTY,
    NOTHING,
    Anchor,
    Before,
    Both,
    Either,
    Look,
    Loop,
    Node,
    Not,
    Repeat,
    Sequence,
    both,
    either,
    opposite,
    repeat,
    sequence,
)

_MOST_COPIES = 40  # of what looks around, in a counted repetition


class Unclear(Exception):
    """What a pattern finds cannot be worked out here."""


def found_in(node: Node) -> Node:
    """The texts in which a pattern is found, as an expression for the whole text.

    Raises:
        Unclear: it looks around where that cannot be followed.
    """
    return sequence(ALL, _then(_backward(node), ALL))


def looks(node: Node) -> bool:
    """Whether a syntax tree has an assertion in it."""
    return isinstance(node, Look | Anchor | Before) or any(map(looks, children(node)))


def children(node: Node) -> tuple[Node, ...]:
    """The parts of an expression."""
    match node:
        case Sequence(parts):
            return parts
        case Either(options):
            return tuple(options)
        case Both(parts):
            return tuple(parts)
        case Repeat(below) | Look(below) | Not(below) | Before(below):
            return (below,)
        case Loop(below, then):
            return (below, then)
    return ()


def _mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """``node`` with its parts changed."""
    match node:
        case Sequence(parts):
            return sequence(*map(change, parts))
        case Either(options):
            return either(*map(change, options))
        case Both(parts):
            return both(*map(change, parts))
        case Repeat(below, low, high):
            return repeat(change(below), low, high)
        case Look(below, ahead, negative):
            return Look(change(below), ahead, negative)
        case Not(below):
            return opposite(change(below))
        case Loop(below, then):
            return Loop(change(below), change(then))
    return node


def _backward(node: Node) -> Node:
    """With a condition on the text so far for everything that looks back."""
    match node:
        case Anchor(True):
            return Before(EMPTY, False)
        case Look(below, False, negative):
            if _looks_ahead(below):
                raise Unclear
            return Before(sequence(ALL, _then(_backward(below), EMPTY)), negative)
    return _mapped(node, _backward)


def _looks_ahead(node: Node) -> bool:
    ahead = (isinstance(node, Look) and node.ahead) or (isinstance(node, Anchor) and not node.start)
    return ahead or any(map(_looks_ahead, children(node)))


def _then(node: Node, rest: Node) -> Node:
    """``node`` and the rest of the text, on which it may look ahead."""
    if not looks(node):
        return sequence(node, rest)
    match node:
        case Sequence(parts):
            return functools.reduce(lambda after, part: _then(part, after), reversed(parts), rest)
        case Either(options):
            return either(*(_then(option, rest) for option in options))
        case Look(below, True, negative):
            ahead = _then(below, ALL)
            return both(opposite(ahead) if negative else ahead, rest)
        case Before():
            return sequence(node, rest)
        case Anchor(False):
            return both(EMPTY, rest)
        case Repeat(below, low, high):
            return _repeated(below, low, high, rest)
    raise Unclear


def _repeated(node: Node, low: int, high: int | None, rest: Node) -> Node:
    most = low if high is None else high
    if most > _MOST_COPIES or (high is None and _may_be_empty(node)):
        raise Unclear
    found = Loop(node, rest) if high is None else rest
    for _ in range(most - low):
        found = either(rest, _then(node, found))
    for _ in range(low):
        found = _then(node, found)
    return found


def _may_be_empty(node: Node) -> bool:
    if isinstance(node, Look | Anchor | Before):
        return True
    if isinstance(node, Sequence):
        return all(map(_may_be_empty, node.parts))
    if isinstance(node, Either):
        return any(map(_may_be_empty, node.options))
    return isinstance(node, Repeat) and (node.low == 0 or _may_be_empty(node.node))


@functools.lru_cache(20_000)
def takes_empty(node: Node) -> bool:
    """Whether nothing more need follow."""
    match node:
        case Sequence(parts) | Both(parts):
            return all(map(takes_empty, parts))
        case Either(options):
            return any(map(takes_empty, options))
        case Repeat(below, low):
            return low == 0 or takes_empty(below)
        case Not(below):
            return not takes_empty(below)
        case Before(below, negative):
            return takes_empty(below) != negative
        case Loop(_, then):
            return takes_empty(then)
    return False


@functools.lru_cache(20_000)
def after(node: Node, code: int) -> Node:
    """What may follow the character ``code``.

    Raises:
        Unclear: the character is compared with a set whose members are not known.
    """
    match node:
        case Characters():
            if not node.known:
                raise Unclear
            return EMPTY if holds(node.ranges, code) != node.negated else NOTHING
        case Sequence(parts):
            return _after_sequence(parts, code)
        case Either(options):
            return either(*(after(option, code) for option in options))
        case Both(parts):
            return both(*(after(part, code) for part in parts))
        case Not(below):
            return opposite(after(below, code))
        case Repeat(below, low, high):
            rest = repeat(below, max(0, low - 1), None if high is None else high - 1)
            return sequence(after(below, code), rest)
        case Loop(below, then):
            return either(after(then, code), after(_then(below, node), code))
    return NOTHING


def _after_sequence(parts: tuple[Node, ...], code: int) -> Node:
    found = []
    for index, part in enumerate(parts):
        rest = (_moved(each, code) for each in parts[index + 1 :])
        found.append(sequence(after(part, code), *rest))
        if not takes_empty(part):
            break
    return either(*found)


@functools.lru_cache(20_000)
def _moved(node: Node, code: int) -> Node:
    """With all conditions on the text so far one character on."""
    if isinstance(node, Before):
        return Before(after(node.node, code), node.negative)
    return _mapped(node, functools.partial(_moved, code=code)) if _looks_back(node) else node


@functools.lru_cache(20_000)
def _looks_back(node: Node) -> bool:
    return isinstance(node, Before) or any(map(_looks_back, children(node)))
