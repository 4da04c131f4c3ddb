"""The status of a session: models, settings in force, counts."""

from __future__ import annotations

from typing import Any

from codespec.lsp.session import CodespecServer

STATUS = "codespec.status"
"""The command that returns the status."""


def status_of(ls: CodespecServer, language: str = "") -> dict[str, Any]:
    """The state of the models, the settings in force for a language, and counts. May wait for another process.

    Args:
        language: empty is that of the latest request.
    """
    config = ls.settings.config
    language = language or ls.usage.language
    own = config.for_language(language)
    names = sorted({*config.language, *ls.usage.languages, *([language] if language else [])})
    models = ls.models.status(names)
    if models["state"] == "ready":
        models["state"] = "off" if not config.enabled else "busy" if ls.usage.decoding else "ready"
    drafts = {name: _draft(config.for_language(name).draft, models.get("drafts", {}).get(name)) for name in names}
    drafted, requests = models.get("drafted", 0), ls.usage.requests
    return {
        **models,
        "language": language,
        "draft": drafts.get(language, own.draft),
        "drafts": drafts,
        "draft_in_use": models.get("draft"),
        "grammar": own.grammar,
        "enabled": own.enabled,
        "edits_mode": config.edits.mode,
        "reading": models.get("reading") if models["state"] == "busy" else None,
        "nothing": ls.usage.nothing.as_json() if ls.usage.nothing is not None else None,
        "languages": {name: _in_force(ls, name) for name in names},
        "acceptance": round(models.get("accepted", 0) / drafted, 3) if drafted else None,
        "requests": requests,
        "from_memory": ls.usage.from_memory,
        "memory_ms": ls.completions.times.from_memory(),
        "from_memory_share": round(ls.usage.from_memory / requests, 3) if requests else None,
    }


def _draft(wanted: str, found: str | None) -> str:
    """The name of the draft model that a setting means; ``found`` is that of ``auto``, None before that is known."""
    return found or wanted if wanted == "auto" else wanted


def _in_force(ls: CodespecServer, language: str) -> dict[str, Any]:
    own = ls.settings.config.for_language(language)
    return {"draft": own.draft, "grammar": own.grammar, "enabled": own.enabled}
