"""A model process that is stopped, or whose sockets others fill, holds up nobody for long."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time

import pytest

from codespec.daemon.start import stop_model_process
from codespec.daemon.wire import GREETING_S
from tests.daemon.windows import InThread, eventually, own_process, process_of, request, window

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are not stopped and sockets not filled")


@pytest.fixture
def here(tmp_path):
    with own_process(tmp_path, 300) as where:
        yield where


def test_an_open_window_is_told_and_gets_another_process(here):
    said: list[tuple[float, str]] = []
    with window(report=lambda text: said.append((time.monotonic(), text))) as completer:
        first = process_of(completer)["pid"]
        assert completer.complete(request())
        stopped = time.monotonic()
        os.kill(first, signal.SIGSTOP)
        asked = InThread(completer, request(path="/work/b.py"))
        assert eventually(lambda: bool(said))
        assert "does not answer" in said[0][1]
        assert completer.status()["state"] == "loading"
        assert asked.wait()
        print(f"told after {said[0][0] - stopped:.1f} s, answered after {time.monotonic() - stopped:.1f} s")
        assert process_of(completer)["pid"] != first
        assert eventually(lambda: completer.status()["state"] == "ready")


def test_windows_that_open_meanwhile_start_another(here):
    with window() as completer:
        first = process_of(completer)["pid"]
    os.kill(first, signal.SIGSTOP)
    # More than fit into the listener's queue.
    crowd = [socket.socket(socket.AF_UNIX) for _ in range(40)]
    for each in crowd:
        each.setblocking(False)
        try:
            each.connect(here.address)
        except BlockingIOError:
            break
    with window() as completer:
        assert process_of(completer)["pid"] != first
        assert completer.complete(request())
    for each in crowd:
        each.close()


def test_a_short_stop_ends_nothing(here):
    said: list[str] = []
    with window(report=said.append) as completer:
        first = process_of(completer)["pid"]
        os.kill(first, signal.SIGSTOP)
        assert eventually(lambda: bool(said))
        assert completer.status()["stale"]
        os.kill(first, signal.SIGCONT)
        assert completer.complete(request())
        assert process_of(completer)["pid"] == first
        assert eventually(lambda: "stale" not in completer.status())
        assert eventually(lambda: completer.status()["state"] == "ready")


def test_half_a_greeting_keeps_no_thread(here):
    with window() as completer:
        process = process_of(completer)["pid"]

        def threads() -> int:
            with open(f"/proc/{process}/status") as file:  # noqa: PTH123
                return int(next(line for line in file if line.startswith("Threads:")).split()[1])

        if sys.platform != "linux":
            pytest.skip("only /proc tells how many threads there are")
        before = threads()
        crowd = [socket.socket(socket.AF_UNIX) for _ in range(300)]
        for each in crowd:
            each.connect(here.address)
            try:
                each.sendall(b"\0\0\0\x40half")
            except OSError:  # it was refused
                break
        assert completer.complete(request())
        assert threads() < before + 450
        until = time.monotonic() + 4 * GREETING_S
        while threads() > before + 10 and time.monotonic() < until:
            for each in crowd:  # now and then another byte
                with contextlib.suppress(OSError):
                    each.send(b"x")
            time.sleep(0.5)
        assert threads() <= before + 10
        for each in crowd:
            each.close()
        with window() as another:
            assert another.complete(request())


def test_a_hung_process_can_be_stopped(here):
    with window() as completer:
        os.kill(process_of(completer)["pid"], signal.SIGSTOP)
    assert stop_model_process()
