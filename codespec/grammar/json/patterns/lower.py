"""Patterns of JSON Schemas as llguidance takes them: for whole texts, in Rust's syntax, without look-around.

A schema's pattern need only be found somewhere in a text, and several patterns may have to hold together. So what looks
ahead from the start of a text, or back from its end, is a pattern of its own.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable

from codespec.grammar.json.patterns.automaton import plain
from codespec.grammar.json.patterns.characters import ANY, Characters, Ranges, common, complement, holds, of_text
from codespec.grammar.json.patterns.meaning import Unclear, after, found_in, looks, takes_empty
from codespec.grammar.json.patterns.nodes import (
    ALL,
    EMPTY,
    NOTHING,
    Anchor,
    Either,
    Look,
    Node,
    Repeat,
    Sequence,
    both,
    either,
    opposite,
    repeat,
    sequence,
    text,
)
from codespec.grammar.json.patterns.syntax import parse
from codespec.grammar.regex import RegexError

_MOST_OPTIONS = 64
_UNCLEAR = "what this expression looks around for cannot be enforced"
_REMEDY = "write what may come as classes and alternatives"
_START, _END = Anchor(True), Anchor(False)


def lower(pattern: str) -> list[str]:
    """Patterns that together match the texts in which ``pattern`` is found; each is ``^(?:…)$``, in Rust's syntax.

    Raises:
        RegexError: it is no regular expression, or what it looks around for cannot be told otherwise.
    """
    try:
        return [_whole(each) for each in _together(parse(pattern))]
    except (Unclear, RecursionError):
        raise RegexError(0, _UNCLEAR, _REMEDY) from None


def lower_to_one(pattern: str) -> str:
    """A single pattern, as ``lower`` makes them.

    Raises:
        RegexError: as for ``lower``; or one that says the same would be too large.
    """
    found = both_of(lower(pattern))
    if found is None:
        raise RegexError(0, _UNCLEAR, _REMEDY)
    return found


def both_of(patterns: list[str]) -> str | None:
    """One pattern for the texts that all of some lowered ones match; None where there is none of a sensible size."""
    try:
        return patterns[0] if len(patterns) == 1 else _whole(plain(both(*map(_body, patterns))))
    except (Unclear, RecursionError):
        return None


def opposite_of(pattern: str) -> str | None:
    """A pattern for the texts that a lowered one does not match; None where there is none of a sensible size."""
    try:
        return _whole(plain(opposite(_body(pattern))))
    except (Unclear, RecursionError):
        return None


def all_but(texts: Iterable[str]) -> str:
    """A lowered pattern for every text but these."""
    return _whole(_all_but(sorted(set(texts))))


def may_match(pattern: str, value: str) -> bool:
    """Whether a lowered pattern matches a text, as far as can be told."""
    try:
        return takes_empty(functools.reduce(lambda node, char: after(node, ord(char)), value, _body(pattern)))
    except (Unclear, RecursionError):
        return True


def may_overlap(patterns: Iterable[str]) -> bool:
    """Whether one text may match all of some lowered patterns."""
    try:
        return plain(both(*map(_body, patterns))) != NOTHING
    except (Unclear, RecursionError):
        return True


def apart(patterns: list[str]) -> list[tuple[str, list[int]]] | None:
    """Patterns of which no two match the same text, each with the indices of those lowered ones that it is a part of;
    None where they would be too large."""
    found = []
    try:
        for chosen in itertools.product((True, False), repeat=len(patterns)):
            nodes = (
                _body(each) if holds else opposite(_body(each)) for each, holds in zip(patterns, chosen, strict=True)
            )
            node = plain(both(*nodes)) if any(chosen) else NOTHING
            if node != NOTHING:
                found.append((_whole(node), [index for index, holds in enumerate(chosen) if holds]))
    except (Unclear, RecursionError):
        return None
    return found


def only_text(pattern: str) -> str | None:
    """The text that a lowered pattern matches, if there is only one."""
    node, found = _body(pattern), ""
    for part in node.parts if isinstance(node, Sequence) else (node,):
        ranges = part.plain() if isinstance(part, Characters) and part.known else ()
        if len(ranges) != 1 or ranges[0][0] != ranges[0][1]:
            return None
        found += chr(ranges[0][0])
    return found


def body(pattern: str) -> str:
    """A lowered pattern without its anchors."""
    return pattern.removeprefix("^(?:").removesuffix(")$")


@functools.cache
def whole(expression: str) -> str:
    """A lowered pattern for an expression in Rust's syntax that matches whole texts."""
    return _whole(parse(expression))


def _body(pattern: str) -> Node:
    return parse(body(pattern))


def _whole(node: Node) -> str:
    return f"^(?:{_written(node)})$"


# What a pattern finds


def _together(node: Node) -> list[Node]:
    """Expressions for whole texts that match together what ``node`` is found in."""
    found: list[Node] = []
    parts: list[Node] = list(node.parts) if isinstance(node, Sequence) else [node]
    if parts and parts[0] == _START:
        while len(parts) > 1 and isinstance(ahead := parts[1], Look) and ahead.ahead:
            found += _side([_START, ahead.node], ahead.negative)
            del parts[1]
    if parts and parts[-1] == _END:
        while len(parts) > 1 and isinstance(behind := parts[-2], Look) and not behind.ahead:
            found += _side([behind.node, _END], behind.negative)
            del parts[-2]
    if len(parts) == 3 and (parts[0], parts[2]) == (_START, _END) and (single := _single(parts[1])) is not None:
        found.append(single)
        parts[1] = _unbounded(parts[1])
    if parts != [_START] or not found:
        found.append(_found(sequence(*parts)))
    return found


def _single(node: Node) -> Node | None:
    """Of a counted repetition of single characters that look ahead: the count without the looking."""
    if not isinstance(node, Repeat) or not isinstance(node.node, Sequence):
        return None
    *before, last = node.node.parts
    if not isinstance(last, Characters) or not all(isinstance(each, Look) and each.ahead for each in before):
        return None
    return repeat(last, node.low, node.high)


def _unbounded(node: Node) -> Node:
    assert isinstance(node, Repeat)
    return repeat(node.node, 0, None)


def _side(parts: list[Node], negative: bool) -> list[Node]:
    node = sequence(*parts)
    return [plain(opposite(found_in(node)))] if negative else _together(node)


def _found(node: Node) -> Node:
    """An expression for the whole texts that ``node`` is found in."""
    options = _options(node)
    if options is None or any(map(looks, (option for option, _, _ in options))):
        return plain(found_in(node))
    return either(
        *(
            sequence(EMPTY if start else ALL, option, EMPTY if end else ALL)
            for option, start, end in options
        )
    )  # fmt: skip


def _options(node: Node) -> list[tuple[Node, bool, bool]] | None:
    """The alternatives of a pattern without anchors at their ends, and whether they had any; None: too many."""
    waiting, found = [(node, False, False)], []
    while waiting:
        each, start, end = waiting.pop()
        parts: list[Node] = list(each.parts) if isinstance(each, Sequence) else [each]
        while parts and parts[0] == _START:
            start = True
            del parts[0]
        while parts and parts[-1] == _END:
            end = True
            del parts[-1]
        side = next((at for at in (0, -1) if parts and isinstance(parts[at], Either) and looks(parts[at])), None)
        if side is None:
            found.append((sequence(*parts), start, end))
            continue
        either_ = parts[side]
        assert isinstance(either_, Either)
        for option in either_.options:
            new = parts.copy()
            new[side] = option
            waiting.append((sequence(*new), start, end))
        if len(waiting) + len(found) > _MOST_OPTIONS:
            return None
    return found


def _all_but(texts: list[str]) -> Node:
    heads = {
        head: [each[1:] for each in group]
        for head, group in itertools.groupby(filter(None, texts), lambda each: each[0])
    }
    others = Characters(complement(of_text("".join(heads))))
    options = [sequence(text(head), _all_but(tails)) for head, tails in heads.items()]
    return either(*([] if "" in texts else [EMPTY]), *options, sequence(others, ALL))


# As text


def _written(node: Node) -> str:
    """In Rust's syntax."""
    match node:
        case Characters():
            return _class(node)
        case Sequence(parts):
            return "".join(f"(?:{_written(part)})" if isinstance(part, Either) else _written(part) for part in parts)
        case Either(options):
            return "|".join(sorted(map(_written, options), key=lambda each: (len(each), each))) or _class(Characters())
        case Repeat(below, low, high):
            count = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high))
            if count is None:
                count = f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"
            return (_written(below) if isinstance(below, Characters) else f"(?:{_written(below)})") + count
    raise Unclear


def _class(found: Characters) -> str:
    """A character, or a class of them.

    JSON writes control characters, quotes and backslashes with a backslash. Where a class is part of an alternative and
    has all control characters (but perhaps the line break), llguidance takes quote and backslash for members, too. So
    NUL is left out of classes without these two.
    """
    if found.known:
        ranges = found.plain()
        if ranges == ANY.ranges:
            return "(?s:.)"
        return _ranges_class(_engine_can_tell(ranges))
    ranges = found.ranges
    inside = _members(ranges) + "".join(found.named)
    return (
        f"[^{inside}\\x{{0}}]" if found.negated else f"[{inside}&&[^\\x{{0}}]]" if holds(ranges, 0) else f"[{inside}]"
    )


def _engine_can_tell(ranges: Ranges) -> Ranges:
    if holds(ranges, 0) and not (holds(ranges, ord('"')) and holds(ranges, ord("\\"))):
        return common(ranges, complement(of_text("\0")))
    return ranges


def _ranges_class(ranges: Ranges) -> str:
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _char(ranges[0][0])
    negated = complement(ranges)
    if len(negated) < len(ranges):
        return f"[^{_members(negated)}]"
    return f"[{_members(ranges)}]" if ranges else "[^\\x{0}-\\x{10FFFF}]"


def _members(ranges: Ranges) -> str:
    return "".join(_char(first) if first == last else f"{_char(first)}-{_char(last)}" for first, last in ranges)


def _char(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\x{{{code:X}}}"
