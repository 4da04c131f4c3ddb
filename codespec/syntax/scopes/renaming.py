"""A name that was replaced at some places: where the one that it replaced still stands, and for what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from codespec.languages import Language, load
from codespec.syntax.parsing import TooMuchToParse
from codespec.syntax.scopes.reading import Form, Name, Reader, Scope, TooDeepError, Variable
from codespec.syntax.tree import syntax_parser
from codespec.syntax.uses import Uses as RoughUses

LARGEST = 400_000
"""Characters of a document that is read."""

KEPT = 8
"""Answers that are remembered: the same is asked for the offer, and for every window of a model."""

_ITSELF = frozenset({b"self", b"cls", b"this"})


class Use(NamedTuple):
    """A name in a document.

    Attributes:
        start: in characters.
        form: ``shorthand``: it names a property of an object, too, ``{name}`` is ``{name: name}``; ``export``: it is
            what the module calls it, ``export {name}`` is ``export {name as name}``.
    """

    start: int
    form: Form = ""


@dataclass(frozen=True)
class Uses:
    """The places of a name, ascending, but for those where it was replaced.

    Attributes:
        same: that stand for the thing in question.
        other: that stand for something else, or where that is in doubt; in characters. What is in neither may be meant.
        wide: whether other documents may know the thing by its name.
    """

    same: tuple[Use, ...] = ()
    other: tuple[int, ...] = ()
    wide: bool = False


def still_called(language: Language, text: str, places: Sequence[int], old: str, new: str) -> Uses:
    """Where ``old`` still stands for what is called ``new`` at ``places``, in characters. One thread at a time.

    None of the uses are the same where that is in doubt: what ``old`` stands for is not bound in the document or is
    imported, ``new`` stands for something else there, or names are read by programs, as ``eval`` does. Where nothing
    can be told of the names, they are all other ones.
    """
    return _still_called(language, text, tuple(sorted(set(places))), old, new)


@lru_cache(KEPT)
def _still_called(language: Language, text: str, now: tuple[int, ...], old: str, new: str) -> Uses:
    shift = len(new) - len(old)
    before = {place - shift * index for index, place in enumerate(now)}
    original = _replaced(text, now, len(new), old)
    words = [each.start() for each in _words(old, original)]

    def moved(place: int) -> int:
        return place + shift * sum(each < place for each in before)

    def all_but(known: Iterable[int]) -> tuple[int, ...]:
        left = before.union(known)
        return tuple(moved(each) for each in words if each not in left)

    if len(text) > LARGEST or syntax_parser(language) is None:
        return Uses(other=all_but(()))
    if not language.scopes:
        return Uses(other=all_but(_near(language, original, words, before, len(old))))
    try:
        found = _Document(language, original, old, new)
    except (TooDeepError, TooMuchToParse):
        return Uses(other=all_but(()))
    same, perhaps = found.uses(before)
    left = set(words) - before
    other = left.intersection(found.places) - perhaps - {each.start for each in same}
    uses = tuple(Use(moved(each.start), each.form) for each in same)
    return Uses(uses, tuple(map(moved, sorted(other))), found.is_wide(before))


@lru_cache(KEPT)
def other_uses(language: Language, text: str, name: str, module: str) -> tuple[int, ...]:
    """Where a name may stand for something else in a document than what another one, ``module``, binds to it at its top
    level; in characters. It does not where it is imported, or bound nowhere. One thread at a time."""
    words = tuple(each.start() for each in _words(name, text))
    if len(text) > LARGEST or not language.scopes or syntax_parser(language) is None:
        return words
    try:
        found = _Document(language, text, name, name)
    except (TooDeepError, TooMuchToParse):
        return words
    known = found.imported(module.encode())
    return tuple(each for each in words if each not in known)


def _replaced(text: str, places: Sequence[int], length: int, by: str) -> str:
    parts, at = [], 0
    for place in places:
        parts += [text[at:place], by]
        at = place + length
    return "".join([*parts, text[at:]])


def _words(name: str, text: str) -> Iterable[re.Match[str]]:
    return re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text)


def _near(language: Language, text: str, words: Sequence[int], changed: set[int], length: int) -> set[int]:
    """Of a language whose scopes are not known: the places that are in the same outermost function."""
    uses = RoughUses(language, text)
    return {each for each in words if any(uses.share_a_function(each, one, length) for one in changed)}


_Found: TypeAlias = "tuple[list[Use], set[int]]"


class _Document:
    """The names of a document as it was before one of them was replaced; places are in characters."""

    def __init__(self, language: Language, text: str, old: str, new: str) -> None:
        parser = syntax_parser(language)
        assert parser is not None
        data = text.encode("utf-8", "replace")
        self._root = parser.parse(data + b"\n").root_node  # which Go's parser asks for
        self._old, self._new = old.encode(), new.encode()
        self._reader: Reader = load(language.scopes)(self._root, data, (self._old, self._new))
        self._names = [each for each in self._reader.names if each.text == self._old]
        self._others = [each for each in self._reader.names if each.text == self._new and each.role.kind != "member"]
        starts = _characters(data, text, [each.start for each in self._names])
        self._at = {id(each): start for each, start in zip(self._names, starts, strict=True)}

    @property
    def places(self) -> list[int]:
        """All that have the old name."""
        return list(self._at.values())

    def uses(self, changed: set[int]) -> _Found:
        """The uses of what was renamed where ``changed``, and where the old name may stand for that as well."""
        renamed = [each for each in self._names if self._at[id(each)] in changed]
        by_variable: dict[Variable, list[Name]] = {}
        for each in renamed:
            variable = self._reader.variable(each) if each.role.kind != "member" else None
            if variable is not None:
                by_variable.setdefault(variable, []).append(each)
        same: list[Use] = []
        perhaps = self._members(renamed)
        for variable, names in by_variable.items():
            one, maybe = self._of(variable, names, changed)
            same += one
            perhaps |= maybe
        fields = self._reader.fields(renamed, self._old, self._new)
        same += [Use(self._at[id(each)]) for each in fields if self._at[id(each)] not in changed]
        return sorted(set(same)), perhaps

    def is_wide(self, changed: set[int]) -> bool:
        """Whether anything that was renamed where ``changed`` is bound at the top level, or nowhere."""
        renamed = [each for each in self._names if self._at[id(each)] in changed and each.role.kind != "member"]
        scopes = {found[0] for each in renamed if (found := self._reader.variable(each)) is not None}
        return not scopes.isdisjoint({None, self._reader.outermost})

    def imported(self, module: bytes) -> set[int]:
        """Where the old name is an import, bound nowhere, or an attribute of ``module``; none beside errors."""
        if self._root.has_error:
            return set()
        top = [each.role for each in self._names if each.role.scope is self._reader.outermost]
        imports = all(role.form == "fixed" for role in top)
        scopes = {None, self._reader.outermost} if imports else {None}
        found = set()
        for each in self._names:
            variable = self._reader.variable(each)
            if each.role.kind == "member":
                known = each.owner.split(b".")[-1] == module
            else:
                known = variable is not None and variable[0] in scopes
            found |= {self._at[id(each)]} if known else set()
        return found

    def _of(self, variable: Variable, renamed: Sequence[Name], changed: set[int]) -> _Found:
        """The same of one variable."""
        if self._is_broken(variable[0]):
            return [], set()
        left = [
            each
            for each in self._names
            if each.role.kind != "member"
            and self._at[id(each)] not in changed
            and self._reader.variable(each) == variable
        ]
        fixed = [each for each in left if each.role.form == "fixed"]
        if fixed or self._is_doubtful(variable, renamed):
            # What is bound anew may be bound twice then.
            used = (each for each in left if each not in fixed and each.role.kind != "bind")
            return [], {self._at[id(each)] for each in used}
        return [Use(self._at[id(each)], each.role.form) for each in left], set()

    def _is_broken(self, scope: Scope | None) -> bool:
        """Whether errors of syntax may hide what is bound where."""
        wide = scope is None or scope.kind in ("outermost", "global", "space")
        return self._root.has_error if scope is None or wide else scope.errors

    def _is_doubtful(self, variable: Variable, renamed: Sequence[Name]) -> bool:
        scope, _ = variable
        if scope is None or self._new in self._reader.keywords or self._reader.unsafe(variable, self._new):
            return True
        if any(scope.start <= each.start < scope.end for each in self._others):
            return True  # the new name stands for something there
        # Where only a use was changed, a name that is known may be meant.
        bound = any(each.role.kind == "bind" for each in renamed)
        if bound or not self._others:
            return not bound and self._reader.known(self._new)
        seen = {None, *(around for each in renamed for around in each.scope.up())}
        others = (self._reader.variable(each) for each in self._others)
        return self._reader.known(self._new) or any(found is None or found[0] in seen for found in others)

    def _members(self, renamed: Sequence[Name]) -> set[int]:
        """Of attributes that were renamed: those of the same thing, as far as its text tells."""
        objects = {_object(each) for each in renamed} - {None}
        members = (each for each in self._names if each.role.kind == "member")
        return {self._at[id(each)] for each in members if _object(each) in objects}


def _object(member: Name) -> tuple[bytes, Scope] | None:
    """Whose attribute a name is: the text before the dot, and the function or class that it stands for something in."""
    if not member.owner:
        return (b"", member.scope) if member.scope.kind == "class" else None
    itself = member.owner in _ITSELF
    kinds = ("class",) if itself else ("function", "outermost")
    scope = next((each for each in member.scope.up() if each.kind in kinds), None)
    return (b"" if itself else member.owner, scope) if scope is not None else None


def _characters(data: bytes, text: str, starts: Sequence[int]) -> list[int]:
    """Bytes as characters, ascending or not."""
    if len(data) == len(text):
        return list(starts)
    found, at, characters = {}, 0, 0
    for start in sorted(set(starts)):
        characters += len(data[at:start].decode("utf-8", "replace"))
        at = start
        found[start] = characters
    return [found[start] for start in starts]
