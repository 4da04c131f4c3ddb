"""The model process by itself: how it is found, whom it lets in, how it ends."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from multiprocessing.connection import Client
from pathlib import Path

import pytest

from codespec.daemon.address import endpoint
from codespec.daemon.process import ModelProcess
from codespec.daemon.start import reach, stop_model_process
from codespec.daemon.wire import Channel
from tests.daemon.windows import (
    WAIT_S,
    eventually,
    has_ended,
    request,
    window,
)
from tests.lsp.helpers import raw

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and sockets of POSIX")


def test_the_process_clears_away_what_a_dead_one_has_left_and_ends_when_nobody_is_there(here):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(here.address)
    here.key.write_bytes(b"old")
    with window() as completer:
        assert completer.complete(request())
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
        assert completer.complete(request())
        with window() as another:
            assert another.complete(request())
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
        assert completer.complete(request())


def test_one_process_for_each_environment(here, monkeypatch):
    assert endpoint() == here
    monkeypatch.setenv("CODESPEC_PROFILES", "elsewhere")
    assert endpoint().address != here.address


def test_the_same_process_whether_what_sets_a_variable_was_imported_or_not(here, monkeypatch):
    monkeypatch.delenv("GOMP_SPINCOUNT")
    assert endpoint() == here
    monkeypatch.setenv("GOMP_SPINCOUNT", "1")
    assert endpoint() != here


def test_a_socket_has_a_short_name(here, tmp_path, monkeypatch):
    monkeypatch.setenv("CODESPEC_RUNTIME", str(tmp_path / ("long" * 30)))
    assert len(endpoint().address) <= 100
    assert endpoint().key.parent == tmp_path / ("long" * 30)


HANGING = str(Path(__file__).with_name("hanging_process.py"))


@pytest.mark.usefixtures("here")
def test_a_request_that_hangs_ends_the_process():
    found = subprocess.run([sys.executable, HANGING, "generate"], capture_output=True, text=True, timeout=WAIT_S)
    assert found.returncode == 3
    assert "a request that was to stop has run on" in found.stderr
    assert "most recent call first" in found.stderr


@pytest.mark.usefixtures("here")
def test_a_model_that_is_being_loaded_does_not_hang():
    """It takes as long, and nobody waits for it, and the process goes on until it is idle."""
    found = subprocess.run([sys.executable, HANGING, "load"], capture_output=True, text=True, timeout=WAIT_S)
    assert (found.returncode, found.stdout) == (0, "ended\n"), found.stderr


@pytest.mark.parametrize(("arguments", "settings"), [((), ""), (("--in-process",), ""), ((), "shared = false\n")])
def test_a_server_begins_it_before_the_editor_says_anything(tmp_path, arguments, settings):
    home = tmp_path / "config" / "codespec"
    home.mkdir(parents=True)
    (home / "codespec.toml").write_text(settings)
    with raw(tmp_path, [sys.executable, "-m", "codespec", "serve", *arguments]) as server:
        locks = tmp_path / "run"
        begun = not arguments and not settings
        if begun:
            assert eventually(lambda: any(not has_ended(lock) for lock in locks.glob("*.lock")))
        server.request(0, "initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        server.answer(0)
        assert bool(list(locks.glob("*.lock"))) == begun
        server.request(1, "shutdown")
        server.answer(1)
        server.notify("exit")
    for lock in locks.glob("*.lock"):
        subprocess.run(["kill", lock.read_text()], check=True)
    assert eventually(lambda: all(map(has_ended, locks.glob("*.lock"))))


def test_what_was_begun_in_vain_does_not_stay(here):
    began = time.monotonic()
    ModelProcess(here, idle_s=600.0, first_s=0.5).run()
    assert time.monotonic() - began < 30
