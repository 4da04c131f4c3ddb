"""Where the model is: in a decode thread of this process, alone or beside others that share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from codespec.completion.completer import Completer
from codespec.completion.remote_completer import RemoteCompleter
from codespec.completion.request import Request
from codespec.engine.engine import Engine
from codespec.errors import CodespecError
from codespec.protocols import Cancel
from codespec.worker.decode_thread import DecodeThread
from codespec.worker.editing_completer import EditingCompleter
from codespec.worker.jobs import OTHER_CLIENT, QUESTION, Job

if TYPE_CHECKING:
    from codespec.config import Config
    from codespec.daemon.models import Models

Work: TypeAlias = Callable[[Completer, Cancel], Any]


class Backend(Protocol):
    """Runs work with a completer, one at a time. Every method may be called from any thread."""

    @property
    def state(self) -> str:
        """``loading``, ``ready`` or ``failed``."""
        ...

    def submit(self, work: Work, documents: Iterable[Request] = (), engine: Engine | None = None) -> Job:
        """Have work done in the decode thread; editors' requests go first, and stop it. It is done again, with the
        model on this machine, where an engine elsewhere is away.

        Args:
            documents: texts of files that the model is shown; private ones are sent nowhere.
            engine: with which it was begun; None: it was not.
        """
        ...

    def ask(self, question: Work) -> Job:
        """Have a question answered, which takes milliseconds: it goes before editors' requests, and stops none."""
        ...

    def cancel(self, job: Job) -> None:
        """Stop a job within one target call."""
        ...


class OwnModels:
    """The completer that a decode thread has as its worker: of a server alone, or of a language server."""

    def __init__(self, decode: DecodeThread) -> None:
        self._decode, self._numbers = decode, count(1)
        self.cancel = decode.cancel

    @property
    def state(self) -> str:
        """As ``Backend.state``."""
        return self._decode.state

    def submit(self, work: Work, documents: Iterable[Request] = (), engine: Engine | None = None) -> Job:
        """As ``Backend.submit``."""
        return self._submit(lambda worker, cancel: _done(work, worker, cancel, documents, engine), OTHER_CLIENT)

    def ask(self, question: Work) -> Job:
        """As ``Backend.ask``."""
        return self._submit(lambda worker, cancel: _done(question, worker, cancel), QUESTION)

    def _submit(self, work: Callable[[Any, Cancel], Any], gives_way: int) -> Job:
        return self._decode.submit(f"http {next(self._numbers)}", work, gives_way=gives_way)


class SharedModels:
    """A completer of the model process, over an engine that windows may share.

    Args:
        report: told why the model could not be loaded.
    """

    def __init__(self, decode: DecodeThread, models: Models, config: Config, report: Callable[[str], None]) -> None:
        self._decode, self._models, self._config, self._report = decode, models, config, report
        self._numbers = count(1)
        self._completer: Completer | RemoteCompleter | None = None
        self.state = "loading"
        self.cancel = decode.cancel
        self._closed = False
        decode.submit(self._name("opens"), self._open).future.add_done_callback(self._opened)

    def _name(self, what: object) -> str:
        return f"http {id(self)} {what}"

    def _open(self, models: Models, cancel: Cancel) -> None:
        self._completer = models.completer(self, self._config, lambda text, percent: None)
        self.state = "ready"
        if self._closed:
            models.release(self)

    def _opened(self, future: Future[Any]) -> None:
        error = future.exception()
        if error is not None:
            self.state = "failed"
            self._report(str(error) if isinstance(error, CodespecError) else type(error).__name__)

    def submit(self, work: Work, documents: Iterable[Request] = (), engine: Engine | None = None) -> Job:
        """As ``Backend.submit``."""

        return self._submit(lambda cancel: _done(work, self._completer, cancel, documents, engine), OTHER_CLIENT)

    def ask(self, question: Work) -> Job:
        """As ``Backend.ask``."""
        return self._submit(lambda cancel: _done(question, self._completer, cancel), QUESTION)

    def _submit(self, work: Callable[[Cancel], Any], gives_way: int) -> Job:
        def run(models: Models, cancel: Cancel) -> Any:
            with models.running(cancel):
                return work(cancel)

        return self._decode.submit(self._name(next(self._numbers)), run, gives_way=gives_way)

    def close(self) -> None:
        """Give the engine back."""
        self._closed = True
        self._decode.cancel_document(self._name("opens"))
        self._models.release(self)


def _done(
    work: Work, worker: Any, cancel: Cancel, documents: Iterable[Request] = (), engine: Engine | None = None
) -> Any:
    """What work gives with the completer of a worker."""
    if isinstance(worker, EditingCompleter):  # a language server's
        worker = worker.completer
    if isinstance(worker, RemoteCompleter):
        return worker.answer(lambda completer: work(completer, cancel), documents, engine)
    return work(worker, cancel)
