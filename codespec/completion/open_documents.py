"""What the completer knows of each open document: its grammar at the cursor, its tree, and from both the gate."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial

from codespec.completion.ending.brackets import closer_of, tokens
from codespec.completion.ending.fitted_state import FittedState, FreeState
from codespec.completion.ending.json_spacing import SpacedState, Spacing, prepare
from codespec.completion.ending.lexical import LexicalCheck
from codespec.completion.ending.mended import mended
from codespec.completion.ending.stop_rule import StopRule
from codespec.completion.ending.suffix_gate import LONGEST_WINDOW, MOST_CLOSERS, SuffixGate, window
from codespec.completion.ending.tidy import Tidy
from codespec.completion.ending.tree_check import TreeCheck, second_judge, sound
from codespec.completion.lead import lead_of
from codespec.completion.trees import Trees
from codespec.engine.engine import Generating
from codespec.grammar import Grammar, GrammarError
from codespec.grammar.document import ROOT, GrammarDocument, GrammarPosition
from codespec.languages import Language
from codespec.patience import aside, check, give_up
from codespec.protocols import CodespecError, GrammarState
from codespec.recent import Recent
from codespec.syntax.parsing import TooMuchToParse
from codespec.syntax.scopes.inventions import Inventions
from codespec.syntax.tree import SyntaxContext, SyntaxTree

MOST_DOCUMENTS = 8
"""Open documents whose states are kept."""
MOST_GRAMMARS = 24
"""Compiled grammars, one for each start symbol and set of levels, that are kept in memory."""
DEEPEST = 10_000
"""Nodes of a syntax tree, one in the other, in which texts are still judged; each costs every token and every judge."""
DEEPEST_FED = 2_000
"""The same before the cursor and in what has to follow it, for grammars: where operators wait for their operand, as in
``!!!a``, the token behind them takes llguidance the square of their number (0.1 s here, and nothing can stop it)."""
_STATEMENTS = re.compile(r"[;{}]")
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

    def state(self, engine: Generating, attempt: int = 0, beginning: str = "") -> FittedState | None:
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


@dataclass(frozen=True)
class _Known:
    """What the gate needs to know of a cursor, apart from what follows it."""

    path: str
    language: Language
    prefix: str
    lead: str
    position: GrammarPosition
    wants_grammar: bool
    whole: tuple[bool, bool]
    to_the_end: bool
    rule: StopRule
    tidy: Tidy
    around: SyntaxContext | None
    closer: str


class OpenDocuments:
    """The documents of recent completions, with their grammar states and syntax trees.

    Args:
        unseen: whether the model does not see what follows the cursor.
    """

    def __init__(self, engine: Generating, unseen: bool = False) -> None:
        self._engine, self._unseen = engine, unseen
        self._grammars = Grammars(engine)
        self._documents: Recent[tuple[str, str, str], GrammarDocument] = Recent(MOST_DOCUMENTS)
        self._trees, self._mended = Trees(), Trees()

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
        fed = text if gate == "whole" else text[: offset + LONGEST_WINDOW]
        deep = grammar != "none" and _nests_deeply(tree, language, fed)
        for lead in dict.fromkeys((self.lead(text[:offset]), lead_of(text[:offset]), "")):
            if lead and not self._spells(lead):
                continue
            if deep:
                found = GrammarPosition(None, "none (the document nests too deeply)")
                break
            found = self._grammar_at(path, language, grammar, text, offset - len(lead), tree, whole[0])
            if found.state is None or not lead or self._takes(found.state.copy(), lead):
                break  # else the grammar has nothing to say where the lead begins, or says that it is wrong
        prefix, suffix = text[:offset], text[offset:]
        spacing = None
        if language.free_blanks and found.state is not None:
            spacing = Spacing(prefix.removesuffix(lead), suffix)
            prepare(self._engine.vocabulary)
        around, closer = _syntax_context(tree, offset, language)
        rule = StopRule.at(prefix, suffix, language, around, lead, self._unseen)
        tidy = Tidy(prefix, suffix, language, rule, lead)
        if gate == "off":
            return CursorContext(found, None, lead, False, rule, tidy, spacing)
        # At the end of a part of a document blocks are still open: no text fits there, and it is no error.
        known = _Known(
            path,
            language,
            prefix,
            lead,
            found,
            grammar != "none",
            whole,
            gate == "whole" and whole[1],
            rule,
            tidy,
            around,
            closer,
        )

        fit = self._gate(known, suffix, tree, self._once_mended(known, suffix, tree if gate != "whole" else None))
        names = Inventions(language, prefix, suffix) if all(whole) else None
        return CursorContext(found, fit if fit.available else None, lead, not fit.available, rule, tidy, spacing, names)

    def _once_mended(self, at: _Known, suffix: str, tree: SyntaxTree | None) -> Callable[[str], SuffixGate | None]:
        """Given a text, the gate before ``suffix`` once its brackets are in pairs, but for those that the text closes;
        None where they are already, or nothing is to be mended."""
        offset = len(at.prefix)
        if tree is None or not all(at.whole) or at.closer:
            return lambda _: None

        @cache
        def in_order() -> bool:
            return tree.problems.no_worse_than(tree.problems_elsewhere(offset, len(window(suffix))))

        @cache
        def closing(count: int) -> SuffixGate | None:
            other = mended(at.prefix + suffix, offset, tree.brackets, at.language, count)
            if other is None:
                return None
            return self._gate(at, other, self._mended.at(at.path, at.language, at.prefix + other, offset))

        return lambda text: None if in_order() else closing(min(at.tidy.closed_by(text), MOST_CLOSERS))

    def _gate(
        self,
        at: _Known,
        suffix: str,
        tree: SyntaxTree | None,
        instead: Callable[[str], SuffixGate | None] | None = None,
    ) -> SuffixGate:
        """The gate before ``suffix``; ``tree`` is that of the document with it."""
        language, prefix, offset = at.language, at.prefix, len(at.prefix)
        size = len(suffix) if at.to_the_end else len(window(suffix))
        early = tree.early_errors(language, offset, at.path) if tree is not None and all(at.whole) else None
        lexical = LexicalCheck(prefix, suffix, language, bool(at.rule.closer) and not at.rule.closed)
        lost = at.position.state is None and at.wants_grammar and bool(language.grammar)
        check = None
        if tree is not None:
            check = TreeCheck(tree, offset, at.lead, size, at.closer, not at.whole[1], early, lexical)
        tidy = at.tidy if instead is not None else Tidy(prefix, suffix, language, at.rule, at.lead)
        return SuffixGate(
            self._engine.vocabulary,
            suffix,
            at.position.state.copy() if at.position.state is not None else None,
            second_judge(language, prefix, suffix, len(at.lead), all(at.whole), check, lexical, lost),
            lambda generated: [each for each in at.tidy.variants(generated) if tidy.may_fit(each)],
            at.position.outside,
            whole=at.to_the_end,
            nothing=at.lead,
            sound=partial(sound, tree, language, prefix + suffix, check) if tree is not None else None,
            # Where macros make declarations, hardly anything tells one that ends too early from a whole one.
            closes=not language.preprocessed or (at.around is not None and not at.around.definitions),
            instead=instead,
        )

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


def _nests_deeply(tree: SyntaxTree | None, language: Language, text: str) -> bool:
    """Whether ``text`` takes llguidance too long, see ``DEEPEST_FED``; without a tree, a long statement may."""
    if tree is not None:
        return tree.nests_deeper(len(text), DEEPEST_FED)
    if language.brackets != "always" or language.data or not _has_long_statement(text):
        return False
    code = tokens(language).sub(lambda found: "" if found.lastgroup else found[0], text)
    return _has_long_statement("".join(code.split()))


def _has_long_statement(code: str) -> bool:
    return max(map(len, _STATEMENTS.split(code))) > 2 * DEEPEST_FED


class Grammars:
    """Compiled grammars by name, start symbol and levels."""

    def __init__(self, engine: Generating) -> None:
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
