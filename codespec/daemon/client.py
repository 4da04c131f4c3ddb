"""The client of the models: what a language server asks, sent to the model process or to models of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import Any

from codespec.config import Config
from codespec.daemon.address import log_file
from codespec.daemon.asked import Asked, in_thread
from codespec.daemon.link import Link, LocalLink, Lost, Reply, SocketLink
from codespec.daemon.own_models import OwnModels
from codespec.daemon.start import Unreachable, reach, stop_model_process
from codespec.protocols import CodespecError

logger = logging.getLogger(__name__)

MOST_RESTARTS = 5
"""Ends of the process within ``RESTARTS_S`` seconds, after which it is not started again."""
RESTARTS_S = 60.0

STATUS_S = 0.7
"""How long ``status`` waits for the process."""

_TO_BLAME = 2


class ModelClient:
    """Has the models of one language server do its work.

    What is asked for before the model is loaded is sent then. If the model process ends, it is started again and sent
    what has no answer; a request that has ended it twice is given up. For the thread of the event loop, but ``status``.

    Args:
        report: called with what the user should know, and whether it is to be shown and not only logged; from any
            thread.
        own: has the models where they are not shared.
        shared: whether they may be, where the settings say so.

    Attributes:
        state: ``loading``, ``ready`` or ``failed``.
    """

    def __init__(self, report: Callable[[str, bool], None], own: OwnModels, shared: bool = True) -> None:
        self._report, self._own, self._shared = report, own, shared
        self.state = "loading"
        self._config = Config()
        self._loads = 0
        self._link: Link | None = None
        self._connecting = asyncio.Lock()
        self._opened = False  # the link has a model
        self._opening: asyncio.Task[None] | None = None
        self._asked: dict[str, Asked] = {}
        self._ends: deque[float] = deque(maxlen=MOST_RESTARTS)
        self._closing = False
        self._status: dict[str, Any] = {}

    @property
    def accepts(self) -> bool:
        """Whether anything is done. False after ``close``, and where the model could not be loaded."""
        return not self._closing and self.state != "failed"

    def load(
        self, config: Config, progress: Callable[[str, int], None], done: Callable[[Exception | None], None]
    ) -> None:
        """Have the models of these settings loaded; what is asked for by then gets the new ones.

        Args:
            progress: called with a message and percent, from any thread.
            done: called at the end, with what went wrong or None; not where another ``load`` came first.
        """
        if self._closing:
            return
        self._config, self.state, self._opened = config, "loading", False
        self._loads += 1
        for asked in list(self._asked.values()):
            if asked.reply is not None:
                self._tell("cancel", asked)
                if asked.reply.begun:
                    self._end(asked)
                asked.reply = None
        self._opening = asyncio.get_running_loop().create_task(self._load(self._loads, progress, done))

    def submit(self, op: str, document: str, *, ahead: bool = False, key: Any = None, **fields: Any) -> Asked:
        """Ask for something. What was asked for the same document is stopped, and answered with None, unless it was
        ahead and has the same key: then it goes on, as this.

        Args:
            op: see ``daemon.wire``.
            ahead: nobody waits for it yet. It is done only if there is nothing else to do, and is stopped by whatever
                comes.
        """
        older = self._asked.get(document)
        if older is not None and older.ahead and key is not None and older.key == key:
            if not ahead:
                older.ahead = False
                self._tell("hasten", older)
            return older
        asked = Asked(op, document, fields, ahead, key)
        busy = any(not each.ahead and not each.lesson for each in self._asked.values())
        if not self.accepts or (ahead and busy):
            asked.resolve(None)
            return asked
        if older is not None:
            self._end(older)  # the model process stops it when it gets this
        self._asked[document] = asked
        self._send(asked)
        return asked

    def prefill(self, document: str, request: Any) -> None:
        """Have the prompt of a request read, if there is nothing else to do."""
        if self._opened and self._link is not None:
            with contextlib.suppress(Lost):
                self._link.ask("prefill", document=document, request=request)

    def cancel(self, asked: Asked) -> None:
        """Stop what nobody wants any more, within one target call."""
        self._tell("cancel", asked)
        self._end(asked)

    def cancel_document(self, document: str) -> None:
        """Stop what was asked for a document."""
        asked = self._asked.get(document)
        if asked is not None:
            self.cancel(asked)

    def give_up(self, asked: Asked) -> None:
        """Answer None where nothing has begun."""
        if asked.reply is None or not asked.reply.begun:
            self.cancel(asked)

    def status(self, languages: Iterable[str] = ()) -> dict[str, Any]:
        """``state``, and what the models say of themselves; from any thread.

        The previous answer, with ``stale``, where none comes within ``STATUS_S``, or an error.
        """
        link, stale = self._link, {}
        if link is not None:
            try:
                self._status = link.ask("status", languages=list(languages)).result(STATUS_S)
            except Lost:
                pass
            except (FutureTimeout, CodespecError, RuntimeError):
                stale = {"stale": True}
        # What it said before it fell silent is no longer so.
        silent = link is not None and link.silent
        return {"state": self.state, **self._status, **stale, **({"state": "loading"} if silent else {})}

    def close(self) -> None:
        """Stop everything; the model process keeps the models for a while."""
        self._closing = True
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            for asked in list(self._asked.values()):
                self._end(asked)
        if self._link is not None:
            self._link.close()

    def end_process(self) -> None:
        """End the model process, if the models are there; other windows start it again, too. May take a moment."""
        if isinstance(self._link, SocketLink):
            stop_model_process()

    def _end(self, asked: Asked) -> None:
        """Nobody wants it any more."""
        asked.cancelled = True
        self._forget(asked)
        asked.resolve(None)

    def _forget(self, asked: Asked) -> None:
        if self._asked.get(asked.document) is asked:
            del self._asked[asked.document]

    def _tell(self, op: str, asked: Asked) -> None:
        if self._link is not None and asked.reply is not None and not asked.reply.done():
            with contextlib.suppress(Lost):
                self._link.tell(op, id=asked.reply.number)

    # Sending, and what comes back.

    def _send(self, asked: Asked) -> None:
        link = self._link
        if self._opened and link is not None and link.alive:
            with contextlib.suppress(Lost):
                fields = {"document": asked.document, "ahead": asked.ahead, **asked.fields}
                reply = asked.reply = link.ask(asked.op, **fields)
                reply.add_done_callback(self._soon(self._answered, link, asked))
                return
        if self.state == "ready" and self._opening is None:
            if link is not None and self._opened:
                self._detach(link)  # it has said good-bye, or just went
            else:
                self._begin_again()

    def _soon(self, call: Callable[..., None], *arguments: Any) -> Callable[..., None]:
        """``call`` from any thread, in that of the event loop."""
        loop = asyncio.get_running_loop()

        def post(*more: Any) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the session is over
                loop.call_soon_threadsafe(partial(call, *arguments), *more)

        return post

    def _answered(self, link: Link, asked: Asked, reply: Reply) -> None:
        if asked.reply is not reply:
            return
        error = reply.exception()
        if isinstance(error, Lost):  # see `_ended`
            return
        if error is None and reply.result() is None and not link.alive:
            self._detach(link)  # at its end the process stops whatever it does
            return
        self._forget(asked)
        if error is not None:
            asked.fail(error)
        else:
            asked.resolve(reply.result())

    def _ended(self, link: Link, expected: bool) -> None:
        if self._closing:
            return
        if not expected:
            self._ends.append(time.monotonic())
            servers = self._config.target.rpc  # llama.cpp ends the process over one that goes
            perhaps = f", perhaps since one of {', '.join(servers)} (`target.rpc`) has gone" if servers else ""
            self._report(
                f"the model process has ended unexpectedly{perhaps}; it is started again when it is needed. "
                f"{log_file()} may say why",
                True,
            )
        self._detach(link)

    def _detach(self, link: Link) -> None:
        """Ask this link no more, and another one what has no answer."""
        if link is not self._link or self._closing:
            return
        self._link, opened = None, self._opened
        self._opened = False
        if link.expected:
            link.close()
        for asked in list(self._asked.values()):
            asked.blamed += asked.reply is not None and asked.reply.begun and not link.expected
            asked.reply = None
            if asked.blamed == _TO_BLAME:
                self._forget(asked)
                asked.fail(
                    CodespecError(
                        f"the model process has ended over a request, which is given up; {log_file()} may say why"
                    )
                )
        if opened and self._asked and self._opening is None:
            self._begin_again()

    # Loading.

    def _begin_again(self) -> None:
        self._opening = asyncio.get_running_loop().create_task(self._reopen(self._loads))

    async def _load(
        self, number: int, progress: Callable[[str, int], None], done: Callable[[Exception | None], None]
    ) -> None:
        failure: Exception | None = None
        try:
            await self._open(progress, again=False)
        except Exception as error:
            failure = error
        if number == self._loads and not self._closing:
            self.state = "failed" if failure is not None else "ready"
            self._settle(None)
            done(failure)

    async def _reopen(self, number: int) -> None:
        failure: Exception | None = None
        try:
            if len(self._ends) == MOST_RESTARTS and time.monotonic() - self._ends[0] < RESTARTS_S:
                raise CodespecError(
                    f"the model process has ended {MOST_RESTARTS} times within a minute; {log_file()} may say why, "
                    "`codespec doctor` what is wrong here"
                )
            await self._open(lambda text, percent: None, again=True)
        except Exception as error:
            failure = error
        if number == self._loads and not self._closing:
            self._settle(failure)

    def _settle(self, failure: Exception | None) -> None:
        """Nothing is being opened any more: send what waits, or answer it."""
        self._opening = None
        for asked in list(self._asked.values()):
            if failure is not None:
                self._forget(asked)
                asked.fail(failure)
            elif self.state == "failed":
                self._end(asked)
            else:
                self._send(asked)

    async def _open(self, progress: Callable[[str, int], None], again: bool) -> None:
        """Have the model loaded.

        Args:
            again: it was, so that the process must be there.

        Raises:
            CodespecError, RuntimeError: it cannot be.
        """
        number, config = self._loads, self._config
        for last in (False, True):
            async with self._connecting:
                link = await self._connected(again or last)
            try:
                problems = await asyncio.wrap_future(link.ask("open", progress, config=config))
            except Lost:
                if last:
                    raise CodespecError(
                        f"the model process has ended while it loaded the model; {log_file()} may say why"
                    ) from None
                continue
            except BaseException:
                if number == self._loads and link is self._link and again:
                    self._link = None  # it has no model: the next request opens another one
                    link.close()
                raise
            for problem in problems or ():
                self._report(problem, True)
            if number == self._loads:
                self._opened = link is self._link and link.alive
            return

    async def _connected(self, again: bool) -> Link:
        """The link, a new one where the last is lost or is not what the settings want.

        Raises:
            CodespecError: there is none to be had.
        """
        shared = self._shared and self._config.shared
        link = self._link
        if link is not None and link.alive and shared is not isinstance(link, LocalLink):
            return link
        if link is not None:
            self._link = None
            link.close()
        if shared:
            try:
                self._link = await self._reach()
            except Unreachable as error:
                if again:
                    raise CodespecError(str(error)) from error
                self._report(f"{error}; the models are loaded in this window's own process", False)
        if self._link is None:
            self._link = await in_thread(self._own.link)  # which loads native libraries
        return self._link

    async def _reach(self) -> SocketLink:
        channel = await in_thread(reach)
        found: list[Link] = []
        ended = self._soon(lambda expected: self._ended(found[0], expected))
        link = SocketLink(channel, ended, self._silent)
        found.append(link)
        return link

    def _silent(self) -> None:
        self._report(
            "the model process does not answer; unless it does within a few seconds it is ended, "
            "and another is started",
            True,
        )
