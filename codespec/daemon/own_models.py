"""Models in this process: of a window, or a server, that shares them with no other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from codespec.daemon.link import LocalLink

if TYPE_CHECKING:
    from codespec.config import Config
    from codespec.daemon.models import Models
    from codespec.engine.engine import Engine
    from codespec.worker.decode_thread import DecodeThread


class OwnModels:
    """What the model process has, here; made when it is first needed, since it loads native libraries.

    Args:
        load: loads an engine, given settings and what is told of the progress; None is the usual way.
        models: makes the models, given ``load`` if there is one.
    """

    def __init__(
        self,
        load: Callable[[Config, Callable[[str, int], None] | None], Engine] | None = None,
        models: Callable[..., Models] | None = None,
    ) -> None:
        self._load, self._models = load, models
        self._lock = threading.Lock()
        self._made: tuple[DecodeThread, Models] | None = None

    def get(self) -> tuple[DecodeThread, Models]:
        """The decode thread, and the models that it uses; from any thread."""
        with self._lock:
            if self._made is None:
                from codespec.daemon.models import Models
                from codespec.worker.decode_thread import DecodeThread

                make = self._models or Models
                models = make() if self._load is None else make(self._load)
                self._made = DecodeThread(models), models
            return self._made

    def link(self) -> LocalLink:
        """A new session with these models, called without a socket; they are loaded at the first request."""
        from codespec.daemon.session import Session

        decode, models = self.get()
        return LocalLink(lambda say: Session("this window", say, decode, models, decode.status))

    def close(self, timeout: float) -> None:
        """Stop everything and free the models, for so many seconds at most."""
        if self._made is not None:
            self._made[0].close(timeout)
