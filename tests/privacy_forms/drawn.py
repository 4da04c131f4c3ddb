"""Texts that a pattern matches, drawn at random."""

from __future__ import annotations

import random
import re
import string
from typing import Any

_WORD = string.ascii_letters + string.digits
_CLASSES = {"CATEGORY_DIGIT": string.digits, "CATEGORY_WORD": _WORD + "_", "CATEGORY_SPACE": " "}
_TRIES = 200
_MORE = 30
"""Repetitions beyond the least that a part has at most."""


def drawn(pattern: str, generator: random.Random) -> str:
    """A text in which a pattern finds something; empty where none was found by trying."""
    tree, compiled = re._parser.parse(pattern), re.compile(pattern)
    for _ in range(_TRIES):
        text = _sequence(tree, generator)
        if len(text) < 3000 and compiled.search(text):
            return text
    return ""


def _sequence(tree: Any, generator: random.Random) -> str:
    return "".join(_part(str(op), argument, generator) for op, argument in tree)


def _part(op: str, argument: Any, generator: random.Random) -> str:
    if op == "LITERAL":
        return chr(argument)
    if op in ("ANY", "NOT_LITERAL"):
        return generator.choice(_WORD)
    if op == "IN":
        return generator.choice(sorted(_class(argument)))
    if op in ("MAX_REPEAT", "MIN_REPEAT"):
        least, most, inner = argument
        count = generator.randint(least, min(int(most), least + (_MORE if least else 2)))
        return "".join(_sequence(inner, generator) for _ in range(count))
    if op == "SUBPATTERN":
        return _sequence(argument[3], generator)
    if op == "BRANCH":
        return _sequence(generator.choice(argument[1]), generator)
    return ""  # a place between characters


def _class(items: Any) -> set[str]:
    found: set[str] = set()
    for op, argument in items:
        if str(op) == "LITERAL":
            found.add(chr(argument))
        elif str(op) == "RANGE":
            found |= {chr(code) for code in range(argument[0], min(argument[1], 126) + 1)}
        elif str(op) == "CATEGORY":
            found |= set(_CLASSES.get(str(argument), _WORD))
    if str(items[0][0]) == "NEGATE":
        found = set(_WORD + "_- ") - found
    return {each for each in found if each.isprintable()} or set(_WORD)
