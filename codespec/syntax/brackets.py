"""The brackets of a document, as its parser tells them from those in texts, comments and patterns."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import tree_sitter

_SIGNS = ("(", ")", "[", "]", "{", "}", "${")
"""Of the parsers; the last one stands in templates of JavaScript."""


@functools.cache
def _query(language: tree_sitter.Language) -> tree_sitter.Query:
    quoted = [f'"{sign}"' for sign in _SIGNS if language.id_for_node_kind(sign, False)]
    return tree_sitter.Query(language, f"[{' '.join(quoted)}] @bracket")


def brackets_in(tree: tree_sitter.Tree, source: bytes) -> Iterator[tuple[int, str]]:
    """Position, in characters of ``source``, and sign of each bracket in the code of a document, in order."""
    found = tree_sitter.QueryCursor(_query(tree.language)).captures(tree.root_node).get("bracket", [])
    characters = done = 0
    for node in sorted((each for each in found if not each.is_missing), key=lambda each: each.start_byte):
        characters += len(source[done : node.start_byte].decode("utf-8", "replace"))
        done = node.start_byte
        yield characters, node.type[-1]
