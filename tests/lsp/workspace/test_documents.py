"""Lines, positions and incremental changes."""

from __future__ import annotations

import random
import re

import pytest
from lsprotocol import types
from pygls.workspace import PositionCodec

from codespec.daemon.own_models import OwnModels
from codespec.lsp.app import create_server
from codespec.lsp.workspace.documents import Document, Mark, split_lines
from codespec.lsp.workspace.units import Units

UNITS = {
    types.PositionEncodingKind.Utf8: lambda text: len(text.encode()),
    types.PositionEncodingKind.Utf16: lambda text: len(text.encode("utf-16-le")) // 2,
    types.PositionEncodingKind.Utf32: len,
}


def document(text: str, encoding=types.PositionEncodingKind.Utf16) -> Document:
    return Document("file:///a.py", text, 1, "python", position_codec=PositionCodec(encoding))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a\n", ["a\n", ""]),
        ("a\r\nb\rc\n\r", ["a\r\n", "b\r", "c\n", "\r", ""]),
        ("a\x0bb\x0cc\x85d\u2028e\n", ["a\x0bb\x0cc\x85d\u2028e\n", ""]),  # str.splitlines() would cut at each
    ],
)
def test_lines_end_where_the_protocol_says(text, lines):
    assert split_lines(text) == lines


@pytest.mark.parametrize("encoding", list(UNITS))
def test_positions(encoding):
    text = 'x = "😋é"\r\nend'
    there = document(text, encoding)
    for column in range(9):
        units = UNITS[encoding](text[:column])
        assert there.locate(types.Position(0, units)) == (0, column)
    assert there.locate(types.Position(0, 99)) == (0, 8)
    assert there.locate(types.Position(1, 99)) == (1, 3)
    assert there.locate(types.Position(2, 0)) == (1, 3)
    assert there.excerpt(1, 2).offset == len(text) - 1


@pytest.mark.parametrize("encoding", list(UNITS))
def test_random_edits(encoding):
    """A thousand changes, against the same on a plain string."""
    chance = random.Random(3)
    text = "first\nsecond 😋\r\nthird"
    there = document(text, encoding)
    for _ in range(1000):
        start, end = sorted(chance.randrange(len(text) + 1) for _ in range(2))
        end = min(end, start + 8)
        # A position cannot lie between \r and \n.
        start, end = (i - (text[i - 1 : i + 1] == "\r\n") for i in (start, end))
        new = "".join(chance.choice(["a", "é", "😋", "\n", "\r\n", "\r", "\x0c"]) for _ in range(chance.randrange(5)))
        place = types.Range(position(text, start, encoding), position(text, end, encoding))
        there.apply_change(types.TextDocumentContentChangePartial(place, new))
        text = text[:start] + new + text[end:]
        assert there.source == text
        assert list(there.lines) == split_lines(text)


def position(text: str, offset: int, encoding) -> types.Position:
    starts = [0, *(each.end() for each in re.finditer("\r\n|\r|\n", text))]
    line = max(index for index, start in enumerate(starts) if start <= offset)
    return types.Position(line, UNITS[encoding](text[starts[line] : offset]))


def test_replacing_everything_by_a_range_beyond_the_end():
    there = document("a\nb\n")
    everything = types.Range(types.Position(0, 0), types.Position(99, 0))
    there.apply_change(types.TextDocumentContentChangePartial(everything, "new"))
    assert there.source == "new"


def test_text_is_valid_unicode():
    assert document("a\ud83d b").text() == "a\ufffd b"
    assert document("a😋 b").text() == "a😋 b"


def test_halves_of_a_pair_that_come_together_are_one_character_again():
    there = document("ab")
    for text, column in (("\ud83d", 1), ("\ude0b", 2)):
        at = types.Position(0, column)
        there.apply_change(types.TextDocumentContentChangePartial(types.Range(at, at), text))
    assert there.text() == "a\U0001f60bb"
    assert there.locate(types.Position(0, 3)) == (0, 2)


@pytest.mark.parametrize("encoding", list(UNITS))
def test_columns_count_like_the_encoding(encoding):
    chance = random.Random(3)
    units = Units(encoding)
    for _ in range(300):
        text = "".join(chance.choice(["a", "é", "漢", "😋", "\ud83d"]) for _ in range(chance.randrange(6)))
        text = text.replace("\ud83d\ud83d", "\ud83d")
        sizes = [len(each.encode("utf-8" if encoding == "utf-8" else "utf-16-le", "surrogatepass")) for each in text]
        sizes = [size if encoding == "utf-8" else size // 2 if encoding == "utf-16" else 1 for size in sizes]
        assert units.length(text) == sum(sizes)
        for position in range(sum(sizes) + 3):
            begun = sum(1 for column in range(len(text)) if sum(sizes[:column]) < position)
            assert units.columns(text, position) == begun


def test_lines_are_followed_through_changes():
    there = document("a\nb\nc\nd\n")
    marks = [Mark(row) for row in range(4)]
    there.marks += marks

    def replace(start, end, text):
        place = types.Range(types.Position(*start), types.Position(*end))
        there.apply_change(types.TextDocumentContentChangePartial(place, text))
        return [there.line(mark.row).rstrip() for mark in marks]

    assert replace((0, 0), (0, 0), "x\ny\n") == ["x", "b", "c", "d"]
    assert replace((3, 1), (3, 1), "\nz") == ["x", "b", "c", "d"]
    assert replace((1, 0), (3, 0), "") == ["x", "b", "c", "d"]
    assert replace((0, 1), (0, 1), "\r\n\r\n") == ["x", "b", "c", "d"]
    assert replace((3, 0), (6, 1), "gone")[0] == "x"
    assert all(mark.row < len(there.lines) for mark in marks)


def test_handlers_leave_nothing_behind():
    server = create_server(OwnModels(), False)
    protocol = server.protocol

    def steps():
        yield lambda: None, (), {}

    done = []
    for number in range(3):
        protocol._execute_handler(msg_id=str(number), handler=steps, callback=done.append)
    assert len(done) == 3
    assert not protocol._request_futures


def test_lone_carriage_returns_are_line_feeds_for_whoever_reads():
    document = Document("file:///a.py", "a\r  b\r\nc\n\rd", 1, "python")
    assert (document.text(), document.length) == ("a\n  b\r\nc\n\nd", 11)
    excerpt = document.excerpt(1, 3)
    assert (excerpt.text, excerpt.offset) == (document.text(), 5)
    assert document.beginning(4) == "a\n  "
    assert document.lines == ("a\r", "  b\r\n", "c\n", "\r", "d")  # as the editor counts them
