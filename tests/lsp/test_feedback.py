"""What is opened, saved and accepted in a session is learnt, and known in the next one."""

from __future__ import annotations

import sys
import threading

import pytest
from lsprotocol import types

from codespec.worker.decode_thread import MOST_TASKS, DecodeThread

from .helpers import run_command, running, until

SERVE = [sys.executable, "-m", "codespec", "serve"]


@pytest.mark.asyncio
async def test_what_is_opened_saved_and_asked_about_is_learnt(tmp_path):
    inner = tmp_path / "w" / "inner"
    inner.mkdir(parents=True)
    async with running(tmp_path, folder=tmp_path / "w") as server:
        uri = (inner / "a.py").as_uri()
        server.open("x = 1\n", uri)
        await until(lambda: server.said(f"learns a.py in {tmp_path / 'w'}, 6 characters, None"))
        folders = [types.WorkspaceFolder(inner.as_uri(), "inner"), types.WorkspaceFolder(tmp_path.as_uri(), "outer")]
        change = types.WorkspaceFoldersChangeEvent(added=folders, removed=[])
        server.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(change))
        server.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))
        await until(lambda: server.said(f"learns a.py in {inner}, 6 characters, None"))
        assert (await server.ask(0, 3, uri)).items
        await until(lambda: server.said(f"learns a.py in {inner}, 6 characters, 3"))
        server.open("", "untitled:Untitled-1")
        await until(lambda: server.said("learns Untitled-1 in no workspace, 0 characters, None"))


@pytest.mark.asyncio
async def test_what_is_accepted_is_learnt_once(tmp_path):
    async with running(tmp_path, folder=tmp_path) as server:
        uri = (tmp_path / "a.py").as_uri()
        server.open("x = 1\n", uri)
        [item] = (await server.ask(0, 3, uri)).items
        for _ in range(2):
            await run_command(server, item.command.command, *item.command.arguments)
        taught = f"stub: accepted '<x =|128>' in {tmp_path}"
        await until(lambda: taught in server.stderr)
        await run_command(server, "codespec.accept", "nonesuch")
        assert server.stderr.count(taught) == 1
        await run_command(server, "codespec.clearLearnt")
        await until(lambda: server.said(f"forgot {tmp_path}"))
        assert not server.shown


@pytest.mark.asyncio
async def test_learning_can_be_switched_off(tmp_path):
    async with running(tmp_path, options={"learn": False}) as server:
        server.open("x = 1\n")
        assert (await server.ask(0, 3)).items
        assert not server.said("learns")


@pytest.mark.asyncio
async def test_accepted_in_one_session_proposed_in_the_next(tmp_path):
    """The embedded models; the sessions differ in what was learnt alone."""
    workspace = tmp_path / "w"
    workspace.mkdir()
    uri = (workspace / "a.py").as_uri()
    text = "import os\n\n\ndef to"
    logs = tmp_path / "data" / "ngrams"
    options = {"max_tokens": 24, "draft": "none", "time_budget_ms": 0}
    async with running(tmp_path, command=SERVE, folder=workspace, options=options) as server:
        server.open(text, uri)
        [first] = (await server.ask(3, 6, uri)).items
        await run_command(server, first.command.command, *first.command.arguments)
        await run_command(server, "codespec.accept", "nonesuch")
        [log] = logs.rglob("*.log")
        assert log.stat().st_size > 100
    shown = first.insert_text.removeprefix("def to")
    assert shown.strip()
    assert _proposed(tmp_path, workspace, text).startswith(shown)
    assert not _proposed(tmp_path, tmp_path / "other", text)
    async with running(tmp_path, command=SERVE, folder=workspace, options=options) as server:
        server.open(text, uri)
        assert [each.insert_text for each in (await server.ask(3, 6, uri)).items] == [first.insert_text]
        await run_command(server, "codespec.clearLearnt")
        assert not log.exists()


def _proposed(tmp_path, workspace, text) -> str:
    """What n-grams propose behind a text in a later session."""
    from codespec import LocalEngine
    from codespec.models.registry import EMBEDDED_TARGET
    from codespec.protocols import Sampling
    from codespec.speculative.sampling import LogitSampler

    engine = LocalEngine(EMBEDDED_TARGET, learnt_folder=tmp_path / "data" / "ngrams")
    try:
        engine.use_learnt(workspace, "python")
        tokens = engine.vocabulary.tokenize(text)
        left = iter(range(40))
        more = lambda confidence: next(left, None) is not None  # noqa: E731
        proposal = engine.drafts.ngrams.propose(tokens, None, LogitSampler(Sampling(), 0), more)
        return b"".join(map(engine.vocabulary.token_bytes, proposal.tokens)).decode()
    finally:
        engine.close()


class Completer:
    """Says what it did; a request takes until it is let through."""

    reading = False

    def __init__(self) -> None:
        self.done: list[str] = []
        self.begun = threading.Event()
        self.through = threading.Event()

    def complete(self, request, cancel):
        self.begun.set()
        assert self.through.wait(5)
        self.done.append(request)
        return []

    def idle(self, go_on):
        return True

    def abort(self):
        pass

    def close(self):
        self.done.append("closed")


def submit(thread, document, request, **more):
    return thread.submit(document, lambda completer, cancel: completer.complete(request, cancel), **more)


def test_tasks_wait_for_requests_and_the_newest_of_a_key_counts():
    thread, completer = DecodeThread(), Completer()
    early = thread.later("early", lambda c: c.done.append("early"))
    assert not early.done(), "there is nobody to do it yet"
    loaded = threading.Event()
    thread.load(lambda: completer, lambda error: loaded.set())
    early.result(5)
    first = submit(thread, "a", "a1")
    assert completer.begun.wait(5)
    tasks = [thread.later("x", lambda c, n=n: c.done.append(f"x{n}")) for n in range(3)]
    failing = thread.later("y", lambda c: 1 / 0)
    second = submit(thread, "b", "b1")
    completer.through.set()
    for future in (first.future, second.future, *tasks, failing):
        future.result(5)
    assert completer.done == ["early", "a1", "b1", "x2"]
    assert thread.close(5)
    assert thread.later("late", lambda c: None).done()


def test_tasks_that_wait_are_done_before_the_models_are_freed():
    thread, completer = DecodeThread(), Completer()
    thread.load(lambda: completer, lambda error: None)
    submit(thread, "a", "a1")
    assert completer.begun.wait(5)
    tasks = [thread.later(str(n), lambda c, n=n: c.done.append(n)) for n in range(MOST_TASKS + 1)]
    assert tasks[0].done(), "one too many"
    completer.through.set()
    assert thread.close(5)
    assert all(task.done() for task in tasks)
    assert sorted(completer.done[1:-1]) == list(range(1, MOST_TASKS + 1))
    assert completer.done[-1] == "closed"


def test_tasks_end_where_the_models_do_not_load():
    def load():
        raise RuntimeError("as asked")

    thread = DecodeThread()
    task = thread.later("x", lambda c: None)
    thread.load(load, lambda error: None)
    task.result(5)
    assert thread.close(5)
