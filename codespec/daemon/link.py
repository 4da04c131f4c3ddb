"""A connection to what has the models: requests out, replies in."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from itertools import count
from typing import TYPE_CHECKING, Any

from codespec.daemon.watchdog import Watchdog
from codespec.daemon.wire import Channel
from codespec.protocols import CodespecError

if TYPE_CHECKING:
    from codespec.daemon.session import Session

logger = logging.getLogger(__name__)

CLOSING_S = 0.3
"""How long ``close`` waits for what is still to be sent."""


class Lost(Exception):
    """The model process has ended, or the connection to it."""


class Reply(Future[Any]):
    """The reply to one request.

    Attributes:
        number: of the request.
        begun: whether it is being worked on.
    """

    def __init__(self, number: int, progress: Callable[[str, int], None] | None) -> None:
        super().__init__()
        self.number, self.progress = number, progress
        self.begun = False
        self.set_running_or_notify_cancel()  # whoever waits may go: it cannot be cancelled


class Link:
    """Requests, and the replies to them. Every method may be called from any thread.

    Attributes:
        alive: whether it can be asked.
        expected: whether its end is no accident.
        silent: whether nothing has been heard of it for so long that the user was told.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._replies: dict[int, Reply] = {}
        self._numbers = count(1)
        self.alive, self.expected = True, False

    @property
    def silent(self) -> bool:
        """Whether the user was told that nothing has been heard of it for long; never, unless a subclass watches."""
        return False

    def ask(self, op: str, progress: Callable[[str, int], None] | None = None, **fields: Any) -> Reply:
        """Send a message that wants an answer.

        Args:
            progress: called with a message and percent.

        Raises:
            Lost: it cannot be sent.
        """
        with self._lock:
            reply = Reply(next(self._numbers), progress)
            self._replies[reply.number] = reply
        self._send({"op": op, "id": reply.number, **fields})
        return reply

    def tell(self, op: str, **fields: Any) -> None:
        """Send a message that wants no answer.

        Raises:
            Lost: it cannot be sent.
        """
        self._send({"op": op, **fields})

    def close(self) -> None:
        """End the connection."""
        raise NotImplementedError

    def _send(self, message: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def _take(self, message: Mapping[str, Any]) -> None:
        """A message of the other side that belongs to a request."""
        number = message["id"]
        with self._lock:
            reply = self._replies.get(number)
            if reply is not None and ("result" in message or "error" in message):
                del self._replies[number]
        if reply is None:
            return
        if "progress" in message:
            if reply.progress is not None:
                reply.progress(*message["progress"])
        elif "begun" in message:
            reply.begun = True
        elif "error" in message:
            kind = RuntimeError if message["internal"] else CodespecError
            reply.set_exception(kind(message["error"]))
        else:
            reply.set_result(message["result"])

    def _give_up(self) -> None:
        with self._lock:
            replies, self._replies = list(self._replies.values()), {}
        for reply in replies:
            reply.set_exception(Lost())


class LocalLink(Link):
    """To a session in this process.

    Args:
        session: makes it, given what takes its answers.
    """

    def __init__(self, session: Callable[[Callable[[Mapping[str, Any]], None]], Session]) -> None:
        super().__init__()
        self._session = session(self._take)

    def close(self) -> None:
        """As ``Link.close``."""
        if self.alive:
            self.alive = False
            self._session.end()
            self._give_up()

    def _send(self, message: Mapping[str, Any]) -> None:
        if not self.alive:
            raise Lost
        self._session.take(message)


class SocketLink(Link):
    """To the model process. Messages are sent by a thread of its own: a process that does not read holds up nobody.

    Args:
        ended: called once it is lost, before the replies that will not come: whether that was to be expected.
        warn: called when the process has sent nothing for a while.
    """

    def __init__(
        self, channel: Channel, ended: Callable[[bool], None], warn: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__()
        self._channel = channel
        self._ended = ended
        self._outgoing: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._watch = Watchdog(warn)
        self._sender = threading.Thread(target=self._send_all, name="to the model process", daemon=True)
        self._sender.start()
        threading.Thread(target=self._receive_all, name="model process", daemon=True).start()

    @property
    def silent(self) -> bool:
        """As ``Link.silent``."""
        return self._watch.silent

    def close(self) -> None:
        """As ``Link.close``; the process keeps the models for a while."""
        self.expected = True
        self.alive = False
        self._watch.close()
        self._outgoing.put(None)
        self._sender.join(CLOSING_S)  # what was asked before is sent

    def _send(self, message: Mapping[str, Any]) -> None:
        if not self.alive:
            raise Lost
        self._outgoing.put(message)

    def _send_all(self) -> None:
        try:
            while (message := self._outgoing.get()) is not None:
                self._channel.send(message)
        except OSError:
            self.alive = False  # at once: the thread that receives has perhaps yet to read why
            return
        except Exception as error:  # whose text may quote a document
            self.alive = False
            logger.error("a message cannot be sent to the model process: %s", type(error).__name__)
        self._channel.shut()

    def _receive_all(self) -> None:
        try:
            while True:
                message = self._channel.receive()
                self._watch.heard()
                self._hear(message)
        except (OSError, EOFError):
            pass
        except Exception:
            logger.exception("the model process sent a message that is none")
        self.alive = False
        self._watch.close()
        self._channel.shut()  # a sender that waits gets an error
        self._outgoing.put(None)
        self._sender.join()
        self._channel.close()
        self._ended(self.expected)
        self._give_up()

    def _hear(self, message: Mapping[str, Any]) -> None:
        if "alive" in message:
            return
        if "bye" in message:
            self.expected = True
            self.alive = False  # at once: until it is gone it answers, but does nothing any more
        elif "log" in message:
            level, name, text = message["log"]
            logging.getLogger(name).log(level, "%s", text)
        else:
            self._take(message)
