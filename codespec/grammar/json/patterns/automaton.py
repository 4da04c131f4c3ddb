"""Expressions with intersections, complements and conditions as plain ones, by way of a finite automaton."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from codespec.grammar.json.patterns.characters import ANY, Characters, Ranges, common, complement, union
from codespec.grammar.json.patterns.meaning import Unclear, after, children, takes_empty
from codespec.grammar.json.patterns.nodes import EMPTY, NOTHING, Node, either, repeat, sequence

_MOST_STATES, _MOST_CLASSES, _MOST_PARTS, _MOST_WORK = 300, 64, 4_000, 400_000


class Automaton(NamedTuple):
    """States from 0, the first one; ``steps[state]`` has the characters that lead to each other state.

    Attributes:
        ends: the states in which a text may end.
    """

    steps: list[dict[int, Ranges]]
    ends: set[int]


def automaton(node: Node) -> Automaton:
    """The smallest automaton for the texts that ``node`` matches.

    Raises:
        Unclear: it is too large, or compares with characters that are not known.
    """
    classes = _classes(node)
    numbers, states, rows, work = {node: 0}, [node], [], 0
    for state in states:
        work += _size(state) * len(classes)
        if work > _MOST_WORK:
            raise Unclear
        row = []
        for ranges in classes:
            next_ = after(state, ranges[0][0])
            if next_ not in numbers:
                numbers[next_] = len(states)
                states.append(next_)
            row.append(numbers[next_])
        rows.append(row)
        if len(states) > _MOST_STATES:
            raise Unclear
    return _smallest(rows, [takes_empty(state) for state in states], classes)


def _classes(node: Node) -> list[Ranges]:
    """Sets of characters that the expression does not tell apart."""
    classes: list[Ranges] = [ANY.ranges]
    for found in dict.fromkeys(_sets(node)):
        if not found.known:
            raise Unclear
        inside, outside = found.plain(), complement(found.plain())
        classes = [part for each in classes for part in (common(each, inside), common(each, outside)) if part]
        if len(classes) > _MOST_CLASSES:
            raise Unclear
    return classes


def _sets(node: Node) -> Iterator[Characters]:
    if isinstance(node, Characters):
        yield node
    for below in children(node):
        yield from _sets(below)


def _smallest(rows: list[list[int]], ends: list[bool], classes: list[Ranges]) -> Automaton:
    """With states that no text tells apart as one (Moore)."""
    groups = [int(end) for end in ends]
    while True:
        seen: dict[tuple[int, ...], int] = {}
        keys = ((groups[state], *(groups[next_] for next_ in row)) for state, row in enumerate(rows))
        finer = [seen.setdefault(key, len(seen)) for key in keys]
        if len(set(finer)) == len(set(groups)):
            break
        groups = finer
    groups = finer  # numbered by their first states, so the start is 0
    steps: list[dict[int, Ranges]] = [{} for _ in set(groups)]
    for state in {group: state for state, group in reversed(list(enumerate(groups)))}.values():
        own = steps[groups[state]]
        for next_, ranges in zip(rows[state], classes, strict=True):
            own[groups[next_]] = union((*own.get(groups[next_], ()), *ranges))
    return Automaton(steps, {groups[state] for state, end in enumerate(ends) if end})


def plain(node: Node) -> Node:
    """An expression without intersections, complements and conditions that matches the same texts.

    Raises:
        Unclear: it would be too large.
    """
    found = automaton(node)
    start, end = -1, -2
    edges: dict[int, dict[int, Node]] = {start: {0: EMPTY}}
    for state, steps in enumerate(found.steps):
        edges[state] = {next_: Characters(ranges) for next_, ranges in steps.items()}
        if state in found.ends:
            edges[state][end] = EMPTY
    _drop_dead(edges, end)
    while len(edges) > 1:
        state = min((each for each in edges if each != start), key=lambda each: _cost(edges, each))
        _bypass(edges, state)
        if sum(map(_size, edges[start].values())) > _MOST_PARTS:
            raise Unclear
    return edges[start].get(end, NOTHING)


def _drop_dead(edges: dict[int, dict[int, Node]], end: int) -> None:
    """Leave out the states from which no text ends."""
    alive = {end}
    while more := {state for state, out in edges.items() if state not in alive and not alive.isdisjoint(out)}:
        alive |= more
    for state in [state for state in edges if state not in alive and state >= 0]:
        del edges[state]
    for out in edges.values():
        for next_ in [next_ for next_ in out if next_ not in alive]:
            del out[next_]


def _cost(edges: dict[int, dict[int, Node]], state: int) -> int:
    """About how much longer the expressions become without ``state``."""
    into = [out[state] for each, out in edges.items() if each != state and state in out]
    out = [node for next_, node in edges[state].items() if next_ != state]
    own = _size(edges[state].get(state, EMPTY))
    lengths = sum(map(_size, into)) * (len(out) - 1) + sum(map(_size, out)) * (len(into) - 1)
    return lengths + own * (len(into) * len(out) - 1)


def _bypass(edges: dict[int, dict[int, Node]], state: int) -> None:
    out = edges.pop(state)
    own = out.pop(state, NOTHING)
    again = EMPTY if own == NOTHING else repeat(own, 0, None)
    for others in edges.values():
        into = others.pop(state, None)
        if into is None:
            continue
        for next_, node in out.items():
            others[next_] = either(others.get(next_, NOTHING), sequence(into, again, node))
            if _size(others[next_]) > _MOST_PARTS:
                raise Unclear


def _size(node: Node) -> int:
    return 1 + sum(map(_size, children(node)))
