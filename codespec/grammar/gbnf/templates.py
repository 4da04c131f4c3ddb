"""Rules as they are written, before templates and levels are expanded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codespec.grammar.rules import Rule, RuleRef, references

INDENT = "indent"
"""The name of the outermost level, unless a rule has it."""


@dataclass(frozen=True)
class Template(Rule):
    """A rule with parameters; without any it is an ordinary rule."""

    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Instance(RuleRef):
    """A template used with arguments: names of rules, parameters or levels, and instances."""

    arguments: tuple[RuleRef, ...] = ()


@dataclass(frozen=True)
class Deeper(RuleRef):
    """A level as an argument: any that is deeper than ``name``, or the one deeper by ``blanks`` spaces."""

    blanks: int | None = None


def names_in(rule: Template) -> Iterator[RuleRef]:
    """Every name that stands in the body of ``rule`` and is no parameter, in arguments too."""
    queue = list(references(rule.body))
    for ref in queue:
        if isinstance(ref, Instance):
            queue.extend(ref.arguments)
        if ref.name not in rule.parameters:
            yield ref
