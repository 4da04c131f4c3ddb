"""Rules to the text that llguidance compiles.

llguidance splits its input into lexemes by maximal munch and never goes back, so a lexeme that spans several
characters can change the language. Here every lexeme is exactly one code point: no munch is possible, and the
Earley parser alone decides. That is exact and slow; joining lexemes where it is provably safe would be one more
pass between ``normalize`` and ``emit``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from codespec.grammar.errors import GrammarError
from codespec.grammar.normalize import NO_TEXT, Ranges, normalize
from codespec.grammar.rules import CharClass, Choice, Node, Repeat, RuleRef, Rules, Sequence, TokenRef, walk

MAX_ELEMENTS = 60_000
"""Characters, references and groups of a lowered grammar; llguidance has room for 65,535 symbols."""

Tokens = Callable[[TokenRef], Iterable[tuple[int, int]]]
"""The inclusive ranges of token ids that an element stands for."""


def lower(rules: Rules, tokens: Tokens | None = None) -> str:
    """llguidance's Lark text for exactly the language of ``rules``.

    ``tokens`` resolves token elements; without it they are an error.

    Raises:
        GrammarError: the root matches no text, the grammar is too large, or a token element cannot be resolved.
    """
    normal = normalize(rules)
    size = sum(1 for rule in normal.rules.values() for _ in walk(rule.body))
    if size > MAX_ELEMENTS:
        raise GrammarError(
            rules.name, f"the grammar has {size} elements, at most {MAX_ELEMENTS} are allowed", "shorten its literals"
        )
    return emit(normal, tokens)


def emit(rules: Rules, tokens: Tokens | None = None) -> str:
    """llguidance's Lark text for normalized ``rules``, one code point per lexeme."""
    return _Emitter(rules, tokens).text()


class _Emitter:
    def __init__(self, rules: Rules, tokens: Tokens | None) -> None:
        self._rules, self._tokens = rules, tokens
        self._names = {name: f"r{i}" for i, name in enumerate(rules.rules)}
        self._terminals: dict[Ranges, str] = {}

    def text(self) -> str:
        bodies = {self._names[rule.name]: self._node(rule.body) for rule in self._rules.rules.values()}
        lines = [f"start: {self._names[self._rules.root]}"]
        lines += [f"{name}: {body}" for name, body in bodies.items()]
        lines += [f"{name}: /{_class(ranges)}/" for ranges, name in self._terminals.items()]
        return "\n".join(lines) + "\n"

    def _node(self, node: Node) -> str:
        if node == NO_TEXT:
            return '""'
        if isinstance(node, CharClass):
            return self._terminals.setdefault(node.ranges, f"T{len(self._terminals)}")
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
