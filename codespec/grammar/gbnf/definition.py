"""A grammar as it is written: which names it defines and uses, and the rules it comes to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from codespec.grammar.errors import GrammarError, did_you_mean
from codespec.grammar.gbnf.expand import DEFAULT_LEVELS, expand
from codespec.grammar.gbnf.subtraction import check_subtractions
from codespec.grammar.gbnf.templates import INDENT, Deeper, Instance, Template, names_in
from codespec.grammar.lower.boundary import eliminate, word_characters
from codespec.grammar.lower.recursion import left_recursion, repeated_nothing
from codespec.grammar.rules import Boundary, Except, Node, RuleRef, Rules, walk


@dataclass(frozen=True)
class Note:
    """A position in the text with something that is probably not meant."""

    line: int
    column: int
    text: str


@dataclass(frozen=True)
class Written:
    """A grammar as it is written.

    Attributes:
        name: file or name, for messages.
        rules: by name, templates among them.
        shadowed: rules that a later one of the same name replaced.
        extensions: whether the extensions are on.
        strict: whether what llama.cpp refuses is refused.
        notes: what is probably not meant.
        starts: rules that a comment names as start symbols.
    """

    name: str
    rules: dict[str, Template]
    shadowed: tuple[Template, ...]
    extensions: bool = False
    strict: bool = False
    notes: tuple[Note, ...] = ()
    starts: tuple[str, ...] = ()

    def rules_from(self, start: str | None = None, levels: tuple[str, ...] | None = None) -> Rules:
        """The rules with templates expanded and word boundaries worked in; see ``parse``."""
        first = next(self.problems(start or "root"), None)
        if first is not None:
            raise first
        rules = self.expanded(start, levels)
        if self.strict:
            check_portable(rules)
        if not self.holding(Boundary):
            return rules
        return eliminate(rules, word_characters(self.name, self.rules))

    def expanded(self, start: str | None = None, levels: tuple[str, ...] | None = None) -> Rules:
        """The rules with templates expanded; all names must be known."""
        rules = Rules(self.name, dict(self.rules), start or "root")
        if not self.extensions:
            return rules
        rules = expand(rules, DEFAULT_LEVELS if levels is None else levels)
        check_subtractions(rules, self.holding(Except))
        return rules

    def holding(self, kind: type[Node]) -> set[str]:
        """Rules with such a node."""
        return {name for name, rule in self.rules.items() if any(isinstance(node, kind) for node, _ in walk(rule.body))}

    def problems(self, start: str = "root") -> Iterator[GrammarError]:
        """Errors in names that make the grammar unusable."""
        if start not in self.rules:
            near = did_you_mean(start, (rule.name for rule in self.rules.values() if not rule.parameters))
            yield GrammarError(self.name, f"there is no rule {start!r}", near or f"add: {start} ::= ...")
        elif self.rules[start].parameters:
            rule = self.rules[start]
            remedy = f"add a rule without parameters that uses it, such as: start ::= {start}<...>"
            yield GrammarError(self.name, f"{start!r} takes parameters and cannot be the start", remedy, rule.line, 1)
        for rule in self.rules.values():
            for ref in names_in(rule):
                yield from self._problem(rule, ref)

    def leveled(self, start: str = "root") -> bool:
        """Whether the language depends on the levels: ``indent`` is used on the way from ``start``."""
        return INDENT not in self.rules and any(
            ref.name == INDENT for name in self.used([start]) for ref in names_in(self.rules[name])
        )

    def used(self, starts: Iterable[str]) -> set[str]:
        """Names of rules that ``starts`` can get to, themselves included."""
        queue = [name for name in starts if name in self.rules]
        found = set(queue)
        while queue:
            for ref in names_in(self.rules[queue.pop()]):
                if ref.name in self.rules and ref.name not in found:
                    found.add(ref.name)
                    queue.append(ref.name)
        return found

    def _problem(self, rule: Template, ref: RuleRef) -> Iterator[GrammarError]:
        if isinstance(ref, Deeper) or ref.name not in self.rules:
            if ref.name == INDENT and self.extensions and INDENT not in self.rules and not isinstance(ref, Instance):
                return
            cause, remedy = self._undefined(rule, ref)
            yield GrammarError(self.name, cause, remedy, ref.line, ref.column)
            return
        given, wanted = len(ref.arguments) if isinstance(ref, Instance) else 0, self.rules[ref.name].parameters
        if given != len(wanted):
            takes = f"rule {ref.name!r} takes {_count(len(wanted), 'argument')}, {given} given"
            pattern = f"write {ref.name}<{', '.join(wanted)}>" if wanted else f"write {ref.name} without '<...>'"
            yield GrammarError(self.name, takes, pattern, ref.line, ref.column)

    def _undefined(self, rule: Template, ref: RuleRef) -> tuple[str, str]:
        name = ref.name
        if isinstance(ref, Deeper):
            remedy = did_you_mean(name, rule.parameters) or "name a parameter that is bound to a level, or indent"
            return f"{name!r} is no level", remedy
        if name == "-" and not self.extensions:
            return "'-' between blanks is an extension of GBNF", "pass --extensions (in Python: extensions=True)"
        cause = f"rule {name!r} is not defined"
        if name != name.strip("-") and self.extensions:
            return cause, "to subtract, write '-' with a blank on both sides"
        known = [*rule.parameters, *self.rules]
        return cause, did_you_mean(name, known) or f"add: {name} ::= ..."


def check_portable(rules: Rules) -> None:
    """Raises the error for the first rule that llama.cpp refuses as left recursive."""
    for rule, how in left_recursion(rules):
        cause = f"rule {rule.name!r} is left recursive ({how})"
        raise GrammarError(rules.name, cause, "llama.cpp refuses it: use repetition", rule.line, rule.column)
    for rule in repeated_nothing(rules):
        cause = f"rule {rule.name!r} repeats without limit what may be empty by itself"
        raise GrammarError(rules.name, cause, "llama.cpp refuses it: repeat once", rule.line, rule.column)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
