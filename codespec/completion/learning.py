"""Which texts the drafts' n-grams learn: whole lines, no secrets, each workspace apart from the others."""

from __future__ import annotations

import logging
from time import monotonic

from codespec.draft.ngram import BREAK
from codespec.draft.ngram_store import CONTEXT
from codespec.engine.engine import Drafting, KeptPrompts, TextVocabulary
from codespec.line_ends import line_feeds
from codespec.paths import folder_of
from codespec.privacy.public_files import PublicFiles
from codespec.protocols import CodespecError
from codespec.recent import Recent

EVERY_S = 4.0
"""Seconds between two times that a document is learnt while it is edited."""
MOST_KEPT = 256
"""Documents that are remembered as written to the disk."""
MOST_CHARACTERS = 400_000
"""Characters of one document that are learnt; the rest is not."""
FOLLOWING = 8
"""Tokens after the cursor that n-grams do not propose: the document has them already."""

_log = logging.getLogger(__name__)


class WorkspaceLearner:
    """Feeds documents and accepted completions to the n-grams of an engine, for each workspace and language.

    Args:
        vocabulary, drafts, prompts: the engine's.
        enabled: False: nothing is learnt, and n-grams learnt earlier are not used.
    """

    def __init__(
        self, vocabulary: TextVocabulary, drafts: Drafting, prompts: KeptPrompts, enabled: bool = True
    ) -> None:
        self._vocabulary, self._drafts, self._prompts = vocabulary, drafts, prompts
        self._enabled = enabled
        self._learnt_at: dict[tuple[str, str], float] = {}
        self._kept: Recent[tuple[str, str], None] = Recent(MOST_KEPT)
        self._public = PublicFiles()

    def use(self, workspace: str, language: str, suffix: str) -> None:
        """Draft the next generation with the n-grams of a workspace and language, too.

        Args:
            suffix: the text after the cursor.
        """
        if not self._enabled or not self._drafts.learns:
            return self._drafts.use_learnt()
        following = self._vocabulary.tokenize(suffix[: 16 * FOLLOWING])[:FOLLOWING]
        return self._drafts.use_learnt(self._drafts.learnt.of(folder_of(workspace), language), following)

    def learn(self, text: str, path: str, language: str, workspace: str, offset: int | None = None) -> None:
        """As ``Completer.learn``."""
        if not self._enabled or (offset is not None and not self._is_due(workspace, path)):
            return
        persist = self.may_keep(path, workspace, text)  # first: it may forget what the workspace taught
        if not self._drafts.learns:
            return
        if persist:
            self._note(path, workspace)
        learnt = self._drafts.learnt.of(folder_of(workspace), language)
        learnt.document(path, self._tokens(text, offset), persist=persist)
        learnt.flush()

    def accepted(self, before: str, text: str, path: str, language: str, workspace: str) -> None:
        """Learn that ``text`` was accepted after ``before``."""
        if not self._enabled or not self._drafts.learns or not text.strip():
            return
        tokenize = self._vocabulary.tokenize
        before, text = line_feeds(before), line_feeds(text)
        context = tokenize(before[-16 * CONTEXT :])[-CONTEXT:]
        learnt = self._drafts.learnt.of(folder_of(workspace), language)
        learnt.accepted(context, tokenize(text), persist=self._public.may_keep(path, workspace, before + text))
        learnt.flush()

    def forget(self, workspace: str) -> None:
        """Delete the n-grams and the KV caches of a workspace.

        Raises:
            CodespecError: a file cannot be deleted.
        """
        self._drafts.use_learnt()
        self._drafts.learnt.forget(folder_of(workspace))
        self._learnt_at.clear()
        self._kept.clear()
        try:
            self._prompts.forget(workspace)
        except OSError as error:
            raise CodespecError(f"what was read in {workspace} cannot be deleted: {error}") from error

    def may_keep(self, path: str, workspace: str, text: str) -> bool:
        """Whether the text of a document may be written to the disk.

        If it was written earlier, in this session or another one, and a secret in it is recognised only now, all that
        the disk holds of the workspace is deleted.
        """
        if self._public.may_keep(path, workspace, text):
            if self._prompts.lasting:
                self._note(path, workspace)
            return True
        if (workspace, path) in self._kept or self._was_noted(path, workspace):
            self._purge(workspace)
        return False

    def _note(self, path: str, workspace: str) -> None:
        key = workspace, path
        if key in self._kept:
            return
        self._kept[key] = None
        folder, file = folder_of(workspace), folder_of(path)
        if folder is not None and file is not None:
            try:
                self._drafts.learnt.note(folder, file)
            except OSError as error:
                _log.warning("it is not remembered that something of %s is kept: %s", path, error)

    def _was_noted(self, path: str, workspace: str) -> bool:
        folder, file = folder_of(workspace), folder_of(path)
        return folder is not None and file is not None and self._drafts.learnt.noted(folder, file)

    def _purge(self, workspace: str) -> None:
        self._drafts.forget_generated()
        try:
            self.forget(workspace)
        except CodespecError as error:
            _log.warning("what was kept of %s cannot be deleted: %s", workspace, error)

    def _is_due(self, workspace: str, path: str) -> bool:
        now, key = monotonic(), (workspace, path)
        if now - self._learnt_at.get(key, float("-inf")) < EVERY_S:
            return False
        self._learnt_at = {each: then for each, then in self._learnt_at.items() if now - then < EVERY_S}
        self._learnt_at[key] = now
        return True

    def _tokens(self, text: str, offset: int | None) -> list[int]:
        """The tokens of a text; of one that is being edited without the cursor's line, which is unfinished."""
        tokenize = self._vocabulary.tokenize
        if offset is None:
            return tokenize(line_feeds(text[:MOST_CHARACTERS]))
        start, end = text.rfind("\n", 0, offset) + 1, text.find("\n", offset)
        before = text[:start][-MOST_CHARACTERS // 2 :]
        after = text[end:][: MOST_CHARACTERS // 2] if end >= 0 else ""
        return [*tokenize(line_feeds(before)), BREAK, *tokenize(line_feeds(after))]
