"""The server in the model process: what starts it there, and what asks for that from another process."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from codespec.config import Config
from codespec.daemon.client import MOST_RESTARTS, RESTARTS_S
from codespec.daemon.link import Lost, SocketLink
from codespec.daemon.models import Models
from codespec.daemon.start import reach
from codespec.errors import CodespecError
from codespec.http.backend import Backend
from codespec.http.defaults import defaults_of
from codespec.http.security import Access
from codespec.http.server import HttpServer
from codespec.worker.decode_thread import DecodeThread

_LOOK_S = 0.2
"""Seconds between two looks at whether the model process is there."""


class SharedServer(HttpServer):
    """A server with a model of the model process."""

    def __init__(self, address: tuple[str, int], access: Access, config: Config, backend: Backend) -> None:
        super().__init__(address, access, defaults_of(config), backend)
        self._backend = backend

    def stop(self) -> None:
        """End soon, and give the model back."""
        super().stop()
        self._backend.close()


def start(
    config: Config, options: Mapping[str, Any], decode: DecodeThread, models: Models, report: Callable[[str], None]
) -> SharedServer:
    """Start a server; see ``codespec.daemon.beside.Beside``.

    Raises:
        CodespecError: as ``HttpServer``.
    """
    address = (str(options["host"]), int(options["port"]))
    access = Access(address[0], tuple(options["keys"]), tuple(options["origins"]))
    backend = Backend(decode, models, config, report)
    server = SharedServer(address, access, config, backend)
    backend.open()
    server.start()
    return server


def serve_in_model_process(
    address: tuple[str, int],
    access: Access,
    config: Config,
    announce: Callable[[str], None],
) -> NoReturn:
    """Have the model process serve, and start it again where it ends.

    Args:
        announce: told where the server listens, and what went wrong.

    Raises:
        Unreachable: there is no model process, and none can be started.
        CodespecError: the server cannot be started, or the process has ended too often.
    """
    ends: deque[float] = deque(maxlen=MOST_RESTARTS)
    options = {"host": address[0], "port": address[1], "keys": access.keys, "origins": access.origins}
    while True:
        link = SocketLink(reach(), lambda expected: None)
        try:
            url = link.ask("serve", config=config, options=options).result()
            announce(f"listening on {url}, with the models of all windows")
            # The port stays the same where the process is started again.
            options["port"] = int(url.rpartition(":")[2])
            while link.alive:
                time.sleep(_LOOK_S)
        except Lost:
            pass
        finally:
            link.close()
        _check(ends)
        announce("the model process has ended; it is started again")


def _check(ends: deque[float]) -> None:
    """Note that the process has ended.

    Raises:
        CodespecError: it has ended too often.
    """
    ends.append(time.monotonic())
    if len(ends) == MOST_RESTARTS and ends[-1] - ends[0] < RESTARTS_S:
        raise CodespecError(f"the model process has ended {MOST_RESTARTS} times within a minute")
