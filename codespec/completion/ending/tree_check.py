"""The second judge of a text beside its grammar: the tree of the document with it, or what else knows the language."""

from __future__ import annotations

from functools import cached_property, partial

from codespec.completion.ending.lexical import LexicalCheck
from codespec.completion.ending.suffix_gate import Check
from codespec.early_errors import EarlyErrors
from codespec.languages import Language
from codespec.syntax.kinds import ITEMS
from codespec.syntax.parsing import TooMuchToParse
from codespec.syntax.tree import Problems, SyntaxToken, SyntaxTree, well_formed

MOST_PARSED = 100_000
"""Characters of a document that is parsed anew for every text."""


def second_judge(
    language: Language, prefix: str, suffix: str, lead: int, whole: bool, check: TreeCheck | None,
    lexical: LexicalCheck, lost: bool,
) -> Check | None:  # fmt: skip
    """What judges texts beside a grammar, each of which begins with ``lead`` characters of the document: its tree,
    signs alone where there is none, and the language's own parser where that knows more of a ``whole`` document.

    Args:
        lost: whether the grammar of the language does not take the document; without another judge the text then keeps
            to the cursor's line.
    """
    found: Check | None = check
    if check is None and language.brackets == "always":
        found = partial(_keeps_signs, lexical, lead)
    elif check is None and lost:
        found = partial(_stays_in_line, lead)
    if whole and _names_once(language, prefix, suffix):
        found = partial(_stays_well_formed, language, prefix, suffix, lead, found)
    return found


def _keeps_signs(lexical: LexicalCheck, lead: int, text: str, strict: bool = True) -> bool:
    """Whether a text that begins with ``lead`` characters of the document fits, strictly or not, by its signs alone."""
    return lexical(text[lead:])


def _stays_in_line(lead: int, text: str, strict: bool = True) -> bool:
    """Whether a text that begins with ``lead`` characters of the document ends in the cursor's line."""
    return "\n" not in text[lead:]


def _names_once(language: Language, prefix: str, suffix: str) -> bool:
    """Whether only the language's own parser tells of names that stand twice, and has nothing to say of the document,
    or of all but the cursor's line."""
    if not language.unique_keys or len(prefix) + len(suffix) > MOST_PARSED:
        return False
    others = prefix[: prefix.rfind("\n") + 1] + suffix.partition("\n")[2]
    return well_formed(language, prefix + suffix) or well_formed(language, others)


def _stays_well_formed(
    language: Language, prefix: str, suffix: str, lead: int, judge: Check | None, text: str, strict: bool = True
) -> bool:
    """Whether ``judge``, if any, and the language's own parser take a text that begins with ``lead`` characters of the
    document."""
    return (judge is None or judge(text, strict)) and well_formed(language, prefix + text[lead:] + suffix)


def sound(tree: SyntaxTree, language: Language, text: str, check: TreeCheck | None) -> bool:
    """Whether a document has no errors without the text, or only the parser's own; ``tree`` is the document's."""
    return (not tree.problems.count and well_formed(language, text)) or (check is not None and check.blind)


class TreeCheck:
    """Judges whether a text inserted at the cursor leaves the tokens after it their roles, and the document with no
    syntax errors but those elsewhere; where only a ``part`` of the document is known, with no new ones.

    Args:
        closer: the sign that closes the comment or string around the cursor, where nothing closes it yet.
        early: finds the errors of the language's compiler that the parser lets pass; None where they cannot be known.
        lexical: judges the text where the document has syntax errors already.
    """

    def __init__(
        self,
        tree: SyntaxTree,
        offset: int,
        lead: str,
        window: int,
        closer: str = "",
        part: bool = False,
        early: EarlyErrors | None = None,
        lexical: LexicalCheck | None = None,
    ) -> None:
        self._tree, self._offset, self._lead, self._window = tree, offset, len(lead), window
        self._closer, self._part, self._early, self._lexical = closer, part, early, lexical

    def __call__(self, text: str, strict: bool = True) -> bool:
        added = text[self._lead :]
        try:
            tree = self._tree.with_text(self._offset, added)
        except TooMuchToParse:
            return False
        allowed = self._elsewhere if strict and not self._part and not self.blind else self._tree.problems
        size = len(added.encode("utf-8", "replace"))
        if tree.problems.count and not tree.problems.no_worse_than(allowed, size, strict):
            return False
        if self._early is not None and tree.early_errors_added(self._early, strict):
            return False
        # Beside errors the parser cuts text into other tokens.
        doubtful = self._closed.problems.count
        if not doubtful and not self._keeps_roles(tree, self._offset + len(added), added):
            return False
        return self._lexical is None or not (doubtful or self._lexical.macros) or self._lexical(added)

    @cached_property
    def blind(self) -> bool:
        """Whether the parser has errors at the cursor, because of macros that it does not know, in a document that
        seems in order."""
        errors = not self._tree.problems.no_worse_than(self._elsewhere)
        return errors and self._lexical is not None and self._lexical.sound

    def _keeps_roles(self, tree: SyntaxTree, end: int, added: str) -> bool:
        """Whether the tokens after ``added``, which ends at ``end``, have the same roles in ``tree`` as before."""
        if not keep_roles(self._tokens, tree.tokens(end, self._window)):
            return False
        # A statement or value on a line of its own becomes no part of one that the text leaves unfinished; only
        # decorators and the like belong to what follows them.
        last = added.rpartition("\n")[2]
        rest = self._tree.text[self._offset :].partition("\n")[0]
        own_line = not rest.strip() or ("\n" in added and not last.strip())
        if not own_line or self._next[1] not in ITEMS or added.strip().rpartition("\n")[2].startswith("@"):
            return True
        return tree.part_at(end) == self._next

    @cached_property
    def _elsewhere(self) -> Problems:
        return self._tree.problems_elsewhere(self._offset, self._window)

    @cached_property
    def _closed(self) -> SyntaxTree:
        """The document, where a comment or string that is still open ends at the cursor."""
        return self._tree.with_text(self._offset, self._closer) if self._closer else self._tree

    @cached_property
    def _tokens(self) -> list[SyntaxToken]:
        return self._closed.tokens(self._offset + len(self._closer), self._window)

    @cached_property
    def _next(self) -> tuple[str, str]:
        """The kind and text of the statement or value that begins after the cursor."""
        return self._closed.part_at(self._offset + len(self._closer))


def keep_roles(before: list[SyntaxToken], after: list[SyntaxToken]) -> bool:
    """Whether the text after the cursor has the same tokens, in code, comments and strings as before; of a token that
    the cursor was inside of, only the end counts."""
    if before and after and before[0].start < 0:
        return before[0][1:] == after[0][1:] and before[1:] == after[1:]
    return before == after
