"""Completions over a real connection, with a stand-in for the models."""

from __future__ import annotations

import itertools

import pytest
from lsprotocol import types

from ..helpers import running, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

names = (f"file:///work/{number}.py" for number in itertools.count())


def span(line: int, start: int, end: int) -> types.Range:
    return types.Range(types.Position(line, start), types.Position(line, end))


async def test_the_capability_is_advertised(shared):
    capabilities = shared.result.capabilities
    assert capabilities.inline_completion_provider == types.InlineCompletionOptions()
    assert capabilities.text_document_sync.change == types.TextDocumentSyncKind.Incremental
    assert capabilities.text_document_sync.open_close
    assert capabilities.position_encoding == types.PositionEncodingKind.Utf16
    assert shared.result.server_info.name == "codespec"


@pytest.mark.parametrize("invoked", [False, True])
async def test_an_item_repeats_what_is_typed(shared, invoked):
    uri = next(names)
    shared.open("import os\nx = abc)\n", uri)
    item = (await shared.ask(1, 7, uri, invoked=invoked)).items[0]
    assert item.insert_text == "x = abc<abc|128>"
    assert item.range == span(1, 0, 7)
    assert item.filter_text is None


async def test_only_the_end_of_a_long_line_is_repeated(shared):
    uri = next(names)
    shared.open("é" * 5000 + "end", uri)
    [item] = (await shared.ask(0, 5003, uri)).items
    assert item.insert_text == "é" * 253 + "end<end|128>"
    assert item.range == span(0, 5003 - 256, 5003)


async def test_edits_arrive_before_the_request(shared):
    uri = next(names)
    shared.open("one\ntwo\n", uri)
    shared.change(types.TextDocumentContentChangePartial(span(1, 0, 3), "three\r\n\x0cfour"), uri)
    [item] = (await shared.ask(2, 5, uri)).items
    assert item.insert_text == "\x0cfour<our|128>"
    shared.change(types.TextDocumentContentChangeWholeDocument("new text"), uri, version=3)
    [item] = (await shared.ask(0, 3, uri)).items
    assert item.insert_text == "new<new|128>"


async def test_utf16_counts_surrogates(shared):
    uri = next(names)
    shared.open('x = "😋😋"\ny = "é"', uri)
    [item] = (await shared.ask(0, 9, uri)).items
    assert item.insert_text == 'x = "😋😋<"😋😋|128>'
    assert item.range == span(0, 0, 9)
    [item] = (await shared.ask(0, 6, uri)).items  # between the halves of a pair: after it
    assert item.range == span(0, 0, 7)


@pytest.mark.parametrize(("encoding", "units"), [("utf-8", 14), ("utf-32", 8)])
async def test_another_encoding_is_negotiated(tmp_path, encoding, units):
    kinds = [types.PositionEncodingKind(encoding), types.PositionEncodingKind.Utf16]
    async with running(tmp_path, encodings=kinds) as server:
        assert server.result.capabilities.position_encoding == kinds[0]
        server.open('x = "😋😋"\r\ny = "😋😋é\r\n')
        [item] = (await server.ask(1, units + (2 if encoding == "utf-8" else 0))).items
        assert item.insert_text == 'y = "😋😋é<😋😋é|128>'
        start = types.Position(1, units)  # before the é
        server.change(types.TextDocumentContentChangePartial(types.Range(types.Position(1, 4), start), "z"))
        [item] = (await server.ask(1, 5)).items
        assert item.insert_text == "y = z<= z|128>"
        assert item.range == span(1, 0, 5)


async def test_carriage_returns_are_not_part_of_a_line(shared):
    uri = next(names)
    shared.open("a = 1\r\nb = 2\r\n", uri)
    [item] = (await shared.ask(1, 5, uri)).items
    assert item.insert_text == "b = 2<= 2|128>"
    [item] = (await shared.ask(1, 99, uri)).items  # not between \r and \n
    assert item.range == span(1, 0, 5)


async def test_line_ends_are_the_editors_business(shared):
    uri = next(names)
    shared.open("two lines\r\n", uri)
    [item] = (await shared.ask(0, 9, uri)).items
    assert item.insert_text == "two linesone\ntwo\n"


@pytest.mark.parametrize(
    ("line", "character", "where"),
    [(0, 99, span(0, 0, 3)), (99, 0, span(1, 0, 3)), (99, 99, span(1, 0, 3)), (2**31 - 1, 2**31 - 1, span(1, 0, 3))],
)
async def test_a_position_outside_the_document_means_the_nearest(shared, line, character, where):
    uri = next(names)
    shared.open("abc\ndef", uri)
    [item] = (await shared.ask(line, character, uri)).items
    assert item.range == where


async def test_an_empty_document(shared):
    uri = next(names)
    shared.open("", uri)
    [item] = (await shared.ask(0, 0, uri)).items
    assert item.insert_text == "<|128>"
    assert item.range == span(0, 0, 0)


async def test_a_document_that_is_not_open_is_not_read(shared, tmp_path):
    path = tmp_path / "secret.py"
    path.write_text("secret = 1\n")
    assert await shared.ask(0, 6, path.as_uri()) is None
    shared.open("x = 1", path.as_uri())
    assert await shared.ask(0, 5, path.as_uri()) is not None
    identifier = types.TextDocumentIdentifier(path.as_uri())
    shared.client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))
    assert await shared.ask(0, 5, path.as_uri()) is None


async def test_a_disabled_language(shared):
    uri = "file:///work/a.toml"
    shared.open("x = 1", uri, language="toml")
    assert await shared.ask(0, 5, uri) is None
    assert not shared.said("begin a.toml")


async def test_nothing_to_add_hides_what_is_shown(shared):
    uri = next(names)
    shared.open("nothing", uri)
    assert not (await shared.ask(0, 7, uri)).items


async def test_a_failure_is_logged_and_answered(shared):
    uri = next(names)
    shared.open("a document: raise\n", uri)
    assert await shared.ask(0, 17, uri) is None
    await until(lambda: "RuntimeError" in shared.stderr)
    assert "Traceback" in shared.stderr
    assert "a document" not in shared.stderr, "a message may quote one"
    assert (await shared.ask(1, 0, uri)).items


async def test_half_a_surrogate_pair_does_no_harm(shared):
    uri = next(names)
    shared.open("😋abc", uri)
    shared.change(types.TextDocumentContentChangeWholeDocument("\ud83dabc"), uri)
    [item] = (await shared.ask(0, 4, uri)).items
    assert item.insert_text.endswith("<abc|128>")


async def test_a_file_of_five_megabytes(shared):
    uri = next(names)
    lines = 100_000
    shared.open("x = 1 + 2 + 3  # a line of fifty characters or so\n" * lines, uri)
    for version in range(2, 22):
        shared.change(types.TextDocumentContentChangePartial(span(lines // 2, 0, 0), "y"), uri, version)
    [item] = (await shared.ask(lines // 2, 20, uri)).items
    assert item.insert_text == "y" * 20 + "<yyy|128>"


async def test_who_asks_by_a_key_gets_alternatives(shared):
    uri = "file:///work/alternatives.py"
    shared.open("x = abc", uri)
    answer = await shared.ask(0, 7, uri)
    assert [item.insert_text for item in answer.items] == ["x = abc<abc|128>"]
    answer = await shared.ask(0, 7, uri, invoked=True)
    expected = ["x = abc<abc|128>", "x = abc<abc|128>!", "x = abc<abc|128>!!"]
    assert [item.insert_text for item in answer.items] == expected
    answer = await shared.ask(0, 7, uri)  # and who types on keeps them
    assert [item.insert_text for item in answer.items] == expected
    assert shared.stderr.count("stub: begin alternatives.py") == 2


async def test_what_was_shown_stays_the_first_of_several(shared):
    """Several texts are decoded side by side, where numbers round otherwise: the text on the screen must not change."""
    uri = "file:///work/drifting.py"
    shared.open("x = drifts", uri)
    answer = await shared.ask(0, 10, uri)
    assert [item.insert_text for item in answer.items] == ["x = drifts1 <fts|128>"]
    answer = await shared.ask(0, 10, uri, invoked=True)
    expected = ["x = drifts1 <fts|128>", "x = drifts3 <fts|128>", "x = drifts3 <fts|128>!"]
    assert [item.insert_text for item in answer.items] == expected
