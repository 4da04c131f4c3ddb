"""What may be done with the text of a file: complete and learn it, show it for other files, write it to the disk."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from codespec.paths import folder_of
from codespec.privacy.budget import private_when_spent
from codespec.privacy.ignore_files import GIT, OWN, IgnoreFiles
from codespec.privacy.secrets import has_secret_name, holds_manifest, is_secret
from codespec.recent import Recent
from codespec.text_difference import common_ends

WHOLE = 16_000
"""Characters of a text that is searched whole whenever it has changed; of a longer one what has changed."""
AROUND = 2_000
"""Characters on both sides of a change that are searched with it."""
AROUND_LINES = 32
"""Lines around a part of a document that are searched for secrets with it."""
RECHECK_S = 2.0
"""How long a text that held a secret is taken to hold one still."""
DOCUMENTS = 64
"""Whose last text is kept, to see what has changed."""

_ENDS = ('"', "'", "`", "@host", '@host"', "host", 'host"', "</a>", "/a>", '"}')
"""What may end a value that is being typed: quotes, the host of an address, a tag."""
_OPEN_QUOTE = re.compile(r"^([^\n\"'`]*)([\"'`])([^\n\"'`]{3,})$", re.MULTILINE)  # a value that is being typed


@dataclass(frozen=True)
class _Searched:
    """A text that was searched, and what was found then."""

    text: str
    secret: bool
    at: float


class PublicFiles:
    """Answers for files and documents, by their names and texts. Not for two threads at a time.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._git, self._own = IgnoreFiles(GIT, clock), IgnoreFiles(OWN, clock)
        self._searched: Recent[str, _Searched] = Recent(DOCUMENTS)

    def why_private(self, name: str, path: Path | None, folder: Path | None, has_token: bool) -> str:
        """Why a document must be neither completed nor learnt, in words for its user; empty where it may be.

        Args:
            name: file name or URI.
            path: of the file, links resolved; None where it is on no disk.
            folder: the workspace folder, links resolved; None for none.
            has_token: whether the document ``holds_token``, which whoever sees its changes knows without a search.
        """
        if has_secret_name(name) or (path is not None and has_secret_name(path.as_posix())):
            return "files of that name hold secrets"
        if has_token:
            return "it holds a private key, an access token or a password"
        if path is not None and self._own.excludes(path, folder):
            return f"{OWN} excludes it"
        return ""

    def may_show(self, path: Path, folder: Path) -> bool:
        """Whether text of a file may be shown in prompts of a workspace folder, as far as its name tells; which parts
        of the text, ``public_parts`` says.

        Args:
            path: absolute, links resolved, as in ``folder``.
        """
        return path.is_relative_to(folder) and not has_secret_name(path.as_posix()) and not self._ignores(path, folder)

    def may_keep(self, path: str, workspace: str, text: str) -> bool:
        """Whether a text may be written to the disk: it holds no secrets, and its workspace does not ignore the file.

        Args:
            path: file name or URI.
            workspace: folder or URI; may be empty.
        """
        folder, file, real = folder_of(workspace), folder_of(path), path
        if file is not None and file.is_absolute():
            real = os.path.realpath(file)
            if folder is not None:
                place = Path(os.path.realpath(folder))
                if has_secret_name(real) or self._ignores(Path(real), place):
                    return False
        return not self._is_secret(path, real, text)

    def may_send(self, path: str, workspace: str, text: str, offset: int) -> bool:
        """Whether a text may leave the machine: what may not be kept may not, nor what holds a value that is being
        typed and of which only the end is missing.

        Args:
            path, workspace: as for ``may_keep``.
            offset: of the cursor.
        """
        return self.may_keep(path, workspace, text) and not is_being_typed(path, text, offset)

    def _ignores(self, path: Path, folder: Path) -> bool:
        return self._git.excludes(path, folder) or self._own.excludes(path, folder)

    def _is_secret(self, path: str, real: str, text: str) -> bool:
        """``is_secret`` of a document that was another one before, under its own name and under that of what it leads
        to: rules differ between languages, and a link may be called as it likes."""
        old, now = self._searched.get(path), self._clock()
        if old is not None and (old.text == text or (old.secret and now - old.at < RECHECK_S)):
            return old.secret
        changed = text if old is None or old.secret or len(text) <= WHOLE else changed_part(old.text, text)
        names = (real,) if Path(real).name == Path(path).name else (path, real)
        found = any(is_secret(name, changed) or holds_manifest(name, text) for name in names)
        self._searched[path] = _Searched(text, found, now)
        return found


@private_when_spent
def is_being_typed(path: str, text: str, offset: int) -> bool:
    """Whether a text would hold a secret if what is open in it ended."""
    closed, count = _OPEN_QUOTE.subn(r"\1\2\3\2", text)
    if count and is_secret(path, closed):
        return True
    before, after = text[max(0, offset - AROUND) : offset], text[offset : offset + AROUND]
    return any(is_secret(path, before + end + after) for end in _ENDS)


def changed_part(old: str, new: str) -> str:
    """The lines of ``new`` that are not in ``old`` at the same place, with what stands around them."""
    start, behind = common_ends(old, new)
    begin = new.rfind("\n", 0, max(0, start - AROUND)) + 1
    end = new.find("\n", len(new) - behind + AROUND)
    return new[begin : end if end >= 0 else len(new)]


def public_parts(name: str, lines: Sequence[str], parts: Sequence[range]) -> list[range]:
    """Those parts of a document in which no secret is seen with the lines around them: what tells one may stand before
    the part that holds it.

    Args:
        name: of the file.
        lines: of all of the document, with their ends.
        parts: row numbers; one at least.
    """
    if holds_manifest(name, "".join(lines)):
        return []
    public: list[range] = []

    def secret(start: int, stop: int) -> bool:
        text = "".join(lines[max(0, start - AROUND_LINES) : stop + AROUND_LINES])
        closed, count = _OPEN_QUOTE.subn(r"\1\2\3\2", text)
        return is_secret(name, text) or (count > 0 and is_secret(name, closed))

    @private_when_spent
    def all_searched() -> bool:
        """Whether the parts that are public are all known, or time is over."""
        if not secret(min(each.start for each in parts), max(each.stop for each in parts)):
            public.extend(parts)
        else:
            public.extend(each for each in parts if not secret(each.start, each.stop))
        return True

    all_searched()
    return public
