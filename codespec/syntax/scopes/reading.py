"""A walk over the nodes that hold certain names, which says of each what it is and in which scope it is looked up."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import tree_sitter

VALUE, TYPE, NAMESPACE = 1, 2, 4
"""What a name may mean, where a language looks each up on its own."""
ANY = VALUE | TYPE | NAMESPACE
DEEPEST = 200
"""Scopes in each other that are read."""
LONGEST_OWNER = 400
"""Bytes before a dot that are looked at: of a chain of calls each part would have all before it."""

Kind: TypeAlias = Literal["bind", "use", "member", "doubt"]
Form: TypeAlias = Literal["", "shorthand", "export", "fixed", "short"]


class TooDeepError(Exception):
    """There are too many scopes in each other."""


@dataclass(eq=False)
class Scope:
    """Where names are bound.

    Attributes:
        kind: as the language's reader needs it.
        start, end: in bytes; a name that is bound here is seen nowhere else.
        bound: by name, what is bound of it (``VALUE`` and so on), and from which byte on.
        errors: whether the parser found errors inside.
        depth: how many scopes are around it.
    """

    kind: str
    start: int
    end: int
    parent: Scope | None
    errors: bool
    depth: int = 0
    bound: dict[bytes, tuple[int, int]] = field(default_factory=dict)

    def bind(self, name: bytes, meaning: int = VALUE, after: int = 0) -> None:
        """Note that a name is bound; of several places the first counts."""
        known, first = self.bound.get(name, (0, after))
        self.bound[name] = known | meaning, min(first, after)

    def up(self) -> Iterator[Scope]:
        """This scope and those around it, the innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


class Role(NamedTuple):
    """What the names in a node are.

    Attributes:
        kind: ``member`` for attributes, keys and whatever else is no variable.
        scope: where they are bound; None: they are looked up.
        meaning: what may be bound or looked up.
        form: ``shorthand`` and ``export``: how the rename of one is written; ``fixed``: it cannot be renamed alone;
            ``short``: bound unless the scope has it already.
        after: the byte from which on they are bound.
    """

    kind: Kind
    scope: Scope | None = None
    meaning: int = VALUE
    form: Form = ""
    after: int = 0


USE, MEMBER, DOUBT = Role("use"), Role("member"), Role("doubt")


def binds(scope: Scope, meaning: int = VALUE) -> Role:
    """Of what is bound in a scope."""
    return Role("bind", scope, meaning)


def member(_: Scope) -> Role:
    """Of what is no variable, wherever it stands."""
    return MEMBER


class Name(NamedTuple):
    """A name in a document.

    Attributes:
        start: in bytes.
        scope: where it is looked up or bound.
        owner: of a member, the text of what it is a member of; empty where there is none.
    """

    text: bytes
    start: int
    scope: Scope
    role: Role
    owner: bytes = b""


Variable: TypeAlias = "tuple[Scope | None, bytes]"
"""A scope and a name that is bound there; None: the name is bound nowhere in the document."""
Step: TypeAlias = "tuple[tree_sitter.Node, Scope, Role]"
Handler: TypeAlias = "Callable[[tree_sitter.Node, Scope, Role], Iterable[Step]]"


class Reader(ABC):
    """Reads the places of a few names in one tree. For one thread.

    Attributes:
        names: in the order of the text.
        watched: names that make scopes doubtful, which are read, too.
        keywords: what cannot be a name.
    """

    watched: ClassVar[frozenset[bytes]] = frozenset()
    keywords: ClassVar[frozenset[bytes]] = frozenset()

    def __init__(self, root: tree_sitter.Node, data: bytes, wanted: Iterable[bytes]) -> None:
        """
        Raises:
            TooDeepError: there are more than ``DEEPEST`` scopes in each other.
        """
        self._root, self._data = root, data
        words = {*wanted, *self.watched}
        pattern = rb"(?<![\w\x80-\xff])(?:%s)(?![\w\x80-\xff])" % b"|".join(map(re.escape, sorted(words)))
        self._at = [match.start() for match in re.finditer(pattern, data)]
        self._words = words
        self.names: list[Name] = []
        self._around = 0  # where the node begins whose children are read
        self.outermost = self._scope("outermost", root, None)
        self._read()

    @abstractmethod
    def variable(self, name: Name) -> Variable | None:
        """What a name stands for; None where that is in doubt."""

    def unsafe(self, variable: Variable, new: bytes) -> bool:
        """Whether more than names may depend on what a variable is called."""
        return False

    def known(self, name: bytes) -> bool:
        """Whether a name means something without being bound in the document."""
        return False

    @classmethod
    def tells_all(cls, data: bytes) -> bool:
        """Whether a document binds every name that it uses, but for built-in and ``ambient`` ones."""
        return False

    @classmethod
    def ambient(cls) -> frozenset[bytes]:
        """Names that are not built in, and that what surrounds a document may bring."""
        return frozenset()

    def fields(self, renamed: Sequence[Name], old: bytes, new: bytes) -> Sequence[Name]:
        """The names that are fields, and surely the one that ``renamed`` are, which was called ``old``."""
        return ()

    @abstractmethod
    def _handlers(self) -> dict[str, Handler]:
        """By type of node, what its children are."""

    def _scope(self, kind: str, node: tree_sitter.Node, parent: Scope | None) -> Scope:
        depth = parent.depth + 1 if parent is not None else 0
        if depth > DEEPEST:
            raise TooDeepError
        return Scope(kind, node.start_byte, node.end_byte, parent, node.has_error, depth)

    def _read(self) -> None:
        handlers = self._handlers()
        waiting: list[tuple[Step, int]] = [((self._root, self.outermost, USE), 0)]
        while waiting:
            (node, scope, role), self._around = waiting.pop()
            if not self._concerns(node):
                continue
            if not node.child_count:
                self._leaf(node, scope, role)
                continue
            handler = handlers.get(node.type)
            steps = handler(node, scope, role) if handler is not None else self._rest(node, scope, role)
            waiting += ((step, node.start_byte) for step in reversed(list(steps)))

    def _concerns(self, node: tree_sitter.Node) -> bool:
        """Whether a node holds one of the names."""
        at = bisect_left(self._at, node.start_byte)
        return at < len(self._at) and self._at[at] < node.end_byte

    def _leaf(self, node: tree_sitter.Node, scope: Scope, role: Role) -> None:
        text = self._data[node.start_byte : node.end_byte]
        if "identifier" not in node.type and node.type != "label_name":
            return
        if text in self._words:
            self._name(node, text, scope, role)

    def _name(self, node: tree_sitter.Node, text: bytes, scope: Scope, role: Role) -> None:
        owner = self._owner(node) if role.kind == "member" else b""
        self.names.append(Name(text, node.start_byte, scope, role, owner))
        if role.kind == "bind" and role.scope is not None:
            role.scope.bind(text, role.meaning, role.after)

    def _owner(self, node: tree_sitter.Node) -> bytes:
        """What stands before a name and a dot: the end of it, where it is long."""
        end = node.start_byte
        text = self._data[max(self._around, end - LONGEST_OWNER) : end].rstrip()
        return text.rstrip(b".?").rstrip() if text.endswith(b".") else b""

    def _rest(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        """The children of a node that says nothing of its names."""
        for child in node.children:
            yield child, scope, USE

    def _same(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        """The children of a node whose names are what it is itself."""
        for child in node.children:
            yield child, scope, role

    def _all_as(self, role: Callable[[Scope], Role]) -> Handler:
        """Of nodes whose names have one role."""
        return lambda node, scope, _: self._same(node, scope, role(scope))

    def _field_as(self, **roles: Callable[[Scope], Role]) -> Handler:
        """Of nodes in whose fields names have these roles; elsewhere they are only used."""
        return lambda node, scope, _: self._fields(
            node, scope, {name: (scope, role(scope)) for name, role in roles.items()}
        )

    def _fields(
        self, node: tree_sitter.Node, scope: Scope, of: dict[str, tuple[Scope, Role]], rest: Role = USE
    ) -> Iterator[Step]:
        """The children, by the field that they are in."""
        for index, child in enumerate(node.children):
            if self._concerns(child):
                name = node.field_name_for_child(index) or ""
                yield (child, *of.get(name, (scope, rest)))
