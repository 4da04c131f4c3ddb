"""Requests and completions, apart from the completer: a language server whose models are elsewhere needs no more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from codespec.line_ends import CRLF, line_feeds

if TYPE_CHECKING:
    from codespec.completion.trace import Pass
    from codespec.protocols import FinishReason, Round, Snippet


@dataclass(frozen=True)
class Request:
    """Where a completion is wanted.

    Attributes:
        text: the whole document, or of a very large one the part around the cursor.
        offset: of the cursor, in characters of ``text``.
        language: LSP identifier.
        path: file name or URI, may be empty.
        count: how many different completions are wanted at most.
        max_tokens: None follows the settings.
        workspace: folder or URI of the workspace, whose n-grams the drafts use; empty is none.
        context: snippets of other files, those first that change least between requests: their KV cache is reused.
        begins, ends: whether ``text`` begins where the document does, and ends there.
        draft, grammar: override the settings of the language; empty follows them.
        ahead: a prefetch: nobody waits for it yet, and every request that somebody waits for goes first.
    """

    text: str
    offset: int
    language: str
    path: str = ""
    count: int = 1
    max_tokens: int | None = None
    workspace: str = ""
    context: tuple[Snippet, ...] = ()
    begins: bool = True
    ends: bool = True
    draft: str = ""
    grammar: str = ""
    ahead: bool = False

    def normalized(self) -> tuple[str, int]:
        """The text with ``\\n`` as its line ends and no byte order mark, and the cursor's offset in it."""
        text, offset = line_feeds(self.text), self.offset - self.text.count(CRLF, 0, self.offset)
        # No grammar takes the mark, which is part of the file and not of its text.
        return (text[1:], max(0, offset - 1)) if text.startswith("\ufeff") else (text, offset)


@dataclass(frozen=True)
class Completion:
    """A text to insert at the cursor, and the record of its generation.

    Attributes:
        text: after stop rules and trimming; may be empty.
        finish_reason: why the generation ended.
        rounds: the target calls, in order, before any trimming.
        backed_up: the length of the lead, in characters: the rounds begin so far before the cursor, ``text`` does not.
        passes: the rounds as texts, for clients without the vocabulary.
        report: the fields of ``--json`` other than the first two.
        broken_line: of a text that was dropped, the line behind the cursor, 0 its own, that it would leave broken.
        invented: the name that a text was dropped for, which nothing defines.
    """

    text: str
    finish_reason: FinishReason
    rounds: tuple[Round, ...]
    report: dict[str, Any]
    backed_up: int = 0
    passes: tuple[Pass, ...] = ()
    broken_line: int | None = None
    invented: str = ""

    def as_json(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {"text": self.text, "finish_reason": self.finish_reason, **self.report}

    def without(self, lead: str) -> Completion:
        """The completion without ``lead``, which the document already has before the cursor; blanks alone become ""."""
        shown = self
        if lead:
            text = self.text[len(lead) :] if self.text.startswith(lead) else ""
            report = self.report
            if not text and report["gate"] == "cut":
                report = {**report, "gate": "dropped"}  # nothing was left of what was generated
            shown = replace(self, text=text, report=report, backed_up=len(lead))
        return shown if shown.text.strip() else replace(shown, text="")
