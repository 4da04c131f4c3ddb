"""Documents of one workspace folder and their surroundings, without a server."""

from __future__ import annotations

import os
import time
from pathlib import Path

from lsprotocol import types

from codespec.lsp.workspace.documents import Document
from codespec.lsp.workspace.surroundings import Surroundings

TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


def text(topic: str, count: int = 200) -> str:
    return "".join(f"{topic}_{number} = make_{topic}({number})\n" for number in range(count))


class Session:
    """Documents of one workspace folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.now = 100.0
        self.surroundings = Surroundings(lambda: self.now)

    def document(self, name: str, source: str = "") -> Document:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        return Document(path.as_uri(), source, 1, "python")

    def open(self, name: str, source: str = "") -> Document:
        document = self.document(name, source or text(Path(name).stem))
        self.surroundings.opened(document, str(self.folder))
        return document

    def visit(self, document: Document, row: int) -> None:
        self.surroundings.visited(document, row, str(self.folder))

    def shown(self, document: Document, row: int = 0) -> list[str]:
        found = self.surroundings.context(document, row, str(self.folder))
        return [f"{each.path} {each.text.split()[0]}" for each in found]

    def private(self, document: Document) -> str:
        return self.surroundings.private(document, str(self.folder))

    def change(self, document: Document, row: int, new: str, old: int = 0) -> None:
        at = types.Range(types.Position(row, 0), types.Position(row, old))
        change = types.TextDocumentContentChangePartial(at, new)
        document.apply_change(change)
        self.surroundings.changed(document, str(self.folder), [change])


def wait(condition) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)
