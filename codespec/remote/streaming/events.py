"""The lines of streams: server-sent events, or a JSON object on each line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from codespec.remote.errors import Away
from codespec.terminal import printable

LONGEST_MESSAGE = 200
"""Characters of an engine's message that are shown."""
_OTHER_FIELDS = (b"event:", b"id:", b"retry:")

End = Literal["", "stop", "length", "filtered"]
"""Why an engine ended a text; empty: it has not."""


@dataclass(frozen=True)
class Piece:
    """What one line of a stream says.

    Attributes:
        text: added to the text.
        tokens: its ids, where the engine tells them.
        end: why the text ends with it; empty where it goes on.
        count: tokens that the engine has generated so far; None where it does not tell.
        prompt_tokens, reused_tokens: of the prompt, decoded for this request and kept from earlier ones.
        prompt_ms, token_ms: what decoding the prompt took, and one token takes.
    """

    text: str = ""
    tokens: tuple[int, ...] = ()
    end: End = ""
    count: int | None = None
    prompt_tokens: int | None = None
    reused_tokens: int | None = None
    prompt_ms: float | None = None
    token_ms: float | None = None


DONE: dict[str, Any] = {}
"""The event that ends a stream."""


def event(line: bytes, host: str) -> dict[str, Any] | None:
    """The object of a server-sent event; None where a line has none: blank ones, comments, other fields.

    Raises:
        Away: it is no event, or one that tells of an error.
    """
    if not line.strip() or line.startswith(b":") or line.startswith(_OTHER_FIELDS):
        return None
    field, colon, value = line.partition(b":")
    if not colon or field not in (b"data", b"error"):  # llama.cpp's older servers name a field `error`
        raise Away(f"{host}: the stream holds what is no event")
    value = value.strip()
    return DONE if value == b"[DONE]" else record(value, host)


def record(line: bytes, host: str) -> dict[str, Any] | None:
    """The object on a line of its own; None where the line is blank.

    Raises:
        Away: it is none, or one that tells of an error.
    """
    if not line.strip():
        return None
    try:
        # A character that is cut in two becomes U+FFFD, which ends the text.
        found = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise Away(f"{host}: the stream holds what is no JSON") from None
    if not isinstance(found, dict):
        raise Away(f"{host}: the stream holds what is no object")
    error = found.get("error")
    if error is not None or found.get("object") == "error":
        raise Away(f"{host} failed within the stream{_said(found if error is None else error)}")
    return found


def _said(error: object) -> str:
    said = error.get("message") if isinstance(error, dict) else error
    return f": {printable(said)[:LONGEST_MESSAGE]}" if isinstance(said, str) and said else ""


def text_of(value: object) -> str:
    """A text field, empty where it is null or something else."""
    return value if isinstance(value, str) else ""


def whole(value: object) -> int | None:
    """A count, None where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def number(value: object) -> float | None:
    """A number, None where it is none."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def table(value: object) -> dict[str, Any]:
    """An object, empty where it is none."""
    return value if isinstance(value, dict) else {}
