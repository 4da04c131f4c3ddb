"""The model process, with the embedded models, and language servers that share it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from multiprocessing.connection import Client, Pipe
from pathlib import Path

import pytest
from lsprotocol import types

from codespec.completion.request import Request
from codespec.config import Config
from codespec.daemon.client import Link, Lost, SharedCompleter, stop_model_process
from codespec.daemon.place import place
from codespec.daemon.start import Unreachable, reach
from codespec.daemon.wire import Channel, Texts, common_ends, pack_config, unpack_config
from codespec.places import hold
from codespec.protocols import CodespecError

from .helpers import running, until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and sockets of POSIX")

SERVE = [sys.executable, "-m", "codespec", "serve"]
WAIT_S = 60.0
TEXT = "import os\nname = os.path."
LONG = "".join(f"def function_{n}(value):\n    return value * {n} + {n % 7}\n\n\n" for n in range(1500))


@contextlib.contextmanager
def own_process(folder: Path, idle_s: int):
    """A model process that nobody else uses, once somebody wants it; the place where it is found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODESPEC_RUNTIME", str(folder / "run"))
        patch.setenv("CODESPEC_DATA", str(folder / "data"))
        patch.setenv("CODESPEC_CACHE", str(folder / "cache"))
        patch.setenv("CODESPEC_IDLE_EXIT_S", str(idle_s))
        where = place()
        yield where
        stop_model_process()
        assert eventually(lambda: has_ended(where.lock))


@pytest.fixture
def here(tmp_path):
    """A model process of this test's own, which ends with its last window."""
    with own_process(tmp_path, idle_s=0) as where:
        yield where


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A model process for all tests that leave it alone."""
    with own_process(tmp_path_factory.mktemp("kept"), idle_s=600) as where:
        yield where


def has_ended(lock: Path) -> bool:
    """Whether no model process has its lock."""
    handle = hold(lock)
    if handle is not None:
        os.close(handle)
    return handle is not None


def eventually(condition) -> bool:
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def request(text: str = TEXT, path: str = "/work/a.py", ahead: bool = False) -> Request:
    return Request(text, len(text), "python", path, ahead=ahead)


def process_of(completer: SharedCompleter) -> dict:
    assert eventually(lambda: completer.status().get("process"))
    return completer.status()["process"]


def never() -> threading.Event:
    return threading.Event()


@contextlib.contextmanager
def window(config: Config | None = None, report=None):
    """What one language server has."""
    completer = SharedCompleter(config or Config(max_tokens=16, time_budget_ms=0), None, report)
    try:
        yield completer
    finally:
        completer.close()


def begun(completer: SharedCompleter) -> bool:
    """Whether the model process works on its request."""
    now = completer._running
    reply = now and now[0]._replies.get(now[1])
    return bool(reply and reply.begun)


class InThread(threading.Thread):
    """A completion that somebody else waits for."""

    def __init__(self, completer: SharedCompleter, what: Request) -> None:
        super().__init__(daemon=True)
        self.cancel = threading.Event()
        self.result = self.error = None
        self._ask = lambda: completer.complete(what, self.cancel)
        self.start()

    def run(self) -> None:
        try:
            self.result = self._ask()
        except Exception as error:
            self.error = error

    def wait(self):
        self.join(WAIT_S)
        assert not self.is_alive()
        return self.result


@pytest.mark.asyncio
async def test_two_windows_share_one_process_and_a_killed_one_is_replaced(tmp_path):
    async def process(server):
        answer = await server.client.workspace_execute_command_async(types.ExecuteCommandParams("codespec.status"))
        return answer["process"]

    start = partial(running, tmp_path, SERVE, {"CODESPEC_IDLE_EXIT_S": "0"}, {"max_tokens": 16, "prefill": False})
    async with start() as one, start() as other:
        for server in (one, other):
            server.open(TEXT)
            [item] = (await asyncio.wait_for(server.ask(1, 15), WAIT_S)).items
            assert item.insert_text.startswith("name = os.path.")
        first, second = await process(one), await process(other)
        assert first["pid"] == second["pid"]
        assert (second["windows"], second["targets"]) == (2, 1)

        os.kill(first["pid"], signal.SIGKILL)
        await until(lambda: one.shown and other.shown, WAIT_S)
        assert [each.partition(";")[0] for each in one.shown] == ["codespec: the model process has ended unexpectedly"]
        assert any("ended unexpectedly" in each.message for each in one.client.log_messages)
        one.open("x = 1\ny = x", "file:///work/b.py")
        answers = [one.ask(1, 5, "file:///work/b.py"), other.ask(0, 9)]
        assert None not in await asyncio.wait_for(asyncio.gather(*answers), WAIT_S)
        first, second = await process(one), await process(other)
        assert first["pid"] == second["pid"]

        await one.client.workspace_execute_command_async(types.ExecuteCommandParams("codespec.restart"))
        one.open("z = 1\nw = z", "file:///work/c.py")
        other.open("v = 1\nu = v", "file:///work/d.py")
        answers = [one.ask(1, 5, "file:///work/c.py"), other.ask(1, 5, "file:///work/d.py")]
        assert None not in await asyncio.wait_for(asyncio.gather(*answers), WAIT_S)
        assert (await process(one))["pid"] == (await process(other))["pid"] != first["pid"]
        assert [len(each.shown) for each in (one, other)] == [1, 1]  # a restart is no news
    [lock] = (tmp_path / "run").glob("*.lock")
    assert eventually(lambda: has_ended(lock))
    assert not list((tmp_path / "run").glob("*.sock"))


def test_the_answers_are_those_of_a_completer_in_this_process(kept):
    from codespec.completion.load import load_completer

    config = Config(max_tokens=16, time_budget_ms=0)
    local = load_completer(config)
    with window(config) as shared:
        for what in (request(), request("class A:\n    def ", "b.py"), request("é😋 = ", "c.py")):
            [mine], [its] = local.complete(what), shared.complete(what, never())
            assert (its.text, its.finish_reason, its.backed_up) == (mine.text, mine.finish_reason, mine.backed_up)
            assert its.report["target"] == "target"
    local.close()


def test_windows_that_start_at_once_start_one_process(here):
    found: list[SharedCompleter] = []
    threads = [threading.Thread(target=lambda: found.append(SharedCompleter(Config())), daemon=True) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(WAIT_S)
    processes = [process_of(each) for each in found]
    assert len(processes) == 4
    assert len({each["pid"] for each in processes}) == 1
    assert all((each["windows"], each["targets"]) == (4, 1) for each in processes)
    for each in found:
        each.close()


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
    other.send_bytes(b"[]")
    with pytest.raises(Lost):
        reply.result(WAIT_S)
    with pytest.raises(Lost):
        link.tell("status")
    assert not lost.is_set()  # it has said good-bye
    process.close()


def test_other_settings_of_the_same_model_load_nothing(kept):
    loads = []
    with window() as first:
        pid = process_of(first)["pid"]
        second = SharedCompleter(Config(max_tokens=1), lambda message, percent: loads.append(message))
        assert second.complete(request("x = "), never())[0].finish_reason == "length"
        assert process_of(second)["pid"] == pid
        assert not loads
        other = Config().apply({"target": {"context": 512}})[0]
        with window(other) as third:
            assert process_of(third)["targets"] == 2
        second.close()
        assert first.complete(request(), never())


def test_a_request_is_asked_again_when_the_process_ends(here):
    """It is no news where the process was asked to."""
    told = []
    with window(Config(max_tokens=200, time_budget_ms=0, gate="off"), told.append) as completer:
        pid = process_of(completer)["pid"]
        asked = InThread(completer, request(LONG + "def "))
        assert eventually(lambda: begun(completer))
        os.kill(pid, signal.SIGKILL)
        assert asked.wait()
        assert len(told) == 1
        second = process_of(completer)["pid"]
        assert second != pid
        assert stop_model_process()
        assert completer.complete(request(), never())
        assert process_of(completer)["pid"] not in (pid, second)
        assert len(told) == 1


def test_a_request_that_kills_the_process_twice_is_given_up(here, monkeypatch):
    """And nothing is started any more where that happens again and again."""
    monkeypatch.setattr("codespec.daemon.client.MOST_RESTARTS", 3)
    with window(Config(max_tokens=400, time_budget_ms=0), lambda message: None) as completer:
        asked = InThread(completer, request(LONG))
        killed = set()
        while len(killed) < 2:
            assert eventually(lambda: begun(completer) and process_of(completer)["pid"] not in killed)
            pid = process_of(completer)["pid"]
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
        asked.wait()
        assert isinstance(asked.error, CodespecError)
        assert "over a request, which is given up" in str(asked.error)
        assert completer.complete(request(), never())
        os.kill(process_of(completer)["pid"], signal.SIGKILL)
        assert eventually(lambda: not completer._link.alive)
        with pytest.raises(CodespecError, match="has ended 3 times within a minute"):
            completer.complete(request(), never())


def test_a_cancelled_request_stops_in_the_process(kept):
    with window(Config(max_tokens=2000, time_budget_ms=0, gate="off")) as completer:
        asked = InThread(completer, request(LONG + "def "))
        assert eventually(lambda: begun(completer))
        asked.cancel.set()
        completer.abort()
        assert asked.wait() is None
        assert completer.complete(request("x = "), never())
        assert completer.status()["tokens"] < 2000


def test_busy_windows_take_turns(kept):
    over = threading.Event()
    with window() as busy, window() as other:

        def ask_on() -> None:
            number = 0
            while not over.is_set():
                number += 1
                busy.complete(request(f"value_{number} = "), never())

        asking = threading.Thread(target=ask_on, daemon=True)
        asking.start()
        assert eventually(lambda: begun(busy))
        assert InThread(other, request()).wait()
        assert InThread(other, request("y = ")).wait()
        assert asking.is_alive()
        over.set()
        asking.join(WAIT_S)


def test_what_nobody_waits_for_gives_way_to_another_window(kept):
    with window(Config(max_tokens=2000, time_budget_ms=0, gate="off")) as first, window() as second:
        ahead = InThread(first, request(LONG + "def ", ahead=True))
        assert eventually(lambda: begun(first))
        assert InThread(second, request()).wait()
        assert ahead.wait() is None
        first.prefill(request(LONG + "class "), never())
        assert InThread(second, request("y = ")).wait()


def test_the_process_clears_away_what_a_dead_one_has_left_and_ends_when_nobody_is_there(here):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(here.address)
    here.key.write_bytes(b"old")
    with window() as completer:
        assert completer.complete(request(), never())
        assert not has_ended(here.lock)
        assert here.key.stat().st_mode & 0o077 == 0
        assert here.key.parent.stat().st_mode & 0o077 == 0
    assert eventually(lambda: has_ended(here.lock))
    assert not Path(here.address).exists()
    assert not here.key.exists()
    assert here.log.read_text() == ""
    assert not stop_model_process()


def test_strangers_are_refused_and_the_silent_hold_up_nobody(kept):
    with window() as completer:
        silent = [socket.socket(socket.AF_UNIX) for _ in range(5)]
        for each in silent:
            each.connect(kept.address)
        stranger = Channel(Client(kept.address, "AF_UNIX"))
        with pytest.raises((EOFError, OSError)):
            stranger.greet(b"no such key" * 3, listening=False)
        stranger.close()
        with socket.socket(socket.AF_UNIX) as rude:
            rude.connect(kept.address)
            rude.sendall(b"\0\0\0\x04GET /" * 100)
        assert completer.complete(request(), never())
        with window() as another:
            assert another.complete(request(), never())
        for each in silent:
            each.close()


def test_a_message_that_is_none_ends_that_connection_only(kept):
    with window() as completer:
        for message in (
            {},
            {"op": "nonsense"},
            {"op": "complete", "id": 1},
            {"op": "learn", "text": ["a", 0, 0, "x", 9]},
        ):
            channel = reach(start=False)
            channel.send(message)
            with pytest.raises((EOFError, OSError)):
                channel.receive()
            channel.close()
        assert completer.complete(request(), never())


def test_a_model_that_cannot_be_loaded_is_said_as_ever(kept, tmp_path):
    with pytest.raises(CodespecError, match="nonesuch"):
        SharedCompleter(Config().apply({"target": {"path": str(tmp_path / "nonesuch.gguf")}})[0])
    with window(Config(draft="nonesuch")) as completer, pytest.raises(CodespecError, match="no draft model 'nonesuch'"):
        completer.complete(request(), never())


def test_without_a_process_the_models_are_loaded_in_the_server(here, monkeypatch):
    from codespec.lsp.transport import _Models

    here.log.mkdir(parents=True)
    with pytest.raises(Unreachable, match="cannot be started"):
        reach()
    warnings = []
    models = _Models(in_process=False)
    models.warn = lambda message, show: warnings.append(message)
    completer = models(Config(max_tokens=4), lambda message, percent: None)
    assert completer.complete(request(), never())
    completer.close()
    assert len(warnings) == 1
    assert "loaded in this window's own process" in warnings[0]


def test_one_process_for_each_environment(here, monkeypatch):
    monkeypatch.setenv("CODESPEC_TOKEN", "does not matter")
    assert place() == here
    monkeypatch.setenv("CODESPEC_PROFILES", "elsewhere")
    assert place().address != here.address


def test_a_socket_has_a_short_name(here, tmp_path, monkeypatch):
    monkeypatch.setenv("CODESPEC_RUNTIME", str(tmp_path / ("long" * 30)))
    assert len(place().address) <= 100
    assert place().key.parent == tmp_path / ("long" * 30)


def test_documents_are_sent_as_what_has_changed():
    chance = random.Random(1)
    here, there = Texts(), Texts()
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


HANGS = """
import logging
import time
from codespec.daemon import process
from codespec.daemon.models import Work
from codespec.daemon.place import place

logging.basicConfig()
process._STUCK_S = 0.1
here = process.ModelProcess(place(), idle_s=100)
begun = []
job = here._decode.submit("a window", Work(lambda cancel: begun.append(1) or time.sleep(1000), stops={stops}))
here._decode.load(lambda: here._models, lambda error: None)
while not begun:
    time.sleep(0.01)
here._decode.cancel(job)
here._decode.load = lambda load, done: None
here.run()
"""


def test_a_request_that_hangs_ends_the_process(here):
    command = [sys.executable, "-c", HANGS.format(stops=True)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)
    assert found.returncode == 3
    assert "a request that was to stop has run on" in found.stderr
    assert "most recent call first" in found.stderr


def test_a_model_that_is_being_loaded_does_not_hang(here):
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", HANGS.format(stops=False)], capture_output=True, timeout=8)
