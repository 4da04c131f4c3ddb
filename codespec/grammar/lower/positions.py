"""Which lexemes may stand side by side in a text, and which after each other, as far as the rules alone tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from codespec.grammar.lower.automaton import bits
from codespec.grammar.rules import Choice, Node, Repeat, RuleRef, Sequence, TokenRef


@dataclass(frozen=True)
class Lexeme:
    """A regular part of a grammar that the engine reads as one unit.

    Attributes:
        node: what it matches; the empty text counts as an alternative beside it.
        text: the same for equal lexemes.
        place: differs between the occurrences of equal ones.
    """

    node: Node
    text: str
    place: int


class Positions:
    """The leaves of all rules as numbers; sets of them are ints. Token elements have an empty text.

    Attributes:
        texts, places, rules: of the lexeme, and where it stands, by position.
        next: for each position those that may come right after it.
        start: those that a text may begin with.
        with_text: positions by text.
        leads: a cache of first bytes by set of positions.
    """

    def __init__(self, bodies: dict[str, Node | Lexeme], root: str) -> None:
        self.places: list[int] = []
        self.rules: list[str] = []
        self.texts: list[str] = []
        self.with_text: dict[str, int] = {}
        self.leads: dict[int, int] = {}
        self._bodies = bodies
        self._compiled = {}
        for name, body in bodies.items():
            self._compiled[name] = self._compile(body)
            self.rules += [name] * (len(self.texts) - len(self.rules))
        self._nullable: set[str] = set()
        self._first: dict[str, int] = dict.fromkeys(bodies, 0)
        self._find_first()
        self.next = [0] * len(self.texts)
        self._follow: dict[str, int] = dict.fromkeys(bodies, 0)
        self._find_next()
        self.start = self._first[root]

    def together(self, matches_with: Callable[[str], set[str] | None], spend: Callable[[int], None]) -> list[int]:
        """For each position all those that may be viable at the same place of a text, itself included.

        Places of a text are known by the set of positions viable there as far as the rules alone tell (a *row*).
        Two rows stand for the same place if a text leads to both: the first with itself, and then whatever follows
        in each of them lexemes that may match the same text. ``spend`` is told the steps taken.
        """
        rows = {places: number for number, places in enumerate(dict.fromkeys([self.start, *self.next]))}
        after = [rows[places] for places in self.next]
        steps = [self._steps(places, after) for places in rows]
        shared = {text: self._sharing(matches_with(text)) for text in self.with_text}
        beside = [0] * len(rows)
        members = list(rows)
        todo = {rows[self.start]: self.start}
        while todo:
            row, new = todo.popitem()
            new &= ~beside[row]
            spend(10 + new.bit_count())
            beside[row] |= new
            for text, followers in steps[row].items():
                reached = 0
                for at in bits(new & shared[text]):
                    reached |= self.next[at]
                for follower in followers:
                    fresh = (reached | (members[follower] if reached else 0)) & ~beside[follower]
                    if fresh:
                        todo[follower] = todo.get(follower, 0) | fresh
        found = [0] * len(self.texts)
        for places, others in zip(members, beside, strict=True):
            for at in bits(places):
                found[at] |= others
        return found

    def _steps(self, places: int, after: list[int]) -> dict[str, set[int]]:
        """For each text at these positions the rows that may come after it."""
        steps: dict[str, set[int]] = {}
        for at in bits(places):
            steps.setdefault(self.texts[at], set()).add(after[at])
        return steps

    def _sharing(self, texts: set[str] | None) -> int:
        if texts is None:
            return -1
        mask = 0
        for text in texts:
            mask |= self.with_text.get(text, 0)
        return mask

    # A body as nested tuples: ("p", position) ("r", name) ("s", items) ("c", options) ("*", item, may be none, more)
    def _compile(self, body: Node | Lexeme) -> tuple[Any, ...]:
        if isinstance(body, Lexeme | TokenRef):
            index = len(self.texts)
            text = body.text if isinstance(body, Lexeme) else ""
            self.texts.append(text)
            self.places.append(body.place if isinstance(body, Lexeme) else -1)
            self.with_text[text] = self.with_text.get(text, 0) | 1 << index
            return "p", index
        if isinstance(body, RuleRef):
            return "r", body.name
        if isinstance(body, Sequence):
            return "s", [self._compile(item) for item in body.items]
        if isinstance(body, Choice):
            return "c", [self._compile(option) for option in body.options]
        assert isinstance(body, Repeat)
        return "*", self._compile(body.item), body.min == 0, body.max is None or body.max > 1

    def _find_first(self) -> None:
        users: dict[str, set[str]] = {name: set() for name in self._bodies}
        for name, body in self._bodies.items():
            for leaf in leaves(body):
                if isinstance(leaf, RuleRef):
                    users[leaf.name].add(name)
        queue = list(self._bodies)
        waiting = set(queue)
        while queue:
            name = queue.pop()
            waiting.discard(name)
            first, nullable = self._first_of(self._compiled[name])
            if first != self._first[name] or (nullable and name not in self._nullable):
                self._first[name] = first
                if nullable:
                    self._nullable.add(name)
                fresh = users[name] - waiting
                queue += fresh
                waiting |= fresh

    def _first_of(self, node: tuple[Any, ...]) -> tuple[int, bool]:
        kind, value = node[0], node[1]
        if kind == "p":
            return 1 << value, False
        if kind == "r":
            return self._first[value], value in self._nullable
        if kind == "*":
            first, nullable = self._first_of(value)
            return first, nullable or bool(node[2])
        first = 0
        if kind == "c":
            nullable = False
            for option in value:
                one, empty = self._first_of(option)
                first, nullable = first | one, nullable or empty
            return first, nullable
        for item in value:
            one, empty = self._first_of(item)
            first |= one
            if not empty:
                return first, False
        return first, True

    def _find_next(self) -> None:
        queue = list(self._bodies)
        self._changed = dict.fromkeys(queue)
        while self._changed:
            name = next(iter(self._changed))
            del self._changed[name]
            self._spread(self._compiled[name], self._follow[name])

    def _spread(self, node: tuple[Any, ...], after: int) -> None:
        kind, value = node[0], node[1]
        if kind == "p":
            self.next[value] |= after
        elif kind == "r":
            assert isinstance(value, str)
            if after & ~self._follow[value]:
                self._follow[value] |= after
                self._changed[value] = None
        elif kind == "c":
            for option in value:
                self._spread(option, after)
        elif kind == "*":
            first = self._first_of(value)[0] if node[3] else 0
            self._spread(value, after | first)
        else:
            for item in reversed(value):
                self._spread(item, after)
                first, empty = self._first_of(item)
                after = first | (after if empty else 0)


def leaves(body: Node | Lexeme) -> Iterable[Node | Lexeme]:
    """The lexemes, references and token elements of a body."""
    stack: list[Node | Lexeme] = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, Sequence):
            stack.extend(node.items)
        elif isinstance(node, Choice):
            stack.extend(node.options)
        elif isinstance(node, Repeat):
            stack.append(node.item)
        else:
            yield node
