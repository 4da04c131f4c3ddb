"""Drafts that have only some of their target's tokens, or not all of the same."""

from __future__ import annotations

from codespec.llama.model import LlamaVocabulary, Model
from codespec.models.registry import text_hash, vocabulary_hash
from codespec.protocols import CodespecError

VOCABULARY_KEY = "codespec.draft.vocabulary"
"""The key in a trimmed draft's GGUF file for the hash of its target's vocabulary."""

TEXTS_KEY = "codespec.draft.texts"
"""The key for ``registry.text_hash`` of that."""

TOKENS_KEY = "codespec.draft.tokens"
"""The key for the target's ids of the draft's tokens, all but its last, which stands for every token that it lacks."""

NONE = -1
"""Instead of the id of a token that the target lacks."""


def targets_tokens(draft: Model, target: LlamaVocabulary) -> list[int] | None:
    """The target's ids of the draft's tokens, ``NONE`` of those that it lacks: of a trimmed draft all but its last, of
    another one of the target's family all. None where they are of different families.

    Raises:
        CodespecError: it was trimmed for a target of another family.
    """
    own = draft.vocabulary
    made_for, texts = draft.metadata(VOCABULARY_KEY), draft.metadata(TEXTS_KEY)
    if made_for is None and text_hash(own) != text_hash(target):
        return None
    # llama.cpp hands out no arrays; the names say the same.
    ids = {target.name(token): token for token in range(target.size)}
    count = own.used if made_for is None else own.size - 1
    found = [ids.get(own.name(token), NONE) for token in range(count)]
    if made_for is None:
        return found
    same = texts == text_hash(target) if texts is not None else made_for == vocabulary_hash(target)
    if same and all(found[token] != NONE for token in own.text_tokens if token < count):
        return found
    raise CodespecError(
        f"{draft.path}: has some tokens of another target's vocabulary only ({made_for[:16]}, see "
        "`codespec models inspect`); train a draft for this target"
    )
