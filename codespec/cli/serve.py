"""``codespec serve``: the language server, and the server for clients that speak HTTP."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from codespec.errors import CodespecError
from codespec.exit_codes import DONE
from codespec.worker.malloc_trim import lasting

if TYPE_CHECKING:
    from codespec.config import Config
    from codespec.http.security import Access
    from codespec.worker.decode_thread import DecodeThread


def run_serve(options: argparse.Namespace) -> int:
    """``codespec serve``."""
    with_editor = bool(options.stdio or options.tcp or options.ws)
    if options.http is not None and not with_editor:
        return _run_http(options)
    with lasting():
        from codespec.config import load
        from codespec.daemon.start import begin

        if not options.in_process and load()[0].shared:
            begin()  # now, since it takes as long to be ready as this server: both at once
        from codespec.lsp import serve

    return serve(
        stdio=not (options.tcp or options.ws),
        tcp=options.tcp,
        ws=options.ws,
        token_file=options.token_file,
        in_process=options.in_process,
        beside=_beside(options) if options.http is not None else None,
    )


def _run_http(options: argparse.Namespace) -> int:
    """The server for HTTP without a language server: in the model process, or here."""
    with lasting():
        config, access = _settings(options)
        from codespec.http.in_model_process import Unreachable, serve_in_model_process

    if config.shared and not options.in_process and not options.exact:
        try:
            serve_in_model_process(options.http, access, config, _announce)
        except Unreachable as error:
            _announce(f"{error}; the model is loaded here")
        except KeyboardInterrupt:
            return DONE
    from codespec.completion.load import load_completer
    from codespec.http.defaults import defaults_of
    from codespec.http.server import serve_http

    return serve_http(
        options.http,
        access,
        defaults_of(config),
        lambda: load_completer(config, patient=False, exact=options.exact),
        announce=_announce,
    )


def _beside(options: argparse.Namespace) -> Callable[[DecodeThread], None]:
    """What starts the server for HTTP beside a language server, with its models."""
    config, access = _settings(options)

    def shared() -> None:
        from codespec.http.in_model_process import Unreachable, serve_in_model_process

        try:
            serve_in_model_process(options.http, access, config, _announce)
        except (Unreachable, CodespecError) as error:  # another window's server may have the port: it answers
            _announce(f"no HTTP here: {error}")

    def start(decode: DecodeThread) -> None:
        if config.shared and not options.in_process:
            threading.Thread(target=shared, name="http", daemon=True).start()
            return
        from codespec.http.backend import OwnModels
        from codespec.http.defaults import defaults_of
        from codespec.http.server import HttpServer

        try:
            server = HttpServer(options.http, access, defaults_of(config), OwnModels(decode))
        except CodespecError as error:
            _announce(f"no HTTP here: {error}")
            return
        server.start()
        _announce(f"listening on {server.url}")

    return start


def _settings(options: argparse.Namespace) -> tuple[Config, Access]:
    """The settings of the user's file, and what the options say.

    Raises:
        CodespecError: packages are missing, or the server would be open to others.
    """
    from dataclasses import replace

    from codespec.config import load

    try:
        from codespec.http.security import Access
        from codespec.http.server import keys_of
    except ImportError as error:
        raise CodespecError(f"--http needs more packages ({error}): pip install 'codespec[http]'") from error
    config, messages = load()
    for message in messages:
        _announce(message)
    if options.target is not None:
        config = replace(config, target=replace(config.target, path=options.target))
    config = replace(config, time_budget_ms=0)  # an editor's
    access = Access(options.http[0], keys_of(options.api_key_file), tuple(options.http_cors))
    access.check()
    return config, access


def _announce(text: str) -> None:
    print(f"codespec: {text}", file=sys.stderr, flush=True)
