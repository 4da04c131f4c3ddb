"""A window, and model processes that do not do what they should: the test plays them."""

from __future__ import annotations

import contextlib
import logging
import sys
from multiprocessing.connection import Listener, Pipe
from typing import Any

import pytest

from codespec.config import Config
from codespec.daemon.address import Endpoint
from codespec.daemon.link import Lost, SocketLink
from codespec.daemon.wire import Channel
from codespec.protocols import CodespecError
from tests.daemon.windows import WAIT_S, InThread, Window, begun, eventually, request

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


def opened(stand_in: StandIn) -> tuple[Window, Channel]:
    found = Window(Config(max_tokens=4), wait=False)
    channel = stand_in.accept()
    assert answer(channel) == "open"
    return found.wait(), channel


def answer(channel: Channel, result: object = None) -> str:
    """Answer what comes next; what that is."""
    assert channel._connection.poll(WAIT_S)
    message = channel.receive()
    channel.send({"id": message["id"], "result": result})
    return message["op"]


def test_a_model_whose_loading_failed_is_loaded_with_the_next_request(here):
    with StandIn(here) as first:
        window, channel = opened(first)
        channel.close()
        assert eventually(lambda: window.client._link is None)
        asked = InThread(window, request())
        again = first.accept()
        again.send({"id": again.receive()["id"], "error": "OSError: as asked", "internal": True})
        asked.wait()
        assert isinstance(asked.error, RuntimeError)
        asked = InThread(window, request())
        again = first.accept()
        assert answer(again) == "open"
        assert answer(again, []) == "complete"
        assert asked.wait() == []
        window.close()


FIELDS: dict[str, dict[str, Any]] = {
    "complete": {"request": request()},
    "edit": {"request": request()},
    "learn": {"request": request(), "edited": False},
    "accepted": {"request": request(), "completion": "x"},
    "forget": {"workspace": "/work"},
}


@pytest.mark.parametrize("op", FIELDS)
def test_what_comes_while_the_process_ends_is_asked_again(here, op):
    """Until it is gone it answers everything with nothing."""
    with StandIn(here) as first:
        window, channel = opened(first)
        first.leave()
    with StandIn(here) as second:
        asking = InThread(window, lambda: window.ask(op, "a", **FIELDS[op]))
        number = channel.receive()["id"]
        channel.send({"bye": "as asked"})
        channel.send({"id": number, "result": None})
        again = second.accept()
        assert answer(again) == "open"
        assert answer(again, []) == op
        assert asking.wait() == []
        window.close()


def test_what_is_asked_before_the_model_is_loaded_waits_for_it(here):
    with StandIn(here) as first:
        window = Window(Config(max_tokens=4), wait=False)
        asked = InThread(window, request())
        channel = first.accept()
        assert eventually(lambda: window.client._asked)
        assert answer(channel) == "open"
        assert answer(channel, []) == "complete"
        assert asked.wait() == []
        window.close()


def test_other_settings_stop_what_runs_and_serve_what_waits(here):
    with StandIn(here) as first:
        window, channel = opened(first)
        runs, waits = InThread(window, request()), None
        number = channel.receive()["id"]
        channel.send({"id": number, "begun": True})
        assert eventually(lambda: begun(window))
        waits = InThread(window, lambda: window.ask("complete", "another", request=request()))
        assert channel.receive()["document"] == "another"
        window.load(Config(max_tokens=8))
        assert runs.wait() is None
        assert [channel.receive()["op"] for _ in range(2)] == ["cancel", "cancel"]
        message = channel.receive()
        assert (message["op"], message["config"].max_tokens) == ("open", 8)
        channel.send({"id": message["id"], "result": []})
        assert answer(channel, ["new"]) == "complete"
        assert waits.wait() == ["new"]
        window.close()


def test_after_a_failed_load_requests_get_nothing_until_one_succeeds(here):
    with StandIn(here) as first:
        window = Window(Config(), wait=False)
        asked = InThread(window, request())
        channel = first.accept()
        assert eventually(lambda: window.client._asked)
        channel.send({"id": channel.receive()["id"], "error": "no model", "internal": False})
        with pytest.raises(CodespecError, match="no model"):
            window.wait()
        assert asked.wait() is None
        assert window.complete(request()) is None
        window.load(Config(max_tokens=8))
        assert answer(channel) == "open"
        asked = InThread(window, request())
        assert answer(channel, []) == "complete"
        assert asked.wait() == []
        window.close()


def test_a_request_takes_over_what_was_begun_before_it_came(here):
    with StandIn(here) as first:
        window, channel = opened(first)
        what = {"document": "a", "key": "the place", "request": request()}
        before = [InThread(window, lambda: window.ask("complete", ahead=True, **what)) for _ in range(2)]
        message = channel.receive()
        assert message["ahead"]
        assert eventually(lambda: window.submitted == 2)
        asked = InThread(window, lambda: window.ask("complete", **what))
        assert channel.receive() == {"op": "hasten", "id": message["id"]}
        other = InThread(window, lambda: window.ask("complete", "b", ahead=True, request=request()))
        assert other.wait() is None  # there is something that somebody waits for
        channel.send({"id": message["id"], "result": []})
        assert [each.wait() for each in (*before, asked)] == [[], [], []]
        window.close()


@pytest.mark.parametrize("key", ["another place", None])
def test_what_was_begun_for_something_else_is_replaced(here, key):
    with StandIn(here) as first:
        window, channel = opened(first)
        before = InThread(window, lambda: window.ask("complete", "a", ahead=True, key="the place", request=request()))
        message = channel.receive()
        asked = InThread(window, lambda: window.ask("complete", "a", key=key, request=request()))
        assert before.wait() is None
        channel.send({"id": message["id"], "result": ["old"]})
        assert answer(channel, ["new"]) == "complete"
        assert asked.wait() == ["new"]
        window.close()


def test_only_what_has_not_begun_can_be_given_up(here):
    async def give_up(document):
        window.client.give_up(window.client._asked[document])

    with StandIn(here) as first:
        window, channel = opened(first)
        runs = InThread(window, lambda: window.ask("complete", "a", request=request()))
        number = channel.receive()["id"]
        channel.send({"id": number, "begun": True})
        assert eventually(lambda: begun(window))
        waits = InThread(window, lambda: window.ask("complete", "b", request=request()))
        channel.receive()
        window._do(give_up, "a")
        window._do(give_up, "b")
        assert waits.wait() is None
        channel.send({"id": number, "result": []})
        assert runs.wait() == []
        window.close()


def test_an_end_that_was_announced_is_no_accident():
    """Also where the window finds that nobody listens before it has read why."""
    accidents: list[bool] = []
    for _ in range(20):
        near, far = (Channel(each) for each in Pipe())
        link = SocketLink(near, accidents.append)
        reply = link.ask("status")
        for number in range(100):
            far.send({"log": [logging.DEBUG, "codespec", f"{number}"]})
        far.send({"bye": "as asked"})
        far.close()
        with contextlib.suppress(Lost):
            link.tell("learn")
        assert isinstance(reply.exception(WAIT_S), Lost)  # all is read by then
    assert accidents == [True] * 20


def test_a_process_that_reads_nothing_holds_up_nobody(here):
    async def ask_much():
        for number in range(40):
            what = request("x" * 100_000, f"/work/{number}.py")
            window.client.submit("complete", what.path, request=what)

    with StandIn(here) as first:
        window, channel = opened(first)
        window._do(ask_much)
        for number in range(40):
            message = channel.receive()
            assert message["document"] == f"/work/{number}.py"
            channel.send({"id": message["id"], "result": []})
        assert eventually(lambda: not window.client._asked)
        window.close()


def test_what_was_asked_last_is_sent_before_the_end(here):
    async def accept():
        window.client.submit("accepted", "a", request=request(), completion="x")

    with StandIn(here) as first:
        window, channel = opened(first)
        window._do(accept)
        window.close()
        assert channel.receive()["op"] == "accepted"
        with pytest.raises((EOFError, OSError)):
            channel.receive()


def test_a_request_is_stopped_once(here):
    with StandIn(here) as first:
        window, channel = opened(first)
        asked = InThread(window, request())
        assert answer(channel, None) == "complete"
        assert asked.wait() is None
        asked = InThread(window, request())
        number = channel.receive()["id"]
        asked.cancel.set()
        assert asked.wait() is None
        assert channel.receive() == {"op": "cancel", "id": number}
        window.close()
        with pytest.raises((EOFError, OSError)):
            channel.receive()
