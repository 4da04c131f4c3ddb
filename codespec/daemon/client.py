"""The client side of the model process: a completer whose methods are carried out there."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

from codespec.completion.request import Completion, Request
from codespec.config import Config
from codespec.daemon.address import log_file
from codespec.daemon.link import Link, Lost
from codespec.daemon.start import Unreachable, reach, runs
from codespec.daemon.wire import pack_config, unpack_completions, unpack_offers
from codespec.edits.request import EditOffer, EditRequest
from codespec.protocols import Cancel, CodespecError

logger = logging.getLogger(__name__)

MOST_RESTARTS = 5
"""Ends of the process within ``RESTARTS_S`` seconds, after which it is not started again."""
RESTARTS_S = 60.0

STATUS_S = 0.7
"""How long ``status`` waits for the process."""

_TRIES = 4
_TO_BLAME = 2


class SharedCompleter:
    """A completer whose models are in the model process.

    If the process ends, it is started again and the request repeated; a request that has ended it twice is given up.
    For one thread, except ``abort`` and ``status``.

    Args:
        progress: called with a message and percent while the model is loaded.
        report: called with messages for the user, from any thread.

    Raises:
        Unreachable: there is no model process, and none can be started.
        CodespecError: the model cannot be loaded.
    """

    def __init__(
        self,
        config: Config,
        progress: Callable[[str, int], None] | None = None,
        report: Callable[[str], None] | None = None,
    ) -> None:
        self._config = config
        self._progress = progress
        self._report = report or logger.warning
        self._ends: deque[float] = deque(maxlen=MOST_RESTARTS)
        self._running: tuple[Link, int] | None = None
        self._hastened: Cancel | None = None
        self._status: dict[str, Any] = {}
        self._link = Link(reach(), self._lost, self._silent)
        self._open()

    def complete(self, request: Request, cancel: Cancel) -> list[Completion] | None:
        """As ``Completer.complete``; None where it was stopped.

        Raises:
            CodespecError: also where the request has ended the model process.
        """
        return unpack_completions(self._answer("complete", request, cancel, ahead=request.ahead))

    def next_edit(self, request: EditRequest, cancel: Cancel) -> list[EditOffer] | None:
        """As ``EditModel.next_edit``.

        Raises:
            CodespecError: also where the request has ended the model process.
        """
        return unpack_offers(self._answer("edit", request, cancel))

    def _answer(self, op: str, request: Request | EditRequest, cancel: Cancel, **fields: Any) -> Any:
        """What the process answers, unpacked by nobody yet; None where the request was stopped."""
        blamed = 0
        for _ in range(_TRIES):
            link = self._connected()
            try:
                number, reply = link.ask(op, request, **fields)
            except Lost:
                continue
            self._running = link, number
            if cancel.is_set():  # before this was known to run
                self.abort()
            elif self._hastened is cancel:
                self.hasten(cancel)
            try:
                found = reply.result()
                if found is not None or link.alive:  # at its end the process stops whatever it does
                    return found
            except Lost:
                blamed += reply.begun
            finally:
                self._running = None
            if cancel.is_set():
                return None
            if blamed == _TO_BLAME:
                break
        raise CodespecError(f"the model process has ended over a request, which is given up; {log_file()} may say why")

    def prefill(self, request: Request, cancel: Cancel) -> int:
        """As ``Completer.prefill``, but returns at once: the next request stops it in the model process."""
        self._tell("prefill", request)
        return 0

    def learn(self, text: str, path: str, language: str, workspace: str = "", offset: int | None = None) -> None:
        """As ``Completer.learn``, but returns at once."""
        self._tell("learn", text=(path, text), language=language, workspace=workspace, offset=offset)

    def accepted(self, request: Request, text: str) -> None:
        """As ``Completer.accepted``."""
        self._wait("accepted", request, completion=text)

    def forget(self, workspace: str) -> None:
        """As ``Completer.forget``."""
        self._wait("forget", workspace=workspace)

    def status(self, languages: Iterable[str] = ()) -> dict[str, Any]:
        """As ``Completer.status``, and ``process``: ``pid``, ``version``, ``windows``, ``targets`` that are loaded.

        The previous answer, with ``stale``, where the process does not answer within ``STATUS_S``.
        """
        stale = {}
        try:
            self._status = self._link.ask("status", languages=list(languages))[1].result(STATUS_S)
        except Lost:
            pass
        except FutureTimeout:
            stale = {"stale": True}
        # What it said before it fell silent is no longer so.
        return {**self._status, **stale, **({"state": "loading"} if self._link.watch.silent else {})}

    def idle(self, go_on: Callable[[], bool]) -> bool:
        """Do nothing: the model process does its own work in idle time."""
        return True

    @property
    def reading(self) -> bool:
        """False: the model process counts what is stopped, and when."""
        return False

    def hasten(self, cancel: Cancel) -> None:
        """As ``Completer.hasten``."""
        self._hastened, running = cancel, self._running
        if running is not None:
            with contextlib.suppress(Lost):
                running[0].tell("hasten", id=running[1])

    def abort(self) -> None:
        """Stop the running request."""
        # Once: whoever calls this must not wait, and a process that does not read takes only so many messages.
        running, self._running = self._running, None
        if running is not None:
            with contextlib.suppress(Lost):
                running[0].tell("cancel", id=running[1])

    def close(self) -> None:
        """Disconnect from the model process, which keeps the models for a while."""
        self._link.close()

    def _tell(self, op: str, request: Request | None = None, **fields: Any) -> None:
        with contextlib.suppress(Lost):
            self._connected().tell(op, request, **fields)

    def _wait(self, op: str, request: Request | None = None, **fields: Any) -> None:
        for _ in range(_TO_BLAME):
            with contextlib.suppress(Lost):
                link = self._connected()
                link.ask(op, request, **fields)[1].result()
                if link.alive:  # else it may have been dropped at the end of the process
                    return
        raise CodespecError(f"the model process has ended over this; {log_file()} may say why")

    def _lost(self) -> None:
        self._ends.append(time.monotonic())
        servers = self._config.target.rpc  # llama.cpp ends the process over one that goes
        perhaps = f", perhaps since one of {', '.join(servers)} (`target.rpc`) has gone" if servers else ""
        self._report(
            f"the model process has ended unexpectedly{perhaps}; it is started again when it is needed. "
            f"{log_file()} may say why"
        )

    def _silent(self) -> None:
        self._report(
            "the model process does not answer; unless it does within a few seconds it is ended, and another is started"
        )

    def _connected(self) -> Link:
        """The connection, a new one where the last is lost.

        Raises:
            CodespecError: there is none to be had.
        """
        if self._link.alive:
            return self._link
        if len(self._ends) == MOST_RESTARTS and time.monotonic() - self._ends[0] < RESTARTS_S:
            raise CodespecError(
                f"the model process has ended {MOST_RESTARTS} times within a minute; {log_file()} may say why, "
                "`codespec doctor` what is wrong here"
            )
        try:
            self._link = Link(reach(), self._lost, self._silent)
            self._open()
        except Unreachable as error:
            raise CodespecError(str(error)) from error
        return self._link

    def _open(self) -> None:
        """Ask the model process to load the model."""
        for last in (False, True):
            try:
                reply = self._link.ask("open", progress=self._progress, config=pack_config(self._config))[1]
                for problem in reply.result() or ():
                    self._report(problem)
                return
            except Lost:
                if last:
                    raise CodespecError(
                        f"the model process has ended while it loaded the model; {log_file()} may say why"
                    ) from None
            except BaseException:
                self._link.close()  # which has no model: the next request opens another one
                raise
            try:
                self._link = Link(reach(), self._lost, self._silent)
            except Unreachable as error:  # no reason to try here what has ended another process
                raise CodespecError(str(error)) from error


def stop_model_process() -> bool:
    """End the model process of this user, if there is one; whether there was. Language servers start it again."""
    was_there = runs()
    try:
        channel = reach(start=False)
    except Unreachable:  # or it was, and was hung
        return was_there
    try:
        channel.send({"op": "stop"})
        while True:
            channel.receive()
    except (OSError, EOFError):
        return True
    finally:
        channel.close()
