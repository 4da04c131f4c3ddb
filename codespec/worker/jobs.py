"""Jobs of the decode thread, and what it needs of the models."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from codespec.protocols import Cancel

logger = logging.getLogger(__name__)

QUESTION, EDIT, OTHER_CLIENT = -1, 1, 2
"""How much next edits, and the requests of clients that are no editors, give way."""


class Worker(Protocol):
    """Where the decode thread has the models: it hands this to the work of every job, and calls these itself."""

    def idle(self, go_on: Callable[[], bool]) -> bool:
        """Use the time; whether nothing is left to do."""
        ...

    @property
    def reading(self) -> bool:
        """Whether a prompt is being prefilled; from any thread."""
        ...

    def abort(self) -> None:
        """Stop what runs; from any thread."""
        ...

    def close(self) -> None:
        """Free the models; nothing runs on them afterwards."""
        ...


class Priority(Protocol):
    """Of the process that computes, against other programs."""

    def may_work_ahead(self) -> bool:
        """Whether to do now what nobody waits for; from the thread that would."""
        ...

    def somebody_waits(self) -> None:
        """Compute as fast as possible from now on; from any thread."""
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
    gives_way: int = 0
    overtaken: bool = False
    future: Future[Any] = field(default_factory=Future)
    cancel: threading.Event = field(default_factory=threading.Event)
    stopped: float = 0.0
    reading: bool = False

    def resolve(self, result: Any) -> None:
        """Answer, unless somebody else has."""
        try:
            if not self.future.done():
                self.future.set_result(result)
        except InvalidStateError:
            pass  # cancelled between the two lines

    def fail(self, error: BaseException) -> None:
        """Answer with an error, unless somebody else has answered."""
        try:
            if not self.future.done():
                self.future.set_exception(as_exception(error))
        except InvalidStateError:
            pass


def as_exception(error: BaseException) -> Exception:
    """``error``; for a panic of native code, which would end an event loop, an ordinary error that names its type."""
    if isinstance(error, Exception):
        return error
    return RuntimeError(type(error).__name__).with_traceback(error.__traceback__)


@dataclass(eq=False)
class Task:
    """Something to do with the models when no request waits.

    Attributes:
        future: done when that was done, or never will be.
    """

    work: Callable[[Any], None]
    future: Future[None] = field(default_factory=Future)

    def run(self, worker: Worker) -> None:
        """Do it; what goes wrong is logged."""
        try:
            self.work(worker)
        except BaseException:
            logger.exception("a task of the decode thread failed")
        self.end()

    def end(self) -> None:
        """Nobody needs to wait any more."""
        try:
            if not self.future.done():
                self.future.set_result(None)
        except InvalidStateError:
            pass  # cancelled between the two lines
