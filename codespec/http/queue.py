"""A fair queue before one engine: clients take turns, each with its oldest request."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from codespec.completion.completer import Completer
from codespec.engine.engine import Generating
from codespec.http.backend import Backend
from codespec.http.errors import HttpError, superseded, unloaded
from codespec.http.generation import Writing
from codespec.http.limits import HttpLimits
from codespec.http.order import Order, Piece, Totals
from codespec.protocols import Cancel
from codespec.remote.errors import RemoteError
from codespec.worker.jobs import Job

if TYPE_CHECKING:
    from codespec.http.metrics import Metrics

_LOOK_S = 0.005
"""Between two looks for what was written."""
_LEFT_S = 0.0004
"""For which the decode thread leaves its CPU to the event loop after the first piece: otherwise threads that compute on
all CPUs hold it up for 2 ms."""


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
        unwanted: whether nobody waits for the answer any more.
    """

    client: str
    order: Order
    work: Writing
    written: deque[Piece] = field(default_factory=deque)
    watched: bool = False
    events: asyncio.Queue[Piece | Totals | Exception] = field(default_factory=asyncio.Queue)
    came: float = field(default_factory=monotonic)
    job: Job | None = None
    over: bool = False
    unwanted: bool = False
    answered: bool = False
    told: bool = False


class FairQueue:
    """Hands requests to the decode thread one by one. For the event loop's thread; ``begin`` it there.

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
        self._running: Ticket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> None:
        """From now on, in this event loop."""
        self._loop = asyncio.get_running_loop()

    @property
    def waiting(self) -> int:
        """Requests that wait."""
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
        ticket.unwanted = True
        own = self._waiting.get(ticket.client)
        if own is not None and ticket in own:
            own.remove(ticket)
            if not own:
                del self._waiting[ticket.client]
            ticket.over = True
        elif ticket.job is not None:
            self._backend.cancel(ticket.job)  # whose future ends the ticket
        self._tell()

    def _supersede(self, client: str, session: str) -> None:
        running = [self._running] if self._running is not None else []
        for ticket in [*self._waiting.get(client, ()), *running]:
            if ticket.client == client and ticket.order.session == session and not ticket.over:
                ticket.events.put_nowait(superseded())
                self.cancel(ticket)

    def _next(self) -> None:
        """Let the next client's oldest request run, if none does."""
        if self._running is None and self._waiting:
            client, own = self._waiting.popitem(last=False)
            ticket = own.popleft()
            if own:
                self._waiting[client] = own  # behind all others
            self._running = ticket
            self._metrics.begun(monotonic() - ticket.came)
            self._submit(ticket)
        self._tell()

    def _submit(self, ticket: Ticket) -> None:
        job = ticket.job = self._backend.submit(self._job(ticket), ticket.order.documents(), ticket.work.engine)
        job.future.add_done_callback(lambda future: self._post(self._ended, ticket, job))

    def _job(self, ticket: Ticket) -> Callable[[Completer, Cancel], Totals]:
        def run(completer: Completer, cancel: Cancel) -> Totals:
            def emit(piece: Piece) -> None:
                first, ticket.answered = not ticket.answered, True
                ticket.written.append(piece)
                if not ticket.watched:
                    ticket.watched = True
                    self._post(self._watch, ticket)
                if first:
                    sleep(_LEFT_S)
                self._between(completer.engine)

            try:
                return ticket.work.run(completer, cancel, emit)
            except RemoteError:
                if not ticket.answered:  # another model may write it from the beginning
                    ticket.work = Writing(ticket.order)
                raise
            finally:
                self._post(self._metrics.spent, ticket.work.spent())

        return run

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

    def _ended(self, ticket: Ticket, job: Job) -> None:
        future: Any = job.future
        result = future.exception() or future.result()
        if result is None and job.overtaken and not ticket.unwanted:
            self._submit(ticket)  # behind the editor's request
            return
        self._hand_over(ticket)
        ticket.over = True
        ticket.events.put_nowait(result if result is not None else unloaded())
        if self._running is ticket:
            self._running = None
            self._next()

    def _tell(self) -> None:
        self._metrics.queued(self.waiting, int(self._running is not None))
