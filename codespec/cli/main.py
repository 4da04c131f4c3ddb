"""The command line. Everything heavy is imported by the command that needs it: ``--help`` stays fast."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codespec.cli import show
from codespec.cli.complete import run_complete, run_generate
from codespec.cli.grammar import run_grammar_accepts, run_grammar_check
from codespec.cli.learnt import run_learnt_clear
from codespec.cli.models import (
    run_models_inspect,
    run_models_list,
    run_models_pull,
    run_models_remove,
    run_models_suggest,
    run_models_use,
)
from codespec.cli.options import build_parser
from codespec.cli.serve import run_serve
from codespec.cli.setup import run_setup
from codespec.crash import keep_no_memory
from codespec.errors import CodespecError
from codespec.exit_codes import ANSWER_IS_NO, BAD_INPUT, DONE, INTERNAL
from codespec.extras import remedy
from codespec.terminal import guarded
from codespec.worker.malloc_trim import lasting


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code: 0 done, 1 the answer is no, 2 bad usage or input, 3 internal failure."""
    return run_command(build_parser(), COMMANDS, arguments)


def run_command(
    parser: argparse.ArgumentParser,
    commands: Mapping[str, Callable[[argparse.Namespace], int]],
    arguments: Sequence[str] | None = None,
) -> int:
    """Run the command that the arguments name; returns its exit code, as ``main`` does."""
    keep_no_memory()
    with guarded():
        return _run(parser, commands, arguments)


def _run(
    parser: argparse.ArgumentParser,
    commands: Mapping[str, Callable[[argparse.Namespace], int]],
    arguments: Sequence[str] | None,
) -> int:
    options = parser.parse_args(arguments)
    if not hasattr(options, "command"):
        parser.print_help()
        return BAD_INPUT
    logging.basicConfig(level=logging.DEBUG if options.debug else logging.WARNING, format="%(name)s: %(message)s")
    try:
        return commands[options.command](options)
    except CodespecError as error:
        if options.debug:
            raise
        show.error(str(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader went away, as `| head` does; nothing more can be said to it.
        sys.stderr.close()
        return DONE
    except Exception as error:
        if options.debug:
            raise
        show.error(f"internal failure: {type(error).__name__}: {error}; run again with --debug and report what it says")
        return INTERNAL


def run_model_process(options: argparse.Namespace) -> int:
    """``codespec model-process``, which language servers start."""
    if options.stop:
        from codespec.daemon.start import stop_model_process

        return DONE if stop_model_process() else ANSWER_IS_NO
    with lasting():
        from codespec.daemon.process import run

    return run(options.name, _http_beside)


def _http_beside(*arguments: Any) -> Any:
    """Start the server for HTTP in the model process, see ``Beside``.

    Raises:
        CodespecError: packages are missing, or as ``HttpServer``.
    """
    try:
        from codespec.http.in_model_process import start
    except ImportError as error:
        raise CodespecError(f"--http needs more packages ({error}): {remedy('http')}") from error
    return start(*arguments)


def run_train(options: argparse.Namespace) -> int:
    """``codespec train``: hand an action over to ``codespec.train``.

    Raises:
        CodespecError: its packages are not installed.
    """
    try:
        from codespec.train import distil, pipeline
    except ImportError as error:
        raise CodespecError(f"training needs more packages ({error.name} is missing): {remedy('train')}") from None
    try:
        if options.model == "fim":
            from codespec.config import load
            from codespec.train.filling import pipeline as filling

            options.target = options.target or load()[0].target.path
            return filling.run(options)
        of_run_folder = options.out is not None and (options.out / "target" / "checkpoint.pt").exists()
        apart = options.model == "draft" and (options.target or options.vocabulary)
        if apart or (options.model == "draft" and not of_run_folder):
            from codespec.config import load

            if options.passes > 1:
                raise CodespecError("--passes is for a run folder with its own target; for a GGUF file set --minutes")
            options.target = options.target or ("" if options.vocabulary else load()[0].target.path)
            return distil.run(options)
        if options.model == "draft" and options.trim:
            raise CodespecError("--trim is for a target in a GGUF file: name it with --target")
        return pipeline.run(options)
    except ValueError as error:
        raise CodespecError(str(error)) from error


def run_doctor(options: argparse.Namespace) -> int:
    """``codespec doctor``; exits with 1 if there are problems."""
    from codespec.cli.doctor import report

    return DONE if report() else ANSWER_IS_NO


COMMANDS = {
    "setup": run_setup,
    "doctor": run_doctor,
    "complete": run_complete,
    "generate": run_generate,
    "serve": run_serve,
    "model-process": run_model_process,
    "grammar check": run_grammar_check,
    "grammar accepts": run_grammar_accepts,
    "models list": run_models_list,
    "models inspect": run_models_inspect,
    "models pull": run_models_pull,
    "models remove": run_models_remove,
    "models use": run_models_use,
    "models suggest": run_models_suggest,
    "learnt clear": run_learnt_clear,
    "train": run_train,
}
