"""The walk over a tree that all languages share: nodes that a completion cannot have changed are deferred.

A checker of one language visits the nodes that a range touches, with a context that says what surrounds them (in a
loop, in an async function, …). Every other node is recorded by its place and context. Two walks, of a document without
a completion and with it, record the same for what the completion left alone; only where they do not is a node that
was deferred visited after all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

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
    def parent(self) -> Any: ...
    @property
    def prev_named_sibling(self) -> Any: ...
    @property
    def next_sibling(self) -> Any: ...
    def child_by_field_name(self, name: str, /) -> Any: ...
    def children_by_field_name(self, name: str, /) -> list[Any]: ...


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


@dataclass
class Walk:
    """One walk over a tree.

    Attributes:
        data: the document, UTF-8.
        handlers: by type of node, called with the walk, the node and its context; of others the children are visited.
        touched: byte offsets of the start and end of the completion; None visits all nodes.
        inspect: called with the walk and every visited node.
        errors: found so far.
        deferred: the nodes that the completion does not touch, by place and context as they are without it.
        settled: those of them that were visited after all.
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
        """The byte offset of the end of the text before the completion, white space aside: a block may wait there."""
        assert self.touched is not None
        return len(self.data[: self.touched[0]].rstrip())

    def visit(self, node: Node, context: Any) -> None:
        """Enter a node, or defer it where the completion does not touch it."""
        if self.is_touched(node):
            self.enter(node, context)
        elif node.is_named:
            place = self._before(node.start_byte), self._before(node.end_byte)
            self.deferred[_Deferred(*place, node.type, context)] = node

    def is_touched(self, node: Node) -> bool:
        """Whether the completion touches a node."""
        return self.touched is None or (node.end_byte >= self.reach and node.start_byte <= self.touched[1])

    def enter(self, node: Node, context: Any) -> None:
        """Check a node and visit what is in it; what the parser did not understand is left out."""
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
        """Visit all named children of a node."""
        for child in node.children:
            if child.is_named:
                self.visit(child, context)

    def report(self, kind: str, node: Node, end: Node | None = None) -> None:
        """Add an error at ``node``, or from there to the end of ``end``."""
        self.errors.add(EarlyError(kind, node.start_byte, (end or node).end_byte))

    def text(self, node: Node) -> bytes:
        """The bytes of a node."""
        return self.data[node.start_byte : node.end_byte]

    def _before(self, byte: int) -> int:
        """A byte offset as it is without the completion; below zero within it."""
        assert self.touched is not None
        start, end = self.touched
        if byte >= end:
            return byte - (end - start)
        return byte if byte <= start else -byte

    def settle(self, other: Walk) -> None:
        """Enter the nodes that this walk has deferred and ``other`` has not."""
        self.touched, touched = None, self.touched
        for key, node in self.deferred.items():
            if key not in other.deferred and key not in self.settled:
                self.settled.add(key)
                self.enter(node, key.context)
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
