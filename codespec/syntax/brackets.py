"""The brackets of a document, as its parser tells them from those in texts, comments and patterns."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import tree_sitter

from codespec.patience import check

_SIGNS = ("(", ")", "[", "]", "{", "}", "${")
"""Of the parsers; the last one stands in templates of JavaScript."""


@functools.cache
def _kinds(language: tree_sitter.Language) -> dict[int, str]:
    """The brackets by the number that the language's parser gives them."""
    kinds = {language.id_for_node_kind(sign, False): sign[-1] for sign in _SIGNS}
    return {kind: sign for kind, sign in kinds.items() if kind is not None}


def brackets_in(tree: tree_sitter.Tree, source: bytes) -> Iterator[tuple[int, str]]:
    """Position, in characters of ``source``, and sign of each bracket in the code of a document, in order.

    A query of the parser's would find them in quadratic time where they nest deeply, and nothing can stop it.
    """
    kinds = _kinds(tree.language)
    characters = done = 0
    for node in _nodes(tree):
        sign = kinds.get(node.kind_id)
        if sign is not None and not node.is_missing:
            characters += len(source[done : node.start_byte].decode("utf-8", "replace"))
            done = node.start_byte
            yield characters, sign


def _nodes(tree: tree_sitter.Tree) -> Iterator[tree_sitter.Node]:
    """All nodes, each before those in it."""
    cursor = tree.walk()
    while True:
        check()
        if cursor.node is not None:
            yield cursor.node
        if not cursor.goto_first_child():
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    return
