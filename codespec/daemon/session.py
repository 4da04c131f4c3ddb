"""One language server's connection to the model process."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from codespec.completion.completer import Completer
from codespec.completion.remote_completer import RemoteCompleter
from codespec.config import Config
from codespec.daemon.beside import Beside, ServerBeside
from codespec.daemon.models import Models
from codespec.daemon.wire import (
    BEAT_S,
    Channel,
    DocumentTexts,
    pack_completions,
    pack_offers,
    unpack_config,
    unpack_edit_request,
    unpack_request,
)
from codespec.protocols import Cancel, CodespecError
from codespec.worker.decode_thread import DecodeThread
from codespec.worker.edit_model import EditModel
from codespec.worker.jobs import EDIT, Job

logger = logging.getLogger(__name__)

MOST_UNSENT = 10_000
"""Messages that wait for a language server to read them; beyond that it is disconnected."""


class Session:
    """Passes the requests of a language server to the decode thread, and the answers back.

    All slow work happens there: the receiving thread never waits, and answers are sent by a thread of their own, so
    that a language server that does not read holds up no other.

    Args:
        number: unique among the sessions.
        about: the status of the process, which is added to the completer's own.
        stop: ends the process, with a reason.
        beside: starts a server for other clients, which ends with the session.
    """

    def __init__(
        self,
        number: int,
        channel: Channel,
        decode: DecodeThread,
        models: Models,
        about: Callable[[], Mapping[str, Any]],
        stop: Callable[[str], None],
        beside: Beside | None = None,
    ) -> None:
        self._beside = beside
        self._server: ServerBeside | None = None
        self._name = f"window {number}"
        self._channel = channel
        self._decode = decode
        self._models = models
        self._about = about
        self._stop = stop
        self._texts = DocumentTexts()
        self._completer: Completer | RemoteCompleter | None = None
        self._config = Config()
        self._edits: EditModel | None = None
        self._jobs: dict[Any, Job] = {}
        self._outgoing: queue.Queue[Mapping[str, Any] | None] = queue.Queue(MOST_UNSENT)
        self._sender = threading.Thread(target=self._send_all, name=f"{self._name} sends", daemon=True)
        self._sender.start()
        self._handlers: dict[str, Callable[[Any, dict[str, Any]], None]] = {
            "open": self._open,
            "serve": self._serve,
            "complete": self._complete,
            "edit": self._edit,
            "prefill": self._prefill,
            "learn": self._learn,
            "accepted": self._accepted,
            "forget": self._forget,
            "status": self._status,
            "cancel": self._cancel,
            "hasten": self._hasten,
            "stop": lambda number, message: self._stop("it was asked to"),
        }

    def run(self) -> None:
        """Serve until the connection is lost."""
        try:
            while True:
                message = self._channel.receive()
                self._handlers[message["op"]](message.get("id"), message)
        except (OSError, EOFError):
            pass  # the language server has ended
        except Exception:
            logger.exception("%s sent a message that is none", self._name)
        finally:
            self._end()

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

    def _end(self) -> None:
        if self._server is not None:
            self._server.stop()
        for document in (self._name, f"{self._name} opens", f"{self._name} learns", f"{self._name} edits"):
            self._decode.cancel_document(document)
        self._models.release(self)
        self._completer = self._edits = None
        self._channel.shut()
        with contextlib.suppress(queue.Full):  # then the next message ends the sender: it cannot be sent
            self._outgoing.put_nowait(None)
        self._sender.join()
        self._channel.close()

    def _send_all(self) -> None:
        try:
            while (message := self._next()) is not None:
                self._channel.send(message)
        except (OSError, ValueError):
            self._channel.shut()

    def _next(self) -> Mapping[str, Any] | None:
        try:
            return self._outgoing.get(timeout=BEAT_S)
        except queue.Empty:
            return {"alive": True}

    # What a language server may ask.

    def _open(self, number: Any, message: dict[str, Any]) -> None:
        config = unpack_config(message["config"])

        def progress(text: str, percent: int) -> None:
            self.say({"id": number, "progress": [text, percent]})

        def work(models: Models, cancel: Cancel) -> list[str]:
            self._say_begun(number)
            if cancel.is_set():  # the language server has ended while this waited
                return []
            self._completer = self._edits = None
            self._config = config
            completer = self._completer = models.completer(self, config, progress)
            if cancel.is_set():
                models.release(self)
            return completer.problems

        self._submit(number, f"{self._name} opens", work)

    def _serve(self, number: Any, message: dict[str, Any]) -> None:
        def report(text: str) -> None:
            self.say({"log": [logging.WARNING, "codespec", text]})

        try:
            if self._beside is None or self._server is not None:
                raise CodespecError("this process starts no server, or has started it")
            config = unpack_config(message["config"])
            self._server = self._beside(config, message["options"], self._decode, self._models, report)
        except CodespecError as error:
            self.say({"id": number, "error": str(error), "internal": False})
        else:
            self.say({"id": number, "result": self._server.url})

    def _complete(self, number: Any, message: dict[str, Any]) -> None:
        request = unpack_request(message["request"], self._texts)

        def work(models: Models, cancel: Cancel) -> Any:
            with self._begun(number, models, cancel):
                return pack_completions(self._opened.complete(request, cancel))

        self._submit(number, self._name, work, ahead=bool(message["ahead"]))

    def _edit(self, number: Any, message: dict[str, Any]) -> None:
        request = unpack_edit_request(message["request"], self._texts)

        def work(models: Models, cancel: Cancel) -> Any:
            with self._begun(number, models, cancel):
                self._edits = models.edit_model(self, self._config)
                return pack_offers(self._edits.next_edit(request, cancel))

        self._submit(number, f"{self._name} edits", work, gives_way=EDIT)

    def _prefill(self, number: Any, message: dict[str, Any]) -> None:
        request = unpack_request(message["request"], self._texts)

        def work(models: Models, cancel: Cancel) -> None:
            with models.running(cancel):
                self._opened.prefill(request, cancel)

        self._decode.submit(self._name, work, ahead=True, prefill=True)

    def _learn(self, number: Any, message: dict[str, Any]) -> None:
        path, text = self._texts.unpack(message["text"])
        language, workspace, offset = message["language"], message["workspace"], message["offset"]

        def work(models: Any) -> None:
            if self._completer is not None:
                self._completer.learn(text, path, language, workspace, offset)

        kind = "document" if offset is None else "edited"
        self._decode.later(f"{self._name} {kind} {path}", work)

    def _accepted(self, number: Any, message: dict[str, Any]) -> None:
        request, text = unpack_request(message["request"], self._texts), message["completion"]

        def work(models: Models, cancel: Cancel) -> None:
            with self._begun(number, models, cancel):
                self._opened.accepted(request, text)

        self._submit(number, f"{self._name} learns", work)

    def _forget(self, number: Any, message: dict[str, Any]) -> None:
        folder = message["workspace"]

        def work(models: Models, cancel: Cancel) -> None:
            with self._begun(number, models, cancel):
                self._opened.forget(folder)

        self._submit(number, f"{self._name} learns", work)

    def _status(self, number: Any, message: dict[str, Any]) -> None:
        completer, edits = self._completer, self._edits
        status = completer.status(message["languages"]) if completer is not None else {}
        told = {"edits": edits.status() if edits is not None else {"state": "not loaded"}}
        self.say({"id": number, "result": {**status, **told, **self._about()}})

    def _cancel(self, number: Any, message: dict[str, Any]) -> None:
        job = self._jobs.get(number)
        if job is not None:
            self._decode.cancel(job)

    def _hasten(self, number: Any, message: dict[str, Any]) -> None:
        job = self._jobs.get(number)
        if job is not None:
            self._decode.hasten(job)

    @property
    def _opened(self) -> Completer | RemoteCompleter:
        if self._completer is None:
            raise CodespecError("no model is loaded")
        return self._completer

    def _say_begun(self, number: Any) -> None:
        self.say({"id": number, "begun": True})

    def _begun(self, number: Any, models: Models, cancel: Cancel) -> AbstractContextManager[None]:
        self._say_begun(number)
        return models.running(cancel)

    def _submit(
        self,
        number: Any,
        document: str,
        work: Callable[[Models, Cancel], Any],
        ahead: bool = False,
        gives_way: int = 0,
    ) -> None:
        job = self._decode.submit(document, work, ahead=ahead, gives_way=gives_way)
        self._jobs[number] = job
        job.future.add_done_callback(partial(self._answer, number))

    def _answer(self, number: Any, future: Any) -> None:
        self._jobs.pop(number, None)
        error = future.exception()
        if error is None:
            self.say({"id": number, "result": future.result()})
            return
        known = isinstance(error, CodespecError)
        if not known:
            logger.error("%s: a request failed", self._name, exc_info=error)
        text = str(error) if known else type(error).__name__  # its message may quote a document
        self.say({"id": number, "error": text, "internal": not known})
