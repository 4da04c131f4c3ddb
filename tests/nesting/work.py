"""All that is done with a document of an editor, through the ways in that servers use."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cached_property
from types import SimpleNamespace

from codespec.completion.ending.mended import mended
from codespec.completion.open_documents import OpenDocuments
from codespec.early_errors import TooMuchToJudge
from codespec.edits.renames import rest_of_rename
from codespec.edits.request import EditRequest, RecentEdit
from codespec.edits.soundness import Soundness
from codespec.grammar.tokenizer import byte_tokenizer
from codespec.languages import by_id
from codespec.patience import OutOfTime
from codespec.privacy.public_files import PublicFiles
from codespec.privacy.secrets import is_secret
from codespec.syntax.names import Outliner
from codespec.syntax.occurrences import occurrences
from codespec.syntax.parsing import TooMuchToParse
from codespec.syntax.tree import syntax_tree, well_formed
from codespec.syntax.uses import Uses

ADDED = " + 2"


class Bytes:
    """A vocabulary of bytes; token 256 ends."""

    size, end_tokens = 257, frozenset({256})

    @staticmethod
    def tokenize(text: str, special: bool = False) -> list[int]:
        return list(text.encode())

    @staticmethod
    def token_bytes(token: int) -> bytes:
        return bytes([token]) if token < 256 else b""


class Document:
    """A document and a place in it. Each piece of work is a method without arguments."""

    def __init__(self, language: str, text: str, offset: int) -> None:
        self.id, self.language, self.text, self.offset = language, by_id(language), text, offset
        self.out_of_time = False
        self.path = "a" + (self.language.suffixes[0] if self.language.suffixes else "")

    @cached_property
    def tree(self):
        return syntax_tree(self.language, self.text)

    def syntax(self) -> None:
        """What is asked of the tree of a document at a position."""
        tree = self.tree
        if tree is not None:
            for offset in {0, self.offset, len(self.text)}:
                tree.context_at(offset)
                tree.part_at(offset)
                tree.tokens(offset, 1000)
                list(tree.starts(offset))
            tree.problems_elsewhere(self.offset, 1000)
            mended(self.text, self.offset, tree.brackets, self.language, closes=2)

    def gate(self, grammar: str = "none", gate: str = "window") -> None:
        """What a completion asks before, and of a text, as long as there is time."""
        try:
            self._gate(grammar, gate)
        except OutOfTime:
            self.out_of_time = True

    def _gate(self, grammar: str, gate: str) -> None:
        engine = SimpleNamespace(vocabulary=Bytes(), grammar_state=lambda rules: rules.state(byte_tokenizer()))
        context = OpenDocuments(engine).context_at(self.path, self.language, grammar, self.text, self.offset, gate)
        if context.gate is not None:
            for text in (context.lead, context.lead + ADDED, context.lead + ADDED + "\n"):
                context.gate.fit(text)
                context.gate.no_worse(text)
            context.gate.close(context.lead + ADDED + " * (")
        context.rule.cut(context.lead + ADDED + "\n")
        context.tidy.first(context.lead + ADDED)

    def grammar(self) -> None:
        """The same with the grammar of the language."""
        self.gate("auto", "whole")

    def early(self) -> None:
        """What the compiler refuses early."""
        if self.tree is not None:
            with contextlib.suppress(TooMuchToJudge):
                self.tree.all_early_errors(self.language, self.path)
            early = self.tree.early_errors(self.language, self.offset, self.path)
            with contextlib.suppress(TooMuchToParse):
                self.tree.with_text(self.offset, ADDED).early_errors_added(early)

    def names(self) -> None:
        """Names, calls, imports and definitions."""
        Outliner().read(self.text, self.language)
        occurrences(self.language, self.text.encode())
        uses = Uses(self.language, self.text)
        uses.of([self.offset, len(self.text) // 2], 1, self.offset)

    def formed(self) -> None:
        """What the parser of the language's makers says."""
        well_formed(self.language, self.text)

    def edits(self) -> None:
        """Whether an edit makes it worse."""
        new = self.text[: self.offset] + ADDED + self.text[self.offset :]
        Soundness().why_worse(self.path, self.language, self.text, new)

    def renames(self) -> None:
        """The rest of a rename that was begun in the first line."""
        head = "let b = a;\n" if self.id.startswith(("javascript", "typescript")) else "b = a\n"
        text = head + self.text
        edit = RecentEdit(self.path, 0, head.replace("b", "a"), head)
        request = EditRequest(self.path, self.id, text, 4, (edit,))
        rest_of_rename(request)

    def secrets(self) -> None:
        """Whether it holds one."""
        is_secret(self.path, self.text)
        PublicFiles().why_private(self.path, None, None, True)


WORK: dict[str, Callable[[Document], None]] = {
    name: getattr(Document, name)
    for name in ("syntax", "gate", "grammar", "early", "names", "formed", "edits", "renames", "secrets")
}
