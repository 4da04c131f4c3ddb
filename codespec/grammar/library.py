"""The grammars that come with codespec."""

from __future__ import annotations

import re
from pathlib import Path

_EXTENDS = re.compile(r"# Extends: (\S+)\n")
_RULE = re.compile(r"^([\w-]+)(?:<[^>]*>)?\s*::=.*\n(?:[ \t]+\S.*\n)*", re.MULTILINE)


def shipped() -> dict[str, Path]:
    """The grammars that come with codespec, by name."""
    package = Path(__file__).resolve().parents[1]
    # In a wheel they lie inside the package, in a checkout beside it.
    for folder in (package / "grammars", package.parent / "grammars"):
        found = {path.stem: path for path in sorted(folder.glob("*.gbnf"))}
        if found:
            return found
    return {}


def text_of(path: Path) -> str:
    """The text of a shipped grammar. One that begins with ``# Extends: FILE`` is the one in that file beside it, with
    its own rules in place of those of the same names."""
    text = path.read_text("utf-8")
    extends = _EXTENDS.match(text)
    if extends is None:
        return text
    own = {match[1] for match in _RULE.finditer(text)}
    base = text_of(path.parent / extends[1])
    return _RULE.sub(lambda match: "" if match[1] in own else match[0], base) + text


def to_generate(name: str) -> str:
    """``name``, or the rule ``compact`` of a shipped grammar that has one: a weak model comes to an end under it."""
    path = shipped().get(name)
    return f"{name}:compact" if path and re.search(r"^compact\s*::=", path.read_text("utf-8"), re.MULTILINE) else name
