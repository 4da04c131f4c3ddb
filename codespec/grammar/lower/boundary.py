"""Word boundaries worked into the rules, so that no later pass has to know of them.

A boundary restricts the character that follows, wherever that comes from. So the grammar is multiplied with an
automaton of two states: state 1 while the next character must be no word character (for other sets of characters the
same is done again), state 0 otherwise. A boundary goes from either to 1, a character from 0 to 0, and one that is no
word character from 1 to 0. Rule ``x`` becomes the rules
``x/01`` (from 0 to 1) and so on, as far as they are needed: ``x`` itself is from 0 to any, ``x/1*`` from 1 to any.
The end of the text is fine in both states. What begins with no word character is the same from both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codespec.grammar.errors import GrammarError
from codespec.grammar.lower.boundary_facts import BOUNDARY, EMPTY_TEXT, PATHS, WORD, Facts, common, names_in, ranges_of
from codespec.grammar.lower.normalize import NOTHING, Ranges, complement, merge
from codespec.grammar.rules import (
    EMPTY,
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
    walk,
)

WORD_RULE = "word-char"
"""The rule whose class, if there is one, says what word characters are."""
DEFAULT_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122), (128, 0x10FFFF))
MAX_COPIES = 32
"""Repetitions that are written out where each round depends on the one before."""
MAX_RULES = 20_000
_LARGE = 6  # nodes from which on a part that is used several times becomes a rule
_LARGE_ITEM = 20  # the same for an item of a sequence, which each nesting of sequences would double

ANY = 2
"""Instead of the state at the end: either."""


def word_characters(name: str, rules: Mapping[str, Rule]) -> Ranges:
    """The word characters of a grammar: the class of its rule ``word-char``, else letters, digits, ``_`` and everything
    beyond ASCII.

    Raises:
        GrammarError: the rule is more than one class.
    """
    rule = rules.get(WORD_RULE)
    if rule is None:
        return DEFAULT_WORD
    ranges: Ranges = ()
    for option in rule.body.options if isinstance(rule.body, Choice) else (rule.body,):
        if isinstance(option, CharClass):
            ranges += ranges_of(option)
        elif isinstance(option, Literal) and len(option.code_points) == 1:
            ranges += ((option.code_points[0], option.code_points[0]),)
        else:
            cause = f"rule {WORD_RULE!r} is no character class, and '\\b' needs one there"
            raise GrammarError(name, cause, f"write {WORD_RULE} ::= [...]", rule.line, rule.column)
    return merge(ranges)


def eliminate(rules: Rules, word: Ranges = DEFAULT_WORD) -> Rules:
    """Rules without ``Boundary``, of the same language; the same object where there is none.

    Subtractions may hold no boundary. A token element counts as no word character.

    Raises:
        GrammarError: a repetition that depends on boundaries is too large to be written out.
    """
    nodes = (node for rule in rules.rules.values() for node, _ in walk(rule.body))
    for mark, kind in enumerate(dict.fromkeys(node for node in nodes if isinstance(node, Boundary))):
        barred = merge(word) if kind.barred is None else ranges_of(kind.barred)
        rules = _Product(rules, barred, kind, "/" * (mark + 1)).run()
    return rules


@dataclass
class _Product:
    """The grammar times the automaton."""

    rules: Rules
    word: Ranges
    kind: Boundary  # the only one that this product is about; others stay
    mark: str  # between the name of a rule and what tells its variants apart
    found: dict[str, Rule] = field(default_factory=dict)
    queue: list[tuple[str, str, int, int]] = field(default_factory=list)
    rule: str = ""  # whose body is being built

    def __post_init__(self) -> None:
        self.nonword = complement(self.word)
        self.facts = Facts(self.rules, self.word, self.kind)
        self.built: dict[tuple[int, int, int], Node] = {}
        self.unrolled: dict[int, Node] = {}  # repetitions written out, by identity
        self.sources: dict[int, Node] = {}  # references to parts that became rules, by identity
        self.kept: list[Node] = []  # nodes made here: what is known by identity must not go

    def run(self) -> Rules:
        root = self.rules.root
        self._want(root, root, 0, ANY)
        for name, source, begin, end in self.queue:
            self.rule = source
            body = self.build(self.facts.bodies[source], begin, end) if end >= 0 else self.found[name].body
            self.found[name] = Rule(name, body, *self._position(source))
            for used in self.facts.refs[name] if body is self.facts.bodies.get(name) else names_in(body):
                self._want(used, used, 0, ANY)  # only what stays as it was is not wanted yet
        return Rules(self.rules.name, _reachable(self.found, root), root)

    def _position(self, source: str) -> tuple[int, int]:
        rule = self.rules.rules.get(source.partition("/")[0])
        return (rule.line, rule.column) if rule else (0, 0)

    def _want(self, name: str, source: str, begin: int, end: int) -> None:
        if name not in self.found:
            if len(self.found) >= MAX_RULES:
                raise self._too_large()
            self.found[name] = Rule(name, NOTHING)  # filled when its turn comes
            self.queue.append((name, source, begin, end))

    def _too_large(self) -> GrammarError:
        return GrammarError(self.rules.name, "word boundaries make the grammar too large", "use fewer '\\b'")

    def _shared(self, node: Node) -> Node:
        """``node``, as a rule of its own if it is large."""
        if not _large(node):
            return node
        name = f"{self.rule.partition('/')[0]}{self.mark}{len(self.found)}."
        self.found[name] = Rule(name, node)
        self.queue.append((name, self.rule, 0, -1))  # built, but not looked through
        return RuleRef(name)

    def _source(self, node: Node, large: int = _LARGE) -> Node:
        """A part that is not built yet, as a rule of its own if it is large."""
        if isinstance(node, RuleRef) or not _large(node, large):
            return node
        if id(node) not in self.sources:
            name = f"{self.rule.partition('/')[0]}{self.mark}{len(self.facts.bodies)}+"
            if len(self.facts.bodies) >= MAX_RULES:
                raise self._too_large()
            self.facts.add(name, self._keep(node))
            self.sources[id(node)] = self._keep(RuleRef(name))
        return self.sources[id(node)]

    def _keep(self, node: Node) -> Node:
        self.kept.append(node)
        return node

    def build(self, node: Node, begin: int, end: int) -> Node:
        """A node for the texts of ``node`` on the way from state ``begin`` to state ``end``."""
        fact = self.facts.of(node)
        if not fact & PATHS[begin][end]:
            return NOTHING
        if begin and not fact & (WORD[end] | EMPTY_TEXT):
            begin = 0
        if end == 0 and not fact & PATHS[begin][1]:
            end = ANY  # it ends in no other state: one rule for both, and repetitions stay as they are
        if not fact & BOUNDARY:
            if begin == 0 or (end == ANY and not fact & WORD[ANY]):
                return node
            if end == 1:
                return EMPTY
            if end == ANY and fact & EMPTY_TEXT:
                return _choice([EMPTY, self.build(node, begin, 0)])
        key = (id(node), begin, end)
        if key not in self.built:
            self.built[key] = self._build(node, begin, end)
            self._keep(node)
        return self.built[key]

    def _build(self, node: Node, begin: int, end: int) -> Node:
        if isinstance(node, RuleRef):
            plain = (begin, end) == (0, ANY)
            name = node.name if plain else f"{node.name}{self.mark}{begin}{'01*'[end]}"
            self._want(name, node.name, begin, end)
            return RuleRef(name, node.line, node.column)
        if isinstance(node, Sequence):
            return self._series(node.items, begin, end)
        if isinstance(node, Choice):
            return _choice([self.build(option, begin, end) for option in node.options])
        if isinstance(node, Repeat):
            return self._repeat(node, begin, end)
        if isinstance(node, Except):
            item = self.build(node.item, begin, end)
            return item if item == NOTHING else Except(item, node.excluded)
        if isinstance(node, CharClass):
            return CharClass(common(ranges_of(node), self.nonword))
        return EMPTY if node == self.kind else node  # a boundary: no other leaf depends on the state

    def _series(self, items: tuple[Node, ...], begin: int, end: int) -> Node:
        """Items in order: the choice over the states between them, parts that several ways share made rules."""
        if begin == 0 or any(self.facts.of(item) & BOUNDARY for item in items):
            items = self._grouped(items)
        facts = [self.facts.of(item) for item in items]
        reached = [{begin}]  # states before each item, then at the end
        for fact in facts:
            reached.append({state for state in (0, 1) for before in reached[-1] if fact & PATHS[before][state]})
        last = max((k for k, fact in enumerate(facts) if fact & BOUNDARY), default=-1)
        stop = next((k for k in range(last + 1, len(items)) if reached[k] <= {0}), len(items))
        rest: list[Node] = [EMPTY if end in (0, ANY) else NOTHING, EMPTY if end in (1, ANY) else NOTHING]
        if stop < len(items):
            rest = [
                _sequence([self.build(item, 0, 0) for item in items[stop:]]) if rest[0] == EMPTY else NOTHING,
                NOTHING,
            ]
        for k in range(stop - 1, -1, -1):
            if rest[0] == rest[1]:
                rest = [self._shared(rest[0]) if len(reached[k]) > 1 else rest[0]] * 2
            uses = [sum(1 for before in reached[k] if facts[k] & PATHS[before][state]) for state in (0, 1)]
            shared = [self._shared(node) if uses[state] > 1 else node for state, node in enumerate(rest)]
            rest = [self._step(items[k], before, shared) if before in reached[k] else NOTHING for before in (0, 1)]
        return rest[begin]

    def _grouped(self, items: tuple[Node, ...]) -> tuple[Node, ...]:
        """Items, with those between two that hold boundaries as one, and large ones that do as rules."""
        groups: list[list[Node]] = [[]]
        for item in items:
            if self.facts.of(item) & BOUNDARY:
                groups += [[self._source(item, _LARGE_ITEM)], []]
            else:
                groups[-1].append(item)
        return tuple(
            group[0] if len(group) == 1 else self._keep(Sequence(tuple(group))) for group in groups if group
        )  # fmt: skip

    def _step(self, item: Node, begin: int, rest: list[Node]) -> Node:
        """``item`` from ``begin``, then what follows from the state it ends in."""
        fact = self.facts.of(item)
        if rest[0] != NOTHING and fact & PATHS[begin][0] and fact & PATHS[begin][1] and rest[0] == rest[1]:
            return _sequence([self.build(item, begin, ANY), rest[0]])
        ways = [
            _sequence([self.build(item, begin, state), rest[state]]) if rest[state] != NOTHING else NOTHING
            for state in (0, 1)
        ]
        return _choice(ways)

    def _repeat(self, node: Repeat, begin: int, end: int) -> Node:
        item, low, high = node.item, node.min, node.max
        fact = self.facts.of(item)
        if not fact & BOUNDARY:
            # From state 1 to 0: some round is the first with text.
            fewer = 0 if fact & EMPTY_TEXT else max(low - 1, 0)
            more = Repeat(item, fewer, None if high is None else high - 1)
            after = self.build(self._keep(more), 0, 0) if more.max != 0 else EMPTY
            return _sequence([self.build(item, begin, 0), after])
        none: list[Node] = [EMPTY] if low == 0 and end in (begin, ANY) else []
        if (low, high) == (0, 1):
            return _choice([*none, self.build(item, begin, end)])
        item = self._source(item)
        if all(self.build(item, 0, state) == self.build(item, 1, state) for state in (0, 1)):
            return self._rounds(item, low, high, none, end)
        if high is None and low == 0:
            return self._star(item, begin, end)
        copies = low if high is None else high
        if copies > MAX_COPIES:
            cause = f"a repetition of up to {copies} rounds holds '\\b' and may begin with a word character"
            line, column = self._position(self.rule)
            raise GrammarError(self.rules.name, cause, f"allow at most {MAX_COPIES}, or use '*'", line, column)
        if id(node) not in self.unrolled:
            self.unrolled[id(node)] = self._keep(self._unroll(item, low, high))
        return self.build(self.unrolled[id(node)], begin, end)

    def _unroll(self, item: Node, low: int, high: int | None) -> Node:
        """``x{2,4}  -->  x x (x (x)?)?``, the nested parts as rules."""
        if high is None:
            return Sequence((item,) * low + (Repeat(item, 0, None),))
        tail: tuple[Node, ...] = ()
        for _ in range(high - low):
            tail = (self._source(Repeat(Sequence((item, *tail)), 0, 1)),)
        return Sequence((item,) * low + tail)

    def _rounds(self, item: Node, low: int, high: int | None, none: list[Node], end: int) -> Node:
        """A repetition whose rounds are the same from both states; ``none`` is what no round at all matches."""
        every = self.build(item, 0, ANY)
        if end == ANY:
            return Repeat(every, low, high)
        before = Repeat(every, max(low - 1, 0), None if high is None else high - 1)
        last = self.build(item, 0, end)
        return _choice([*none, _sequence([before if before.max != 0 else EMPTY, last])])

    def _star(self, item: Node, begin: int, end: int) -> Node:
        """Kleene's theorem for two states: rounds that come back to ``begin``, then those that go over for good."""
        over = 1 - begin
        stay, leave = self.build(item, begin, begin), self.build(item, begin, over)
        come, other = self.build(item, over, begin), self.build(item, over, over)
        away = _sequence([leave, _repeated(other)])
        back = _repeated(_choice([stay, _sequence([away, come])]))
        if end == begin:
            return back
        return _sequence([back, away if end == over else _choice([EMPTY, away])])


def _reachable(rules: Mapping[str, Rule], root: str) -> dict[str, Rule]:
    """Rules that ``root`` can get to."""
    found = {root: rules[root]}
    queue = [root]
    for name in queue:
        for used in names_in(rules[name].body):
            if used not in found:
                found[used] = rules[used]
                queue.append(used)
    return found


def _large(node: Node, limit: int = _LARGE) -> bool:
    return any(count >= limit for count, _ in enumerate(walk(node)))


def _sequence(items: list[Node]) -> Node:
    flat: list[Node] = []
    for item in items:
        if item == NOTHING:
            return NOTHING
        flat.extend(item.items if isinstance(item, Sequence) else () if item == EMPTY else (item,))
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat)) if flat else EMPTY


def _choice(options: list[Node]) -> Node:
    some = [option for option in options if option not in (NOTHING, EMPTY)]
    if len(some) == 2 and some[0] == some[1]:
        some.pop()
    if not some:
        return EMPTY if EMPTY in options else NOTHING
    node = some[0] if len(some) == 1 else Choice(tuple(some))
    return Repeat(node, 0, 1) if EMPTY in options else node


def _repeated(node: Node) -> Node:
    return EMPTY if node in (NOTHING, EMPTY) else Repeat(node, 0, None)
