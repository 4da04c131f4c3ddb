"""Writes accepted completions to the disk, where the settings ask for that (``keep_accepted``)."""

from __future__ import annotations

import logging
import secrets
import time
from typing import TYPE_CHECKING

from codespec.completion.prompt.prompt import file_name
from codespec.draft.storage.accepted_texts import TEXT, AcceptedText, accepted_folder, around, forget, keep
from codespec.draft.storage.token_log import workspace_key
from codespec.errors import CodespecError
from codespec.paths import folder_of
from codespec.privacy.public_files import PublicFiles

if TYPE_CHECKING:
    from pathlib import Path

    from codespec.completion.request import Request

logger = logging.getLogger(__name__)


class AcceptedLog:
    """The accepted completions of a session. For one thread, except ``enabled``.

    Attributes:
        enabled: whether completions are written.
    """

    def __init__(self) -> None:
        self.enabled = False
        self._files = PublicFiles()
        self._session = secrets.token_hex(8)
        self._complained = False
        self._forgotten: set[tuple[Path, str]] = set()

    def accepted(self, identifier: str, request: Request, text: str) -> None:
        """Keep that ``text``, the beginning of a completion or all of it, was accepted; not of a file outside any
        workspace, that is ignored, or that holds secrets: of such a file what was kept before is forgotten. What goes
        wrong is logged once."""
        folder = folder_of(request.workspace)
        if not self.enabled or folder is None or not text.strip():
            return
        before, behind = request.text[: request.offset], request.text[request.offset :]
        if not self._may_keep(folder, request, before + text + behind):
            return
        prefix, suffix = around(request.text, request.offset)
        offer = f"{self._session}-{identifier}"
        key, name = workspace_key(folder), file_name(request.path)
        try:
            keep(AcceptedText(time.time(), offer, key, request.language, name, prefix, text[:TEXT], suffix))
        except UnicodeEncodeError:
            pass  # half a character, which no model reads
        except OSError as error:
            if not self._complained:
                self._complained = True
                logger.warning("what was accepted is not kept: %s", error)

    def seen(self, request: Request) -> None:
        """Look at a document as it is now: if it holds secrets, the completions accepted in it are deleted."""
        folder = folder_of(request.workspace)
        if folder is not None and (self.enabled or accepted_folder().exists()):
            self._may_keep(folder, request, request.text)

    def _may_keep(self, folder: Path, request: Request, text: str) -> bool:
        """Whether completions in a document with this text may be kept; deletes earlier ones where that has changed."""
        name = folder, request.path
        if self._files.may_keep(request.path, request.workspace, text):
            self._forgotten.discard(name)
            return True
        if name not in self._forgotten:
            self.forget(*name)
            self._forgotten.add(name)
        return False

    def forget(self, folder: Path, path: str) -> None:
        """Delete the completions accepted in files of a name, in any session; failures are logged."""
        try:
            forget(folder, path=file_name(path))
        except CodespecError as error:
            logger.warning("%s", error)
