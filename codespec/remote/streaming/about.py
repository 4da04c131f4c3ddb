"""What an engine says of itself: its model, and how much of a text that has room for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from codespec.remote.connection import Connection
from codespec.remote.errors import Refused
from codespec.remote.streaming.asked import Streamer
from codespec.remote.streaming.events import table, text_of, whole


@dataclass(frozen=True)
class About:
    """What is known of an engine's model.

    Attributes:
        model: its name.
        asked_for: the name that requests give; empty where the engine needs none.
        context: tokens of prompt and text; 0 where it does not tell.
    """

    model: str
    asked_for: str
    context: int = 0


def about(connection: Connection, streamer: Streamer, kind: str, model: str) -> About:
    """What an engine says of the model of the settings, or of its only or first one.

    Raises:
        Away: it says nothing.
        Refused: it lists no models, and the settings name none.
    """
    wanted = model or streamer.default_model
    if not streamer.models:
        return About(wanted, wanted)
    try:
        listed = _models(connection.get(streamer.models))
    except Refused:
        if not wanted and kind != "llama-server":
            raise
        listed = []
    first = next((each for each in listed if not wanted or _name(each) == wanted), {})
    context = whole(first.get("max_model_len")) or 0
    if kind == "llama-server":
        # It has one model, and needs no name; a server with several takes the one that the settings name.
        return About(wanted or _name(first), model, _slot(connection) or context)
    found = wanted or _name(first)
    if not found:
        raise Refused(f"{connection.address.host} has no model; load one there, or name it as `remote.model`")
    return About(found, found, context)


def _models(answer: Any) -> list[dict[str, Any]]:
    found = table(answer)
    listed = found.get("data", found.get("models"))
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _name(model: dict[str, Any]) -> str:
    return text_of(model.get("id")) or text_of(model.get("name"))


def _slot(connection: Connection) -> int:
    """The context length of a slot of llama-server."""
    try:
        found = table(connection.get("/props"))
    except Refused:
        return 0
    return whole(table(found.get("default_generation_settings")).get("n_ctx")) or 0
