"""Characters to lexemes, where maximal munch provably keeps the language.

llguidance splits text by maximal munch among the lexemes viable at a place and never goes back. That is right
wherever, for all lexemes a and b viable together (a = b included): if a text w is in a, and w c begins a text of b, then no
text that follows a begins with c. Regular parts of the grammar start out as lexemes; where the condition
fails, b is split into its parts, until it holds everywhere. Lexemes of one character always satisfy it.

The proof is in docs/grammar.md. Everything here errs on the side of splitting: what may follow a lexeme does
not depend on where its rule is used, and characters count as equal when their first UTF-8 bytes are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from codespec.grammar.automaton import Alphabet, Builder, Dfa, TooLarge, bits, overlap, subtract
from codespec.grammar.normalize import NO_TEXT, choice, sequence
from codespec.grammar.rules import CharClass, Choice, Except, Node, Repeat, RuleRef, Rules, Sequence, TokenRef, walk

MAX_LEXEME = 600
"""Characters of a lexeme, repetitions counted."""
MAX_PAIRS = 400_000
"""Pairs of places looked at before all lexemes are taken to be viable together."""
ANY_BYTE = (1 << 256) - 1


@dataclass(frozen=True)
class Lexeme:
    """A regular part of a grammar that the engine reads as one unit; the occurrences of equal ones differ by ``place``."""

    node: Node
    text: str
    place: int = field(default=0, compare=True)


@dataclass(frozen=True)
class Split:
    """Why a lexeme was split: after a text of ``before``, ``by`` could go on or something else follow."""

    lexeme: str
    before: str
    characters: str


@dataclass
class Fused:
    """Rules whose leaves are lexemes and token elements.

    Attributes:
        bodies: by rule name, the root first.
        splits: lexemes that had to be split, with the reason.
    """

    bodies: dict[str, Node | Lexeme]
    splits: list[Split]


def fuse(rules: Rules, pattern: Callable[[Node], str], largest: int = MAX_LEXEME) -> Fused:
    """Lexemes for normalized ``rules``.

    Args:
        pattern: the text by which equal nodes are known.
        largest: characters of a lexeme; 0 makes every character one, which needs no proof.
    """
    return _Fuser(rules, pattern, largest).run()


class _Fuser:
    def __init__(self, rules: Rules, pattern: Callable[[Node], str], largest: int) -> None:
        self._rules, self._pattern, self._largest = rules, pattern, largest
        self._source = {name: rule.body for name, rule in rules.rules.items()}
        self._alphabet = Alphabet(
            node.ranges for body in self._source.values() for node, _ in walk(body) if isinstance(node, CharClass)
        )
        self._builder = Builder(self._alphabet, self._source.__getitem__)
        self._weights = _weights(self._source)
        self._dfas: dict[str, Dfa] = {}
        self._nullable: dict[str, Node | None] = {}
        self._overlaps: dict[tuple[str, str], tuple[bool, int]] = {}
        self._places = 0
        self._splits: dict[Split, None] = {}
        self._bodies: dict[str, Node | Lexeme] = {}
        self._fresh: dict[str, str] = {}

    def run(self) -> Fused:
        root = self._rules.root
        queue = [root]
        while queue:
            name = queue.pop()
            if name not in self._bodies:
                self._bodies[name] = self._segment(self._source[name])
                queue += [ref.name for ref in _leaves(self._bodies[name]) if isinstance(ref, RuleRef)]
        while True:
            doomed = self._conflicts()
            if not doomed:
                return Fused(self._bodies, list(self._splits))
            self._bodies |= {name: self._replace(body, doomed) for name, body in self._bodies.items()}

    # --- candidates ---------------------------------------------------------------------------------

    def _weight(self, node: Node) -> int:
        return _weight(node, self._weights)

    def _lexeme(self, node: Node) -> Node | Lexeme:
        """``node`` as a lexeme, or its parts where it cannot be one."""
        if node == NO_TEXT:
            return node
        try:
            text, nullable = self._known(node)
        except TooLarge:
            return self._parts(node)
        self._places += 1
        lexeme = Lexeme(node, text, self._places)
        return _choice([lexeme], [NO_TEXT]) if nullable else lexeme

    def _known(self, node: Node) -> tuple[str, bool]:
        """The text of the lexeme that matches ``node`` but for the empty text, and whether that is in ``node``."""
        text = self._pattern(node)
        if text not in self._nullable:
            dfa = self._builder.dfa(node)
            self._nullable[text] = _without_empty(node) if dfa.nullable else None
            self._dfas[self._pattern(self._nullable[text] or node)] = dfa.without_empty()
        filled = self._nullable[text]
        return (text, False) if filled is None else (self._pattern(filled), True)

    def _segment(self, node: Node) -> Node | Lexeme:
        """``node`` with its largest regular parts as lexemes, a reference to a regular rule always as one of its own."""
        if isinstance(node, CharClass):
            return self._lexeme(node)
        if isinstance(node, RuleRef | TokenRef) and self._weight(node) > self._largest:
            return node
        if isinstance(node, Sequence):
            if self._is_plain(node):
                return self._lexeme(node)
            return self._sequence(node.items)
        if isinstance(node, Choice):
            plain = [option for option in node.options if self._is_plain(option) and option != NO_TEXT]
            others = [self._segment(option) for option in node.options if option not in plain]
            return _choice([self._lexeme(choice(plain))] if plain else [], others)
        if self._weight(node) <= self._largest:
            return self._lexeme(node)
        if isinstance(node, Repeat):
            return _repeat(self._segment(node.item), node)
        return self._states(node) if isinstance(node, Except) else node

    def _is_plain(self, node: Node) -> bool:
        return self._weight(node) <= self._largest and not _mentions_rules(node)

    def _sequence(self, items: tuple[Node, ...]) -> Node | Lexeme:
        parts: list[Node | Lexeme] = []
        run: list[Node] = []
        for item in items:
            if self._is_plain(item):
                run.append(item)
                continue
            if run:
                parts.append(self._lexeme(sequence(run)))
                run = []
            parts.append(self._segment(item))
        if run:
            parts.append(self._lexeme(sequence(run)))
        return _sequence(parts)

    # --- splitting ----------------------------------------------------------------------------------

    def _parts(self, node: Node) -> Node | Lexeme:
        """``node`` as smaller lexemes."""
        if isinstance(node, RuleRef):
            return self._parts(self._source[node.name])
        if isinstance(node, Choice):
            return _choice([self._lexeme(option) for option in node.options], [])
        if isinstance(node, Sequence):
            if _mentions_rules(node):
                return self._sequence(node.items)
            return _sequence([self._lexeme(sequence(node.items[:-1])), self._lexeme(node.items[-1])])
        if isinstance(node, Repeat):
            return _repeat(self._lexeme(node.item), node)
        if isinstance(node, Except):
            return self._states(node)
        return node

    def _states(self, node: Except) -> Node:
        """A subtraction as a rule for each state of its automaton: right-linear, one character at a time."""
        dfa = subtract(self._builder.dfa(node.item), self._builder.dfa(node.excluded))
        key = self._pattern(node)
        if key not in self._fresh:
            prefix = f"{len(self._fresh)} state "
            self._fresh[key] = prefix
            for state, row in enumerate(dfa.edges):
                options: list[Node | Lexeme] = [NO_TEXT] if dfa.accepting[state] else []
                for classes, target in row:
                    character = self._lexeme(CharClass(self._alphabet.ranges(classes)))
                    options.append(_sequence([character, RuleRef(f"{prefix}{target}")]))
                self._bodies[f"{prefix}{state}"] = _choice(options, [])
        return RuleRef(f"{self._fresh[key]}0")

    def _replace(self, body: Node | Lexeme, doomed: set[int]) -> Node | Lexeme:
        if isinstance(body, Lexeme):
            return self._parts(body.node) if body.place in doomed else body
        if isinstance(body, Sequence):
            return _sequence([self._replace(item, doomed) for item in body.items])
        if isinstance(body, Choice):
            return _choice([self._replace(option, doomed) for option in body.options], [])
        if isinstance(body, Repeat):
            return _repeat(self._replace(body.item, doomed), body)
        return body

    # --- the condition ------------------------------------------------------------------------------

    def _conflicts(self) -> set[int]:
        """Places of lexemes that must be split."""
        positions = _Positions(self._bodies, self._rules.root, self._dfas)
        dangers = [
            (at, other, extends)
            for at, other, extends in self._extensions(positions)
            if extends & self._leads(positions, positions.next[at])
        ]
        if not dangers:
            return set()
        together = self._together(positions)
        doomed: set[int] = set()
        for at, other, extends in dangers:
            beside = together(at) & positions.with_text[other]
            for index in bits(beside):
                doomed.add(positions.leaves[index].place)
            if beside:
                common = extends & self._leads(positions, positions.next[at])
                characters = bytes(b for b in bits(common)).decode("latin-1")
                self._splits[Split(other, positions.texts[at], characters)] = None
        return doomed

    def _overlap(self, a: str, b: str) -> tuple[bool, int]:
        known = self._overlaps.get((a, b))
        if known is None:
            left, right = self._dfas[a], self._dfas[b]
            both, extends = overlap(left, right) if left.first & right.first else (False, 0)
            known = self._overlaps[a, b] = both, self._alphabet.lead(extends)
        return known

    def _extensions(self, positions: _Positions) -> Iterable[tuple[int, str, int]]:
        """(position, text, first bytes): after a text of the lexeme there, those bytes go on in the other lexeme."""
        texts = list(positions.with_text)
        for text in texts:
            if not text:
                continue
            found = [(other, self._overlap(text, other)[1]) for other in texts if other]
            found = [(other, extends) for other, extends in found if extends]
            for at in bits(positions.with_text[text]) if found else ():
                for other, extends in found:
                    yield at, other, extends

    def _leads(self, positions: _Positions, places: int) -> int:
        """The first bytes of all lexemes in a set of positions; a token element may begin with anything."""
        known = positions.leads.get(places)
        if known is None:
            classes, known = 0, 0
            for index in bits(places):
                text = positions.texts[index]
                if text:
                    classes |= self._dfas[text].first
                else:
                    known = ANY_BYTE
            known |= self._alphabet.lead(classes)
            positions.leads[places] = known
        return known

    def _together(self, positions: _Positions) -> Callable[[int], int]:
        """For a position all those that may be viable at the same place of a text, itself included."""
        rows = positions.rows
        everything = (1 << len(positions.texts)) - 1
        beside: dict[int, int] = {}
        seen = {(positions.start, positions.start)}
        queue = list(seen)
        for left, right in queue:
            beside[left] = beside.get(left, 0) | right
            beside[right] = beside.get(right, 0) | left
            for text, others in self._shared(rows(left), rows(right)):
                for after in rows(left)[text]:
                    for other in others:
                        for following in rows(right)[other]:
                            pair = (after, following) if after <= following else (following, after)
                            if pair not in seen:
                                seen.add(pair)
                                queue.append(pair)
            if len(seen) > MAX_PAIRS:
                return lambda _: everything
        index: dict[int, int] = {}
        for gap, others_ in beside.items():
            for at in bits(gap):
                index[at] = index.get(at, 0) | others_
        return lambda at: index.get(at, 0)

    def _shared(self, left: dict[str, set[int]], right: dict[str, set[int]]) -> Iterable[tuple[str, list[str]]]:
        """Lexemes of one place, each with those of another that may match the same text."""
        for text in left:
            others = [
                other
                for other in right
                if other == text or (text and other and self._overlap(text, other)[0]) or not (text and other)
            ]
            if others:
                yield text, others


class _Positions:
    """The leaves of all rules as numbers; sets of them are ints. Token elements have an empty text.

    Attributes:
        texts, leaves: by position.
        next: for each position those that may come right after it.
        start: those that a text may begin with.
        with_text: positions by text.
        leads: a cache of first bytes by set of positions.
    """

    def __init__(self, bodies: dict[str, Node | Lexeme], root: str, dfas: dict[str, Dfa]) -> None:
        self.leaves: list[Lexeme] = []
        self.texts: list[str] = []
        self.with_text: dict[str, int] = {}
        self.leads: dict[int, int] = {}
        self._rows: dict[int, dict[str, set[int]]] = {}
        self._number: dict[str, list[int]] = {}
        self._bodies = bodies
        self._compiled = {name: self._compile(body) for name, body in bodies.items()}
        self._nullable: set[str] = set()
        self._first: dict[str, int] = dict.fromkeys(bodies, 0)
        self._find_first()
        self.next = [0] * len(self.texts)
        self._follow: dict[str, int] = dict.fromkeys(bodies, 0)
        self._find_next()
        self.start = self._first[root]

    def rows(self, places: int) -> dict[str, set[int]]:
        """For each text at these positions the sets of positions that may come after it."""
        row = self._rows.get(places)
        if row is None:
            row = self._rows[places] = {}
            for index in bits(places):
                row.setdefault(self.texts[index], set()).add(self.next[index])
        return row

    # A rule's body as nested tuples: ("p", position, nullable) ("r", name) ("s", items) ("c", options) ("*", item, min 0?, more?)
    def _compile(self, body: Node | Lexeme) -> tuple[object, ...]:
        if isinstance(body, Lexeme | TokenRef):
            index = len(self.texts)
            text = body.text if isinstance(body, Lexeme) else ""
            self.texts.append(text)
            self.leaves.append(body if isinstance(body, Lexeme) else Lexeme(NO_TEXT, "", -1))
            self.with_text[text] = self.with_text.get(text, 0) | 1 << index
            return "p", index
        if isinstance(body, RuleRef):
            return "r", body.name
        if isinstance(body, Sequence):
            return "s", [self._compile(item) for item in body.items]
        if isinstance(body, Choice):
            return "c", [self._compile(option) for option in body.options]
        assert isinstance(body, Repeat)
        return "*", self._compile(body.item), body.min == 0, body.max is None or body.max > 1

    def _find_first(self) -> None:
        users: dict[str, set[str]] = {name: set() for name in self._bodies}
        for name, body in self._bodies.items():
            for leaf in _leaves(body):
                if isinstance(leaf, RuleRef):
                    users[leaf.name].add(name)
        queue = list(self._bodies)
        waiting = set(queue)
        while queue:
            name = queue.pop()
            waiting.discard(name)
            first, nullable = self._first_of(self._compiled[name])
            if first != self._first[name] or (nullable and name not in self._nullable):
                self._first[name] = first
                if nullable:
                    self._nullable.add(name)
                fresh = users[name] - waiting
                queue += fresh
                waiting |= fresh

    def _first_of(self, node: tuple[object, ...]) -> tuple[int, bool]:
        kind, value = node[0], node[1]
        if kind == "p":
            return 1 << value, False  # type: ignore[operator]
        if kind == "r":
            return self._first[value], value in self._nullable  # type: ignore[index]
        if kind == "*":
            first, nullable = self._first_of(value)  # type: ignore[arg-type]
            return first, nullable or bool(node[2])
        first = 0
        if kind == "c":
            nullable = False
            for option in value:  # type: ignore[attr-defined]
                one, empty = self._first_of(option)
                first, nullable = first | one, nullable or empty
            return first, nullable
        for item in value:  # type: ignore[attr-defined]
            one, empty = self._first_of(item)
            first |= one
            if not empty:
                return first, False
        return first, True

    def _find_next(self) -> None:
        queue = list(self._bodies)
        self._changed = dict.fromkeys(queue)
        while self._changed:
            name = next(iter(self._changed))
            del self._changed[name]
            self._spread(self._compiled[name], self._follow[name])

    def _spread(self, node: tuple[object, ...], after: int) -> None:
        kind, value = node[0], node[1]
        if kind == "p":
            self.next[value] |= after  # type: ignore[index]
        elif kind == "r":
            assert isinstance(value, str)
            if after & ~self._follow[value]:
                self._follow[value] |= after
                self._changed[value] = None
        elif kind == "c":
            for option in value:  # type: ignore[attr-defined]
                self._spread(option, after)
        elif kind == "*":
            first = self._first_of(value)[0] if node[3] else 0  # type: ignore[arg-type]
            self._spread(value, after | first)  # type: ignore[arg-type]
        else:
            for item in reversed(value):  # type: ignore[call-overload]
                self._spread(item, after)
                first, empty = self._first_of(item)
                after = first | (after if empty else 0)


# --- trees whose leaves may be lexemes --------------------------------------------------------------


def _sequence(items: list[Node | Lexeme]) -> Node | Lexeme:
    flat: list[Node | Lexeme] = []
    for item in items:
        flat.extend(item.items if isinstance(item, Sequence) else (item,))
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))  # type: ignore[arg-type]


def _choice(first: list[Node | Lexeme], others: list[Node | Lexeme]) -> Node | Lexeme:
    flat: list[Node | Lexeme] = []
    for option in [*first, *others]:
        flat.extend(option.options if isinstance(option, Choice) else (option,))
    return flat[0] if len(flat) == 1 else Choice(tuple(flat))  # type: ignore[arg-type]


def _repeat(item: Node | Lexeme, like: Repeat) -> Node | Lexeme:
    return Repeat(item, like.min, like.max)  # type: ignore[arg-type]


def _leaves(body: Node | Lexeme) -> Iterable[Node | Lexeme]:
    stack: list[Node | Lexeme] = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, Sequence):
            stack.extend(node.items)
        elif isinstance(node, Choice):
            stack.extend(node.options)
        elif isinstance(node, Repeat):
            stack.append(node.item)
        else:
            yield node


def _mentions_rules(node: Node) -> bool:
    return any(isinstance(inner, RuleRef) for inner, _ in walk(node))


def _without_empty(node: Node) -> Node:
    """``node`` but for the empty text."""
    if isinstance(node, Repeat) and node.min == 0 and isinstance(node.item, CharClass):
        return Repeat(node.item, 1, node.max) if node.max != 1 else node.item
    return Except(node, NO_TEXT)


# --- which parts are regular ------------------------------------------------------------------------


def _weight(node: Node, weights: dict[str, int]) -> int:
    """Characters of ``node``, repetitions and rules put in place; more than ``MAX_LEXEME`` where it cannot be a lexeme."""
    too_much = MAX_LEXEME + 1
    if isinstance(node, CharClass):
        return 1
    if isinstance(node, RuleRef):
        return weights.get(node.name, too_much)
    if isinstance(node, Repeat):
        times = node.min + 1 if node.max is None else node.max
        return min(too_much, times * _weight(node.item, weights))
    if isinstance(node, Except):
        return min(too_much, _weight(node.item, weights) + _weight(node.excluded, weights))
    if isinstance(node, TokenRef):
        return too_much
    parts = node.items if isinstance(node, Sequence) else node.options if isinstance(node, Choice) else ()
    total = 0
    for part in parts:
        total += _weight(part, weights)
        if total > MAX_LEXEME:
            return too_much
    return total


def _weights(bodies: dict[str, Node]) -> dict[str, int]:
    """The weight of every rule that is regular and small enough."""
    needs = {name: {n.name for n, _ in walk(body) if isinstance(n, RuleRef)} for name, body in bodies.items()}
    users: dict[str, list[str]] = {name: [] for name in bodies}
    for name, names in needs.items():
        for needed in names:
            users[needed].append(name)
    missing = {name: len(names) for name, names in needs.items()}
    queue = [name for name, count in missing.items() if not count]
    weights: dict[str, int] = {}
    while queue:
        name = queue.pop()
        weight = _weight(bodies[name], weights)
        if weight > MAX_LEXEME:
            continue
        weights[name] = weight
        for user in users[name]:
            missing[user] -= 1
            if not missing[user]:
                queue.append(user)
    return weights
