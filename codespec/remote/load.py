"""From settings to an engine elsewhere."""

from __future__ import annotations

from pathlib import Path

from codespec.draft.storage.profiles import Profiles
from codespec.engine.engine import Engine
from codespec.files import StrPath
from codespec.remote.address import Address
from codespec.remote.connection import Connection
from codespec.remote.errors import Refused
from codespec.remote.scoring_engine import ScoringEngine
from codespec.remote.streaming_engine import StreamingEngine

SCORING = frozenset({"vllm", "sglang", "llama-cpp-python"})
"""Engines that can say how likely given tokens are."""

PROBES = {"ollama": "/api/version", "sglang": "/health", "vllm": "/health", "llama-server": "/health"}
"""Paths that are asked for to see whether an engine is there; of the others ``/v1/models``."""


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

    Raises:
        Away: it cannot be reached.
        Refused: the settings do not fit each other, or the engine.
    """
    scores = mode != "stream" and kind in SCORING and vocabulary is not None
    if mode == "score" and not scores:
        why = "wants the target's tokens: set `remote.vocabulary`" if kind in SCORING else f"is none of {kind}'s"
        raise Refused(f'`remote.mode` = "score" {why}')
    probe = PROBES.get(kind, "/v1/models")
    connection = Connection(Address.checked(url, key_env, certificate), silence_s, probe)
    try:
        connection.look()  # before anything is loaded for it
        if scores:
            assert vocabulary is not None
            engine: Engine = ScoringEngine(
                connection,
                kind,
                vocabulary,
                model=model,
                context_length=context_length,
                draft_length=draft_length,
                drafts_bytes=drafts_bytes,
                learnt_folder=learnt_folder,
                profiles=profiles,
            )
        else:
            engine = StreamingEngine(
                connection,
                kind,
                model=model,
                vocabulary=vocabulary,
                context_length=context_length,
                learnt_folder=learnt_folder,
            )
    except BaseException:
        connection.close()
        raise
    if warning := connection.address.warning:
        engine.note(warning)
    return engine
