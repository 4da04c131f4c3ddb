"""What a completer is asked and what it answers, apart from it: a language server without models needs no more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codespec.completion.trace import Pass
    from codespec.protocols import FinishReason, Round, Snippet


@dataclass(frozen=True)
class Request:
    """Where a completion is wanted.

    Attributes:
        text: the whole document, or what lies around the cursor of a very large one.
        offset: of the cursor, in characters of ``text``.
        language: LSP identifier.
        path: file name or URI, may be empty.
        count: how many different completions are wanted at most.
        max_tokens: None follows the settings.
        workspace: folder or URI of the workspace, what was learnt in which may speed things up; empty is none.
        context: pieces of other files, those first that change least between requests: their KV is reused.
        begins, ends: whether ``text`` begins where the document does, and ends there.
        draft, grammar: take the place of the settings of the language; empty follows them.
        ahead: nobody waits for it yet, and whatever somebody does wait for goes first.
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
        """The text with ``\\n`` as its line ends, and the cursor's offset in it."""
        return self.text.replace("\r\n", "\n"), self.offset - self.text.count("\r\n", 0, self.offset)


@dataclass(frozen=True)
class Completion:
    """A text to insert at the cursor, and how it came about.

    Attributes:
        text: after stop rules and trimming; may be empty.
        finish_reason: why it ends where it ends.
        rounds: the passes of the target, in order, before any trimming.
        backed_up: how many characters before the cursor the rounds begin with; they are not part of ``text``.
        passes: the rounds as texts, for those who have no vocabulary.
        report: the fields of ``--json`` other than the first two.
    """

    text: str
    finish_reason: FinishReason
    rounds: tuple[Round, ...]
    report: dict[str, Any]
    backed_up: int = 0
    passes: tuple[Pass, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {"text": self.text, "finish_reason": self.finish_reason, **self.report}

    def without(self, lead: str) -> Completion:
        """Without ``lead``, which the document has before the cursor already; of blanks alone nothing."""
        shown = self
        if lead:
            text = self.text[len(lead) :] if self.text.startswith(lead) else ""
            report = self.report
            if not text and report["gate"] == "cut":
                report = {**report, "gate": "dropped"}  # nothing was left of what was generated
            shown = replace(self, text=text, report=report, backed_up=len(lead))
        return shown if shown.text.strip() else replace(shown, text="")


def plain(text: str) -> str:
    r"""``text`` with ``\n`` as its line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
