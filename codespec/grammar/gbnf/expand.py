"""Templates and levels to plain rules: one rule for every instance that the start can get to.

The body of a template is compiled once, to a function of its arguments that shares every part they do not touch;
so an instance costs only what is different in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeAlias

from codespec.grammar.errors import GrammarError
from codespec.grammar.gbnf.templates import INDENT, Deeper, Instance, Template
from codespec.grammar.rules import (
    EMPTY,
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

DEFAULT_LEVELS = tuple(" " * (4 * depth) for depth in range(10))
MAX_LEVELS = 64
MAX_EXPANDED_RULES = 20_000
MAX_EXPANDED_NODES = 400_000
MAX_INSTANCE_DEPTH = 24
"""Instances within the arguments of instances; more is taken for a template without end."""
_SHOWN_NAME = 80  # characters of an instance's name

Value: TypeAlias = "str | int | _Step"
"""The value of a parameter: a rule, a level, or (only while an instance is made) levels deeper than one."""
Values: TypeAlias = "tuple[Value, ...]"
_Made: TypeAlias = "Node | Callable[[Values], Node]"  # a node, or what makes it from the arguments
_MadeValue: TypeAlias = "Value | Callable[[Values], Value]"


class _Step(tuple[int, "int | None"]):
    """A level, and how many blanks deeper than it (None: any deeper one)."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self[0]}+{'' if self[1] is None else self[1]}"


def expand(rules: Rules, levels: tuple[str, ...] = DEFAULT_LEVELS) -> Rules:
    """Plain rules with the language of ``rules``, whose templates and levels are resolved.

    Args:
        levels: the indentations that levels stand for, the outermost first. Deeper than a level is what comes
            after it and begins with its text.

    Raises:
        GrammarError: the expansion is too large or has no end, or something else is used as a level.
    """
    if not _needed(rules):
        return rules
    if not 0 < len(levels) <= MAX_LEVELS:
        raise GrammarError(rules.name, f"{len(levels)} levels of indentation given", f"give 1 to {MAX_LEVELS}")
    return _Expander(rules, levels).run()


def _needed(rules: Rules) -> bool:
    return any(isinstance(rule, Template) and rule.parameters for rule in rules.rules.values()) or any(
        isinstance(node, RuleRef) and (isinstance(node, Instance) or node.name not in rules.rules)
        for rule in rules.rules.values()
        for node, _ in walk(rule.body)
    )


class _Expander:
    def __init__(self, rules: Rules, levels: tuple[str, ...]) -> None:
        self._rules = rules
        self._levels = tuple(Literal(tuple(map(ord, text))) if text else EMPTY for text in levels)
        self._deeper = [
            [k for k in range(at + 1, len(levels)) if levels[k].startswith(text) and levels[k] != text]
            for at, text in enumerate(levels)
        ]
        self._blanks = {(at, len(levels[k]) - len(text)): k for at, text in enumerate(levels)
                        for k in self._deeper[at] if not levels[k][len(text):].strip(" ")}  # fmt: skip
        self._bodies: dict[str, _Made] = {}
        self._sizes: dict[str, int] = {}
        self._names: dict[tuple[str, Values], str] = {}
        self._depths: dict[str, int] = {}
        self._found: dict[str, Rule] = {}
        self._queue: list[tuple[str, str, Values]] = []
        self._nodes = 0

    def run(self) -> Rules:
        self._reach(self._rules.root)
        for name, template, values in self._queue:
            rule = self._rules.rules[template]
            body = self._choice(template, values) if _steps(values) else self._body(template, values)
            self._found[name] = Rule(name, body, rule.line, rule.column)
        return Rules(self._rules.name, self._found, self._rules.root)

    def _body(self, template: str, values: Values) -> Node:
        made = self._bodies.get(template)
        if made is None:
            rule = self._rules.rules[template]
            parameters = rule.parameters if isinstance(rule, Template) else ()
            made = self._bodies[template] = _Compiler(self, template, parameters).node(rule.body)
            self._sizes[template] = sum(1 for _ in walk(rule.body)) if callable(made) else 0
        self._nodes += self._sizes[template]
        if self._nodes > MAX_EXPANDED_NODES:
            self._fail(template, "the templates expand to too large a grammar", "use fewer arguments or levels")
        return made(values) if callable(made) else made

    def _choice(self, template: str, values: Values) -> Node:
        """Every instance that steps among ``values`` stand for."""
        ways = [self._targets(value) if isinstance(value, _Step) else [value] for value in values]
        names = [self.instance(template, way) for way in itertools.product(*ways)]
        return RuleRef(names[0]) if len(names) == 1 else Choice(tuple(map(RuleRef, names)))

    def _targets(self, step: _Step) -> list[int]:
        level, blanks = step
        if blanks is None:
            return self._deeper[level]
        found = level if blanks == 0 else self._blanks.get((level, blanks))
        return [] if found is None else [found]

    def level(self, index: int) -> Node:
        return self._levels[index]

    def plain(self, ref: RuleRef) -> Node:
        """A reference to a rule without parameters."""
        self._reach(ref.name)
        return ref

    def _reach(self, name: str) -> None:
        if (name, ()) not in self._names:
            self._add(name, name, ())

    def instance(self, template: str, values: Values) -> str:
        """The name of the rule for ``template`` with ``values``, made now or before."""
        name = self._names.get((template, values))
        if name is None:
            name = f"{template}<{','.join(map(str, values))}>"
            if len(name) > _SHOWN_NAME or name in self._depths:
                name = f"{template}<…{len(self._names)}>"
            depth = 1 + max((self._depths[value] for value in values if isinstance(value, str)), default=0)
            if depth > MAX_INSTANCE_DEPTH:
                self._fail(template, f"template {template!r} needs ever new instances, such as {name}", "use recursion")
            self._add(name, template, values, depth)
        return name

    def _add(self, name: str, template: str, values: Values, depth: int = 0) -> None:
        if len(self._names) >= MAX_EXPANDED_RULES:
            self._fail(
                template,
                f"the templates expand to more than {MAX_EXPANDED_RULES} rules",
                "use fewer arguments or levels",
            )
        self._names[template, values] = name
        self._depths[name] = depth
        self._queue.append((name, template, values))

    def _fail(self, template: str, cause: str, remedy: str) -> None:
        rule = self._rules.rules[template]
        raise GrammarError(self._rules.name, cause, remedy, rule.line, rule.column)

    def fail_at(self, ref: RuleRef, cause: str, remedy: str) -> GrammarError:
        return GrammarError(self._rules.name, cause, remedy, ref.line, ref.column)

    def defines(self, name: str) -> bool:
        return name in self._rules.rules


def _steps(values: Values) -> bool:
    return any(isinstance(value, _Step) for value in values)


class _Compiler:
    """The body of one template to what makes it from arguments."""

    def __init__(self, owner: _Expander, template: str, parameters: tuple[str, ...]) -> None:
        self._owner, self._template = owner, template
        self._index = {name: at for at, name in enumerate(parameters)}

    def node(self, node: Node) -> _Made:
        if isinstance(node, RuleRef):
            return self._reference(node)
        if isinstance(node, Sequence):
            return _joined([self.node(item) for item in node.items], Sequence)
        if isinstance(node, Choice):
            return _joined([self.node(option) for option in node.options], Choice)
        if isinstance(node, Repeat):
            low, high = node.min, node.max
            return _wrapped(self.node(node.item), lambda item: Repeat(item, low, high))
        if isinstance(node, Except):
            pair = [self.node(node.item), self.node(node.excluded)]
            return _joined(pair, lambda parts: Except(*parts))
        return node

    def _reference(self, ref: RuleRef) -> _Made:
        owner = self._owner
        if isinstance(ref, Instance):
            made = self._instance(ref)
            line, column = ref.line, ref.column
            if isinstance(made, str):
                return RuleRef(made, line, column)
            maker = made
            return lambda values: RuleRef(maker(values), line, column)
        if ref.name in self._index:
            at, line, column = self._index[ref.name], ref.line, ref.column

            def bound(values: Values) -> Node:
                value = values[at]
                return owner.level(value) if isinstance(value, int) else RuleRef(str(value), line, column)

            return bound
        return owner.plain(ref) if owner.defines(ref.name) else owner.level(0)

    def _instance(self, ref: Instance) -> str | Callable[[Values], str]:
        owner, name = self._owner, ref.name
        if name in self._index:
            raise owner.fail_at(
                ref, f"parameter {name!r} takes no arguments", "pass an instance of the template instead"
            )
        arguments = [self._argument(argument) for argument in ref.arguments]
        if not any(callable(argument) for argument in arguments):
            return owner.instance(name, tuple(a for a in arguments if not callable(a)))
        return lambda values: owner.instance(name, tuple(a(values) if callable(a) else a for a in arguments))

    def _argument(self, ref: RuleRef) -> _MadeValue:
        owner = self._owner
        if isinstance(ref, Deeper):
            return self._step(ref)
        if isinstance(ref, Instance):
            return self._instance(ref)
        if ref.name in self._index:
            at = self._index[ref.name]
            return lambda values: values[at]
        if not owner.defines(ref.name):
            return 0  # the outermost level
        owner.plain(ref)
        return ref.name

    def _step(self, ref: Deeper) -> _MadeValue:
        at = self._index.get(ref.name)
        if at is None:
            return _Step((0, ref.blanks))

        def deeper(values: Values) -> Value:
            value = values[at]
            if not isinstance(value, int):
                cause = f"{ref.name!r} is no level where {self._template}<{','.join(map(str, values))}> is used"
                raise self._owner.fail_at(ref, cause, f"pass a level, such as {INDENT}")
            return _Step((value, ref.blanks))

        return deeper


def _joined(parts: list[_Made], join: Callable[[tuple[Node, ...]], Node]) -> _Made:
    """``join`` over ``parts``, put off while one of them waits for arguments."""
    if not any(callable(part) for part in parts):
        return join(tuple(part for part in parts if not callable(part)))
    return lambda values: join(tuple([part(values) if callable(part) else part for part in parts]))


def _wrapped(part: _Made, wrap: Callable[[Node], Node]) -> _Made:
    if not callable(part):
        return wrap(part)
    return lambda values: wrap(part(values))
