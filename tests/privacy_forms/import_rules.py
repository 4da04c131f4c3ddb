"""``python -m tests.privacy_forms.import_rules``: write ``token_rules.toml`` anew from the rules of others.

Needs ``pip install kingfisher-secret-scanner`` (Apache-2.0), with the rules of Betterleaks and of Gitleaks before
it (MIT) and of OSV-SCALIBR's Veles (Apache-2.0). What the file has under ``[own]`` stays.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from codespec.privacy.rules import SHORTHANDS, TOKEN_RULES, token_rules

PACKAGE = "kingfisher-secret-scanner"
_HEAD = f"""\
# Forms of keys and tokens: a line each, with the words of which one stands in every text that holds such a token, the
# bits for each character that the token has at least, and the pattern, whose last group is what is drawn at random.
# <sign> and <end> are written out in rules.py.
#
# [taken] is written by `python -m tests.privacy_forms.import_rules`. The rules are those of {PACKAGE} {{version}}
# (Apache-2.0, MongoDB): of Betterleaks and Gitleaks (MIT, Zachary Rice and contributors) and of Veles in OSV-SCALIBR
# (Apache-2.0, Google). Changed: quantifiers are bounded, what tells a name or a public key is left out.
"""
_SIGN = r"""(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"""
_SIGN_AFTER_GROUP = _SIGN.replace("{0,3}(?:=", "{0,3})(?:=")
_END = r"""(?:\\?['"\x60]|[\s;]|\\[nr]|$)"""
_NO_SECRET = re.compile(
    r"-(client|access|application|account|user-api)-id\b|url|host|domain|username|-name\b|public|pub-|"
    r"posthog-project|supabase-project|new-relic-browser|devcycle-(client|mobile)|gcp-|tf-password|key-short-lived|generic-|curl-|kubernetes|"
    r"private-key|nuget-config|mongodb-connection|lark-app-id|bitbucketcred|codecat|codecommit|flutterwave-public"
)
"""Identifiers, addresses and public keys; and what ``value_rules.toml`` has wider rules for."""
_GENERAL = frozenset(("key", "secret", "token", "auth", "access", "client", "api"))
"""Words that stand in any file: what they are beside is judged by ``value_rules.toml``."""
_LONGEST = 400
"""Characters that a quantifier without an end takes."""
_LEAST = 3
"""Characters of a word."""


def taken() -> Iterator[tuple[str, list[str], float, str]]:
    """Name, words, bits and pattern of each rule of the package that tells a secret.

    Raises:
        ImportError: the package is not installed.
    """
    from kingfisher_sdk import Rules

    rules = Rules(confidence="low")
    for each in rules.metadata():
        name = each["id"].partition(".")[2].removeprefix("secrets/")
        if not each["visible"] or no_secret(name):
            continue
        detail = rules.detail(each["id"])
        pattern = bounded(scoped(_shortened(detail["pattern"])))
        whole = _written_out(pattern)
        words = words_of(whole)
        if words and not _GENERAL.intersection(words):
            yield name, words, _bits(detail["betterleaks_filter"]), pattern


def no_secret(name: str) -> bool:
    """Whether a rule of this name tells no secret, or one that ``value_rules.toml`` has wider rules for."""
    return bool(_NO_SECRET.search(name))


def _shortened(pattern: str) -> str:
    return pattern.replace(_SIGN, "<sign>").replace(_SIGN_AFTER_GROUP, ")<sign>").replace(_END, "<end>")


def scoped(pattern: str) -> str:
    """A pattern of Rust, with flags for the rest of a group, as Python writes it."""
    pattern = pattern.replace(r"\z", r"\Z").replace("[:alnum:]", "A-Za-z0-9")
    # `\r` is both of these: what Rust reads in linear time, Python would in ways that double with each.
    pattern = pattern.replace(r"(?:.|[\n\r])", r"[\s\S]")
    while found := re.search(r"(?<!\\)\(\?([imsx]+)\)", pattern):
        end = _end_of_group(pattern, found.end())
        inner = pattern[found.end() : end]
        pattern = f"{pattern[: found.start()]}(?{found[1]}:{inner}){pattern[end:]}"
    return pattern


def _end_of_group(pattern: str, at: int) -> int:
    depth, in_class = 0, False
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            at += 1
        elif in_class:
            in_class = sign != "]"
        elif sign == "[":
            in_class = True
        elif sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
            if depth < 0:
                return at
        at += 1
    return at


def bounded(pattern: str) -> str:
    """A pattern whose quantifiers all have an end."""
    made, in_class, at = "", False, 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            made += pattern[at : at + 2]
            at += 2
            continue
        if in_class:
            in_class = sign != "]"
        elif sign == "[":
            in_class = True
        elif sign in "*+" and made:
            sign = f"{{{int(sign == '+')},{_LONGEST}}}"
        elif found := re.compile(r"\{(\d+),\}").match(pattern, at):
            sign = f"{{{found[1]},{int(found[1]) + _LONGEST}}}"
            at = found.end() - 1
        made += sign
        at += 1
    return made


def _written_out(pattern: str) -> str:
    for name, meaning in SHORTHANDS.items():
        pattern = pattern.replace(name, meaning)
    return pattern


def words_of(pattern: str) -> list[str]:
    """Words in lower case of which each text that the pattern matches holds one; empty where none are long enough."""
    return sorted(_best(re._parser.parse(pattern), False) or ())


def _best(tree: Any, optional: bool) -> frozenset[str] | None:
    """The most telling set of words of a sequence."""
    found: list[frozenset[str]] = []
    run = ""

    def close() -> None:
        nonlocal run
        if len(run) >= _LEAST:
            found.append(frozenset({run}))
        run = ""

    for op, argument in tree:
        name = str(op)
        letter = _letter(name, argument)
        if letter:
            run += letter
            continue
        inner = None
        if name == "SUBPATTERN":
            flat = _flat(argument[3])
            if flat is not None:
                run += flat
                continue
            inner = _best(argument[3], optional)
        close()
        if name == "BRANCH":
            each = [_best(branch, optional) for branch in argument[1]]
            if all(each):
                inner = frozenset().union(*each)  # type: ignore[arg-type]
        elif name in ("MAX_REPEAT", "MIN_REPEAT") and argument[0] > 0:
            inner = _best(argument[2], optional)
        if inner:
            found.append(inner)
    close()
    return max(found, key=lambda words: (not _GENERAL & words, min(map(len, words)), -len(words)), default=None)


def _flat(tree: Any) -> str | None:
    letters = [_letter(str(op), argument) for op, argument in tree]
    return "".join(letters) if letters and all(letters) else None


def _letter(name: str, argument: Any) -> str:
    """The character in lower case, if it is one, in whatever case."""
    if name == "LITERAL":
        return chr(argument).lower()
    if name == "IN" and all(str(op) == "LITERAL" for op, _ in argument):
        letters = {chr(code).lower() for _, code in argument}
        return letters.pop() if len(letters) == 1 else ""
    return ""


def _bits(filters: Any) -> float:
    """The entropy that a rule's filter asks for; 0: none."""
    if isinstance(filters, list):
        return max(map(_bits, filters), default=0.0)
    if not isinstance(filters, dict):
        return 0.0
    if filters.get("operator") in ("<", "<=") and "entropy" in json.dumps(filters.get("left")):
        return float(filters["right"].get("value", 0))
    return max(map(_bits, filters.values()), default=0.0)


def line(name: str, words: list[str], bits: float, pattern: str) -> str:
    """A rule as the file has it."""
    written = f"'{pattern}'" if "'" not in pattern else json.dumps(pattern, ensure_ascii=False)
    return f"{name} = {{ words = {json.dumps(words)}, bits = {bits:g}, pattern = {written} }}\n"


def main() -> None:
    own = [line(each.name, list(each.words), each.bits, each.pattern) for each in token_rules() if each.own]
    rules = {name.replace(".", "-"): (name.replace(".", "-"), *rest) for name, *rest in taken()}
    lines = [line(*rule) for rule in rules.values()]  # type: ignore[arg-type]
    head = _HEAD.format(version=version(PACKAGE))
    TOKEN_RULES.write_text(f"{head}\n[own]\n{''.join(own)}\n[taken]\n{''.join(lines)}", "utf-8")
    print(f"{len(lines)} rules taken, {len(own)} of our own", file=sys.stderr)


if __name__ == "__main__":
    main()
