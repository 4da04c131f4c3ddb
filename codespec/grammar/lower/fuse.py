"""Characters to lexemes, where maximal munch provably keeps the language.

llguidance splits text by maximal munch among the lexemes viable at a place and never goes back. That is right
wherever, for all lexemes a and b viable together (a = b included): if a text w is in a, and w c begins a text of
b, then no text that follows a begins with c. Regular parts of the grammar start out as lexemes; where the
condition fails, b is split into its parts, until it holds everywhere. Lexemes of one character always satisfy it.

The proof is in docs/grammar.md. Everything here errs on the side of splitting: what may follow a lexeme does
not depend on where its rule is used, and characters count as equal when their first UTF-8 bytes are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from codespec.grammar.lower.automaton import Alphabet, Builder, Dfa, TooLarge, bits, subtract
from codespec.grammar.lower.lexicon import Lexicon, TooMuchWork, WorkBudget
from codespec.grammar.lower.normalize import NO_TEXT, choice, sequence
from codespec.grammar.lower.positions import Lexeme, Positions, leaves
from codespec.grammar.rules import CharClass, Choice, Except, Node, Repeat, RuleRef, Rules, Sequence, TokenRef, walk

MAX_LEXEME = 600
"""Characters of a lexeme, repetitions counted."""
MAX_RULES_DEEP = 16
"""Rules within rules in a lexeme."""
ANY_BYTE = (1 << 256) - 1


@dataclass(frozen=True)
class Split:
    """Why a lexeme was split: after a text of ``before``, it could go on or something else follow.

    Attributes:
        lexeme, rule: what was split, and the rule it stands in.
        before, before_rule: what may be complete where the lexeme goes on, and the rule it stands in.
        characters: with which of them.
    """

    lexeme: str
    rule: str
    before: str
    before_rule: str
    characters: str


@dataclass
class Fused:
    """Rules whose leaves are lexemes and token elements.

    Attributes:
        bodies: by rule name, the root first.
        splits: lexemes that had to be split, with the reason.
        largest: characters of the largest lexeme that was tried; less than what was asked for where the proof was
            too long.
        alphabet, automata: of the lexemes, by text.
    """

    bodies: dict[str, Node | Lexeme]
    splits: list[Split]
    largest: int
    alphabet: Alphabet
    automata: dict[str, Dfa]


def fuse(rules: Rules, pattern: Callable[[Node], str], largest: int = MAX_LEXEME) -> Fused:
    """Lexemes for normalized ``rules``.

    Args:
        pattern: the text by which equal nodes are known.
        largest: characters of a lexeme; 0 makes every character one, which needs no proof.
    """
    reasons: list[Split] = []
    while True:
        fuser = _Fuser(rules, pattern, largest)
        try:
            fused = fuser.run()
            return replace(fused, splits=reasons or fused.splits)
        except TooMuchWork:
            reasons = reasons or list(fuser.splits)
            largest //= 10


class _Fuser:
    def __init__(self, rules: Rules, pattern: Callable[[Node], str], largest: int) -> None:
        self._rules, self._pattern, self._largest = rules, pattern, largest
        self._source = {name: rule.body for name, rule in rules.rules.items()}
        self._alphabet = Alphabet(
            node.ranges for body in self._source.values() for node, _ in walk(body) if isinstance(node, CharClass)
        )
        self._builder = Builder(self._alphabet, self._source.__getitem__)
        self._weights = _weights(self._source)
        self._work = WorkBudget()
        self._lexicon = Lexicon(self._alphabet, self._work)
        self._nullable: dict[str, Node | None] = {}
        self._phrases: dict[str, bool] = {}
        self._places = 0
        self.splits: dict[Split, None] = {}
        self._bodies: dict[str, Node | Lexeme] = {}
        self._fresh: dict[str, str] = {}

    def run(self) -> Fused:
        root = self._rules.root
        queue = [root]
        while queue:
            name = queue.pop()
            if name not in self._bodies:
                self._bodies[name] = self._segment(self._source[name])
                queue += [ref.name for ref in leaves(self._bodies[name]) if isinstance(ref, RuleRef)]
        while True:
            doomed = self._conflicts() if self._largest else set()
            if not doomed:
                return Fused(self._bodies, list(self.splits), self._largest, self._alphabet, self._lexicon.dfas)
            self._bodies |= {name: self._replace(body, doomed) for name, body in list(self._bodies.items())}

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
        if not self._lexicon.dfas[text].edges:
            return NO_TEXT
        self._places += 1
        lexeme = Lexeme(node, text, self._places)
        return _choice([lexeme], [NO_TEXT]) if nullable else lexeme

    def _known(self, node: Node) -> tuple[str, bool]:
        """The text of the lexeme that matches ``node`` but for the empty text, and whether that is in ``node``."""
        text = self._pattern(node)
        if text not in self._nullable:
            dfa = self._builder.dfa(node)
            self._nullable[text] = _without_empty(node) if dfa.nullable else None
            self._lexicon.dfas[self._pattern(self._nullable[text] or node)] = dfa.without_empty()
        filled = self._nullable[text]
        return (text, False) if filled is None else (self._pattern(filled), True)

    def _segment(self, node: Node) -> Node | Lexeme:
        """``node`` with its largest regular parts as lexemes; a reference to a regular rule is one of its own."""
        if isinstance(node, CharClass):
            return self._lexeme(node)
        if isinstance(node, RuleRef | TokenRef) and self._weight(node) > self._largest:
            return node
        if isinstance(node, RuleRef) and self._is_phrase(node.name):
            return self._segment(self._source[node.name])
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

    def _is_phrase(self, name: str) -> bool:
        """Whether a rule is rather several lexemes, or the space between them, than one: it has parts with names that
        may be empty. Only a guess, which saves splitting it later; its parts then stand where it is used."""
        known = self._phrases.get(name)
        if known is None:
            named = [node.name for node, _ in walk(self._source[name]) if isinstance(node, RuleRef)]
            try:
                known = any(self._known(RuleRef(other))[1] or self._is_phrase(other) for other in named)
                known = known or (bool(named) and self._known(self._source[name])[1])
            except TooLarge:
                known = True
            self._phrases[name] = known
        return known

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
        positions = Positions(self._bodies, self._rules.root)
        self._work.spend(20 * len(positions.texts))
        dangers = [
            (at, other, extends & self._leads(positions, positions.next[at]))
            for text, places in positions.with_text.items()
            for other, extends in self._lexicon.extensions(text, positions.with_text).items()
            for at in bits(places)
            if extends & self._leads(positions, positions.next[at])
        ]
        if not dangers:
            return set()
        together = positions.together(self._lexicon.matches_with, self._work.spend)
        doomed: set[int] = set()
        for at, other, common in dangers:
            beside = positions.with_text[other] & together[at]
            self._work.spend(beside.bit_count())
            doomed.update(positions.places[index] for index in bits(beside))
            if beside:
                characters = bytes(bits(common)).decode("latin-1")
                rule = positions.rules[next(iter(bits(beside)))]
                self.splits[Split(other, rule, positions.texts[at], positions.rules[at], characters)] = None
        return doomed

    def _leads(self, positions: Positions, places: int) -> int:
        """The first bytes of all lexemes in a set of positions; a token element may begin with anything."""
        known = positions.leads.get(places)
        if known is None:
            classes, known = 0, 0
            for index in bits(places):
                text = positions.texts[index]
                if text:
                    classes |= self._lexicon.dfas[text].first
                else:
                    known = ANY_BYTE
            known |= self._alphabet.lead(classes)
            positions.leads[places] = known
        return known


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


def _mentions_rules(node: Node) -> bool:
    return any(isinstance(inner, RuleRef) for inner, _ in walk(node))


def _without_empty(node: Node) -> Node:
    """``node`` but for the empty text."""
    if isinstance(node, Repeat) and node.min == 0 and isinstance(node.item, CharClass):
        return Repeat(node.item, 1, node.max) if node.max != 1 else node.item
    return Except(node, NO_TEXT)


# --- which parts are regular ------------------------------------------------------------------------


def _weight(node: Node, weights: dict[str, int]) -> int:
    """Characters of ``node``, rules put in place; more than ``MAX_LEXEME`` where it cannot be a lexeme."""
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
    depths: dict[str, int] = {}
    while queue:
        name = queue.pop()
        weight = _weight(bodies[name], weights)
        depths[name] = 1 + max((depths[needed] for needed in needs[name]), default=0)
        if weight > MAX_LEXEME or depths[name] > MAX_RULES_DEEP:
            continue
        weights[name] = weight
        for user in users[name]:
            missing[user] -= 1
            if not missing[user]:
                queue.append(user)
    return weights
