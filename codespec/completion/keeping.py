"""Whose text may be written to the disk."""

from __future__ import annotations

import os
from pathlib import Path

from codespec.ignore import GIT, OWN, IgnoreFiles
from codespec.places import folder_of
from codespec.privacy import is_secret


class PublicFiles:
    """Answers for documents, by their names and texts. Not for two threads at a time."""

    def __init__(self) -> None:
        self._ignored = IgnoreFiles(GIT), IgnoreFiles(OWN)

    def may_keep(self, path: str, workspace: str, text: str) -> bool:
        """Whether a text holds no secrets, and its workspace does not ignore the file.

        Args:
            path: file name or URI.
            workspace: folder or URI; may be empty.
        """
        folder, file = folder_of(workspace), folder_of(path)
        if folder is not None and file is not None and file.is_absolute():
            place, file = Path(os.path.realpath(folder)), Path(os.path.realpath(file))
            if any(each.excludes(file, place) for each in self._ignored) or is_secret(str(file), ""):
                return False
        return not is_secret(path, text)
