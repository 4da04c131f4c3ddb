"""The connection of one language server, at the side of the model process."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from codespec.daemon.session import Session
from codespec.daemon.wire import BEAT_S, Channel

logger = logging.getLogger(__name__)

MOST_UNSENT = 10_000
"""Messages that wait for a language server to read them; beyond that it is disconnected."""

Say: TypeAlias = Callable[[Mapping[str, Any]], None]


class Window:
    """Hands the messages of a language server to a session. What that answers is sent by a thread of its own, so that a
    language server that does not read holds up no other.

    Args:
        session: makes the session, given what sends its answers.
    """

    def __init__(self, name: str, channel: Channel, session: Callable[[Say], Session]) -> None:
        self._name, self._channel = name, channel
        self._outgoing: queue.Queue[Mapping[str, Any] | None] = queue.Queue(MOST_UNSENT)
        self._session = session(self.say)
        self._sender = threading.Thread(target=self._send_all, name=f"{name} sends", daemon=True)
        self._sender.start()

    def run(self) -> None:
        """Serve until the connection is lost."""
        try:
            while True:
                self._session.take(self._channel.receive())
        except (OSError, EOFError):
            pass  # the language server has ended
        except Exception:
            logger.exception("%s sent a message that is none", self._name)
        finally:
            self._session.end()
            self._channel.shut()
            with contextlib.suppress(queue.Full):  # then the next message ends the sender: it cannot be sent
                self._outgoing.put_nowait(None)
            self._sender.join()
            self._channel.close()

    def say(self, message: Mapping[str, Any]) -> None:
        """Send a message soon; from any thread."""
        try:
            self._outgoing.put_nowait(message)
        except queue.Full:
            logger.warning("%s does not read what it asked for", self._name)
            self._channel.shut()

    def finish(self, timeout_s: float) -> None:
        """Send the messages that still wait, and none after them; for so many seconds at most."""
        with contextlib.suppress(queue.Full):
            self._outgoing.put_nowait(None)
        self._sender.join(timeout_s)

    def _send_all(self) -> None:
        try:
            while (message := self._next()) is not None:
                self._channel.send(message)
            return
        except OSError:
            pass  # the language server has ended
        except Exception as error:  # whose text may quote a document
            logger.error("a message cannot be sent to %s: %s", self._name, type(error).__name__)
        self._channel.shut()

    def _next(self) -> Mapping[str, Any] | None:
        try:
            return self._outgoing.get(timeout=BEAT_S)
        except queue.Empty:
            return {"alive": True}
