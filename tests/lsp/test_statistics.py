"""What becomes of completions is counted, by language."""

from __future__ import annotations

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import pytest
from lsprotocol import types

from codespec.lsp.statistics import Counts, Showing, UsageStatistics

from .helpers import URI, run_command, running, status


def take(statistics: UsageStatistics, text: str) -> Showing:
    showing = statistics.shown("python", [text])
    statistics.accepted(showing, text, len(text))
    return showing


def test_what_is_accepted_bit_by_bit_is_one_completion(tmp_path):
    statistics = UsageStatistics(tmp_path / "statistics.json")
    showing = statistics.shown("python", ["bcdef"])
    statistics.accepted(showing, "bcdef", 2)
    assert statistics.read()["python"] == asdict(Counts(shown=1, accepted_partly=1))
    statistics.accepted(showing, "cdef", 2)  # what was left when it was shown again
    statistics.accepted(showing, "def", 3)
    statistics.accepted(showing, "def", 3)
    statistics.rejected(showing)
    assert statistics.read()["python"] == asdict(Counts(shown=1, accepted=1))


def test_sessions_are_summed_up_and_hold_no_text(tmp_path):
    path = tmp_path / "data" / "statistics.json"
    for _ in range(2):
        statistics = UsageStatistics(path)
        take(statistics, "secret words")
        statistics.rejected(statistics.shown("go", ["more"]))
        statistics.save()
    assert "secret" not in path.read_text()
    found = UsageStatistics(path).read()
    assert found["go"] == asdict(Counts(shown=2, rejected=2))
    assert found["python"] == asdict(Counts(shown=2, accepted=2))


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "{}",
        '{"version": 99, "languages": {}}',
        '{"version": 2, "languages": {"python": {"shown": "many"}}}',
        '{"version": 2, "languages": {"python": {"shown": Infinity}}}',
        '{"version": 2, "languages": {"python": {"unknown": 1}}}',
        "\ufeff\x00",
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_set_aside(tmp_path, content):
    path = tmp_path / "statistics.json"
    path.write_text(content)
    statistics = UsageStatistics(path)
    statistics.shown("go", ["x"])
    statistics.save()
    assert json.loads(path.read_text())["languages"]["go"]["shown"] == 1
    assert path.with_suffix(".damaged").read_text() == content


def test_a_folder_that_cannot_be_written_loses_nothing_but_the_file(tmp_path):
    (tmp_path / "data").write_text("in the way")
    statistics = UsageStatistics(tmp_path / "data" / "statistics.json")
    statistics.shown("go", ["x"])
    statistics.save()
    (tmp_path / "data").unlink()
    statistics.save()
    assert statistics.read()["go"]["shown"] == 1


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
        assert (found["shown"], found["accepted"]) == (1, 1)
        assert item.insert_text == left.insert_text
    kept = json.loads(path.read_text())["languages"]["python"]
    assert (kept["shown"], kept["accepted"]) == (1, 1)


@pytest.mark.asyncio
async def test_it_can_be_switched_off(tmp_path):
    async with running(tmp_path, options={"statistics": False}) as server:
        server.open("abc\n")
        [item] = (await server.ask(0, 3)).items
        await run_command(server, item.command.command, *item.command.arguments)
        assert (await status(server))["statistics"] is None
    assert not (tmp_path / "data" / "statistics.json").exists()


def test_languages_are_added_while_threads_read_and_save(tmp_path):
    statistics, over = UsageStatistics(tmp_path / "statistics.json"), threading.Event()

    def count():
        number = 0
        while not over.is_set():
            statistics.shown(f"language {number % 300}", ["x"])
            number += 1
        return number

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor() as pool:
            counted = pool.submit(count)
            for _ in range(100):
                statistics.read()
                statistics.save()
            over.set()
            total = counted.result()
    finally:
        sys.setswitchinterval(before)
    assert sum(each["shown"] for each in statistics.read().values()) == total
