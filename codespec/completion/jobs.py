"""What the decode thread has to do, and with whom."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from codespec.completion.request import Request
    from codespec.protocols import Cancel

logger = logging.getLogger(__name__)


class Worker(Protocol):
    """What the decode thread calls, each as in ``Completer``; what a request is, is between it and who submits it."""

    def complete(self, request: Any, cancel: Cancel) -> Any:
        """Carry out a request; None where it was stopped."""
        ...

    def prefill(self, request: Any, cancel: Cancel) -> Any:
        """Read its prompt."""
        ...

    def hasten(self, request: Any) -> None:
        """Somebody waits for a request by now that runs, and was ahead of one; from any thread."""
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
    """A completer of a language server: ``Completer`` itself, or what stands for one in another process."""

    def learn(self, text: str, path: str, language: str, workspace: str = "", offset: int | None = None) -> None:
        """Learn a document."""
        ...

    def accepted(self, request: Request, text: str) -> None:
        """Learn a completion."""
        ...

    def forget(self, workspace: str) -> None:
        """Forget what a workspace taught."""
        ...


@dataclass(eq=False)
class Job:
    """A request on its way through the decode thread.

    Attributes:
        document: the jobs of one document replace each other.
        future: the completions, None where the request was superseded or given up, or what the completer raised.
        cancel: set once nobody wants the answer any more.
        ahead: nobody waits for it yet: every other request goes first, and stops it.
        prefill: only the prompt is to be decoded; there are no completions.
        key: equal for jobs that ask for the same; None is like no other.
        stopped: when it was stopped, in seconds of ``perf_counter``; 0 if it was not.
        reading: whether it was stopped while a prompt was read.
    """

    document: str
    request: Any
    ahead: bool = False
    prefill: bool = False
    key: Any = None
    future: Future[Any] = field(default_factory=Future)
    cancel: threading.Event = field(default_factory=threading.Event)
    stopped: float = 0.0
    reading: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether the completions are there."""
        done = self.future.done() and not self.future.cancelled() and self.future.exception() is None
        return done and self.future.result() is not None

    def resolve(self, completions: Any) -> None:
        """Answer, unless somebody else has."""
        try:
            if not self.future.done():
                self.future.set_result(completions)
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
