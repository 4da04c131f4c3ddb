"""References inside one JSON Schema document: pointers, identifiers and anchors, by each schema's draft."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote, urldefrag, urljoin

from codespec.grammar.json.drafts import DEFAULT, Draft, UnknownDraft, draft_of, subschemas

Schema: TypeAlias = "dict[str, Any] | bool"


class BadReference(ValueError):
    """A reference that leads nowhere, out of the document, or to several places."""


class SeveralMeanings(BadReference):
    """A reference whose meaning depends on the way to it."""


class Place(NamedTuple):
    """Where a schema stands.

    Attributes:
        pointer: from the root of the document.
        base: the address that its references are relative to.
        problem: why it cannot be read.
    """

    pointer: str
    base: str
    draft: Draft
    problem: str = ""


class References:
    """Finds the schemas of a document, and what their references mean. It never loads anything."""

    def __init__(self, root: Any) -> None:
        self._targets: dict[str, Any] = {}
        self._several: set[str] = set()  # addresses that name more than one schema
        self._dynamic: dict[str, list[dict[str, Any]]] = {}
        self._places: dict[int, Place] = {}
        self._nodes: list[dict[str, Any]] = []
        self._name("", root)
        self._read(root, Place("", "", DEFAULT), named=True)

    def place(self, node: dict[str, Any]) -> Place:
        """Where a schema of the document stands."""
        return self._places[id(node)]

    def schemas(self) -> Iterator[tuple[dict[str, Any], Place]]:
        """Every schema of the document but ``true`` and ``false``."""
        return ((node, self.place(node)) for node in self._nodes)

    def move(self, node: dict[str, Any], place: Place) -> None:
        """Have a schema that is not in the document stand somewhere."""
        self._places[id(node)] = place
        self._nodes.append(node)  # so that its number stays its own

    def resolve(self, place: Place, reference: str) -> tuple[Any, str]:
        """What ``reference``, written at ``place``, points to, and its JSON pointer.

        Raises:
            BadReference: it is not in this document.
        """
        uri, fragment = _split(place.base, reference)
        if uri not in self._targets:
            raise BadReference(f"{reference} is outside the schema")
        if fragment and not fragment.startswith("/"):
            name = f"{uri}#{unquote(fragment)}"
            if name not in self._targets:
                raise BadReference(f"there is no anchor {fragment!r}")
            return self._found(name, reference)
        target, pointer = self._found(uri, reference)
        around = self._places.get(id(target), place)
        for part in unquote(fragment).split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            target = _child(target, name, reference)
            pointer = f"{pointer}/{escape(name)}"
            around = self._places.get(id(target), around) if isinstance(target, dict) else around
        if isinstance(target, dict) and id(target) not in self._places:
            self._read(target, around._replace(pointer=pointer), named=False)
        return target, pointer

    def resolve_dynamic(self, place: Place, reference: str, recursive: bool) -> tuple[Any, str]:
        """The same for ``$dynamicRef``, or ``$recursiveRef``, where it has only one meaning.

        Raises:
            BadReference: it is not in this document.
            SeveralMeanings: it depends on the way there.
        """
        found, pointer = self.resolve(place, reference)
        name = "" if recursive else unquote(_split(place.base, reference)[1])
        anchor = "$recursiveAnchor" if recursive else "$dynamicAnchor"
        bookend = isinstance(found, dict) and found.get(anchor) == (True if recursive else name)
        if bookend and len(self._dynamic.get(name, ())) > 1:
            raise SeveralMeanings(f"{reference} has several meanings")
        return found, pointer

    def _found(self, name: str, reference: str) -> tuple[Any, str]:
        if name in self._several:
            raise BadReference(f"{reference} names several schemas")
        target = self._targets[name]
        return target, self._places[id(target)].pointer if isinstance(target, dict) else ""

    def _read(self, root: Any, around: Place, named: bool) -> None:
        """Every schema in ``root``.

        Args:
            named: whether their identifiers name them.
        """
        stack = [(root, around)]
        while stack:
            node, place = stack.pop()
            if not isinstance(node, dict) or id(node) in self._places:
                continue
            place = self._placed(node, place, node is root and named)
            self._places[id(node)] = place
            self._nodes.append(node)
            if named:
                self._name_all(node, place, node is root)
            for way, child in subschemas(node, place.draft):
                pointer = "/".join([place.pointer, *(escape(str(step)) for step in way)])
                stack.append((child, place._replace(pointer=pointer, problem="")))

    def _placed(self, node: dict[str, Any], around: Place, is_root: bool) -> Place:
        try:
            draft = draft_of(node, around.draft)
        except UnknownDraft as error:
            return around._replace(problem=f"the draft {error} is not supported")
        identifier = draft.identifier_of(node)
        own = identifier is not None and not identifier.startswith("#")
        if draft.name != around.draft.name and not own and not is_root:
            return around._replace(problem="$schema names another draft, but the schema has no address of its own")
        try:
            base = urldefrag(urljoin(around.base, identifier))[0] if own and identifier is not None else around.base
        except ValueError:
            return around._replace(problem=f"{draft.identifier} is no address")
        return Place(around.pointer, base, draft)

    def _name_all(self, node: dict[str, Any], place: Place, is_root: bool) -> None:
        identifier = place.draft.identifier_of(node)
        resource = is_root or (identifier is not None and not identifier.startswith("#"))
        if resource and place.base:
            self._name(place.base, node)
        for anchor in place.draft.anchors_of(node):
            self._name(f"{place.base}#{anchor}", node)
        dynamic = node.get("$dynamicAnchor")
        if "$dynamicAnchor" in place.draft.keywords and isinstance(dynamic, str):
            self._dynamic.setdefault(dynamic, []).append(node)
        if resource and node.get("$recursiveAnchor") is True:
            self._dynamic.setdefault("", []).append(node)

    def _name(self, address: str, node: Any) -> None:
        if self._targets.setdefault(address, node) is not node:
            self._several.add(address)


def _split(base: str, reference: str) -> tuple[str, str]:
    """Address and fragment of a reference.

    Raises:
        BadReference: it is none.
    """
    if reference.startswith("#"):
        return base, reference[1:]
    try:
        uri, fragment = urldefrag(urljoin(base, reference))
    except ValueError:
        raise BadReference(f"{reference} is no address") from None
    return uri, fragment


def escape(key: str) -> str:
    """``key`` as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def _child(target: Any, part: str, reference: str) -> Any:
    if isinstance(target, dict) and part in target:
        return target[part]
    if isinstance(target, list) and part.isascii() and part.isdecimal() and int(part) < len(target):
        return target[int(part)]
    raise BadReference(f"{reference} does not exist")
