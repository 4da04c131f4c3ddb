"""One connection to the model process: requests out, replies in."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from itertools import count
from typing import Any

from codespec.completion.request import Request
from codespec.daemon.watchdog import Watchdog
from codespec.daemon.wire import Channel, DocumentTexts, pack_edit_request, pack_request
from codespec.edits.request import EditRequest
from codespec.protocols import CodespecError

logger = logging.getLogger(__name__)


class Lost(Exception):
    """The model process has ended, or the connection to it."""


class _Reply(Future[Any]):
    """The model process's reply to one request.

    Attributes:
        begun: whether the process has begun to work on it.
    """

    def __init__(self, progress: Callable[[str, int], None] | None) -> None:
        super().__init__()
        self.progress = progress
        self.begun = False


class Link:
    """One connection to the model process. Every method may be called from any thread.

    Args:
        lost: called once the process has ended unexpectedly.
        silent: called when the process has sent nothing for a while.
    """

    def __init__(self, channel: Channel, lost: Callable[[], None], silent: Callable[[], None] = lambda: None) -> None:
        self._channel = channel
        self._lost = lost
        self._lock = threading.Lock()
        self._texts = DocumentTexts()
        self._replies: dict[int, _Reply] = {}
        self._numbers = count(1)
        self._expected = False
        self.alive = True
        self.watch = Watchdog(silent)
        threading.Thread(target=self._receive_all, name="model process", daemon=True).start()

    def ask(
        self,
        op: str,
        request: Request | EditRequest | None = None,
        progress: Callable[[str, int], None] | None = None,
        **fields: Any,
    ) -> tuple[int, _Reply]:
        """Send a message that wants an answer; returns its number and the future reply.

        Raises:
            Lost: it cannot be sent.
        """
        reply = _Reply(progress)
        with self._lock:
            number = next(self._numbers)
            self._replies[number] = reply
            self._send({"op": op, "id": number, **fields}, request)
        return number, reply

    def tell(self, op: str, request: Request | None = None, text: tuple[str, str] | None = None, **fields: Any) -> None:
        """Send a message that wants no answer.

        Args:
            text: of a document, with its name.

        Raises:
            Lost: it cannot be sent.
        """
        with self._lock:
            if text is not None:
                fields["text"] = self._texts.pack(*text)
            self._send({"op": op, **fields}, request)

    def close(self) -> None:
        """End the connection."""
        self._expected = True
        self.alive = False
        self.watch.close()
        self._channel.shut()

    def _send(self, message: Mapping[str, Any], request: Request | EditRequest | None) -> None:
        """Lock held: the other side must see texts in the order in which they were packed."""
        if not self.alive:
            raise Lost
        if isinstance(request, EditRequest):
            message = {**message, "request": pack_edit_request(request, self._texts)}
        elif request is not None:
            message = {**message, "request": pack_request(request, self._texts)}
        try:
            self._channel.send(message)
        except OSError as error:
            self.alive = False  # at once: the thread that receives has perhaps yet to read why
            raise Lost from error
        except ValueError as error:
            self.alive = False
            self._channel.shut()
            raise Lost from error

    def _receive_all(self) -> None:
        try:
            while True:
                message = self._channel.receive()
                self.watch.heard()
                self._take(message)
        except (OSError, EOFError):
            pass
        except Exception:
            logger.exception("the model process sent a message that is none")
        self.watch.close()
        self._channel.shut()  # whoever sends has the lock until then
        with self._lock:
            self._channel.close()
            self.alive = False
            replies, self._replies = list(self._replies.values()), {}
        if not self._expected:
            self._lost()
        for reply in replies:
            reply.set_exception(Lost())

    def _take(self, message: Mapping[str, Any]) -> None:
        if "alive" in message:
            return
        if "bye" in message:
            self._expected = True
            self.alive = False  # at once: until it is gone it answers, but does nothing any more
            return
        if "log" in message:
            level, name, text = message["log"]
            logging.getLogger(name).log(level, "%s", text)
            return
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
