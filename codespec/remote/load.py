"""From settings to an engine elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from codespec.draft.storage.profiles import Profiles
from codespec.engine.engine import Engine, add_note
from codespec.files import StrPath
from codespec.remote.address import Address
from codespec.remote.connection import Connection
from codespec.remote.errors import Refused
from codespec.remote.scoring.scoring_engine import SCORERS, ScoringEngine
from codespec.remote.streaming.streaming_engine import StreamingEngine

PROBES = {"ollama": "/api/version", "sglang": "/health", "vllm": "/health", "llama-server": "/health"}
"""Paths that are asked for to see whether an engine is there; of the others ``/v1/models``."""

RECURRENT = re.compile(
    r"qwen-?3\.[5-9]|qwen-?3-(coder-)?next|granite-?4[\d.]{0,4}-h\b|nemotron-?(h\b|nano|3)|lfm-?2|falcon-h1|kimi-linear|jamba",
    re.IGNORECASE,
)
"""Names of models with recurrent layers, which engines do not tell."""

E = TypeVar("E", ScoringEngine, StreamingEngine)


def connect(
    kind: str,
    url: str,
    *,
    model: str = "",
    vocabulary: Path | None = None,
    mode: str = "auto",
    context_length: int = 0,
    key_env: str = "CODESPEC_API_KEY",
    certificate: str = "",
    silence_s: float = 10.0,
    draft_length: int = 0,
    drafts_bytes: int = 0,
    learnt_folder: StrPath | None = None,
    profiles: Profiles | None = None,
) -> Engine:
    """The engine at an address; the arguments are those of ``RemoteConfig`` and ``ScoringEngine``.

    With ``mode`` ``auto``, one that can score does: its stream goes on where nothing is proposed.

    Raises:
        Away: it cannot be reached.
        Refused: the settings do not fit each other, or the engine.
    """
    if mode == "score" and not (kind in SCORERS and vocabulary is not None):
        why = "wants the target's tokens: set `remote.vocabulary`" if kind in SCORERS else f"is none of {kind}'s"
        raise Refused(f'`remote.mode` = "score" {why}')
    address, probe = Address.checked(url, key_env, certificate), PROBES.get(kind, "/v1/models")
    common = {"model": model, "context_length": context_length, "learnt_folder": learnt_folder}
    drafting = {"draft_length": draft_length, "drafts_bytes": drafts_bytes, "profiles": profiles}

    def connected(make: Callable[..., E], **options: Any) -> E:
        connection = Connection(address, silence_s, probe)
        try:
            connection.look()  # before anything is loaded for it
            return make(connection, kind, vocabulary=vocabulary, **common, **options)
        except BaseException:
            connection.close()
            raise

    engine: ScoringEngine | StreamingEngine
    if mode == "stream" or kind not in SCORERS or vocabulary is None:
        engine = connected(StreamingEngine)
    else:
        engine = connected(ScoringEngine, **drafting)
    for note in (address.warning, about_speculation(kind, engine.name)):
        if note:
            add_note(engine.notes, note)
    return engine


def about_speculation(kind: str, model: str) -> str:
    """A warning where an engine's own speculation may corrupt the texts of such a model; empty where not.

    vLLM up to 0.28.0 forgets states when a step without drafts follows an accepted one (vllm#39273).
    """
    if kind != "vllm" or not RECURRENT.search(model):
        return ""
    return (
        f"{model} has recurrent layers, whose texts vLLM's `ngram` and `suffix` speculation corrupts (vllm#39273): "
        "leave them out of its `speculative-config`; codespec's own proposals do no harm"
    )
