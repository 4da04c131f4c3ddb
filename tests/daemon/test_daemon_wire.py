"""What language servers and the model process tell each other."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from dataclasses import MISSING, fields, replace
from multiprocessing.connection import Pipe
from typing import Any

import pytest

from codespec.completion.request import Completion, Request
from codespec.completion.trace import Pass
from codespec.config import Config
from codespec.daemon.link import Lost, SocketLink
from codespec.daemon.models import Models
from codespec.daemon.session import Session
from codespec.daemon.window import MOST_UNSENT, Window
from codespec.daemon.wire import _KINDS, Channel, DocumentTexts
from codespec.edits.request import Edit, EditOffer, EditRequest, OtherDocument, RecentEdit
from codespec.protocols import CodespecError, Snippet
from codespec.text_difference import common_ends
from codespec.worker.decode_thread import DecodeThread
from tests.daemon.windows import WAIT_S, eventually


def test_a_window_logs_what_is_logged_about_models(caplog):
    mine, other = Pipe()
    lost = threading.Event()
    link, process = SocketLink(Channel(mine), lambda expected: None if expected else lost.set()), Channel(other)
    process.send({"log": [logging.WARNING, "codespec.models", "a draft is slow"]})
    process.send({"id": 99, "result": "of nobody"})
    reply = link.ask("status")
    assert process.receive() == {"op": "status", "id": reply.number}
    process.send({"id": reply.number, "result": 5})
    assert reply.result(WAIT_S) == 5
    assert ("codespec.models", logging.WARNING, "a draft is slow") in caplog.record_tuples
    reply = link.ask("status")
    process.send({"bye": "as asked"})
    assert eventually(lambda: not link.alive)
    with pytest.raises(Lost):
        link.tell("status")
    other.send_bytes(b"[]")
    with pytest.raises(Lost):
        reply.result(WAIT_S)
    assert not lost.is_set()  # it has said good-bye
    process.close()


@pytest.mark.asyncio
async def test_who_waits_for_a_reply_may_go():
    mine, other = Pipe()
    link, process = SocketLink(Channel(mine), lambda expected: None), Channel(other)
    reply = link.ask("open")
    waits = asyncio.ensure_future(asyncio.wrap_future(reply))
    await asyncio.sleep(0)
    waits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waits
    await asyncio.sleep(0)
    process.send({"id": reply.number, "result": []})
    assert await asyncio.to_thread(reply.result, WAIT_S) == []
    asked = link.ask("status")  # and the link goes on
    process.send({"id": asked.number, "result": 5})
    assert await asyncio.to_thread(asked.result, WAIT_S) == 5
    link.close()
    process.close()


def test_a_window_that_does_not_read_is_cut_off():
    mine, other = Pipe()
    models = Models()
    window = Window("window 1", Channel(mine), lambda say: Session("window 1", say, DecodeThread(models), models, dict))
    serving = threading.Thread(target=window.run, daemon=True)
    serving.start()
    for _ in range(2 * MOST_UNSENT):
        window.say({"log": [logging.WARNING, "codespec.models", "a draft is slow" * 10]})
    serving.join(WAIT_S)
    assert not serving.is_alive()
    senders = [each for each in threading.enumerate() if each.name == "window 1 sends"]
    assert eventually(lambda: not any(each.is_alive() for each in senders))
    other.close()


class Fails:
    """A session, or a completer, that fails at what it is asked for, or says what cannot be sent."""

    problems = ()

    def __init__(self, error=None, say=None):
        self.error, self._say = error, say

    def take(self, message):
        self._say({"id": message["id"], "result": object()})

    def status(self, languages):
        raise self.error

    def end(self):
        pass


@pytest.fixture
def connected():
    """Connects a link with a session, which is made of what sends its answers."""
    links, serving = [], []

    def connect(session):
        mine, other = Pipe()
        window = Window("window 1", Channel(other), session)
        serving.append(threading.Thread(target=window.run, daemon=True))
        serving[-1].start()
        links.append(SocketLink(Channel(mine), lambda expected: None))
        return links[-1]

    yield connect
    for link in links:
        link.close()
    for each in serving:
        each.join(WAIT_S)
        assert not each.is_alive()


@pytest.mark.parametrize("error", [FileNotFoundError("draft.gguf"), CodespecError("no such draft"), ValueError()])
def test_a_status_that_fails_ends_no_connection(connected, error):
    models = Models()
    decode = DecodeThread(models)

    def session(say):
        made = Session("window 1", say, decode, models, dict)
        made._completer = Fails(error)  # type: ignore[assignment]
        return made

    link = connected(session)
    for _ in range(2):
        with pytest.raises((RuntimeError, CodespecError)):
            link.ask("status", languages=["python"]).result(WAIT_S)
    assert link.alive
    assert decode.close(WAIT_S)


def test_what_cannot_be_sent_ends_the_connection_at_either_side(connected):
    """Nobody is left to wait for what never comes."""
    link = connected(lambda say: Fails(say=say))
    with pytest.raises(Lost):
        link.ask("status").result(WAIT_S)
    link = connected(lambda say: Fails(say=say))
    with pytest.raises(Lost):
        link.ask("status", languages=object()).result(WAIT_S)
    assert not link.alive


def test_a_window_that_ends_as_its_edit_begins_keeps_no_model():
    class Slow(Models):
        def edit_model(self, user, config):
            begun.set()
            assert go_on.wait(WAIT_S)
            return super().edit_model(user, config)

    begun, go_on, models = threading.Event(), threading.Event(), Slow()
    decode = DecodeThread(models)
    session = Session("window 1", lambda message: None, decode, models, dict)
    session.take({"op": "edit", "id": 1, "request": None})
    assert begun.wait(WAIT_S)
    session.end()
    go_on.set()
    assert eventually(lambda: models.has_unused(0.0))
    assert decode.close(WAIT_S)


def test_documents_are_sent_as_what_has_changed():
    chance = random.Random(1)
    here, there = DocumentTexts(), DocumentTexts()
    texts = dict.fromkeys(map(str, range(20)), "")
    for _ in range(2000):
        name = chance.choice(list(texts))
        old = texts[name]
        start, end = sorted((chance.randint(0, len(old)), chance.randint(0, len(old))))
        texts[name] = (old[:start] + "".join(chance.choices("ab\n😋", k=chance.randint(0, 5))) + old[end:])[:200]
        assert there.unpack(here.pack(name, texts[name])) == (name, texts[name])
    here.pack("large", "x" * 1_000_000)  # which never arrives
    assert here.pack("large", "x" * 500_000 + "y" + "x" * 500_000)[1:] == [500_000, 0, "y", 1_000_001]
    with pytest.raises(ValueError, match="different texts"):
        there.unpack(here.pack("large", "x" * 400_000))


@pytest.mark.parametrize(("old", "new"), [("", ""), ("aaa", "aa"), ("aa", "aaa"), ("abc", "abc"), ("abcd", "abxd")])
def test_common_ends_never_overlap(old, new):
    start, end = common_ends(old, new)
    assert old[:start] == new[:start]
    assert start + end <= min(len(old), len(new))
    assert old[len(old) - end :] == new[len(new) - end :]
    assert old != new or start == len(old)


def across(*messages):
    """What arrives of messages, one after the other."""
    here, there = (Channel(each) for each in Pipe())
    for message in messages:
        here.send({"it": message})
        yield there.receive()["it"]
    here.close()
    there.close()


def test_settings_arrive_as_they_were(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {
        "grammar": "json",
        "draft": "./d.gguf",
        "seed": 4,
        "language": {"c++": {"enabled": False, "draft": "none"}},
    }
    [found] = across(Config().apply(options)[0])
    assert found == Config().apply({**options, "draft": str(tmp_path / "d.gguf")})[0]
    [found] = across(Config().apply({"edits": {"model": "./e.gguf"}, "remote": {"model": "a/b"}})[0])
    assert (found.edits.model, found.remote.model) == (str(tmp_path / "e.gguf"), "a/b")


def test_files_that_a_request_names_are_found_from_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    context = (Snippet("sub/b.py", "x = 1\n"),)
    sent = Request("x", 1, "python", "sub/a.py", context=context, draft="./d.gguf", grammar="sub/g.gbnf")
    named = replace(sent, draft="auto", grammar="json")
    expected = replace(sent, draft=str(tmp_path / "d.gguf"), grammar=str(tmp_path / "sub" / "g.gbnf"))
    assert list(across(sent, named)) == [expected, named]


def different(field):
    """A value of a field that it has not by default."""
    value = field.default if field.default is not MISSING else field.default_factory()
    return {bool: not value, int: 7, float: 7.5, str: "different", type(None): 3}.get(type(value), value)


def test_what_is_sent_arrives_whole():
    """A field that was forgotten on the way would be a default at the other end."""
    step = Pass(1.5, ("a", "b"), ("ngram", "model"), ("c",))
    edit = EditRequest(
        "a.py",
        "python",
        "x = 1\n",
        3,
        recent=(RecentEdit("b.py", 0, "y\n", "x\n", "before\n", "after\n"),),
        others=(OtherDocument("b.py", "python", "import a\n"),),
        rejected=frozenset({"1", "2"}),
    )
    whole: dict[Any, Any] = {
        Request: Request("x\n", 1, "python", "/a.py", context=(Snippet("/b.py", "y"),)),
        EditRequest: edit,
        Completion: Completion("text", "stop", (), {"gate": "fits"}, passes=(step,)),
        EditOffer: EditOffer("id", (Edit("a.py", 0, 1, "y"), Edit("a.py", 3, 3, "z")), 0, True, ("1", "2")),
        Config: Config(),
    }
    assert {kind for kind, _, _ in _KINDS.values()} == set(whole)
    for kind, sent in whole.items():
        optional = [each for each in fields(kind) if each.default is not MISSING or each.default_factory is not MISSING]
        if kind is not Config:
            values = {each.name: different(each) for each in optional if getattr(sent, each.name) == each.default}
            sent = replace(sent, **values)
        [found] = across([sent])
        assert found == [sent]
    assert list(across(edit, replace(edit, text="x = 12\n", others=()), None)) == [
        edit,
        replace(edit, text="x = 12\n", others=()),
        None,
    ]
