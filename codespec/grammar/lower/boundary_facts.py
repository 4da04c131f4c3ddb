"""What is known of each part of a grammar before word boundaries are worked into it: its paths through the automaton of
``boundary``, and how its texts may begin."""

from __future__ import annotations

import functools

from codespec.grammar.lower.normalize import Ranges, complement, merge
from codespec.grammar.rules import (
    Boundary,
    CharClass,
    Choice,
    Except,
    Literal,
    Node,
    Repeat,
    RuleRef,
    Rules,
    Sequence,
    TokenRef,
)

_00, _01, _10, _11 = 1, 2, 4, 8
_WORD0, _WORD1 = 16, 32  # on a path from 0 to 0, or to 1, it may begin with a word character
EMPTY_TEXT = 64
"""It may match no text."""
BOUNDARY = 128
"""It holds a boundary."""
_RULES = 256  # it refers to rules
_IDENTITY = _00 | _11 | EMPTY_TEXT

PATHS = ((_00, _01, _00 | _01), (_10, _11, _10 | _11))
"""By state before and state after (2: any): some path leads from the one to the other."""
WORD = (_WORD0, _WORD1, _WORD0 | _WORD1)
"""By state after: it may begin with a word character."""


def ranges_of(node: CharClass) -> Ranges:
    """The code points of a class."""
    ranges = merge(node.ranges)
    return complement(ranges) if node.negated else ranges


def common(first: Ranges, second: Ranges) -> Ranges:
    """Code points in both."""
    return complement(merge((*complement(first), *complement(second))))


def names_in(node: Node) -> dict[str, None]:
    """Rules that ``node`` refers to."""
    found: dict[str, None] = {}
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, RuleRef):
            found[top.name] = None
        elif isinstance(top, Sequence):
            stack.extend(top.items)
        elif isinstance(top, Choice):
            stack.extend(top.options)
        elif isinstance(top, Repeat):
            stack.append(top.item)
        elif isinstance(top, Except):
            stack += (top.item, top.excluded)
    return found


@functools.cache
def _product(first: int, second: int) -> int:
    """What is known of one thing after another."""
    result = (first & second & EMPTY_TEXT) | ((first | second) & (BOUNDARY | _RULES))
    for begin in (0, 1):
        for end in (0, 1):
            if any(first & PATHS[begin][middle] and second & PATHS[middle][end] for middle in (0, 1)):
                result |= PATHS[begin][end]
    for end in (0, 1):
        begins = any(first & WORD[middle] and second & PATHS[middle][end] for middle in (0, 1))
        if begins or (first & EMPTY_TEXT and second & WORD[end]):
            result |= WORD[end]
    return result


def _power(fact: int, count: int) -> int:
    result = _IDENTITY
    for _ in range(count if count < 4 else 2 + count % 2):  # two states: the paths repeat with period two at most
        result = _product(result, fact)
    return result


@functools.cache
def _repeated(item: int, low: int, high: int | None) -> int:
    rounds = 3 if high is None else min(3, high - low)
    result = item & (BOUNDARY | _RULES)
    for more in range(rounds + 1):
        result |= _product(_power(item, low), _power(item, more))
    return result


class Facts:
    """What is known of the rules that the root can get to, and of every part of them.

    Attributes:
        bodies: of the rules, callees first; others may be added.
        refs: the rules that each of them refers to.
    """

    def __init__(self, rules: Rules, word: Ranges, kind: Boundary) -> None:
        """``word`` are the word characters, ``kind`` the boundary that counts."""
        self._word, self._nonword, self._kind = word, complement(word), kind
        self.bodies: dict[str, Node] = {}
        self.refs: dict[str, dict[str, None]] = {}
        self._rules: dict[str, int] = {}
        self._settled = False  # what is known of the rules is final
        self._known: dict[int, int] = {}  # by identity of the node
        self._find(rules)
        self._learn()

    def add(self, name: str, body: Node) -> None:
        """One more rule, which no other refers to yet."""
        self.bodies[name], self._rules[name] = body, self.of(body)

    def of(self, node: Node) -> int:
        """What is known of ``node``; paths and word characters may be too many, never too few."""
        known = self._known.get(id(node))
        if known is None:
            known = self._of(node)
            if self._settled or not known & _RULES:
                self._known[id(node)] = known
        return known

    def _find(self, rules: Rules) -> None:
        self.refs[rules.root] = names_in(rules.rules[rules.root].body)
        stack = [(rules.root, iter(self.refs[rules.root]))]
        while stack:
            name, refs = stack[-1]
            target = next((ref for ref in refs if ref not in self.refs), None)
            if target is None:
                self.bodies[name] = rules.rules[name].body
                stack.pop()
            else:
                self.refs[target] = names_in(rules.rules[target].body)
                stack.append((target, iter(self.refs[target])))

    def _learn(self) -> None:
        """The least facts that fit together."""
        users: dict[str, list[str]] = {name: [] for name in self.bodies}
        for name, refs in self.refs.items():
            for target in refs:
                users[target].append(name)
        self._rules = dict.fromkeys(self.bodies, 0)
        waiting = dict.fromkeys(self.bodies)
        while waiting:
            name = next(iter(waiting))
            del waiting[name]
            fact = self.of(self.bodies[name])
            if fact != self._rules[name]:
                self._rules[name] = fact
                waiting.update(dict.fromkeys(users[name]))
        self._settled = True

    def _of(self, node: Node) -> int:
        if isinstance(node, RuleRef):
            return self._rules[node.name] | _RULES
        if isinstance(node, Sequence):
            result = _IDENTITY
            for item in node.items:
                result = _product(result, self.of(item))
            return result
        if isinstance(node, Choice):
            result = 0
            for option in node.options:
                result |= self.of(option)
            return result
        if isinstance(node, Repeat):
            return _repeated(self.of(node.item), node.min, node.max)
        if isinstance(node, Except):
            whole, excluded = self.of(node.item), self.of(node.excluded)
            whole |= excluded & _RULES
            return whole & ~(_11 | EMPTY_TEXT) if excluded & EMPTY_TEXT else whole
        return self._leaf(node)

    def _leaf(self, node: Literal | CharClass | TokenRef | Boundary) -> int:
        if isinstance(node, Boundary):
            return (_01 | _11 if node == self._kind else _00 | _11) | EMPTY_TEXT | BOUNDARY
        if isinstance(node, TokenRef):
            return _00 | _10
        if isinstance(node, Literal):
            if not node.code_points:
                return _IDENTITY
            first = node.code_points[0]
            return _00 | (_WORD0 if any(low <= first <= high for low, high in self._word) else _10)
        ranges = ranges_of(node)
        outside = common(ranges, self._nonword)
        return (_00 if ranges else 0) | (_10 if outside else 0) | (_WORD0 if outside != ranges else 0)
