"""What a crash leaves behind: nothing of what was in memory."""

from __future__ import annotations

import logging
import threading
import traceback
from contextlib import suppress
from types import TracebackType
from typing import TextIO

from codespec.errors import CodespecError

_SAYS_NO_TEXT = (CodespecError, OSError, ImportError, MemoryError)
"""Exceptions whose messages are about files and settings; those of others may quote what they could not handle."""


def keep_no_memory() -> None:
    """Have this process and its children write no core dump, which would hold the texts of documents.

    Only the soft limit is changed: whoever debugs a process may raise it again (``prlimit --core=unlimited``).
    """
    with suppress(ImportError, OSError, ValueError):  # there is no such limit on Windows
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def log_to(stream: TextIO, form: str, level: int) -> None:
    """Have all logs, and exceptions that end threads, written to a stream in this form, without texts of documents."""
    output = logging.StreamHandler(stream)
    output.setFormatter(StackFormatter(form))
    logging.basicConfig(handlers=[output], level=level, force=True)

    def ended(thread: threading.ExceptHookArgs) -> None:
        error = thread.exc_value
        if error is not None and not isinstance(error, SystemExit):
            logging.getLogger("codespec").error("a thread has failed", exc_info=error)

    threading.excepthook = ended


class StackFormatter(logging.Formatter):
    """Writes where an exception was raised and of which kind it is, and its message only where that quotes no text."""

    def formatException(  # logging's name
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    ) -> str:
        """The exception and what it was raised from."""
        parts: list[str] = []
        error = ei[1]
        seen: set[int] = set()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            said = f": {error}" if isinstance(error, _SAYS_NO_TEXT) else ""
            stack = "".join(traceback.format_tb(error.__traceback__))
            parts.append(f"Traceback (most recent call last):\n{stack}{type(error).__name__}{said}")
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\n\nafterwards:\n\n".join(reversed(parts))
