"""``codespec serve``: the language server, and the server for clients that speak HTTP."""

from __future__ import annotations

import argparse
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from codespec.errors import CodespecError
from codespec.exit_codes import DONE
from codespec.extras import remedy
from codespec.worker.malloc_trim import lasting

if TYPE_CHECKING:
    from codespec.config import Config
    from codespec.daemon.own_models import OwnModels
    from codespec.engine.engine import Engine
    from codespec.http.security import Access

RETRY_S = 2.0
"""Seconds between two looks at a port that another window's server has."""


def run_serve(options: argparse.Namespace) -> int:
    """``codespec serve``: a language server, an HTTP server, or both, until it is stopped; the exit code.

    Raises:
        CodespecError: the options do not go together, or HTTP's packages are missing.
    """
    alone = options.http is not None and not options.stdio
    if not alone and (options.target is not None or options.exact):
        raise CodespecError("--target and --exact need --http without --stdio; a language server follows the settings")
    if options.http is None and (options.api_key_file is not None or options.http_cors):
        raise CodespecError("--api-key-file and --http-cors need --http: add it, or leave them out")
    if alone:
        return _run_http(options)
    with lasting():
        from codespec.config import load
        from codespec.daemon.start import begin

        if not options.in_process and load()[0].shared:
            begin()  # now, since it takes as long to be ready as this server: both at once
        from codespec.daemon.own_models import OwnModels
        from codespec.lsp import serve

    return serve(
        own=OwnModels() if options.in_process else None,
        beside=_beside(options) if options.http is not None else None,
    )


def _run_http(options: argparse.Namespace) -> int:
    """The server for HTTP without a language server: in the model process, or here."""
    with lasting():
        config, access = _settings(options)
        from codespec.crash import log_to
        from codespec.daemon.start import Unreachable
        from codespec.http.in_model_process import serve_in_model_process

    log_to(sys.stderr, "%(name)s: %(message)s", logging.root.level)
    if config.shared and not options.in_process and not options.exact:
        try:
            serve_in_model_process(options.http, access, config, _announce)
        except Unreachable as error:
            _announce(f"{error}; the model is loaded here")
        except KeyboardInterrupt:
            return DONE
    from codespec.completion.load import load_engine
    from codespec.daemon.own_models import OwnModels
    from codespec.http.defaults import defaults_of
    from codespec.http.server import serve_http

    def load(config: Config, progress: Callable[[str, int], None] | None) -> Engine:
        return load_engine(config, progress, exact=options.exact)

    return serve_http(options.http, access, defaults_of(config), config, OwnModels(load), _announce)


def _beside(options: argparse.Namespace) -> Callable[[OwnModels], None]:
    """What starts the server for HTTP beside a language server, with its models."""
    config, access = _settings(options)
    shared = config.shared and not options.in_process

    def run(own: OwnModels) -> None:
        if shared:
            from codespec.http.in_model_process import serve_in_model_process

            serve_in_model_process(options.http, access, config, _announce)
            return
        from codespec.http.backend import Backend
        from codespec.http.defaults import defaults_of
        from codespec.http.server import HttpServer

        backend = Backend(*own.get(), config, _announce)
        server = HttpServer(options.http, access, defaults_of(config), backend)
        _announce(f"listening on {server.url}")
        backend.open()
        server.run()

    def start(own: OwnModels) -> None:
        threading.Thread(target=_take_turns, args=(options.http, partial(run, own)), name="http", daemon=True).start()

    return start


def _take_turns(address: tuple[str, int], run: Callable[[], None]) -> None:
    """Serve; where another window's server has the port, that answers, and this one once it is gone."""
    from codespec.daemon.start import Unreachable

    while True:
        try:
            run()
            return
        except (Unreachable, CodespecError) as error:
            taken = _is_taken(address)
            _announce(f"no HTTP here{' as long as another program has the port' if taken else ''}: {error}")
            if not taken:
                return
        while _is_taken(address):
            time.sleep(RETRY_S)


def _is_taken(address: tuple[str, int]) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection(address, timeout=RETRY_S).close()
    except OSError:
        return False
    return True


def _settings(options: argparse.Namespace) -> tuple[Config, Access]:
    """The settings of the user's file, and what the options say.

    Raises:
        CodespecError: packages are missing, the server would be open to others, or there is no such target.
    """
    from dataclasses import replace

    from codespec.config import load
    from codespec.models.registry import file_or_model

    try:
        from codespec.http.security import Access
        from codespec.http.server import keys_of
    except ImportError as error:
        raise CodespecError(f"--http needs more packages ({error}): {remedy('http')}") from error
    config, messages = load()
    for message in messages:
        _announce(message)
    if options.target is not None:
        target = file_or_model(options.target)
        if not target.is_file():
            raise CodespecError(f"{target}: no such model file; name a .gguf file or a model of `codespec models list`")
        config = replace(config, target=replace(config.target, path=str(target)))
    config = replace(config, time_budget_ms=0)  # an editor's
    access = Access(options.http[0], keys_of(options.api_key_file), tuple(options.http_cors))
    access.check()
    return config, access


def _announce(text: str) -> None:
    print(f"codespec: {text}", file=sys.stderr, flush=True)
