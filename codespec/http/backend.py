"""What the server has of the models."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from codespec.completion.completer import Completer
from codespec.completion.remote_completer import RemoteCompleter
from codespec.completion.request import Request
from codespec.engine.engine import Generating
from codespec.errors import CodespecError
from codespec.protocols import Cancel
from codespec.worker.decode_thread import DecodeThread
from codespec.worker.jobs import OTHER_CLIENT, QUESTION, Job

if TYPE_CHECKING:
    from codespec.config import Config
    from codespec.daemon.models import Models

logger = logging.getLogger(__name__)

Work: TypeAlias = Callable[[Completer, Cancel], Any]


class Backend:
    """A completer over an engine that windows may share. Every method may be called from any thread.

    Args:
        report: told why the model could not be loaded.
        loaded: called once it is.

    Attributes:
        state: ``loading``, ``ready`` or ``failed``.
    """

    def __init__(
        self,
        decode: DecodeThread,
        models: Models,
        config: Config,
        report: Callable[[str], None],
        loaded: Callable[[], None] = lambda: None,
    ) -> None:
        self._loaded = loaded
        self._decode, self._models, self._config, self._report = decode, models, config, report
        self._numbers = count(1)
        self._completer: Completer | RemoteCompleter | None = None
        self.state = "loading"
        self._closed = False

    def open(self) -> None:
        """Have the model loaded in the background; ``state`` tells how far it is."""
        self._decode.submit(self._name("opens"), self._open).future.add_done_callback(self._opened)

    def _name(self, what: object) -> str:
        return f"http {id(self)} {what}"

    def _open(self, models: Models, cancel: Cancel) -> None:
        self._completer = models.completer(self, self._config, lambda text, percent: None)
        self.state = "ready"
        if self._closed:
            models.release(self)

    def _opened(self, future: Future[Any]) -> None:
        error = future.exception()
        if error is None:
            self._loaded()
        else:
            self.state = "failed"
            if isinstance(error, CodespecError):
                self._report(str(error))
            else:
                self._report(f"the model could not be loaded: {type(error).__name__}")
                logger.error("what raised it:", exc_info=error)

    @property
    def together(self) -> bool:
        """Whether several requests can be written side by side."""
        return isinstance(self._completer, Completer) and self._completer.engine.slots is not None

    def submit(self, work: Work, documents: Iterable[Request] = (), engine: Generating | None = None) -> Job:
        """Have work done in the decode thread; editors' requests go first, and stop it. It is done again, with the
        model on this machine, where an engine elsewhere is away.

        Args:
            documents: texts of files that the model is shown; private ones are sent nowhere.
            engine: with which it was begun; None: it was not.
        """
        return self._submit(work, OTHER_CLIENT, documents, engine)

    def ask(self, question: Work) -> Job:
        """Have a question answered, which takes milliseconds: it goes before editors' requests, and stops none."""
        return self._submit(question, QUESTION)

    def cancel(self, job: Job) -> None:
        """Stop a job within one target call."""
        self._decode.cancel(job)

    def _submit(
        self, work: Work, gives_way: int, documents: Iterable[Request] = (), engine: Generating | None = None
    ) -> Job:
        def run(models: Models, cancel: Cancel) -> Any:
            completer = self._completer
            with models.running(cancel):
                if isinstance(completer, RemoteCompleter):
                    return completer.answer(lambda each: work(each, cancel), documents, engine)
                if completer is None:
                    raise CodespecError("the model could not be loaded")
                return work(completer, cancel)

        return self._decode.submit(self._name(next(self._numbers)), run, gives_way=gives_way)

    def close(self) -> None:
        """Give the engine up, so that it may be freed."""
        self._closed = True
        self._decode.cancel_document(self._name("opens"))
        self._models.release(self)
