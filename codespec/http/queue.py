"""A fair queue before one engine: clients take turns, each with its oldest request; several are written side by side.

The event loop chooses who is written (``FairQueue``). The decode thread writes, in jobs that are short where there are
several (``_run``): a question or another server's request need not wait for the longest text.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeAlias

from codespec.completion.completer import Completer
from codespec.engine.engine import Generating
from codespec.engine.slots import SLOTS, Slots
from codespec.errors import CodespecError
from codespec.http.backend import Backend
from codespec.http.errors import HttpError, superseded, unloaded
from codespec.http.generation import Writing
from codespec.http.limits import HttpLimits
from codespec.http.order import Emit, Order, Piece, Totals
from codespec.llama.runtime import Either
from codespec.protocols import Cancel
from codespec.remote.errors import RemoteError
from codespec.worker.jobs import Job

if TYPE_CHECKING:
    from codespec.http.metrics import Metrics

_LOOK_S = 0.005
"""Between two looks for what was written."""
_LEFT_S = 0.0004
"""For which the decode thread leaves its CPU to the event loop after a first piece: otherwise threads that compute on
all CPUs hold it up for 2 ms."""
_JOB_S = 0.25
"""For which several requests are written in one job."""

Ended: TypeAlias = "list[tuple[Ticket, Totals | Exception]]"
"""Tickets whose texts are written, and those that failed."""


@dataclass(eq=False)
class Ticket:
    """A request in the queue.

    Attributes:
        client: takes turns with the others.
        written: pieces that the decode thread has written and the event loop has not looked at.
        watched: whether the event loop will look for more without being told.
        events: pieces, then the totals or what went wrong.
        came: in seconds of ``monotonic``.
        answered: whether a piece was written.
        told: whether a piece was handed over.
        unwanted: set once nobody waits for the answer any more.
    """

    client: str
    order: Order
    work: Writing
    written: deque[Piece] = field(default_factory=deque)
    watched: bool = False
    events: asyncio.Queue[Piece | Totals | Exception] = field(default_factory=asyncio.Queue)
    came: float = field(default_factory=monotonic)
    over: bool = False
    unwanted: threading.Event = field(default_factory=threading.Event)
    answered: bool = False
    told: bool = False


class FairQueue:
    """Hands requests to the decode thread. For the event loop's thread; ``begin`` it there.

    Args:
        between: called in the decode thread between two passes.
    """

    def __init__(
        self,
        backend: Backend,
        limits: HttpLimits,
        metrics: Metrics,
        between: Callable[[Generating], object],
    ) -> None:
        self._backend, self._limits, self._metrics, self._between = backend, limits, metrics, between
        self._waiting: OrderedDict[str, deque[Ticket]] = OrderedDict()
        # That are written; never changed, but replaced: the decode thread looks at it.
        self._running: list[Ticket] = []
        self._more = threading.Event()  # there are more of them than when it looked last
        self._job: Job | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> None:
        """From now on, in this event loop."""
        self._loop = asyncio.get_running_loop()

    @property
    def waiting(self) -> int:
        """How many requests wait for their turn."""
        return sum(map(len, self._waiting.values()))

    def add(self, client: str, order: Order) -> Ticket:
        """Put an order in; the client's older one of the same session ends.

        Raises:
            HttpError: 503 while there is no model, 429 where too many wait.
        """
        self.check_ready()
        limits, own = self._limits, len(self._waiting.get(client, ()))
        if self.waiting >= limits.waiting or own >= limits.waiting_of_client:
            whose = "of yours " if own >= limits.waiting_of_client else ""
            message = f"{self.waiting if not whose else own} requests {whose}wait already; try again later"
            raise HttpError(429, message, code="queue_full", headers={"Retry-After": "1"})
        if order.session:
            self._supersede(client, order.session)
        ticket = Ticket(client, order, Writing(order))
        self._waiting.setdefault(client, deque()).append(ticket)
        self._next()
        return ticket

    def check_ready(self) -> None:
        """Whether there is a model.

        Raises:
            HttpError: there is none yet, or it could not be loaded.
        """
        state = self._backend.state
        if state == "loading":
            raise HttpError(503, "Loading model", code="loading", headers={"Retry-After": "1"})
        if state != "ready":
            raise HttpError(503, "the model could not be loaded; see the server's log", code="no_model")

    def cancel(self, ticket: Ticket) -> None:
        """Nobody wants the answer any more: it stops within one pass."""
        if ticket.over:
            return
        ticket.unwanted.set()
        own = self._waiting.get(ticket.client)
        if own is not None and ticket in own:
            own.remove(ticket)
            if not own:
                del self._waiting[ticket.client]
            ticket.over = True
        elif self._job is not None and self._running == [ticket] and not ticket.work.has_slot:
            self._backend.cancel(self._job)  # whose future ends the ticket
        self._tell()

    def _supersede(self, client: str, session: str) -> None:
        for ticket in [*self._waiting.get(client, ()), *self._running]:
            if ticket.client == client and ticket.order.session == session and not ticket.over:
                ticket.events.put_nowait(superseded())
                self.cancel(ticket)

    def _next(self) -> None:
        """Let the next clients' oldest requests run: one, or as many as can be written side by side."""
        while self._waiting and (not self._running or self._joins(next(iter(self._waiting.values()))[0])):
            client, own = self._waiting.popitem(last=False)
            ticket = own.popleft()
            if own:
                self._waiting[client] = own  # behind all others
            self._running = [*self._running, ticket]
            self._more.set()
            self._metrics.begun(monotonic() - ticket.came)
        if self._running and self._job is None:
            first = self._running[0]
            job = self._job = self._backend.submit(self._run, first.order.documents(), first.work.engine)
            job.future.add_done_callback(lambda future: self._post(self._ended, job))
        self._tell()

    def _joins(self, ticket: Ticket) -> bool:
        """Whether a request can be written beside those that are."""
        together = len(self._running) < SLOTS and self._backend.together
        return together and all(each.work.sociable for each in (ticket, *self._running))

    # In the decode thread.

    def _run(self, completer: Completer, cancel: Cancel) -> Ended:
        """Write, until a request has ended or there was some time for several."""
        if completer.engine.slots is not None:
            completer.use_no_document()  # an editor's request before this job may have used another adapter
        began, most = monotonic(), 0
        while not cancel.is_set():
            self._more.clear()
            tickets, slots = self._running, completer.engine.slots
            most = max(most, len(tickets))
            work = tickets[0].work
            if slots is None or (not work.has_slot and (len(tickets) == 1 or self._waits_for_all(tickets))):
                ended = self._alone(tickets[0], completer, cancel)
            else:
                ended = self._side_by_side(tickets, slots, completer, cancel)
                if not any(each.work.has_slot for each in tickets):  # another server's requests have all slots
                    return ended
            if ended:
                return ended
            if monotonic() - began > _JOB_S:
                if most == 1:  # the others are gone: it goes on alone, with all drafts
                    tickets[0].work.release_slot(goes_on=True)
                return []
        return []

    def _waits_for_all(self, tickets: list[Ticket]) -> bool:
        """Whether the first request is too long for a slot, and nobody else has one."""
        return tickets[0].work.long and not any(each.work.has_slot for each in tickets)

    def _alone(self, ticket: Ticket, completer: Completer, cancel: Cancel) -> Ended:
        """Write one request, until it ends or others come."""
        emit = self._emits(ticket, completer.engine)
        try:
            totals = ticket.work.run(completer, Either(cancel, Either(self._more, ticket.unwanted)), emit)
        except RemoteError:
            if not ticket.answered:  # another model may write it from the beginning
                ticket.work = Writing(ticket.order)
            raise
        except Exception as error:
            return [(ticket, error)]
        finally:
            self._post(self._metrics.spent, ticket.work.spent())
        return [(ticket, totals)] if ticket.work.over or ticket.unwanted.is_set() else []

    def _side_by_side(self, tickets: list[Ticket], slots: Slots, completer: Completer, cancel: Cancel) -> Ended:
        """Write some tokens of each request."""
        ended: Ended = []
        try:
            for ticket in tickets:
                try:
                    if not ticket.unwanted.is_set():
                        ticket.work.take_slot(completer, slots, cancel, self._emits(ticket, completer.engine))
                except Exception as error:
                    ended.append((ticket, error))
                    continue
                if not (ticket.unwanted.is_set() or ticket.work.has_slot or ticket.work.over):
                    break  # nobody overtakes who has no slot
            by_text = {ticket.work.slot_text: ticket for ticket in tickets if ticket.work.slot_text is not None}
            silent = [ticket for ticket in by_text.values() if not ticket.answered]
            for text, chunk in slots.step(list(by_text), cancel):
                ticket = by_text[text]
                try:
                    ticket.work.take(chunk, self._emits(ticket, completer.engine))
                except Exception as error:
                    ended.append((ticket, error))
            if any(ticket.answered for ticket in silent):
                sleep(_LEFT_S)
            self._between(completer.engine)
        except CodespecError as error:  # a pass has failed: nobody's text can go on
            ended = [(ticket, error) for ticket in tickets]
        failed = [ticket for ticket, _ in ended]
        done = [each for each in tickets if each not in failed and (each.unwanted.is_set() or each.work.over)]
        ended += [(ticket, ticket.work.totals) for ticket in done]
        for ticket, _ in ended:
            ticket.work.release_slot()
            self._post(self._metrics.spent, ticket.work.spent())
        return ended

    def _emits(self, ticket: Ticket, engine: Generating) -> Emit:
        def emit(piece: Piece) -> None:
            first, ticket.answered = not ticket.answered, True
            ticket.written.append(piece)
            if not ticket.watched:
                ticket.watched = True
                self._post(self._watch, ticket)
            if not ticket.work.has_slot:
                if first:
                    sleep(_LEFT_S)
                self._between(engine)

        return emit

    # In the event loop's thread.

    def _post(self, function: Callable[..., None], *arguments: Any) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop is closed: nobody listens
            self._loop.call_soon_threadsafe(function, *arguments)

    def _watch(self, ticket: Ticket) -> None:
        """Hand over what was written, and look again soon: waking the event loop and the client for every token of a
        small model takes as long as a tenth of its pass."""
        if self._hand_over(ticket):
            assert self._loop is not None
            self._loop.call_later(_LOOK_S, self._watch, ticket)
            return
        ticket.watched = False
        if ticket.written:  # by the decode thread, which did not know yet
            ticket.watched = True
            self._watch(ticket)

    def _hand_over(self, ticket: Ticket) -> bool:
        """Whether there was anything."""
        if not ticket.written:
            return False
        if not ticket.told:
            ticket.told = True
            self._metrics.first(monotonic() - ticket.came)
        while ticket.written:
            piece = ticket.written.popleft()
            if not ticket.over:
                ticket.events.put_nowait(piece)
        return True

    def _ended(self, job: Job) -> None:
        self._job = None
        future: Any = job.future
        error = future.exception()
        ended: Ended | None = future.result() if error is None else [(each, error) for each in self._running]
        if ended is None:  # stopped for an editor's request, or because nobody waits, or for good
            unwanted = [each for each in self._running if each.unwanted.is_set()]
            gone = unwanted if job.overtaken or unwanted else self._running
            ended = [(each, unloaded()) for each in gone]
        over = [ticket for ticket, _ in ended]
        self._running = [each for each in self._running if each not in over]
        for ticket, result in ended:
            self._hand_over(ticket)
            ticket.over = True
            ticket.events.put_nowait(result)
        self._next()  # behind an editor's request, where that came

    def _tell(self) -> None:
        self._metrics.queued(self.waiting, len(self._running))
