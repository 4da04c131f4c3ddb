"""Look-around in the patterns of JSON Schemas, where other patterns say the same.

A schema's pattern need only be found somewhere in a text, and several patterns may have to hold together. So what looks
ahead from the start of a text is a pattern of its own, and what looks behind at the start of a match is a character
before it, or the start of the text.
"""

from __future__ import annotations

import re

_GROUP = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]?|[()|]", re.DOTALL)
_BEHIND = re.compile(r"(?:\.\*\??)?\(\?<!(?P<one>\\?[^\[\](){}|*+?.^$\\]|\\[\\.$*+?^|(){}\[\]/-])\)")
_TWICE = re.compile(r"\(\(\?!(\\[.$]|\w)(?:\{2\}|\1)\)\.\)\*(?=\$)")  # no such character behind another
_WORDS = re.compile(r"\(?((?:[\w \-@/:,;!=]|\\[.$/-])+(?:\|(?:[\w \-@/:,;!=]|\\[.$/-])+)*)\)?\$")


def without_look_around(pattern: str) -> list[str]:
    """Patterns that together find what ``pattern`` finds; where some look-around has no equal, it is still in one."""
    found: list[str] = []
    rest = pattern = _TWICE.sub(r"(?:\1?[^\1\\n\\r\\u2028\\u2029])*\1?", pattern)
    if len(alternatives(pattern)) == 1:
        while (ahead := re.match(r"\^?\(\?([=!])", rest)) is not None and pattern.startswith("^"):
            end = _end_of_group(rest, ahead.start(1) - 2)
            if end is None:
                break
            inner = rest[ahead.end() : end - 1]
            if ahead[1] == "=":
                found.append("|".join(f"^(?:{option.removeprefix('^')})" for option in alternatives(inner)))
            else:
                words = _WORDS.fullmatch(inner)
                if words is None or inner.startswith("(") != inner.endswith(")$"):
                    break
                unescaped = [re.sub(r"\\(.)", r"\1", each) for each in words[1].split("|")]
                found.append(f"^(?:{_ecma(all_but(unescaped))})$")
            rest = "^" + rest[end:]
    rest = re.sub(r"\$\)\.\*\$?$", "$)", rest)  # behind the end is nothing
    return [*found, "|".join(map(_without_behind, alternatives(rest)))]


def all_but(texts: list[str]) -> str:
    """A regular expression for every text but these."""
    heads: dict[str, list[str]] = {}
    for text in texts:
        if text:
            heads.setdefault(text[0], []).append(text[1:])
    options = [] if "" in texts else [""]
    options += [f"{re.escape(head)}(?:{all_but(tails)})" for head, tails in heads.items()]
    others = "".join(f"\\x{{{ord(head):X}}}" for head in heads)
    # Without \\x00, because llguidance takes a class with all control characters for one with quotes in it.
    options.append(f"[^{others}\\x00](?s:.*)" if others else "(?s:.+)")
    return "|".join(options)


def _without_behind(option: str) -> str:
    behind = _BEHIND.match(option)
    if behind is None:
        return option
    return f"(?:^|[^{behind['one']}]){option[behind.end() :]}"


def _ecma(pattern: str) -> str:
    """A pattern of ``all_but`` in the dialect of schemas."""
    pattern = re.sub(r"\\x\{([0-9A-F]+)\}", lambda code: f"\\u{{{code[1]}}}", pattern)
    return pattern.replace("(?s:.*)", r"[\s\S]*").replace("(?s:.+)", r"[\s\S]+")


def _end_of_group(pattern: str, begin: int) -> int | None:
    depth = 0
    for each in _GROUP.finditer(pattern, begin):
        depth += {"(": 1, ")": -1}.get(each[0], 0)
        if depth == 0:
            return each.end()
    return None


def alternatives(pattern: str) -> list[str]:
    """What stands between the bars that are in no group and no class."""
    parts, depth, begin = [], 0, 0
    for each in _GROUP.finditer(pattern):
        depth += {"(": 1, ")": -1}.get(each[0], 0)
        if each[0] == "|" and depth == 0:
            parts.append(pattern[begin : each.start()])
            begin = each.end()
    return [*parts, pattern[begin:]]
