"""What is loaded and how it does: as an answer to a command, and as a notification whenever that has changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codespec.lsp.session import CodespecServer

STATUS = "codespec.status"
"""The command that tells what is loaded and how it has done so far."""

NOTIFICATION = "codespec/status"
"""The notification that tells a part of that."""

EVERY_S = 0.5
"""Between two notifications at least."""

_TOLD = (
    "state",
    "target",
    "draft",
    "drafts",
    "grammar",
    "language",
    "acceptance",
    "tokens_per_second",
    "from_memory_share",
)


def status_of(ls: CodespecServer, language: str = "") -> dict[str, Any]:
    """The state of the models, what is in force for a language, and counts. May wait for another process.

    Args:
        language: empty is the one of the latest request.
    """
    config = ls.settings.config
    language = language or ls.language
    own = config.for_language(language)
    names = sorted({*config.language, *ls.languages, *([language] if language else [])})
    models = ls.decode.status(names)
    if models["state"] == "ready":
        models["state"] = "off" if not config.enabled else "busy" if ls.decoding else "ready"
    drafts = {name: _draft(config.for_language(name).draft, models.get("drafts", {}).get(name)) for name in names}
    drafted, requests = models.get("drafted", 0), ls.requests
    return {
        **models,
        "language": language,
        "draft": drafts.get(language, own.draft),
        "drafts": drafts,
        "draft_in_use": models.get("draft"),
        "grammar": own.grammar,
        "enabled": own.enabled,
        "languages": {name: _in_force(ls, name) for name in names},
        "acceptance": round(models.get("accepted", 0) / drafted, 3) if drafted else None,
        "requests": requests,
        "from_memory": ls.from_memory,
        "memory_ms": ls.answers.from_memory(),
        "from_memory_share": round(ls.from_memory / requests, 3) if requests else None,
    }


def _draft(wanted: str, found: str | None) -> str:
    """The name of the model that drafts by a setting; ``found`` is what ``auto`` means, None before that is known."""
    return found or wanted if wanted == "auto" else wanted


def _in_force(ls: CodespecServer, language: str) -> dict[str, Any]:
    own = ls.settings.config.for_language(language)
    return {"draft": own.draft, "grammar": own.grammar, "enabled": own.enabled}


class Reporter:
    """Sends ``codespec/status`` when something of it has changed, twice a second at most."""

    def __init__(self, server: CodespecServer) -> None:
        self._server = server
        self._sent: dict[str, Any] | None = None
        self._pending: asyncio.Task[None] | None = None
        self._again = False

    def touch(self) -> None:
        """Something may have changed."""
        if not self._server.settings.config.status:
            return
        if self._pending is None:
            self._pending = asyncio.create_task(self._report())
        else:
            self._again = True

    async def _report(self) -> None:
        while True:
            self._again = False
            try:
                status = await asyncio.to_thread(status_of, self._server)
                told = {key: status.get(key) for key in _TOLD}
                if told != self._sent:
                    self._sent = told
                    self._server.protocol.notify(NOTIFICATION, told)
            except OSError:
                return  # the client is gone
            await asyncio.sleep(EVERY_S)
            if not self._again:
                break
        self._pending = None
