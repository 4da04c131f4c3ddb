"""Whether a document is no worse after an edit: judged by parses of all of it, never by a tree that was patched."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial

from codespec.early_errors import TooMuchToJudge
from codespec.languages import Language
from codespec.recent import Recent
from codespec.syntax.macros import default
from codespec.syntax.tree import NO_PROBLEMS, Problems, SyntaxTree, syntax_tree, well_formed

KEPT = 8
"""Documents whose verdict is remembered: the same one is judged for every offer in it."""
_BRACKETS = "()[]{}"


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a document.

    Attributes:
        problems: that tree-sitter sees.
        early: what a compiler refuses, by kind; none where the parser finds errors, which hide them.
        formed: whether the parser of the language's makers takes it.
        brackets: without a parser, how many more open than close, of each kind.
        judged: whether that is all; False where the document takes too long.
    """

    problems: Problems = NO_PROBLEMS
    early: tuple[tuple[str, int], ...] = ()
    formed: bool = True
    brackets: tuple[int, ...] = ()
    judged: bool = True


class Soundness:
    """Judges documents. For one thread."""

    def __init__(self) -> None:
        self._known: Recent[tuple[str, str, str], Verdict] = Recent(KEPT)

    def why_worse(self, path: str, language: Language, old: str, new: str) -> str:
        """In what the ``new`` text of a document is worse than the ``old`` one; empty where it is not."""
        after = verdict(path, language, new)
        if after == Verdict():
            return ""
        if not after.judged:
            return "cannot be judged"
        key = (path, language.id, old)
        before = self._known.use(key)
        if before is None:
            before = self._known[key] = verdict(path, language, old)
        if not after.problems.no_worse_than(before.problems) or after.brackets != before.brackets:
            return "parses worse"
        if before.formed and not after.formed:
            return "parses worse"
        known = Counter(dict(before.early))
        # What was hidden by errors that are mended now is nothing new.
        mended = before.problems.count > after.problems.count
        if not mended and any(count > known[kind] for kind, count in after.early):
            return "compiles worse"
        return ""


def verdict(path: str, language: Language, text: str) -> Verdict:
    """What is wrong with a document."""
    tree = _tree(language, text)
    if tree is None:
        counts = [text.count(sign) for sign in _BRACKETS]
        return Verdict(brackets=tuple(counts[at] - counts[at + 1] for at in range(0, len(counts), 2)))
    try:
        early = Counter(error.kind for error in tree.all_early_errors(language, path))
    except TooMuchToJudge:
        return Verdict(tree.problems, judged=False)
    return Verdict(tree.problems, tuple(early.items()), well_formed(language, text))


def _tree(language: Language, text: str) -> SyntaxTree | None:
    if not language.preprocessed:
        return syntax_tree(language, text)
    return syntax_tree(language, text, partial(default(text.encode("utf-8", "replace")), cursor=-1))
