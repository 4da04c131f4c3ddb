"""Checks the two sides of ``-``, the subtraction."""

from __future__ import annotations

from collections.abc import Collection

from codespec.grammar.errors import GrammarError
from codespec.grammar.rules import Boundary, Except, Node, Rule, RuleRef, Rules, TokenRef, references, walk


def check_subtractions(rules: Rules, names: Collection[str]) -> None:
    """Raises an error where a side of ``-`` is recursive, or holds a word boundary or a token element.

    Looked at are the rules of these ``names`` and the instances of such templates.
    """
    sound: dict[str, str] = {}  # what is wrong with the texts of a rule, by its name; empty is nothing
    for rule in rules.rules.values():
        if rule.name.partition("<")[0] not in names:
            continue
        for node, _ in walk(rule.body):
            if isinstance(node, Except):
                _check(node, rule, rules, sound)


def _check(node: Except, rule: Rule, rules: Rules, sound: dict[str, str]) -> None:
    cause = _unfit(node)
    at: RuleRef | Rule = rule
    for ref in references(node):
        if cause:
            break
        cause, at = _judge(ref.name, rules, sound), ref
    if cause:
        remedy = "subtract texts without recursion, '\\b' and tokens from such texts"
        raise GrammarError(rules.name, f"'-' in {rule.name!r}: {cause}", remedy, at.line, at.column)


def _unfit(node: Node) -> str:
    for inner, _ in walk(node):
        if isinstance(inner, Boundary):
            return "'\\b' stands inside"
        if isinstance(inner, TokenRef):
            return f"the token element {inner.text} stands inside"
    return ""


def _judge(start: str, rules: Rules, sound: dict[str, str]) -> str:
    """The error of a rule inside a subtraction, or of one that it uses (a walk, callees first)."""
    stack = [(start, references(rules.rules[start].body))]
    open_rules = {start}
    while stack and start not in sound:
        name, refs = stack[-1]
        ref = next(refs, None)
        if ref is None:
            sound[name] = sound.get(name) or _unfit(rules.rules[name].body)
            open_rules.discard(name)
            stack.pop()
            if stack and sound[name]:
                sound[stack[-1][0]] = sound[name]
                stack[-1] = (stack[-1][0], iter(()))
        elif ref.name in open_rules:
            sound[name] = f"rule {ref.name!r} is recursive"
            stack[-1] = (name, iter(()))
        elif ref.name not in sound:
            open_rules.add(ref.name)
            stack.append((ref.name, references(rules.rules[ref.name].body)))
        elif sound[ref.name]:
            sound[name] = sound[ref.name]
            stack[-1] = (name, iter(()))
    return sound[start]
