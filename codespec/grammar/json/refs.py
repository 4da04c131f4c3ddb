"""References inside one JSON Schema document: pointers, ``$id`` and anchors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias
from urllib.parse import unquote, urldefrag, urljoin

Schema: TypeAlias = "dict[str, Any] | bool"

_DATA = ("const", "enum", "default", "examples")
"""Keywords whose values hold no schemas."""


class BadReference(ValueError):
    """A reference that leads nowhere, or out of the document."""


class References:
    """Finds what references in a document mean. It never loads anything."""

    def __init__(self, root: Any) -> None:
        self._targets: dict[str, tuple[Any, str]] = {"": (root, "")}
        self._bases: dict[int, str] = {}
        for node, pointer, base in _nodes(root, "", ""):
            self._add(node, pointer, base)

    def resolve(self, node: dict[str, Any], reference: str) -> tuple[Any, str]:
        """What ``reference``, written in ``node``, points to, and its JSON pointer.

        Raises:
            BadReference: it is not in this document.
        """
        base = self._bases.get(id(node), "")
        uri, fragment = (base, reference[1:]) if reference.startswith("#") else urldefrag(urljoin(base, reference))
        if uri not in self._targets:
            raise BadReference(f"{reference} is outside the schema")
        if fragment and not fragment.startswith("/"):
            if f"{uri}#{fragment}" not in self._targets:
                raise BadReference(f"there is no anchor {fragment!r}")
            return self._targets[f"{uri}#{fragment}"]
        target, pointer = self._targets[uri]
        for part in unquote(fragment).split("/")[1:]:
            target = _child(target, part.replace("~1", "/").replace("~0", "~"), reference)
            pointer += "/" + part
        return target, pointer

    def _add(self, node: dict[str, Any], pointer: str, base: str) -> None:
        self._bases[id(node)] = base
        identifier = node.get("$id")
        if isinstance(identifier, str) and not identifier.startswith("#"):
            self._targets.setdefault(base, (node, pointer))
        elif isinstance(identifier, str):  # how drafts 6 and 7 wrote anchors
            self._targets.setdefault(base + identifier, (node, pointer))
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(keyword), str):
                self._targets.setdefault(f"{base}#{node[keyword]}", (node, pointer))


def escape(key: str) -> str:
    """``key`` as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def _nodes(node: Any, pointer: str, base: str) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Every object that may be a schema, with its pointer and base address."""
    stack = [(node, pointer, base)]
    while stack:
        node, pointer, base = stack.pop()
        if isinstance(node, list):
            stack += [(child, f"{pointer}/{index}", base) for index, child in enumerate(node)]
        elif isinstance(node, dict):
            identifier = node.get("$id")
            if isinstance(identifier, str) and not identifier.startswith("#"):
                base = urldefrag(urljoin(base, identifier))[0]
            yield node, pointer, base
            children = ((key, child) for key, child in node.items() if key not in _DATA)
            stack += [(child, f"{pointer}/{escape(key)}", base) for key, child in children]


def _child(target: Any, part: str, reference: str) -> Any:
    if isinstance(target, dict) and part in target:
        return target[part]
    if isinstance(target, list) and part.isascii() and part.isdecimal() and int(part) < len(target):
        return target[int(part)]
    raise BadReference(f"{reference} does not exist")
