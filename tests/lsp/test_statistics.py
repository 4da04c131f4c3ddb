"""What becomes of completions is counted, and what of it stays in the text."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import asdict

import pytest
from lsprotocol import types

from codespec.lsp.statistics import Counts, UsageStatistics, share_left
from codespec.lsp.workspace.documents import Document

from .helpers import URI, run_command, running, status


def distance(text: str, around: str) -> int:
    """The least edits that make ``text`` a part of ``around``, cell by cell."""
    row = [0] * (len(around) + 1)
    for number, character in enumerate(text, 1):
        new = [number]
        for index, other in enumerate(around, 1):
            new.append(min(row[index - 1] + (character != other), row[index] + 1, new[-1] + 1))
        row = new
    return min(row)


def test_the_share_that_is_left_is_told_by_edits():
    chance = random.Random(5)
    for _ in range(200):
        text, around = ("".join(chance.choice("abc") for _ in range(chance.randrange(1, 12))) for _ in range(2))
        assert share_left(text, around) == pytest.approx(max(0, 1 - distance(text, around) / len(text)))


@pytest.mark.parametrize(
    ("text", "around", "share"),
    [
        ("return x + 1", "def f():\n    return x + 1\n", 1.0),
        ("return x + 1", "def f():\n    return x + 2\n", 11 / 12),
        ("return x + 1", "", 0.0),
        ("a\n  b  \n", "a\r\n  b\r\n", 1.0),
        ("  \n", "", 1.0),
        ("x😋", "x😋", 1.0),
        ("x\ud83d", "x", 0.5),
    ],
)
def test_shares(text, around, share):
    assert share_left(text, around) == pytest.approx(share)


class Session:
    """Documents and statistics of one session."""

    def __init__(self, tmp_path, checks_s=(60.0, 60.0)) -> None:
        self.path = tmp_path / "data" / "statistics.json"
        self.document = Document(URI, "a\nb\n", 1, "python")
        self.statistics = UsageStatistics({URI: self.document}.get, self.path, checks_s)

    def insert(self, row: int, column: int, text: str, end: tuple[int, int] | None = None) -> None:
        place = types.Range(types.Position(row, column), types.Position(*(end or (row, column))))
        self.document.apply_change(types.TextDocumentContentChangePartial(place, text))

    def take(self, text: str, row: int, length: int | None = None):
        showing = self.statistics.shown(URI, row, "python", [text])
        self.statistics.accepted(showing, text, len(text) if length is None else length)
        return showing

    @property
    def counts(self) -> dict:
        return self.statistics.read().get("python", asdict(Counts()))


@pytest.mark.asyncio
async def test_a_text_is_looked_for_where_its_line_went(tmp_path):
    session = Session(tmp_path, (0.01, 0.3))
    session.insert(1, 1, " = call(1)")
    session.take(" = call(1)", 1)
    session.insert(0, 0, "# many\n" * 100)
    await asyncio.sleep(0.1)
    assert (session.counts["checked_30s"], session.counts["retained_30s"]) == (1, 1.0)
    session.insert(101, 0, "", (101, 6))  # "b = ca"
    while not session.counts["checked_5min"]:
        await asyncio.sleep(0.01)
    assert session.counts["retained_5min"] == pytest.approx(5 / 9, abs=1e-3)
    assert not session.document.marks


@pytest.mark.asyncio
async def test_what_is_accepted_bit_by_bit_is_one_completion(tmp_path):
    session = Session(tmp_path)
    session.insert(0, 1, "bcdef")
    showing = session.take("bcdef", 0, 2)
    assert (session.counts["accepted"], session.counts["accepted_partly"]) == (0, 1)
    session.statistics.accepted(showing, "cdef", 2)  # what was left when it was shown again
    session.statistics.accepted(showing, "def", 3)
    session.statistics.accepted(showing, "def", 3)
    session.statistics.rejected(showing)
    found = session.counts
    assert (found["shown"], found["accepted"], found["accepted_partly"], found["rejected"]) == (1, 1, 0, 0)
    session.statistics.closed(URI)
    found = session.counts
    assert (found["checked_30s"], found["checked_5min"], found["retained_5min"]) == (1, 1, 1.0)


@pytest.mark.asyncio
async def test_sessions_are_summed_up_and_hold_no_text(tmp_path):
    for _ in range(2):
        session = Session(tmp_path)
        session.insert(0, 1, "secret words")
        session.take("secret words", 0)
        session.statistics.rejected(session.statistics.shown(URI, 0, "go", ["more"]))
        session.statistics.finish()
    kept = session.path.read_text()
    assert "secret" not in kept
    assert URI not in kept
    found = Session(tmp_path).statistics.read()
    assert found["go"] == asdict(Counts(shown=2, rejected=2))
    assert found["python"] == asdict(
        Counts(shown=2, accepted=2, checked_30s=2, retained_30s=2.0, checked_5min=2, retained_5min=2.0)
    )


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "{}",
        '{"version": 99, "languages": {}}',
        '{"version": 1, "languages": {"python": {"shown": "many"}}}',
        '{"version": 1, "languages": {"python": {"shown": Infinity}}}',
        '{"version": 1, "languages": {"python": {"unknown": 1}}}',
        "\ufeff\x00",
        "[" * 100_000,
    ],
)
@pytest.mark.asyncio
async def test_a_damaged_file_is_set_aside(tmp_path, content):
    session = Session(tmp_path)
    session.path.parent.mkdir()
    session.path.write_text(content)
    session.statistics.shown(URI, 0, "go", ["x"])
    session.statistics.save()
    assert json.loads(session.path.read_text())["languages"]["go"]["shown"] == 1
    assert session.path.with_suffix(".damaged").read_text() == content


@pytest.mark.asyncio
async def test_a_folder_that_cannot_be_written_loses_nothing_but_the_file(tmp_path):
    (tmp_path / "data").write_text("in the way")
    session = Session(tmp_path)
    session.statistics.shown(URI, 0, "go", ["x"])
    session.statistics.save()
    (tmp_path / "data").unlink()
    session.statistics.save()
    assert session.statistics.read()["go"]["shown"] == 1


@pytest.mark.asyncio
async def test_a_session_keeps_its_counts(tmp_path):
    path = tmp_path / "data" / "statistics.json"
    async with running(tmp_path) as server:
        server.open("abc\n")
        [item] = (await server.ask(0, 3)).items
        at = types.Position(0, 3)
        server.change(types.TextDocumentContentChangePartial(types.Range(at, at), "<a"))
        [left] = (await server.ask(0, 5)).items  # from memory: nothing new is shown
        server.change(types.TextDocumentContentChangePartial(types.Range(at, at), "bc|128>"), version=3)
        await run_command(server, left.command.command, *left.command.arguments)
        server.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(URI)))
        found = (await status(server))["statistics"]["python"]
        assert (found["shown"], found["accepted"], found["checked_5min"]) == (1, 1, 1)
        assert item.insert_text == left.insert_text
    kept = json.loads(path.read_text())["languages"]["python"]
    assert (kept["shown"], kept["accepted"], kept["checked_30s"]) == (1, 1, 1)


@pytest.mark.asyncio
async def test_it_can_be_switched_off(tmp_path):
    async with running(tmp_path, options={"statistics": False}) as server:
        server.open("abc\n")
        [item] = (await server.ask(0, 3)).items
        await run_command(server, item.command.command, *item.command.arguments)
        assert (await status(server))["statistics"] is None
    assert not (tmp_path / "data" / "statistics.json").exists()
