"""Which rules match no text, the empty text, or begin with themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from codespec.grammar.lower.graph import components
from codespec.grammar.lower.normalize import complement, merge
from codespec.grammar.rules import (
    Boundary,
    CharClass,
    Choice,
    Except,
    Literal,
    Node,
    Repeat,
    Rule,
    RuleRef,
    Rules,
    Sequence,
    references,
    walk,
)


def left_recursion(rules: Rules) -> Iterator[tuple[Rule, str]]:
    """Rules that can begin with themselves, in the order of the grammar, each with how: llama.cpp refuses them or,
    where it does not notice, never returns."""
    empty = nullable(rules)
    starts = {name: _beginnings(rule.body, empty) for name, rule in rules.rules.items()}
    order = list(rules.rules).index
    groups = components({name: list(first) for name, first in starts.items()})
    for group in sorted(groups, key=lambda group: order(group[0])):
        for name in group:
            inside = [starts[name][other] for other in group if other in starts[name]]
            how = "directly" if len(group) == 1 else f"through {next(n for n in group if n != name)!r}"
            if any(inside):
                how += ", after something that may be empty"
            yield rules.rules[name], how


def repeated_nothing(rules: Rules) -> Iterator[Rule]:
    """Rules that repeat without limit what is a repetition or a rule and may be empty, such as ``x**``: to llama.cpp
    this is left recursion."""
    for rule in rules.rules.values():
        for node, _ in walk(rule.body):
            if isinstance(node, Repeat) and node.max is None and _plainly_empty(node.item, rules):
                yield rule
                break


def _plainly_empty(node: Node, rules: Rules) -> bool:
    if isinstance(node, RuleRef):
        body = rules.rules[node.name].body
        options = body.options if isinstance(body, Choice) else (body,)
        return any(option in (Literal(()), Sequence(())) for option in options)
    return isinstance(node, Repeat) and node.min == 0


def nullable(rules: Rules) -> set[str]:
    """Rules that match the empty text."""
    return _least(rules, _is_empty)


def productive(rules: Rules) -> set[str]:
    """Rules that match some text; a subtraction counts as if nothing were subtracted."""
    return _least(rules, _is_possible)


def _least(rules: Rules, holds: Callable[[Node], bool]) -> set[str]:
    """The fewest rules with a way through them on which all is such a rule or a leaf that ``holds``."""
    users: dict[str, set[str]] = {name: set() for name in rules.rules}
    for name, rule in rules.rules.items():
        for ref in references(rule.body):
            users[ref.name].add(name)
    found: set[str] = set()
    queue = list(rules.rules)
    while queue:
        name = queue.pop()
        if name not in found and _on_some_way(rules.rules[name].body, found, holds):
            found.add(name)
            queue.extend(users[name])
    return found


def _on_some_way(node: Node, names: set[str], holds: Callable[[Node], bool]) -> bool:
    """Whether all on some way through ``node`` is a rule in ``names`` or a leaf that ``holds``."""
    if isinstance(node, RuleRef):
        return node.name in names
    if isinstance(node, Sequence):
        return all(_on_some_way(item, names, holds) for item in node.items)
    if isinstance(node, Choice):
        return any(_on_some_way(option, names, holds) for option in node.options)
    if isinstance(node, Repeat):
        return node.min == 0 or _on_some_way(node.item, names, holds)
    if isinstance(node, Except):
        return _on_some_way(node.item, names, holds)
    return holds(node)


def _is_possible(leaf: Node) -> bool:
    if isinstance(leaf, CharClass):
        return bool(complement(merge(leaf.ranges)) if leaf.negated else merge(leaf.ranges))
    return not isinstance(leaf, Literal) or all(merge([(code, code)]) for code in leaf.code_points)


def may_be_empty(node: Node, empty: set[str]) -> bool:
    """Whether ``node`` matches the empty text, where the rules in ``empty`` do."""
    return _on_some_way(node, empty, _is_empty)


def _is_empty(leaf: Node) -> bool:
    return isinstance(leaf, Boundary) or (isinstance(leaf, Literal) and not leaf.code_points)


def _beginnings(node: Node, empty: set[str]) -> dict[str, bool]:
    """Rules that ``node`` may begin with, each with whether that is only after something empty."""
    found: dict[str, bool] = {}
    for name, hidden in _first_rules(node, empty):
        found[name] = hidden and found.get(name, True)
    return found


def _first_rules(node: Node, empty: set[str], hidden: bool = False) -> Iterator[tuple[str, bool]]:
    if isinstance(node, RuleRef):
        yield node.name, hidden
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from _first_rules(item, empty, hidden)
            if not may_be_empty(item, empty):
                break
            hidden = hidden or item != Literal(())
    elif isinstance(node, Choice):
        for option in node.options:
            yield from _first_rules(option, empty, hidden)
    elif isinstance(node, Repeat | Except):
        yield from _first_rules(node.item, empty, hidden)
