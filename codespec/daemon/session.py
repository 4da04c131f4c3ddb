"""What one language server has the models do."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from codespec.completion.completer import Completer
from codespec.completion.remote_completer import RemoteCompleter
from codespec.completion.request import Completion, Request
from codespec.config import Config
from codespec.daemon.beside import Beside, ServerBeside
from codespec.daemon.models import Models
from codespec.edits.request import EditOffer, EditRequest
from codespec.protocols import Cancel, CodespecError
from codespec.worker.decode_thread import DecodeThread
from codespec.worker.edit_model import EditModel
from codespec.worker.jobs import EDIT, Job

logger = logging.getLogger(__name__)


class Session:
    """One language server: its requests go to the decode thread, and the answers back.

    All slow work happens there: ``take`` never waits.

    Args:
        name: unique among the sessions.
        say: sends a message to the language server; from any thread, and never waits.
        about: the status of the process, which is added to the completer's own.
        stop: ends the process, with a reason.
        beside: starts a server for other clients, which ends with the session.
    """

    def __init__(
        self,
        name: str,
        say: Callable[[Mapping[str, Any]], None],
        decode: DecodeThread,
        models: Models,
        about: Callable[[], Mapping[str, Any]],
        stop: Callable[[str], None] = lambda reason: None,
        beside: Beside | None = None,
    ) -> None:
        self._name, self.say = name, say
        self._beside = beside
        self._server: ServerBeside | None = None
        self._decode = decode
        self._models = models
        self._about = about
        self._stop = stop
        self._completer: Completer | RemoteCompleter | None = None
        self._config = Config()
        self._edits: EditModel | None = None
        self._jobs: dict[Any, Job] = {}
        self._lessons: set[object] = set()  # that wait; threads add to it and take from it
        self._ended = False
        self._handlers: dict[str, Callable[[Any, Mapping[str, Any]], None]] = {
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

    def take(self, message: Mapping[str, Any]) -> None:
        """Begin what a message asks for.

        Raises:
            KeyError, TypeError: it is no message.
        """
        self._handlers[message["op"]](message.get("id"), message)

    def end(self) -> None:
        """Stop what the language server has asked for: it is gone."""
        if self._server is not None:
            self._server.stop()
        self._ended = True
        for job in list(self._jobs.values()):
            self._decode.cancel(job)
        if not self._lessons:
            self._models.release(self)

    # What a language server may ask.

    def _open(self, number: Any, message: Mapping[str, Any]) -> None:
        config: Config = message["config"]

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

    def _serve(self, number: Any, message: Mapping[str, Any]) -> None:
        def report(text: str) -> None:
            self.say({"log": [logging.WARNING, "codespec", text]})

        try:
            if self._beside is None or self._server is not None:
                raise CodespecError("this process starts no server, or has started it")
            self._server = self._beside(message["config"], message["options"], self._decode, self._models, report)
            self._reply(number, self._server.url, None)
        except Exception as error:
            self._reply(number, None, error)

    def _complete(self, number: Any, message: Mapping[str, Any]) -> None:
        request: Request = message["request"]

        def work(models: Models, cancel: Cancel) -> list[Completion]:
            with self._begun(number, models, cancel):
                return self._opened.complete(request, cancel)

        self._submit(number, f"{self._name} {message['document']}", work, ahead=message["ahead"])

    def _edit(self, number: Any, message: Mapping[str, Any]) -> None:
        request: EditRequest = message["request"]

        def work(models: Models, cancel: Cancel) -> list[EditOffer] | None:
            with self._begun(number, models, cancel):
                edits = self._edits = models.edit_model(self, self._config)
                try:
                    return edits.next_edit(request, cancel)
                finally:
                    if self._ended:  # perhaps before it had the model
                        models.release(self)

        self._submit(number, f"{self._name} edits", work, gives_way=EDIT)

    def _prefill(self, number: Any, message: Mapping[str, Any]) -> None:
        request: Request = message["request"]

        def work(models: Models, cancel: Cancel) -> None:
            with models.running(cancel):
                self._opened.prefill(request, cancel)

        self._submit(number, f"{self._name} {message['document']}", work, ahead=True, prefill=True)

    # What is learnt waits until nobody asks for anything.

    def _learn(self, number: Any, message: Mapping[str, Any]) -> None:
        request: Request = message["request"]
        offset = request.offset if message["edited"] else None

        def work(completer: Completer | RemoteCompleter) -> None:
            completer.learn(request.text, request.path, request.language, request.workspace, offset)

        # A document that was opened or saved is learnt whole, whatever is asked for afterwards.
        self._later(number, f"{'edited' if message['edited'] else 'document'} {request.path}", work)

    def _accepted(self, number: Any, message: Mapping[str, Any]) -> None:
        request, text = message["request"], message["completion"]
        self._later(number, f"accepted {number}", lambda completer: completer.accepted(request, text))

    def _forget(self, number: Any, message: Mapping[str, Any]) -> None:
        folder = message["workspace"]
        self._later(number, f"forgets {folder}", lambda completer: completer.forget(folder))

    def _later(self, number: Any, key: str, work: Callable[[Completer | RemoteCompleter], None]) -> None:
        failure: list[Exception] = []
        lesson = object()
        self._lessons.add(lesson)

        def learn(models: Models) -> None:
            try:
                if self._completer is not None:
                    work(self._completer)
            except Exception as error:
                failure.append(error)

        def done(future: Future[None]) -> None:
            self._lessons.discard(lesson)
            if self._ended and not self._lessons:
                self._models.release(self)
            self._reply(number, None, failure[0] if failure else None)

        self._decode.later(f"{self._name} {key}", learn).add_done_callback(done)

    def _status(self, number: Any, message: Mapping[str, Any]) -> None:
        completer, edits = self._completer, self._edits
        try:
            status = completer.status(message["languages"]) if completer is not None else {}
            told = {"edits": edits.status() if edits is not None else {"state": "not loaded"}}
            self._reply(number, {**status, **told, **self._about()}, None)
        except Exception as error:  # a file has just gone: no reason to end the connection
            self._reply(number, None, error)

    def _cancel(self, number: Any, message: Mapping[str, Any]) -> None:
        job = self._jobs.get(number)
        if job is not None:
            self._decode.cancel(job)

    def _hasten(self, number: Any, message: Mapping[str, Any]) -> None:
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

    def _submit(self, number: Any, document: str, work: Callable[[Models, Cancel], Any], **how: Any) -> None:
        """``how``: of ``DecodeThread.submit``."""
        job = self._jobs[number] = self._decode.submit(document, work, **how)
        job.future.add_done_callback(partial(self._answer, number))

    def _answer(self, number: Any, future: Future[Any]) -> None:
        self._jobs.pop(number, None)
        error = future.exception()
        self._reply(number, None if error is not None else future.result(), error)

    def _reply(self, number: Any, result: Any, error: BaseException | None) -> None:
        if error is None:
            self.say({"id": number, "result": result})
            return
        known = isinstance(error, CodespecError)
        if not known:
            logger.error("%s: a request failed", self._name, exc_info=error)
        text = str(error) if known else type(error).__name__  # its message may quote a document
        self.say({"id": number, "error": text, "internal": not known})
