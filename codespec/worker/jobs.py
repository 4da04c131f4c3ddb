"""Jobs of the decode thread, and what it needs of the models."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from codespec.completion.request import Completion, Request
    from codespec.edits.request import EditOffer, EditRequest
    from codespec.protocols import Cancel

logger = logging.getLogger(__name__)

QUESTION, EDIT, OTHER_CLIENT = -1, 1, 2
"""How much next edits, and the requests of clients that are no editors, give way."""


class Worker(Protocol):
    """What the decode thread has models in: it hands them to the work of every job, and calls these methods itself."""

    def hasten(self, cancel: Cancel) -> None:
        """Somebody waits by now for the work that runs with this flag, and was ahead; from any thread."""
        ...

    def idle(self, go_on: Callable[[], bool]) -> bool:
        """Use the time; whether nothing is left to do."""
        ...

    @property
    def reading(self) -> bool:
        """Whether it reads a prompt just now; from any thread."""
        ...

    def status(self, languages: Iterable[str] = ()) -> dict[str, Any]:
        """In plain data, with the ``drafts`` of languages; from any thread."""
        ...

    def abort(self) -> None:
        """Stop what runs; from any thread."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...


class Priority(Protocol):
    """Of the process that computes, against other programs."""

    def may_work_ahead(self) -> bool:
        """Whether to do now what nobody waits for; from the thread that would."""
        ...

    def somebody_waits(self) -> None:
        """Compute as fast as possible from now on; from any thread."""
        ...


class Completes(Worker, Protocol):
    """A completer: ``Completer`` itself, or what stands for one."""

    def complete(self, request: Request, cancel: Cancel) -> list[Completion] | None:
        """Completions; None where the request was stopped."""
        ...

    def prefill(self, request: Request, cancel: Cancel) -> int:
        """Read the prompt of a request."""
        ...

    def learn(self, text: str, path: str, language: str, workspace: str = "", offset: int | None = None) -> None:
        """Learn a document."""
        ...

    def accepted(self, request: Request, text: str) -> None:
        """Learn a completion."""
        ...

    def forget(self, workspace: str) -> None:
        """Forget what a workspace taught."""
        ...


class CompletesAndEdits(Completes, Protocol):
    """What a language server has: a completer that also predicts next edits, here or in another process."""

    def next_edit(self, request: EditRequest, cancel: Cancel) -> list[EditOffer] | None:
        """One offer at most; None where the request was stopped."""
        ...


@dataclass(eq=False)
class Job:
    """Work on its way through the decode thread.

    Attributes:
        document: the jobs of one document replace each other.
        work: called there with the worker and ``cancel``.
        future: what that returned, None where the job was superseded or given up, or what was raised.
        cancel: set once nobody wants the answer any more.
        ahead: nobody waits for it yet: every other request goes first, and stops it.
        prefill: only a prompt is read; a step of that is always finished.
        key: equal for jobs that ask for the same; None is like no other.
        gives_way: somebody waits for it, and yet every request that somebody waits for and that gives way less goes
            first, and stops it: 0 for completions, then ``EDIT``, then ``OTHER_CLIENT``; ``QUESTION``, which takes
            milliseconds, goes before all of them, and stops none.
        overtaken: whether it was stopped for such a request, and may be submitted again.
        stopped: when it was stopped, in seconds of ``perf_counter``; 0 if it was not.
        reading: whether it was stopped while a prompt was read.
    """

    document: str
    work: Callable[[Any, Cancel], Any]
    ahead: bool = False
    prefill: bool = False
    key: Any = None
    gives_way: int = 0
    overtaken: bool = False
    future: Future[Any] = field(default_factory=Future)
    cancel: threading.Event = field(default_factory=threading.Event)
    stopped: float = 0.0
    reading: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether the completions are there."""
        done = self.future.done() and not self.future.cancelled() and self.future.exception() is None
        return done and self.future.result() is not None

    def resolve(self, result: Any) -> None:
        """Answer, unless somebody else has."""
        try:
            if not self.future.done():
                self.future.set_result(result)
        except InvalidStateError:
            pass  # cancelled between the two lines

    def fail(self, error: Exception) -> None:
        """Answer with an error, unless somebody else has answered."""
        try:
            if not self.future.done():
                self.future.set_exception(error)
        except InvalidStateError:
            pass


@dataclass(eq=False)
class Task:
    """Something to do with the completer when no request waits.

    Attributes:
        future: done when that was done, or never will be.
    """

    work: Callable[[Any], None]
    future: Future[None] = field(default_factory=Future)

    def run(self, completer: Worker) -> None:
        """Do it; what goes wrong is logged."""
        try:
            self.work(completer)
        except Exception:
            logger.exception("a task of the decode thread failed")
        self.end()

    def end(self) -> None:
        """Nobody needs to wait any more."""
        try:
            if not self.future.done():
                self.future.set_result(None)
        except InvalidStateError:
            pass  # cancelled between the two lines
