"""Finite automata over sets of characters: enough to see how lexemes overlap and extend each other."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from codespec.grammar.rules import MAX_CODE_POINT, CharClass, Choice, Except, Node, Repeat, RuleRef, Sequence

Ranges = tuple[tuple[int, int], ...]
State = TypeVar("State")

MAX_NFA, MAX_DFA = 6000, 2000
"""States beyond which ``TooLarge`` is raised."""


class TooLarge(Exception):
    """The automaton of a node would have too many states."""


class Alphabet:
    """Code points in classes that no set of the grammar tells apart; a set is an int with a bit for each class."""

    def __init__(self, sets: Iterable[Ranges]) -> None:
        starts = {0}
        for ranges in sets:
            for low, high in ranges:
                starts |= {low, high + 1}
        self._starts = sorted(start for start in starts if start <= MAX_CODE_POINT)
        self._masks: dict[Ranges, int] = {}
        ends = [start - 1 for start in self._starts[1:]] + [MAX_CODE_POINT]
        self._leads = [_bits(_lead(low), _lead(high)) for low, high in zip(self._starts, ends, strict=True)]
        self._lead_of: dict[int, int] = {}

    def mask(self, ranges: Ranges) -> int:
        """The classes of a set of code points; its borders must be among those given at the start."""
        mask = self._masks.get(ranges)
        if mask is None:
            mask = 0
            for low, high in ranges:
                mask |= _bits(bisect_right(self._starts, low) - 1, bisect_left(self._starts, high + 1) - 1)
            self._masks[ranges] = mask
        return mask

    @property
    def size(self) -> int:
        """The number of classes."""
        return len(self._starts)

    def classes(self, codes: npt.NDArray[np.uint32]) -> npt.NDArray[np.intp]:
        """The class of each code point."""
        return np.searchsorted(self._starts, codes, side="right") - 1

    def ranges(self, mask: int) -> Ranges:
        """The code points of a set of classes."""
        found: list[tuple[int, int]] = []
        for index in bits(mask):
            low = self._starts[index]
            high = self._starts[index + 1] - 1 if index + 1 < len(self._starts) else MAX_CODE_POINT
            if found and found[-1][1] == low - 1:
                low = found.pop()[0]
            found.append((low, high))
        return tuple(found)

    def lead(self, mask: int) -> int:
        """The first UTF-8 bytes of a set's characters, a bit for each byte."""
        lead = self._lead_of.get(mask)
        if lead is None:
            lead = 0
            for index in bits(mask):
                lead |= self._leads[index]
            self._lead_of[mask] = lead
        return lead


def bits(mask: int) -> Iterable[int]:
    """The positions of the bits that are set, in order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _bits(first: int, last: int) -> int:
    return (1 << (last + 1)) - (1 << first)


def _lead(code: int) -> int:
    if code < 0x80:
        return code
    if code < 0x800:
        return 0xC0 | code >> 6
    return 0xE0 | code >> 12 if code < 0x10000 else 0xF0 | code >> 18


@dataclass
class Dfa:
    """Deterministic, and every state leads to acceptance. State 0 is the start; no states at all: the empty language.

    Attributes:
        edges: for each state disjoint (set of classes, next state).
        accepting: for each state.
    """

    edges: list[list[tuple[int, int]]]
    accepting: list[bool]

    @property
    def nullable(self) -> bool:
        """Whether the empty text is accepted."""
        return bool(self.accepting) and self.accepting[0]

    @property
    def first(self) -> int:
        """Classes that a text can begin with."""
        return self.out(0) if self.edges else 0

    def out(self, state: int) -> int:
        """Classes that can follow in a state."""
        mask = 0
        for classes, _ in self.edges[state]:
            mask |= classes
        return mask

    def without_empty(self) -> Dfa:
        """The same texts but the empty one."""
        if not self.nullable:
            return self
        start = len(self.edges)
        again = any(target == 0 for row in self.edges for _, target in row)
        if not again:
            return _trim(self.edges, [False, *self.accepting[1:]])
        # Texts that come back to the start must still be accepted there: a new start beside it.
        edges = [*self.edges, self.edges[0]]
        order = [start, *range(start)]
        number = {old: new for new, old in enumerate(order)}
        accepting = [*self.accepting, False]
        return _trim([[(c, number[t]) for c, t in edges[old]] for old in order], [accepting[old] for old in order])


class Builder:
    """Automata of regular nodes over one alphabet; ``body`` gives the node of a rule."""

    def __init__(self, alphabet: Alphabet, body: Callable[[str], Node]) -> None:
        self.alphabet, self._body = alphabet, body
        self._edges: list[list[tuple[int, int]]] = []
        self._empty: list[list[int]] = []

    def dfa(self, node: Node) -> Dfa:
        """The automaton of a node without recursion and token elements.

        Raises:
            TooLarge: it would have more than ``MAX_DFA`` states.
        """
        outer = self._edges, self._empty
        self._edges, self._empty = [], []
        try:
            end = self._state()
            start = self._add(node, end)
            return self._subsets(start, end)
        finally:
            self._edges, self._empty = outer

    def _state(self) -> int:
        if len(self._edges) >= MAX_NFA:
            raise TooLarge
        self._edges.append([])
        self._empty.append([])
        return len(self._edges) - 1

    def _add(self, node: Node, end: int) -> int:
        """States for ``node`` that lead to ``end``; the first of them."""
        if isinstance(node, CharClass):
            start = self._state()
            self._edges[start].append((self.alphabet.mask(node.ranges), end))
            return start
        if isinstance(node, RuleRef):
            return self._add(self._body(node.name), end)
        if isinstance(node, Sequence):
            for item in reversed(node.items):
                end = self._add(item, end)
            return end
        if isinstance(node, Choice):
            start = self._state()
            self._empty[start] += [self._add(option, end) for option in node.options]
            return start
        if isinstance(node, Repeat):
            return self._add_repeat(node, end)
        assert isinstance(node, Except)
        return self._add_dfa(subtract(self.dfa(node.item), self.dfa(node.excluded)), end)

    def _add_repeat(self, node: Repeat, end: int) -> int:
        if node.max is None:
            loop = self._state()
            self._empty[loop] += [self._add(node.item, loop), end]
            end = loop
        else:
            for _ in range(node.max - node.min):
                start = self._state()
                self._empty[start] += [self._add(node.item, end), end]
                end = start
        for _ in range(node.min):
            end = self._add(node.item, end)
        return end

    def _add_dfa(self, dfa: Dfa, end: int) -> int:
        states = [self._state() for _ in dfa.edges]
        for state, row, accepting in zip(states, dfa.edges, dfa.accepting, strict=True):
            self._edges[state] = [(classes, states[target]) for classes, target in row]
            if accepting:
                self._empty[state].append(end)
        return states[0] if states else self._state()

    def _closure(self, states: Iterable[int]) -> frozenset[int]:
        found: set[int] = set()
        queue = list(states)
        while queue:
            state = queue.pop()
            if state not in found:
                found.add(state)
                queue += self._empty[state]
        return frozenset(found)

    def _subsets(self, start: int, end: int) -> Dfa:
        """The subset construction."""

        def steps(states: frozenset[int]) -> Iterator[tuple[int, frozenset[int]]]:
            for classes, targets in _disjoint([edge for state in states for edge in self._edges[state]]):
                yield classes, self._closure(targets)

        return _reached(self._closure([start]), lambda states: end in states, steps)


def _reached(
    start: State, accepts: Callable[[State], bool], steps: Callable[[State], Iterable[tuple[int, State]]]
) -> Dfa:
    """The states that are reached from ``start``, numbered as they are found."""
    number = {start: 0}
    queue = [start]
    edges: list[list[tuple[int, int]]] = []
    accepting: list[bool] = []
    for state in queue:
        accepting.append(accepts(state))
        row: list[tuple[int, int]] = []
        for classes, target in steps(state):
            if target not in number:
                if len(number) >= MAX_DFA:
                    raise TooLarge
                number[target] = len(number)
                queue.append(target)
            row.append((classes, number[target]))
        edges.append(row)
    return _trim(edges, accepting)


def _disjoint(edges: list[tuple[int, int]]) -> list[tuple[int, set[int]]]:
    """Edges as disjoint sets of classes with all their targets."""
    parts: list[tuple[int, set[int]]] = []
    for classes, target in edges:
        split: list[tuple[int, set[int]]] = []
        for known, targets in parts:
            common = known & classes
            if common:
                split.append((common, targets | {target}))
            if known != common:
                split.append((known ^ common, targets))
            classes &= ~known
        if classes:
            split.append((classes, {target}))
        parts = split
    return parts


def _trim(edges: list[list[tuple[int, int]]], accepting: list[bool]) -> Dfa:
    """Without the states from which nothing is accepted."""
    users: list[list[int]] = [[] for _ in edges]
    for state, row in enumerate(edges):
        for _, target in row:
            users[target].append(state)
    live = {state for state, yes in enumerate(accepting) if yes}
    queue = list(live)
    while queue:
        for user in users[queue.pop()]:
            if user not in live:
                live.add(user)
                queue.append(user)
    if len(live) == len(edges):
        return Dfa(edges, accepting)
    if 0 not in live:
        return Dfa([], [])
    kept = sorted(live)
    number = {old: new for new, old in enumerate(kept)}
    return Dfa(
        [[(classes, number[target]) for classes, target in edges[old] if target in live] for old in kept],
        [accepting[old] for old in kept],
    )


def subtract(a: Dfa, b: Dfa) -> Dfa:
    """The texts of ``a`` that are not texts of ``b``."""
    if not a.edges:
        return a

    def accepts(pair: tuple[int, int]) -> bool:
        left, right = pair
        return a.accepting[left] and not (right >= 0 and b.accepting[right])

    def steps(pair: tuple[int, int]) -> Iterator[tuple[int, tuple[int, int]]]:
        left, right = pair
        for classes, target in a.edges[left]:
            for other, beside in b.edges[right] if right >= 0 else []:
                if classes & other:
                    yield classes & other, (target, beside)
                    classes &= ~other
            if classes:
                yield classes, (target, -1)

    return _reached((0, 0 if b.edges else -1), accepts, steps)


def overlap(a: Dfa, b: Dfa) -> tuple[bool, int, int]:
    """Whether some text is in both; the classes that may follow a text of ``a`` on the way to a text of ``b``; and
    the number of pairs of states looked at."""
    if not a.edges or not b.edges:
        return False, 0, 0
    both, extends = False, 0
    seen = {(0, 0)}
    queue = [(0, 0)]
    for left, right in queue:
        if a.accepting[left]:
            both = both or b.accepting[right]
            extends |= b.out(right)
        for classes, target in a.edges[left]:
            for other, beside in b.edges[right]:
                if classes & other and (target, beside) not in seen:
                    seen.add((target, beside))
                    queue.append((target, beside))
    return both, extends, len(seen)
