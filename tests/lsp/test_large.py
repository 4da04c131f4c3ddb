"""Documents of megabytes: what a key costs does not grow with them."""

from __future__ import annotations

import random
import tracemalloc
from itertools import pairwise

import pytest
from lsprotocol import types

from codespec.completion.cache import CompletionCache
from codespec.lsp.items import to_request
from codespec.lsp.workspace.documents import AFTER, BEFORE, LARGE, Document

from .stub_server import completion

LINE = "x = 1 + 2 + 3  # a line of fifty characters or so\n"
MEGABYTES = 5_000_000


def insert(document: Document, row: int, column: int, text: str) -> tuple[int, int]:
    """Put text in; where the cursor is then."""
    at = types.Position(row, column)
    change = types.TextDocumentContentChangePartial(types.Range(at, at), text)
    document.apply_change(change)
    return document.end_of_change(change)


def peak_of_three_keys(where: float) -> int:
    """Bytes that three keys at a place of a document of five megabytes needed at a time."""
    document = Document("file:///a.py", LINE * (MEGABYTES // len(LINE)), 1, "python")
    row, column = int(where * (len(document.lines) - 1)), 0
    cache = CompletionCache()
    cache.store("a", to_request(document, document.excerpt(row, column), "a.py"), [completion("yyyyy")])
    tracemalloc.start()
    try:
        for _ in range(3):
            row, column = insert(document, row, column, "y")
            request = to_request(document, document.excerpt(row, column), "a.py")
            assert cache.find("a", request)
            assert request.text[: request.offset].endswith("y" * column)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(request.text) <= 2 * (BEFORE + AFTER)
    return peak


@pytest.mark.parametrize("where", [0.0, 0.5, 1.0])
def test_a_key_handles_kilobytes_of_five_megabytes(where):
    # What a thread of another test allocates meanwhile is counted, too.
    peaks = [peak_of_three_keys(where) for _ in range(3)]
    assert min(peaks) < 1_500_000, "bytes that all of it needed at a time"


@pytest.mark.parametrize(
    "text",
    [
        LINE * (MEGABYTES // len(LINE)),
        "x" * MEGABYTES,
        ("y" * 30_000 + "\n") * 20,
        ("short\n" * 100 + "z" * 300_000 + "\n") * 5,
        "\n" * LARGE * 2,
    ],
    ids=["lines", "one line", "long lines", "mixed", "empty lines"],
)
def test_an_excerpt_is_the_document_around_the_place(text):
    document = Document("file:///a.py", text, 1, "python")
    chance = random.Random(4)
    lines = document.lines
    for _ in range(30):
        row = chance.randrange(len(lines))
        column = chance.randrange(len(lines[row].rstrip("\n")) + 1)
        offset = sum(map(len, lines[:row])) + column
        found = document.excerpt(row, column)
        start = offset - found.offset
        assert text[start : start + len(found.text)] == found.text
        assert len(found.text) <= 2 * (BEFORE + AFTER)
        assert found.begins is (start == 0)
        assert found.ends is (start + len(found.text) == len(text))
        long = max(map(len, lines)) > AFTER  # then a whole line more may not fit
        assert found.begins or found.offset >= BEFORE or long
        assert found.ends or len(found.text) - found.offset >= AFTER or long


def test_typing_moves_neither_end_of_an_excerpt():
    document = Document("file:///a.py", LINE * 100_000, 1, "python")
    row, column = 50_000, 0
    beginnings, suffixes = [], []
    for number in range(300):
        row, column = insert(document, row, column, "\n" if number % 10 == 9 else "y")
        found = document.excerpt(row, column)
        beginnings.append(found.offset)
        suffixes.append(found.text[found.offset :])
    assert len(set(suffixes)) == 1
    steps = [later - earlier for earlier, later in pairwise(beginnings)]
    assert sum(step != 1 for step in steps) <= 1, "a block of lines is left out at a time"


def test_a_document_that_is_not_large_is_taken_whole():
    document = Document("file:///a.py", "x\n" * (LARGE // 2), 1, "python")
    found = document.excerpt(70_000, 1)
    assert (found.text, found.offset, found.begins, found.ends) == (document.source, 140_001, True, True)


def test_the_beginning_of_a_document():
    document = Document("file:///a.py", "abc\n" * 10, 1, "python")
    assert document.beginning(6) == "abc\nab"
    assert document.beginning(99) == document.source
