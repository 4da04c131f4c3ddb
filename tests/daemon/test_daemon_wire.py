"""What language servers and the model process tell each other."""

from __future__ import annotations

import json
import logging
import random
import threading
from dataclasses import replace
from multiprocessing.connection import Pipe

import pytest
from windows import WAIT_S, eventually

from codespec.completion.request import Request
from codespec.config import Config
from codespec.daemon.link import Link, Lost
from codespec.daemon.models import Models
from codespec.daemon.session import MOST_UNSENT, Session
from codespec.daemon.wire import (
    Channel,
    DocumentTexts,
    pack_config,
    pack_edit_request,
    pack_offers,
    pack_request,
    unpack_config,
    unpack_edit_request,
    unpack_offers,
    unpack_request,
)
from codespec.edits.request import Edit, EditOffer, EditRequest, OtherDocument, RecentEdit
from codespec.protocols import Snippet
from codespec.text_difference import common_ends
from codespec.worker.decode_thread import DecodeThread


def test_a_window_logs_what_is_logged_about_models(caplog):
    mine, other = Pipe()
    lost = threading.Event()
    link, process = Link(Channel(mine), lost.set), Channel(other)
    process.send({"log": [logging.WARNING, "codespec.models", "a draft is slow"]})
    process.send({"id": 99, "result": "of nobody"})
    number, reply = link.ask("status")
    assert process.receive() == {"op": "status", "id": number}
    process.send({"id": number, "result": 5})
    assert reply.result(WAIT_S) == 5
    assert ("codespec.models", logging.WARNING, "a draft is slow") in caplog.record_tuples
    number, reply = link.ask("status")
    process.send({"bye": "as asked"})
    assert eventually(lambda: not link.alive)
    with pytest.raises(Lost):
        link.tell("status")
    other.send_bytes(b"[]")
    with pytest.raises(Lost):
        reply.result(WAIT_S)
    assert not lost.is_set()  # it has said good-bye
    process.close()


def test_a_window_that_does_not_read_is_cut_off():
    mine, other = Pipe()
    session = Session(1, Channel(mine), DecodeThread(), Models(), dict, lambda reason: None)
    serving = threading.Thread(target=session.run, daemon=True)
    serving.start()
    for _ in range(2 * MOST_UNSENT):
        session.say({"log": [logging.WARNING, "codespec.models", "a draft is slow" * 10]})
    serving.join(WAIT_S)
    assert not serving.is_alive()
    senders = [each for each in threading.enumerate() if each.name == "window 1 sends"]
    assert eventually(lambda: not any(each.is_alive() for each in senders))
    other.close()


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


def test_settings_arrive_as_they_were(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {
        "grammar": "json",
        "draft": "./d.gguf",
        "seed": 4,
        "language": {"c++": {"enabled": False, "draft": "none"}},
    }
    config = Config().apply(options)[0]
    assert unpack_config(pack_config(config)) == Config().apply({**options, "draft": str(tmp_path / "d.gguf")})[0]


def test_files_that_a_request_names_are_found_from_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    context = (Snippet("sub/b.py", "x = 1\n"),)
    sent = Request("x", 1, "python", "sub/a.py", context=context, draft="./d.gguf", grammar="sub/g.gbnf")
    expected = replace(sent, draft=str(tmp_path / "d.gguf"), grammar=str(tmp_path / "sub" / "g.gbnf"))
    assert unpack_request(pack_request(sent, DocumentTexts()), DocumentTexts()) == expected
    named = replace(sent, draft="auto", grammar="json")
    assert unpack_request(pack_request(named, DocumentTexts()), DocumentTexts()) == named


def test_next_edits_arrive_as_they_were(tmp_path, monkeypatch):
    sent = EditRequest(
        "a.py",
        "python",
        "x = 1\n",
        3,
        recent=(RecentEdit("b.py", 0, "y\n", "x\n", "before\n", "after\n"),),
        others=(OtherDocument("b.py", "python", "import a\n"),),
        rejected=frozenset({"1", "2"}),
        budget_ms=70.0,
    )
    ours, theirs = DocumentTexts(), DocumentTexts()
    for request in (sent, replace(sent, text="x = 12\n", others=())):
        packed = json.loads(json.dumps(pack_edit_request(request, ours)))
        assert unpack_edit_request(packed, theirs) == request
    offers = [EditOffer("id", (Edit("a.py", 0, 1, "y"), Edit("a.py", 3, 3, "z")), 0, True, ("1", "2"))]
    assert unpack_offers(json.loads(json.dumps(pack_offers(offers)))) == offers
    assert unpack_offers(pack_offers(None)) is None
    monkeypatch.chdir(tmp_path)
    config = Config().apply({"edits": {"model": "./e.gguf"}, "remote": {"model": "a/b"}})[0]
    found = unpack_config(pack_config(config))
    assert (found.edits.model, found.remote.model) == (str(tmp_path / "e.gguf"), "a/b")
