"""A window, and model processes that do not do what they should: the test plays them."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from functools import partial
from multiprocessing.connection import Listener, Pipe

import pytest
from windows import WAIT_S, InThread, eventually, never, request

from codespec.config import Config
from codespec.daemon.address import Endpoint
from codespec.daemon.client import SharedCompleter
from codespec.daemon.link import Link, Lost
from codespec.daemon.wire import Channel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sockets of POSIX")

KEY = b"known to both"


class StandIn(contextlib.AbstractContextManager):
    """What a window takes for the model process."""

    def __init__(self, where: Endpoint) -> None:
        self._where = where
        where.key.write_bytes(KEY)
        self._listener = Listener(where.address, "AF_UNIX")
        self._listener._listener._socket.settimeout(WAIT_S)  # type: ignore[attr-defined]

    def accept(self) -> Channel:
        channel = Channel(self._listener.accept())
        channel.greet(KEY, listening=True)
        return channel

    def leave(self) -> None:
        """Nobody comes here any more."""
        self._listener.close()
        self._where.key.unlink(missing_ok=True)

    def __exit__(self, *error: object) -> None:
        self.leave()


class Opening(threading.Thread):
    """A window that opens while the test plays the process."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.completer: SharedCompleter
        self.start()

    def run(self) -> None:
        self.completer = SharedCompleter(Config(max_tokens=4), None, lambda message: None)

    def wait(self) -> SharedCompleter:
        self.join(WAIT_S)
        return self.completer


def opened(stand_in: StandIn) -> tuple[SharedCompleter, Channel]:
    opening = Opening()
    channel = stand_in.accept()
    assert answer(channel) == "open"
    return opening.wait(), channel


def answer(channel: Channel, result: object = None) -> str:
    """Answer what comes next; what that is."""
    assert channel._connection.poll(WAIT_S)
    message = channel.receive()
    channel.send({"id": message["id"], "result": result})
    return message["op"]


def test_a_model_whose_loading_failed_is_loaded_with_the_next_request(here):
    with StandIn(here) as first:
        completer, channel = opened(first)
        channel.close()
        assert eventually(lambda: not completer._link.alive)
        asked = InThread(completer, request())
        again = first.accept()
        again.send({"id": again.receive()["id"], "error": "OSError: as asked", "internal": True})
        asked.wait()
        assert isinstance(asked.error, RuntimeError)
        asked = InThread(completer, request())
        again = first.accept()
        assert answer(again) == "open"
        assert answer(again, []) == "complete"
        assert asked.wait() == []
        completer.close()


@pytest.mark.parametrize("op", ["complete", "accepted", "forget"])
def test_what_comes_while_the_process_ends_is_asked_again(here, op):
    """Until it is gone it answers everything with nothing."""
    with StandIn(here) as first:
        completer, channel = opened(first)
        first.leave()
    with StandIn(here) as second:
        asked = {
            "complete": lambda: completer.complete(request(), never()),
            "accepted": lambda: completer.accepted(request(), "x"),
            "forget": lambda: completer.forget("/work"),
        }
        asking = threading.Thread(target=asked[op], daemon=True)
        asking.start()
        number = channel.receive()["id"]
        channel.send({"bye": "as asked"})
        channel.send({"id": number, "result": None})
        again = second.accept()
        assert answer(again) == "open"
        assert answer(again, []) == op
        asking.join(WAIT_S)
        assert not asking.is_alive()
        completer.close()


def test_an_end_that_was_announced_is_no_accident():
    """Also where the window finds that nobody listens before it has read why."""
    accidents: list[str] = []
    for _ in range(20):
        near, far = (Channel(each) for each in Pipe())
        link = Link(near, partial(accidents.append, "it has ended"))
        reply = link.ask("status")[1]
        for number in range(100):
            far.send({"log": [logging.DEBUG, "codespec", f"{number}"]})
        far.send({"bye": "as asked"})
        far.close()
        with pytest.raises(Lost):
            link.tell("learn")
        assert isinstance(reply.exception(WAIT_S), Lost)  # all is read by then
    assert not accidents


def test_a_process_that_reads_nothing_holds_up_nobody_who_stops_a_request(here):
    with StandIn(here) as first:
        completer, channel = opened(first)
        asked = InThread(completer, request())
        assert eventually(lambda: completer._running is not None)
        asked.cancel.set()
        stopping = threading.Thread(target=lambda: [completer.abort() for _ in range(20_000)], daemon=True)
        stopping.start()
        stopping.join(WAIT_S)
        assert not stopping.is_alive()
        assert answer(channel) == "complete"
        assert channel.receive()["op"] == "cancel"
        assert asked.wait() is None
        completer.close()
        with pytest.raises((EOFError, OSError)):
            channel.receive()
