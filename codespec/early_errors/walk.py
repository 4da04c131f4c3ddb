"""The walk over a tree that all languages share: what a completion cannot have changed is put off, not looked into.

A checker of one language visits the nodes that a range touches, with a context that says what surrounds them (in a
loop, in an async function, …). Every other node is recorded by its place and context. Two walks, of a document without
a completion and with it, record the same for what the completion left alone; only where they do not is a node that
was put off visited after all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

_EXTRAS = frozenset({"comment", "html_comment", "line_comment", "block_comment", "line_continuation"})


class Node(Protocol):
    """What is needed of a ``tree_sitter.Node``."""

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
    def parent(self) -> Any: ...
    @property
    def prev_named_sibling(self) -> Any: ...
    @property
    def next_sibling(self) -> Any: ...
    def child_by_field_name(self, name: str, /) -> Any: ...
    def children_by_field_name(self, name: str, /) -> list[Any]: ...


class EarlyError(NamedTuple):
    """Something that a compiler refuses before it runs anything.

    Attributes:
        kind: such as ``redeclared``.
        start: in bytes of the document.
        end: in bytes of the document.
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


@dataclass
class Walk:
    """One pass over a tree.

    Attributes:
        data: the document.
        handlers: what is done with a node, by its type; the children of all others are visited.
        touched: start and end of the range of interest; None looks into everything.
        inspect: what is done with every node.
        errors: found so far.
    """

    data: bytes
    handlers: dict[str, Handler]
    touched: tuple[int, int] | None = None
    inspect: Callable[[Walk, Node], None] | None = None
    errors: set[EarlyError] = field(default_factory=set)
    deferred: dict[_Deferred, Node] = field(default_factory=dict)
    settled: set[_Deferred] = field(default_factory=set)

    @cached_property
    def reach(self) -> int:
        """Where the text before the range ends, white space aside: a block may be waiting for it there."""
        assert self.touched is not None
        return len(self.data[: self.touched[0]].rstrip())

    def visit(self, node: Node, context: Any) -> None:
        """Look into a node, or put that off where the range does not touch it."""
        if self.is_touched(node):
            self.enter(node, context)
        elif node.is_named:
            place = self._before(node.start_byte), self._before(node.end_byte)
            self.deferred[_Deferred(*place, node.type, context)] = node

    def is_touched(self, node: Node) -> bool:
        """Whether the range touches a node."""
        return self.touched is None or (node.end_byte >= self.reach and node.start_byte <= self.touched[1])

    def enter(self, node: Node, context: Any) -> None:
        """Look into a node. Nothing is said about what the parser did not understand."""
        if node.is_error or node.is_missing:
            return
        if self.inspect is not None:
            self.inspect(self, node)
        handler = self.handlers.get(node.type)
        if handler is not None:
            handler(self, node, context)
        elif node.child_count:
            self.visit_children(node, context)

    def visit_children(self, node: Node, context: Any) -> None:
        """Visit all of them."""
        for child in node.children:
            if child.is_named:
                self.visit(child, context)

    def report(self, kind: str, node: Node, end: Node | None = None) -> None:
        """An error at ``node``, or from there to ``end``."""
        self.errors.add(EarlyError(kind, node.start_byte, (end or node).end_byte))

    def text(self, node: Node) -> bytes:
        """What the document has there."""
        return self.data[node.start_byte : node.end_byte]

    def _before(self, byte: int) -> int:
        """The byte without what was put in; below zero within that."""
        assert self.touched is not None
        start, end = self.touched
        if byte >= end:
            return byte - (end - start)
        return byte if byte <= start else -byte

    def settle(self, other: Walk) -> None:
        """Look into what only this walk has put off."""
        self.touched, touched = None, self.touched
        for key, node in self.deferred.items():
            if key not in other.deferred and key not in self.settled:
                self.settled.add(key)
                self.enter(node, key.context)
        self.touched = touched

    def placed(self) -> Iterator[tuple[EarlyError, tuple[str, int]]]:
        """Each error, with its kind and place as they are without what was put in."""
        assert self.touched is not None
        start, end = self.touched
        for error in self.errors:
            inside = start <= error.start < end
            yield error, (error.kind, -1 - error.start if inside else self._before(error.start))

    def touches(self, error: EarlyError) -> bool:
        """Whether the range touches where an error is."""
        assert self.touched is not None
        return error.start <= self.touched[1] and error.end >= self.touched[0]


def named(node: Node) -> Iterable[Node]:
    """The children that are no signs, keywords or comments."""
    return (child for child in node.children if child.is_named and child.type not in _EXTRAS)


def has_token(node: Node, *types: str) -> bool:
    """Whether one of the children is such a keyword or sign."""
    return any(child.type in types for child in node.children)


def repeated(names: Iterable[tuple[bytes, Node]]) -> Iterator[Node]:
    """The nodes whose names were there before."""
    seen = set()
    for name, node in names:
        if name in seen:
            yield node
        seen.add(name)


def overloaded(walk: Walk, siblings: list[Node], signature: str, definition: str) -> Iterator[Node]:
    """Signatures behind which neither another one nor a definition of the same name comes."""
    for index, node in enumerate(siblings):
        if node.type == signature:
            name = node.child_by_field_name("name")
            follows = siblings[index + 1] if index + 1 < len(siblings) else None
            other = follows.child_by_field_name("name") if follows is not None else None
            fits = follows is not None and follows.type in (signature, definition)
            if name is not None and not (fits and other is not None and walk.text(other) == walk.text(name)):
                yield node
