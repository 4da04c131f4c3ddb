"""Logs without text of documents: pygls' own messages quote whatever a client sends."""

from __future__ import annotations

import logging

from pygls.exceptions import JsonRpcException, JsonRpcInternalError


class Discreet(logging.Filter):
    """Lets messages of pygls pass without their arguments, which may be messages of the client, and exceptions as no
    more than their kind. What a client did wrong, and is told in the answer, is no message at all."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change a record; False drops it."""
        kind, error = record.exc_info[:2] if record.exc_info else (None, None)
        if isinstance(error, JsonRpcException) and not isinstance(error, JsonRpcInternalError):
            return False
        text = record.msg if isinstance(record.msg, str) else type(record.msg).__name__
        if record.args or "\n" in text:
            text = text.partition("%")[0].partition("\n")[0].rstrip(" '\"") + " …"
        record.msg = f"{text} ({kind.__name__})" if kind is not None else text
        record.args, record.exc_info, record.exc_text, record.stack_info = (), None, None, None
        return True


_DISCREET = Discreet()


def make_discreet() -> None:
    """See that nothing pygls logs from now on, at whatever level, holds what a client sent."""
    for name in list(logging.root.manager.loggerDict):
        if name.split(".")[0] == "pygls":  # filters do not hold for the loggers below
            logging.getLogger(name).addFilter(_DISCREET)


def describe(error: Exception) -> str:
    """What kind of error it is, and where it happened: not its message, which may quote a document."""
    kind = type(error).__name__
    if isinstance(error, JsonRpcInternalError) and isinstance(error.data, dict):
        kind = error.message.partition(":")[0]
        return kind + "\n" + "".join(error.data.get("traceback", ()))
    return kind
