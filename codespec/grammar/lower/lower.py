"""Rules to the text that llguidance compiles.

llguidance splits its input into lexemes by maximal munch and never goes back, so a lexeme that spans several
characters can change the language. ``fuse`` makes lexemes only where it cannot; elsewhere every lexeme is one code
point, where no munch is possible and the Earley parser alone decides: exact, and slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from codespec.grammar.errors import GrammarError
from codespec.grammar.lower.fuse import MAX_LEXEME, Fused, Split, fuse
from codespec.grammar.lower.normalize import NO_TEXT, Ranges, normalize
from codespec.grammar.lower.positions import Lexeme
from codespec.grammar.rules import CharClass, Choice, Except, Node, Repeat, RuleRef, Rules, Sequence, TokenRef, walk

MAX_ELEMENTS = 60_000
"""Characters, references and groups of a lowered grammar; llguidance has room for 65,535 symbols."""

Tokens = Callable[[TokenRef], Iterable[tuple[int, int]]]
"""The inclusive ranges of token ids that an element stands for."""


def lower(rules: Rules, tokens: Tokens | None = None, fused: bool = True) -> str:
    """llguidance's Lark text for exactly the language of ``rules``.

    Args:
        tokens: resolves token elements; without it they are an error.
        fused: False makes every character a lexeme: slow, and right without any proof.

    Raises:
        GrammarError: the root matches no text, the grammar is too large, or a token element cannot be resolved.
    """
    return _Emitter(_small(normalize(rules)), tokens, fused).text()


def lexemes(rules: Rules) -> tuple[list[str], list[Split], bool]:
    """The lexemes that ``rules`` are read in, as patterns; those that had to be split, with the reason; and whether
    the proof for larger lexemes was given up."""
    emitter = _Emitter(_small(normalize(rules)), lambda _: [(0, 0)], fused=True)
    emitter.text()
    return list(emitter.terminals), emitter.splits, emitter.given_up


def fused(rules: Rules) -> tuple[Fused, str]:
    """The lexemes that ``lower`` makes of ``rules``, and the name of the root there."""
    emitter = _Emitter(_small(normalize(rules)), None, fused=True)
    return emitter.fused, emitter.root


def _small(normal: Rules) -> Rules:
    size = sum(1 for rule in normal.rules.values() for _ in walk(rule.body))
    if size > MAX_ELEMENTS:
        raise GrammarError(
            normal.name, f"the grammar has {size} elements, at most {MAX_ELEMENTS} are allowed", "shorten its literals"
        )
    return normal


class _Emitter:
    """The text of one grammar.

    Attributes:
        fused: the lexemes.
        root: the rule that a text starts at.
        terminals: their names by pattern.
        splits: lexemes that had to be split.
        given_up: whether the proof for larger lexemes was too long.
    """

    def __init__(self, rules: Rules, tokens: Tokens | None, fused: bool) -> None:
        self._rules, self._tokens = rules, tokens
        self._patterns: dict[str, str] = {}
        self.fused = fuse(rules, self._pattern) if fused else fuse(rules, self._pattern, 0)
        self.root, self._bodies, self.splits = rules.root, self.fused.bodies, self.fused.splits
        self.given_up = fused and self.fused.largest < MAX_LEXEME
        self._names = {name: f"r{i}" for i, name in enumerate(self._bodies)}
        self.terminals: dict[str, str] = {}

    def text(self) -> str:
        bodies = {self._names[name]: self._node(body) for name, body in self._bodies.items()}
        lines = [f"start: {self._names[self._rules.root]}"]
        lines += [f"{name}: {body}" for name, body in bodies.items()]
        lines += [f"{name}: {pattern}" for pattern, name in self.terminals.items()]
        return "\n".join(lines) + "\n"

    def _node(self, node: Node | Lexeme) -> str:
        if isinstance(node, Lexeme):
            return self.terminals.setdefault(node.text, f"T{len(self.terminals)}")
        if node == NO_TEXT:
            return '""'
        if isinstance(node, RuleRef):
            return self._names[node.name]
        if isinstance(node, Sequence):
            return " ".join(self._node(item) for item in node.items)
        if isinstance(node, Choice):
            return "(" + " | ".join(self._node(option) for option in node.options) + ")"
        if isinstance(node, Repeat):
            inner = self._node(node.item)
            return (f"({inner})" if isinstance(node.item, Sequence | Repeat) else inner) + _suffix(node.min, node.max)
        assert isinstance(node, TokenRef)
        return self._token(node)

    def _token(self, node: TokenRef) -> str:
        if self._tokens is None:
            raise GrammarError(
                self._rules.name,
                f"{node.text} names a token, and no model is loaded",
                "use the grammar with a model",
                node.line,
                node.column,
            )
        ranges = ",".join(str(low) if low == high else f"{low}-{high}" for low, high in self._tokens(node))
        if not ranges:
            raise GrammarError(self._rules.name, f"{node.text} leaves no token", "", node.line, node.column)
        return f"<[{ranges}]>"

    # --- terminals: a regular expression where there is no subtraction, otherwise an expression over some ---

    def _pattern(self, node: Node) -> str:
        regex = self._regex(node)
        return self._expression(node) if regex is None else f"/{regex}/"

    def _regex(self, node: Node) -> str | None:
        if isinstance(node, CharClass):
            return _class(node.ranges)
        if isinstance(node, RuleRef):
            if node.name not in self._patterns:
                self._patterns[node.name] = self._regex(self._rules.rules[node.name].body) or ""
            return self._patterns[node.name] or None
        if isinstance(node, Except):
            return None
        if isinstance(node, Repeat):
            inner = self._regex(node.item)
            if inner is None:
                return None
            group = inner if isinstance(node.item, CharClass) else f"({inner})"
            return group + _suffix(node.min, node.max)
        assert isinstance(node, Sequence | Choice)
        parts = [self._regex(part) for part in (node.items if isinstance(node, Sequence) else node.options)]
        if None in parts:
            return None
        if isinstance(node, Sequence):
            return "".join(part for part in parts if part) or "()"
        return "(" + "|".join(part for part in parts if part) + ")"

    def _expression(self, node: Node) -> str:
        regex = self._regex(node)
        if regex is not None:
            return f"/{regex}/"
        if isinstance(node, RuleRef):
            return self._expression(self._rules.rules[node.name].body)
        if isinstance(node, Except):
            return f"({self._expression(node.item)} & ~({self._expression(node.excluded)}))"
        if isinstance(node, Repeat):
            return f"({self._expression(node.item)}){_suffix(node.min, node.max)}"
        if isinstance(node, Sequence):
            return "(" + " ".join(self._expression(item) for item in node.items) + ")"
        assert isinstance(node, Choice)
        return "(" + " | ".join(self._expression(option) for option in node.options) + ")"


def _suffix(minimum: int, maximum: int | None) -> str:
    simple = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    if (minimum, maximum) in simple:
        return simple[minimum, maximum]
    return f"{{{minimum},{'' if maximum is None else maximum}}}"


def _class(ranges: Ranges) -> str:
    parts = [_character(low) if low == high else f"{_character(low)}-{_character(high)}" for low, high in ranges]
    return "[" + "".join(parts) + "]"


def _character(code: int) -> str:
    character = chr(code)
    return character if character.isascii() and character.isalnum() else f"\\u{{{code:x}}}"
