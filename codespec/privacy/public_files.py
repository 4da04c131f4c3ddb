"""Whose text may be written to the disk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from codespec.paths import folder_of
from codespec.privacy.ignore_files import GIT, OWN, IgnoreFiles
from codespec.privacy.secrets import holds_manifest, is_secret
from codespec.recent import Recent
from codespec.text_difference import common_ends

WHOLE = 16_000
"""Characters of a text that is searched whole whenever it has changed; of a longer one what has changed."""
AROUND = 2_000
"""Characters on both sides of a change that are searched with it."""
RECHECK_S = 2.0
"""How long a text that held a secret is taken to hold one still."""
DOCUMENTS = 64
"""Whose last text is kept, to see what has changed."""


@dataclass(frozen=True)
class _Searched:
    """A text that was searched, and what was found then."""

    text: str
    secret: bool
    at: float


class PublicFiles:
    """Answers for documents, by their names and texts. Not for two threads at a time."""

    def __init__(self) -> None:
        self._ignored = IgnoreFiles(GIT), IgnoreFiles(OWN)
        self._searched: Recent[str, _Searched] = Recent(DOCUMENTS)

    def may_keep(self, path: str, workspace: str, text: str) -> bool:
        """Whether a text holds no secrets, and its workspace does not ignore the file.

        Args:
            path: file name or URI.
            workspace: folder or URI; may be empty.
        """
        folder, file, real = folder_of(workspace), folder_of(path), path
        if file is not None and file.is_absolute():
            real = os.path.realpath(file)
            if folder is not None:
                file, place = Path(real), Path(os.path.realpath(folder))
                if any(each.excludes(file, place) for each in self._ignored) or is_secret(real, ""):
                    return False
        return not self._is_secret(path, real, text)

    def _is_secret(self, path: str, real: str, text: str) -> bool:
        """``is_secret`` of a document that was another one before, under its own name and under that of what it leads
        to: rules differ between languages, and a link may be called as it likes."""
        old, now = self._searched.get(path), monotonic()
        if old is not None and (old.text == text or (old.secret and now - old.at < RECHECK_S)):
            return old.secret
        changed = text if old is None or old.secret or len(text) <= WHOLE else _changed(old.text, text)
        names = (real,) if Path(real).name == Path(path).name else (path, real)
        found = any(is_secret(name, changed) or holds_manifest(name, text) for name in names)
        self._searched[path] = _Searched(text, found, now)
        return found


def _changed(old: str, new: str) -> str:
    """The lines of ``new`` that are not in ``old`` at the same place, with what stands around them."""
    start, behind = common_ends(old, new)
    begin = new.rfind("\n", 0, max(0, start - AROUND)) + 1
    end = new.find("\n", len(new) - behind + AROUND)
    return new[begin : end if end >= 0 else len(new)]
