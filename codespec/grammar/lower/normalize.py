"""Rules to equivalent rules that an Earley engine runs well; the language never changes.

- Literals and classes become sets of valid code points, and alternatives of single code points one set.
- What can match no text at all is removed, so that every prefix an engine allows can be completed.
- Repetitions of repetitions become one: ``(x*)*`` gives an Earley parser a new way to read the text at
  every character.
- Right recursion becomes repetition: an Earley parser keeps one open item per level of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from codespec.grammar.errors import GrammarError
from codespec.grammar.lower.automaton import Alphabet, Builder, TooLarge
from codespec.grammar.lower.graph import components
from codespec.grammar.rules import (
    MAX_CODE_POINT,
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
    TokenRef,
    references,
    walk,
)

MAX_GROWTH, MAX_DEPTH, MAX_GROUP = 2000, 60, 32
"""Nodes and depth of a rule, and rules that end in each other, beyond which right recursion stays as it was."""
MAX_MERGED_REPETITIONS = 100_000

Ranges = tuple[tuple[int, int], ...]

NOTHING = Choice(())
NO_TEXT = Sequence(())


def normalize(rules: Rules) -> Rules:
    """Rules with the same language: only CharClass (not negated, sorted), RuleRef, TokenRef, Sequence, Choice, Repeat.

    Raises:
        GrammarError: the root matches no text at all.
    """
    bodies = _subtractions({name: _characters(rule.body) for name, rule in _reachable(rules).items()}, rules)
    live = _productive(bodies)
    if rules.root not in live:
        root = rules.rules[rules.root]
        raise GrammarError(
            rules.name,
            f"no text matches {rules.root!r}",
            "give every recursive rule an alternative that ends",
            root.line,
            root.column,
        )
    pruned = {name: prune(body, live) for name, body in bodies.items() if name in live}
    simple = {name: simplify(body, pruned) for name, body in pruned.items()}
    flat = {name: simplify(body, simple) for name, body in unroll_right_recursion(simple).items()}
    kept = Rules(rules.name, {name: Rule(name, body) for name, body in flat.items()}, rules.root)
    return Rules(rules.name, _reachable(kept), rules.root)


# --- constructors that keep trees small ---------------------------------------------------------------


def sequence(items: Iterable[Node]) -> Node:
    """Items in order; nested sequences spliced in, nothing if one of them is nothing."""
    flat: list[Node] = []
    for item in items:
        if item == NOTHING:
            return NOTHING
        flat.extend(item.items if isinstance(item, Sequence) else (item,))
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def choice(options: Iterable[Node]) -> Node:
    """Any of the options, each once; nested choices spliced in, single code points as one set."""
    flat: dict[Node, None] = {}
    characters: Ranges = ()
    for option in options:
        for inner in option.options if isinstance(option, Choice) else (option,):
            if isinstance(inner, CharClass):
                characters += inner.ranges
            else:
                flat[inner] = None
    listed: list[Node] = [CharClass(merge(characters))] if characters else []
    listed.extend(flat)
    return listed[0] if len(listed) == 1 else Choice(tuple(listed))


def repeat(item: Node, minimum: int, maximum: int | None) -> Node:
    """``item`` repeated; a repetition of a repetition becomes one where every count in between is possible."""
    if maximum == 0 or item == NO_TEXT:
        return NO_TEXT
    if item == NOTHING:
        return NO_TEXT if minimum == 0 else NOTHING
    if (minimum, maximum) == (1, 1):
        return item
    if isinstance(item, Repeat) and item.min <= 1:
        # (x{a,b}){c,d} --> x{ac,bd}: with a <= 1 the counts reached by c..d rounds leave no gap.
        top = None if maximum is None or item.max is None else item.max * maximum
        if max(item.min * minimum, top or 0) <= MAX_MERGED_REPETITIONS:
            return Repeat(item.item, item.min * minimum, top)
    if maximum is None and minimum <= 1 and isinstance(item, Choice):
        # (x* | y)* --> (x | y)*, and a + over something that may be empty is a *
        bare = [o.item if isinstance(o, Repeat) and o.min <= 1 else o for o in item.options if o != NO_TEXT]
        may_be_empty = any(o == NO_TEXT or (isinstance(o, Repeat) and o.min == 0) for o in item.options)
        if tuple(bare) != item.options:
            return repeat(choice(bare), 0 if may_be_empty else minimum, None)
    return Repeat(item, minimum, maximum)


def merge(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sorted disjoint ranges of the valid code points among ``ranges``."""
    valid: list[tuple[int, int]] = []
    for low, high in ranges:
        for bottom, top in ((0, 0xD7FF), (0xE000, MAX_CODE_POINT)):
            if max(low, bottom) <= min(high, top):
                valid.append((max(low, bottom), min(high, top)))
    merged: list[tuple[int, int]] = []
    for low, high in sorted(valid):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """Every valid code point that is not in the sorted disjoint ``ranges``."""
    gaps = []
    start = 0
    for low, high in ranges:
        gaps.append((start, low - 1))
        start = high + 1
    return merge([*gaps, (start, MAX_CODE_POINT)])


# --- the passes ---------------------------------------------------------------------------------------


def rebuild(node: Node, leaf: Callable[[Node], Node]) -> Node:
    """``node`` with ``leaf`` applied to what has no parts, put together again by the constructors above."""
    if isinstance(node, Sequence):
        return sequence([rebuild(item, leaf) for item in node.items])
    if isinstance(node, Choice):
        return choice([rebuild(option, leaf) for option in node.options])
    if isinstance(node, Repeat):
        return repeat(rebuild(node.item, leaf), node.min, node.max)
    if isinstance(node, Except):
        item, excluded = rebuild(node.item, leaf), rebuild(node.excluded, leaf)
        return item if NOTHING in (item, excluded) else Except(item, excluded)
    return leaf(node)


def _characters(node: Node) -> Node:
    """Literals and classes as sets of valid code points; an empty set matches nothing."""

    def leaf(node: Node) -> Node:
        if isinstance(node, Literal):
            return sequence([_set(merge([(code, code)])) for code in node.code_points])
        if isinstance(node, CharClass):
            ranges = merge(node.ranges)
            return _set(complement(ranges) if node.negated else ranges)
        return RuleRef(node.name) if isinstance(node, RuleRef) else node

    return rebuild(node, leaf)


def _subtractions(bodies: dict[str, Node], rules: Rules) -> dict[str, Node]:
    """Subtractions with their rules put in place; nothing where no text is left."""
    if not any(isinstance(node, Except) for body in bodies.values() for node, _ in walk(body)):
        return bodies
    return {name: _resolve(body, bodies, rules.rules[name], rules.name) for name, body in bodies.items()}


def _resolve(node: Node, bodies: dict[str, Node], rule: Rule, grammar: str) -> Node:
    if isinstance(node, Sequence):
        return sequence([_resolve(item, bodies, rule, grammar) for item in node.items])
    if isinstance(node, Choice):
        return choice([_resolve(option, bodies, rule, grammar) for option in node.options])
    if isinstance(node, Repeat):
        return repeat(_resolve(node.item, bodies, rule, grammar), node.min, node.max)
    if not isinstance(node, Except):
        return node
    where = (rule.line, rule.column)
    try:
        inlined = _inline(node, bodies, ())
        sets = [inner.ranges for inner, _ in walk(inlined) if isinstance(inner, CharClass)]
        left = Builder(Alphabet(sets), lambda name: bodies[name]).dfa(inlined)
    except TooLarge:
        raise GrammarError(grammar, f"a subtraction in {rule.name!r} is too large", "shorten it", *where) from None
    except RecursionError:
        cause = f"a subtraction in {rule.name!r} is nested too deeply"
        raise GrammarError(grammar, cause, "shorten the chain of rules in it", *where) from None
    except _NotPlain:
        remedy = "both sides of '-' may use only rules that do not refer to themselves, and no token elements"
        raise GrammarError(grammar, f"a subtraction in {rule.name!r} is recursive", remedy, *where) from None
    return inlined if left.edges else NOTHING


class _NotPlain(Exception):
    """Rules refer to themselves, or to token elements."""


def _inline(node: Node, bodies: dict[str, Node], path: tuple[str, ...]) -> Node:
    """``node`` with its rules in place.

    Raises:
        _NotPlain: that is not possible.
    """
    if isinstance(node, RuleRef):
        if node.name in path:
            raise _NotPlain
        return _inline(bodies[node.name], bodies, (*path, node.name))
    if isinstance(node, TokenRef):
        raise _NotPlain
    if isinstance(node, Sequence):
        return sequence([_inline(item, bodies, path) for item in node.items])
    if isinstance(node, Choice):
        return choice([_inline(option, bodies, path) for option in node.options])
    if isinstance(node, Repeat):
        return repeat(_inline(node.item, bodies, path), node.min, node.max)
    if isinstance(node, Except):
        return Except(_inline(node.item, bodies, path), _inline(node.excluded, bodies, path))
    return node


def _set(ranges: Ranges) -> Node:
    return CharClass(ranges) if ranges else NOTHING


def _reachable(rules: Rules) -> dict[str, Rule]:
    """Rules that the root can get to, in order of discovery."""
    found = {rules.root: rules.rules[rules.root]}
    queue = [rules.root]
    while queue:
        for ref in references(rules.rules[queue.pop()].body):
            if ref.name not in found:
                found[ref.name] = rules.rules[ref.name]
                queue.append(ref.name)
    return found


def _productive(bodies: dict[str, Node]) -> set[str]:
    """Rules that match at least one text."""
    users: dict[str, list[str]] = {name: [] for name in bodies}
    for name, body in bodies.items():
        for target in {ref.name for ref in references(body)}:
            users[target].append(name)
    live: set[str] = set()
    queue = list(bodies)
    while queue:
        name = queue.pop()
        if name not in live and prune(bodies[name], live) != NOTHING:
            live.add(name)
            queue.extend(users[name])
    return live


def prune(node: Node, live: set[str]) -> Node:
    """``node`` without the parts that refer to rules outside ``live``."""
    return rebuild(node, lambda leaf: NOTHING if isinstance(leaf, RuleRef) and leaf.name not in live else leaf)


def simplify(node: Node, bodies: dict[str, Node]) -> Node:
    """Constructors applied again, with rules that are only a set of characters or a repetition put in place."""

    def leaf(node: Node) -> Node:
        if isinstance(node, RuleRef):
            body = bodies[node.name]
            flat = isinstance(body, Repeat) and isinstance(body.item, CharClass | RuleRef)
            if (isinstance(body, CharClass) or flat) and RuleRef(node.name) not in references(body):
                return body
            return RuleRef(node.name)
        return node

    return rebuild(node, leaf)


# --- right recursion ----------------------------------------------------------------------------------


def unroll_right_recursion(bodies: dict[str, Node]) -> dict[str, Node]:
    """Rules where a rule that ends in itself, directly or through others, is a repetition instead.

    ``a ::= x a | y  -->  a ::= x* y`` (Arden's lemma, which holds in any context-free grammar); among
    rules that end in each other this is Gaussian elimination, given up where a rule would grow too large.
    """
    result = dict(bodies)
    # Rules that end in each other, those first that end in no others.
    for group in components({name: sorted(tails(body)) for name, body in bodies.items()}):
        if len(group) > MAX_GROUP:
            continue
        solved: dict[str, Node] = {}
        for name in group:
            body = result[name]
            for done, replacement in solved.items():
                body = _substitute_tail(body, done, replacement)
            solved[name] = _arden(name, body)
            depths = [depth for _, depth in walk(solved[name])]
            if len(group) > 1 and (len(depths) > MAX_GROWTH or max(depths) > MAX_DEPTH):
                break
        else:
            result.update(solved)
    return result


def tails(node: Node) -> set[str]:
    """Rules that ``node`` may end in."""
    if isinstance(node, RuleRef):
        return {node.name}
    if isinstance(node, Sequence):
        return tails(node.items[-1]) if node.items else set()
    if isinstance(node, Choice):
        return set().union(*(tails(option) for option in node.options))
    if isinstance(node, Repeat) and (node.min, node.max) == (0, 1):
        return tails(node.item)
    return set()


def _alternatives(node: Node, name: str) -> list[list[Node]]:
    """``node`` as alternatives of which each either is a sequence that ends in ``name`` or cannot end in it."""
    if name not in tails(node):
        return [[node]]
    if isinstance(node, RuleRef):
        return [[node]]
    if isinstance(node, Choice):
        return [alternative for option in node.options for alternative in _alternatives(option, name)]
    if isinstance(node, Repeat):
        return [[], *_alternatives(node.item, name)]
    assert isinstance(node, Sequence)
    return [[*node.items[:-1], *tail] for tail in _alternatives(node.items[-1], name)]


def _arden(name: str, body: Node) -> Node:
    """``a ::= x a | y  -->  a ::= x* y``; an alternative that also begins with ``a`` stays."""
    loops: list[Node] = []
    rest: list[Node] = []
    for alternative in _alternatives(body, name):
        ends = bool(alternative) and alternative[-1] == RuleRef(name)
        if ends and not (len(alternative) > 1 and alternative[0] == RuleRef(name)):
            loops.append(sequence(alternative[:-1]))
        else:
            rest.append(sequence(alternative))
    loop = choice([item for item in loops if item != NO_TEXT])
    if loop == NOTHING:
        return choice(rest)
    return sequence([repeat(loop, 0, None), choice(rest)])


def _substitute_tail(body: Node, name: str, replacement: Node) -> Node:
    """``body`` with ``replacement`` where it ends in ``name``."""
    if name not in tails(body):
        return body
    parts: list[Node] = []
    for alternative in _alternatives(body, name):
        if alternative and alternative[-1] == RuleRef(name):
            parts.append(sequence([*alternative[:-1], replacement]))
        else:
            parts.append(sequence(alternative))
    return choice(parts)
