"""Drafts that have only some of their target's tokens."""

from __future__ import annotations

from codespec.llama.model import LlamaVocabulary, Model
from codespec.models.registry import vocabulary_hash
from codespec.protocols import CodespecError

VOCABULARY_KEY = "codespec.draft.vocabulary"
"""The key in a trimmed draft's GGUF file for the hash of its target's vocabulary."""

TOKENS_KEY = "codespec.draft.tokens"
"""The key for the target's ids of the draft's tokens, all but its last, which stands for every token that it lacks."""


def kept_tokens(draft: Model, target: LlamaVocabulary) -> list[int] | None:
    """The value of ``TOKENS_KEY``; None for a model with a whole vocabulary.

    Raises:
        CodespecError: it was trimmed for a target with another vocabulary.
    """
    made_for = draft.metadata(VOCABULARY_KEY)
    if made_for is None:
        return None
    # llama.cpp hands out no arrays; the names say the same.
    ids = {target.name(token): token for token in range(target.size)}
    try:
        if made_for == vocabulary_hash(target):
            return [ids[draft.vocabulary.name(token)] for token in range(draft.vocabulary.size - 1)]
    except KeyError:
        pass
    raise CodespecError(
        f"{draft.path}: has some tokens of another target's vocabulary only ({made_for[:16]}, see "
        "`codespec models inspect`); train a draft for this target"
    )
