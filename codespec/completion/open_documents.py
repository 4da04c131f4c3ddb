"""What the completer knows of each open document: its grammar at the cursor, its tree, and from both the gate."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial

from codespec.completion.ending.brackets import closer_of
from codespec.completion.ending.fitted_state import FittedState, FreeState
from codespec.completion.ending.json_spacing import SpacedState, Spacing, prepare
from codespec.completion.ending.lexical import LexicalCheck
from codespec.completion.ending.stop_rule import StopRule
from codespec.completion.ending.suffix_gate import Check, SuffixGate, window
from codespec.completion.ending.tidy import BALANCED, Tidy
from codespec.completion.lead import lead_of
from codespec.completion.trees import Trees
from codespec.early_errors import EarlyErrors
from codespec.engine.engine import Engine
from codespec.grammar import Grammar, GrammarError
from codespec.grammar.document import ROOT, GrammarDocument, GrammarPosition
from codespec.languages import Language
from codespec.patience import aside, check, give_up
from codespec.protocols import CodespecError, GrammarState
from codespec.recent import Recent
from codespec.syntax.kinds import ITEMS
from codespec.syntax.parsing import TooMuchToParse
from codespec.syntax.scopes.inventions import Inventions
from codespec.syntax.tree import Problems, SyntaxContext, SyntaxToken, SyntaxTree, well_formed

MOST_DOCUMENTS = 8
"""Open documents whose states are kept."""
SPACED = frozenset({"json", "jsonl"})
"""Languages in which white space between tokens means nothing, and nothing else stands there."""
MOST_GRAMMARS = 24
"""Compiled grammars, one for each start symbol and set of levels, that are kept in memory."""
MOST_PARSED = 100_000
"""Characters of a document that is parsed anew for every text."""
DEEPEST = 10_000
"""Nodes of a syntax tree, one in the other, in which texts are still judged; each costs every token and every judge."""
REST = 20.0
"""A refused grammar file is left alone for so many times the time that the refusal took: it may change all the time."""


@dataclass(frozen=True)
class CursorContext:
    """The position of a completion in a document, and all that constrains the text there.

    Attributes:
        grammar: its state there, before ``lead``.
        gate: the suffix gate; None where it is off, or has no judge.
        lead: text before the cursor that the model generates again (token healing).
        unavailable: whether the gate is on, but has no judge.
        rule: the stop rule.
        tidy: trims the texts.
        spacing: the white space that a JSON text may have; None: any.
        names: finds names that nothing defines; None where the document is not known whole.
    """

    grammar: GrammarPosition
    gate: SuffixGate | None
    lead: str
    unavailable: bool
    rule: StopRule
    tidy: Tidy
    spacing: Spacing | None = None
    names: Inventions | None = None

    def state(self, engine: Engine, attempt: int = 0, beginning: str = "") -> FittedState | None:
        """A fresh grammar state for one generation; None where any text is allowed.

        Args:
            attempt: how many texts came to nothing so far; the next one must have more than its lead, and if the
                cursor's line seems complete, it begins on a new line.
            beginning: of the text, in place of the lead.
        """
        if self.grammar.state is None and self.gate is None and not self.lead:
            return None
        inner: GrammarState = FreeState() if self.grammar.state is None else self.grammar.state.copy()
        cut = self.rule.cut if self.rule.extent == "line" else None
        lead = beginning or (self.lead + "\n" if attempt and self.rule.line_seems_complete else self.lead)
        if self.spacing is not None:
            inner = SpacedState(inner, self.spacing, engine.vocabulary, len(lead.encode()))
        return FittedState(inner, self.gate, engine.vocabulary, lead, cut, silent=attempt == 0)


class OpenDocuments:
    """The documents of recent completions, with their grammar states and syntax trees.

    Args:
        unseen: whether the model does not see what follows the cursor.
    """

    def __init__(self, engine: Engine, unseen: bool = False) -> None:
        self._engine, self._unseen = engine, unseen
        self._grammars = Grammars(engine)
        self._documents: Recent[tuple[str, str, str], GrammarDocument] = Recent(MOST_DOCUMENTS)
        self._trees = Trees()

    def context_at(
        self,
        path: str,
        language: Language,
        grammar: str,
        text: str,
        offset: int,
        gate: str,
        whole: tuple[bool, bool] = (True, True),
    ) -> CursorContext:
        """The context at ``offset`` of the current version of a document.

        Args:
            grammar: a name, a file, ``auto`` (the language's own, whatever its version) or ``none``.
            gate: ``window``, ``whole`` or ``off``.
            whole: whether ``text`` begins where the document does, and ends there.

        Raises:
            Aborted: it was cancelled, takes too long, or would, since the position is nested too deeply.
            CodespecError: the grammar cannot be used.
        """
        tree = self._trees.at(path, language, text, offset)
        if tree is not None and tree.depth_at(offset) > DEEPEST:
            give_up()
        for lead in dict.fromkeys((self.lead(text[:offset]), lead_of(text[:offset]), "")):
            if lead and not self._spells(lead):
                continue
            found = self._grammar_at(path, language, grammar, text, offset - len(lead), tree, whole[0])
            if found.state is None or not lead or self._takes(found.state.copy(), lead):
                break  # else the grammar has nothing to say where the lead begins, or says that it is wrong
        prefix, suffix = text[:offset], text[offset:]
        spacing = None
        if language.id in SPACED and found.state is not None:
            spacing = Spacing(prefix.removesuffix(lead), suffix)
            prepare(self._engine.vocabulary)
        around, closer = _syntax_context(tree, offset, language)
        rule = StopRule.at(prefix, suffix, language, around, lead, self._unseen)
        tidy = Tidy(prefix, suffix, language, rule, lead)
        if gate == "off":
            return CursorContext(found, None, lead, False, rule, tidy, spacing)
        # At the end of a part of a document blocks are still open: no text fits there, and it is no error.
        to_the_end = gate == "whole" and whole[1]
        size = len(suffix) if to_the_end else len(window(suffix))
        early = tree.early_errors(language, offset, path) if tree is not None and all(whole) else None
        lexical = LexicalCheck(prefix, suffix, language, bool(rule.closer) and not rule.closed)
        lost = found.state is None and grammar != "none" and bool(language.grammar)
        check = TreeCheck(tree, offset, lead, size, closer, not whole[1], early, lexical) if tree is not None else None

        fit = SuffixGate(
            self._engine.vocabulary,
            suffix,
            found.state.copy() if found.state is not None else None,
            _judge(language, prefix, suffix, len(lead), all(whole), check, lexical, lost),
            lambda generated: [each for each in tidy.variants(generated) if tidy.may_fit(each)],
            found.outside,
            whole=to_the_end,
            nothing=lead,
            sound=partial(_sound, tree, language, text, check) if tree is not None else None,
            # Where macros make declarations, hardly anything tells one that ends too early from a whole one.
            closes=not language.preprocessed or (around is not None and not around.definitions),
        )
        names = Inventions(language, prefix, suffix) if all(whole) else None
        return CursorContext(found, fit if fit.available else None, lead, not fit.available, rule, tidy, spacing, names)

    def lead(self, prefix: str) -> str:
        """The lead of a cursor behind ``prefix``, see ``lead_of``, where no grammar refuses it."""
        return lead_of(prefix, self._engine.vocabulary)

    def _spells(self, text: str) -> bool:
        """Whether the vocabulary has tokens for ``text``."""
        vocabulary = self._engine.vocabulary
        return b"".join(map(vocabulary.token_bytes, vocabulary.tokenize(text))) == text.encode()

    def _takes(self, state: GrammarState, text: str) -> bool:
        tokens = self._engine.vocabulary.tokenize(text)
        try:
            return state.accept(tokens) == len(tokens)
        except CodespecError:
            return False

    def _grammar_at(
        self,
        path: str,
        language: Language,
        grammar: str,
        text: str,
        offset: int,
        tree: SyntaxTree | None,
        begins: bool,
    ) -> GrammarPosition:
        name = (language.grammar or "none") if grammar == "auto" else grammar
        if name == "none":
            return GrammarPosition(None, "none")
        key = (path, language.id, name)
        document = self._documents.use(key)
        if document is None:
            document = self._documents[key] = self._grammars.document(name, language)
        return document.at(text, offset, tree.starts if tree is not None else None, begins)


class Grammars:
    """Compiled grammars by name, start symbol and levels."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._loaded: Recent[tuple[str, str, tuple[str, ...] | None], Grammar | None] = Recent(MOST_GRAMMARS)
        self._refused: dict[str, tuple[float, GrammarError]] = {}  # until when, and why

    def document(self, name: str, language: Language) -> GrammarDocument:
        """An empty document of this grammar.

        Raises:
            CodespecError: the grammar cannot be loaded.
        """
        grammar = self._load(name, ROOT, None)
        return GrammarDocument(
            name,
            partial(self._open, name),
            self._engine.vocabulary.tokenize,
            leveled=grammar is not None and grammar.leveled,
            indented=language.indented,
        )

    def _open(self, name: str, start: str, levels: tuple[str, ...] | None) -> GrammarState | None:
        """A state at the start; None where the grammar has no such symbol."""
        grammar = self._load(name, start, levels)
        return self._engine.grammar_state(grammar) if grammar is not None else None

    def _load(self, name: str, start: str, levels: tuple[str, ...] | None) -> Grammar | None:
        key = (name, start, levels)
        if key not in self._loaded:
            check()
            until, refusal = self._refused.get(name, (0.0, None))
            if refusal is not None and time.monotonic() < until:
                raise refusal.with_traceback(None)
            began = time.monotonic()
            try:
                # A block may have any levels, and each takes a grammar of its own: a document can ask for dozens.
                with aside() if start == ROOT else nullcontext():
                    self._loaded[key] = Grammar.load(name, start=None if start == ROOT else start, levels=levels)
            except GrammarError as error:
                if start == ROOT:
                    now = time.monotonic()
                    self._refused[name] = now + REST * (now - began), error
                    raise
                self._loaded[key] = None
        return self._loaded.use(key)


def _syntax_context(tree: SyntaxTree | None, offset: int, language: Language) -> tuple[SyntaxContext | None, str]:
    """The syntax around a position, and the sign that closes the comment or string there if nothing does yet.

    One that is still open seems to reach to where the next one begins: if closing it at the position mends more than it
    breaks, nothing of what follows belongs to it.
    """
    if tree is None:
        return None, ""
    found = tree.context_at(offset)
    if found.kind in ("comment", "string") and tree.problems.count:
        closer = closer_of(found.before, language)
        if _problems_with(tree, offset, closer) < tree.problems.count:
            long = closer in (*language.long_quotes, *language.block_comment[1:])
            return replace(found, after="") if long else found, closer
    return found, ""


def _problems_with(tree: SyntaxTree, offset: int, text: str) -> float:
    """How many errors a document has with a text."""
    try:
        return tree.with_text(offset, text).problems.count
    except TooMuchToParse:
        return math.inf


def _judge(
    language: Language, prefix: str, suffix: str, lead: int, whole: bool, check: TreeCheck | None,
    lexical: LexicalCheck, lost: bool,
) -> Check | None:  # fmt: skip
    """What judges texts beside a grammar, each of which begins with ``lead`` characters of the document: its tree,
    signs alone where there is none, and the language's own parser where that knows more of a ``whole`` document.

    Args:
        lost: whether the grammar of the language does not take the document; without another judge the text then keeps
            to the cursor's line.
    """
    judge: Check | None = check
    if check is None and language.id in BALANCED:
        judge = partial(_keeps_signs, lexical, lead)
    elif check is None and lost:
        judge = partial(_stays_in_line, lead)
    if whole and _names_once(language, prefix, suffix):
        judge = partial(_stays_well_formed, language, prefix, suffix, lead, judge)
    return judge


def _keeps_signs(lexical: LexicalCheck, lead: int, text: str, strict: bool = True) -> bool:
    """Whether a text that begins with ``lead`` characters of the document fits, strictly or not, by its signs alone."""
    return lexical(text[lead:])


def _stays_in_line(lead: int, text: str, strict: bool = True) -> bool:
    """Whether a text that begins with ``lead`` characters of the document ends in the cursor's line."""
    return "\n" not in text[lead:]


def _names_once(language: Language, prefix: str, suffix: str) -> bool:
    """Whether only the language's own parser tells of names that stand twice, and has nothing to say of the document,
    or of all but the cursor's line."""
    if language.id != "toml" or len(prefix) + len(suffix) > MOST_PARSED:
        return False
    others = prefix[: prefix.rfind("\n") + 1] + suffix.partition("\n")[2]
    return well_formed(language, prefix + suffix) or well_formed(language, others)


def _stays_well_formed(
    language: Language, prefix: str, suffix: str, lead: int, judge: Check | None, text: str, strict: bool = True
) -> bool:
    """Whether ``judge``, if any, and the language's own parser take a text that begins with ``lead`` characters of the
    document."""
    return (judge is None or judge(text, strict)) and well_formed(language, prefix + text[lead:] + suffix)


def _sound(tree: SyntaxTree, language: Language, text: str, check: TreeCheck | None) -> bool:
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
