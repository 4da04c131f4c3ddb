"""The walk over a tree that all languages share: nodes that a completion cannot have changed are deferred.

A checker of one language visits the nodes that a range touches, with a context that says what surrounds them (in a
loop, in an async function, …). Every other node is recorded by its place and context. Two walks, of a document without
a completion and with it, record the same for what the completion left alone; only where they do not is a node that
was deferred visited after all.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias

from codespec.patience import check

MOST_STEPS, STEPS_A_NODE = 100_000, 10
"""Of a walk, and for each node of the tree: a second or so in all. Real files take at most 1.5 a node."""
_BYTES_A_STEP = 256
_EXTRAS = frozenset({"comment", "html_comment", "line_comment", "block_comment", "line_continuation"})


class Node(Protocol):
    """The part of ``tree_sitter.Node`` that checkers need."""

    @property
    def type(self) -> str: ...
    @property
    def start_byte(self) -> int: ...
    @property
    def end_byte(self) -> int: ...
    @property
    def start_point(self) -> Any: ...
    @property
    def is_named(self) -> bool: ...
    @property
    def is_error(self) -> bool: ...
    @property
    def is_missing(self) -> bool: ...
    @property
    def has_error(self) -> bool: ...
    @property
    def child_count(self) -> int: ...
    @property
    def children(self) -> list[Any]: ...
    @property
    def descendant_count(self) -> int: ...
    @property
    def id(self) -> int: ...
    def child_by_field_name(self, name: str, /) -> Any: ...
    def children_by_field_name(self, name: str, /) -> list[Any]: ...


class TooMuchToJudge(Exception):
    """A walk would take too long."""


class EarlyError(NamedTuple):
    """An error that a compiler reports before it runs anything.

    Attributes:
        kind: such as ``redeclared``.
        start, end: byte offsets in the document.
    """

    kind: str
    start: int
    end: int


class _Deferred(NamedTuple):
    start: int
    end: int
    type: str
    context: Hashable


Handler = Callable[["Walk", Any, Any], None]
Way: TypeAlias = "tuple[Node, Way | None]"
"""A node and the way to the one around it."""


@dataclass
class Walk:
    """One walk over a tree.

    Attributes:
        root: of the tree.
        data: the document, UTF-8.
        handlers: by type of node, called with the walk, the node and its context; of others the children are visited.
        touched: byte offsets of the start and end of the completion; None visits all nodes.
        inspect: called with the walk and every visited node.
        errors: found so far.
        deferred: the nodes that the completion does not touch, by place and context as they are without it, with the
            way to the node around each.
        settled: those of them that were visited after all.
        steps: that are left.
    """

    root: Node
    data: bytes
    handlers: dict[str, Handler]
    touched: tuple[int, int] | None = None
    inspect: Callable[[Walk, Node], None] | None = None
    errors: set[EarlyError] = field(default_factory=set)
    deferred: dict[_Deferred, tuple[Node, Way | None]] = field(default_factory=dict)
    settled: set[_Deferred] = field(default_factory=set)
    steps: int = 0
    _way: Way | None = None
    _waiting: list[tuple[Node, Any, Way | None]] = field(default_factory=list)
    _places: dict[bytes | re.Pattern[bytes], list[int]] = field(default_factory=dict)
    _orders: dict[int, dict[int, int]] = field(default_factory=dict)
    _known: dict[tuple[str, int], bool] = field(default_factory=dict)
    _said: dict[tuple[str, bytes], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.steps = self._most
        self._way = (self.root, None)

    @cached_property
    def _most(self) -> int:
        return MOST_STEPS + STEPS_A_NODE * self.root.descendant_count

    @cached_property
    def reach(self) -> int:
        """The byte offset of the end of the text before the completion, white space aside: a block may wait there."""
        assert self.touched is not None
        return len(self.data[: self.touched[0]].rstrip())

    def visit(self, node: Node, context: Any, within: Node | None = None) -> None:
        """Have a node checked, and what is in it, or defer it where the completion does not touch it.

        Args:
            within: the parent of the node, where that is not the node being checked but a child of it.
        """
        way = self._way if within is None else (within, self._way)
        if self.is_touched(node):
            self._waiting.append((node, context, way))
        elif node.is_named:
            place = self._before(node.start_byte), self._before(node.end_byte)
            self.deferred[_Deferred(*place, node.type, context)] = node, way

    def is_touched(self, node: Node) -> bool:
        """Whether the completion touches a node."""
        return self.touched is None or (node.end_byte >= self.reach and node.start_byte <= self.touched[1])

    def run(self) -> None:
        """Check what waits; what the parser did not understand is left out.

        Raises:
            TooMuchToJudge: it takes too many steps.
        """
        while self._waiting:
            node, context, above = self._waiting.pop()
            if node.is_error or node.is_missing:
                continue
            self.spend()
            self._way = (node, above)
            if self.inspect is not None:
                self.inspect(self, node)
            handler = self.handlers.get(node.type)
            if handler is not None:
                handler(self, node, context)
            elif node.child_count:
                self.visit_children(node, context)

    def visit_children(self, node: Node, context: Any) -> None:
        """Visit all named children of the node being checked."""
        for child in node.children:
            if child.is_named:
                self.visit(child, context)

    def spend(self, steps: int = 1) -> None:
        """Count what a checker does that may grow faster than the document.

        Raises:
            TooMuchToJudge: that was too much.
            OutOfTime: the time is over.
        """
        check()
        self.steps -= steps
        if self.steps < 0:
            raise TooMuchToJudge

    def around(self, node: Node) -> Iterator[Node]:
        """The nodes around one, the innermost first: around the node being checked, or one in it."""
        way = self._way
        assert way is not None
        inside: list[Node] = []
        while way[0] != node and (not inside or inside[-1] != node):
            self.spend()
            outer = inside[-1] if inside else way[0]
            held = (each for each in outer.children if _holds(each, node))
            found = next(held, None)
            if found is None:
                return
            inside.append(found)
        yield from reversed(inside[:-1])
        rest: Way | None = way if inside else way[1]
        while rest is not None:
            self.spend()
            yield rest[0]
            rest = rest[1]

    def parent(self, node: Node) -> Node | None:
        """The node around the one being checked, or around one in it."""
        return next(self.around(node), None)

    def place_in(self, parent: Node, node: Node) -> int:
        """Which of the children of its parent a node is."""
        order = self._orders.get(parent.id)
        if order is None:
            self.spend(parent.child_count)
            order = self._orders[parent.id] = {child.id: index for index, child in enumerate(parent.children)}
        return order[node.id]

    @cached_property
    def words(self) -> Counter[bytes]:
        """How often each word stands in the document."""
        return Counter(re.findall(rb"\w+", self.data))

    def once(self, what: str, word: bytes, ask: Callable[[], bool]) -> bool:
        """The answer to a question about a word that is the same wherever the word stands; asked once."""
        key = what, word
        if key not in self._said:
            self._said[key] = ask()
        return self._said[key]

    def holds_around(self, name: str, node: Node, test: Callable[[Node, Node], bool | None]) -> bool:
        """Whether something holds for a node, which depends on the nodes around it.

        Args:
            name: of what is asked.
            test: says so for a node and its parent; None where it is the same for both. Every node is asked once.
        """
        asked: list[int] = []
        answer = False
        inner = node
        for outer in self.around(node):
            known = self._known.get((name, inner.id))
            said = known if known is not None else test(inner, outer)
            asked.append(inner.id)
            if said is not None:
                answer = said
                break
            inner = outer
        for each in asked:
            self._known[name, each] = answer
        return answer

    def report(self, kind: str, node: Node, end: Node | None = None) -> None:
        """Add an error at ``node``, or from there to the end of ``end``."""
        self.errors.add(EarlyError(kind, node.start_byte, (end or node).end_byte))

    def text(self, node: Node) -> bytes:
        """The bytes of a node."""
        self.spend((node.end_byte - node.start_byte) // _BYTES_A_STEP)
        return self.data[node.start_byte : node.end_byte]

    def starts(self, node: Node, signs: bytes | tuple[bytes, ...]) -> bool:
        """Whether a node starts with some signs."""
        return self.data.startswith(signs, node.start_byte, node.end_byte)

    def ends(self, node: Node, signs: bytes) -> bool:
        """Whether a node ends with some signs."""
        return self.data.endswith(signs, node.start_byte, node.end_byte)

    def mentions(self, node: Node, word: bytes | re.Pattern[bytes]) -> bool:
        """Whether a word stands anywhere in a node, also as part of another one; or something ends there that a
        pattern finds."""
        places = self._places.get(word)
        if places is None:
            found = re.finditer(word if isinstance(word, re.Pattern) else re.escape(word), self.data)
            places = self._places[word] = [match.end() for match in found]
        least = node.start_byte + (1 if isinstance(word, re.Pattern) else len(word))
        first = bisect_left(places, least)
        return first < len(places) and places[first] <= node.end_byte

    def _before(self, byte: int) -> int:
        """A byte offset as it is without the completion; below zero within it."""
        assert self.touched is not None
        start, end = self.touched
        if byte >= end:
            return byte - (end - start)
        return byte if byte <= start else -byte

    def settle(self, other: Walk) -> None:
        """Check the nodes that this walk has deferred and ``other`` has not.

        Raises:
            TooMuchToJudge: it takes too many steps.
        """
        self.touched, touched = None, self.touched
        self.steps = self._most
        for key, (node, way) in self.deferred.items():
            if key not in other.deferred and key not in self.settled:
                self.settled.add(key)
                self._waiting.append((node, key.context, way))
        try:
            self.run()
        finally:
            self._waiting.clear()
            self.touched = touched

    def placed(self) -> Iterator[tuple[EarlyError, tuple[str, int]]]:
        """Each error, with its kind and its position without the completion."""
        assert self.touched is not None
        start, end = self.touched
        for error in self.errors:
            inside = start <= error.start < end
            yield error, (error.kind, -1 - error.start if inside else self._before(error.start))

    def touches(self, error: EarlyError) -> bool:
        """Whether the completion touches an error."""
        assert self.touched is not None
        return error.start <= self.touched[1] and error.end >= self.touched[0]


def _holds(outer: Node, node: Node) -> bool:
    """Whether a node is another one, or may be around it."""
    return outer == node or (
        outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte and outer.child_count > 0
    )


def named(node: Node) -> Iterable[Node]:
    """The children of a node other than signs, keywords and comments."""
    return (child for child in node.children if child.is_named and child.type not in _EXTRAS)


def has_token(node: Node, *types: str) -> bool:
    """Whether a node has a child of one of these types, which are keywords or signs."""
    return any(child.type in types for child in node.children)


def repeated(names: Iterable[tuple[bytes, Node]]) -> Iterator[Node]:
    """The nodes whose names occurred before."""
    seen = set()
    for name, node in names:
        if name in seen:
            yield node
        seen.add(name)


def overloaded(walk: Walk, siblings: list[Node], signature: str, definition: str) -> Iterator[Node]:
    """Signatures that neither another signature nor a definition of the same name follows."""
    for index, node in enumerate(siblings):
        if node.type == signature:
            name = node.child_by_field_name("name")
            follows = siblings[index + 1] if index + 1 < len(siblings) else None
            other = follows.child_by_field_name("name") if follows is not None else None
            fits = follows is not None and follows.type in (signature, definition)
            if name is not None and not (fits and other is not None and walk.text(other) == walk.text(name)):
                yield node
