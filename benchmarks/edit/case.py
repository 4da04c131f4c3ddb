"""Cases: a document in which an edit was just made, and the document with the next one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codespec.edits.lines import lines_of
from codespec.edits.request import EditRequest, RecentEdit
from codespec.protocols import CodespecError


@dataclass(frozen=True)
class Case:
    """One case, a line of a file of JSON.

    Attributes:
        kind: ``rename``, ``parameter``, ``real``, ``none``, …
        package: that the document is from.
        text: the document now.
        offset: of the cursor, in characters.
        recent: the edits made before, the most recent last.
        updated: the document after the next edits near the cursor; ``text`` where none is due.
    """

    kind: str
    package: str
    path: str
    language: str
    text: str
    offset: int
    recent: tuple[RecentEdit, ...]
    updated: str

    def request(self, budget_ms: float) -> EditRequest:
        """What an editor would ask."""
        return EditRequest(self.path, self.language, self.text, self.offset, self.recent, budget_ms=budget_ms)


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file.

    Raises:
        CodespecError: it cannot be read, or a line is no case; the message names it.
    """
    try:
        lines = lines_of(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CodespecError(f"{path}: cannot be read ({error})") from None
    for number, line in enumerate(lines, 1):
        try:
            yield _case(json.loads(line))
        except (ValueError, TypeError, KeyError) as error:
            raise CodespecError(f"{path}:{number}: no case ({type(error).__name__}: {error})") from None


def _case(data: dict[str, Any]) -> Case:
    recent = tuple(RecentEdit(**each) for each in data["recent"])
    fields = ("kind", "package", "path", "language", "text", "offset", "updated")
    return Case(**{name: data[name] for name in fields}, recent=recent)
