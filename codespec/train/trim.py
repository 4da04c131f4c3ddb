"""The vocabulary of a trimmed draft, which has only some of its target's tokens."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

from codespec.llama.model import LlamaVocabulary, Model
from codespec.models.fim import fim_format
from codespec.models.trimmed import TOKENS_KEY
from codespec.protocols import CodespecError
from codespec.train.corpus import CorpusDocument
from codespec.train.teacher import Lesson

LARGE = 32_768
"""Tokens of a target's vocabulary from which on its drafts are trimmed unless the options say otherwise."""

KEPT = 16_384
"""Tokens of a draft that is trimmed for that reason."""

CHARACTERS = 4_000_000
"""Characters of the texts in which tokens are counted."""


@dataclass(frozen=True)
class TrimmedVocabulary:
    """The tokens of a trimmed draft.

    Attributes:
        tokens: the target's ids of the draft's tokens, ascending; one more of the draft's stands for all others.
        vocabulary_size: of the target.
    """

    tokens: npt.NDArray[np.int64]
    vocabulary_size: int

    @property
    def size(self) -> int:
        """Tokens of the draft's vocabulary."""
        return len(self.tokens) + 1

    @cached_property
    def own(self) -> npt.NDArray[np.int64]:
        """The draft's id of each of the target's tokens, int64 [V]."""
        own = np.full(self.vocabulary_size, len(self.tokens))
        own[self.tokens] = np.arange(len(self.tokens))
        return own

    def lesson(self, lesson: Lesson) -> Lesson:
        """A lesson in the draft's token ids; tokens that the draft lacks are not learnt, and have no share."""
        tokens, ids = self.own[lesson.tokens], self.own[lesson.ids]
        lacking = len(self.tokens)
        return Lesson(
            tokens.astype(np.int32),
            lesson.learnt & (tokens[:, 1:] != lacking),
            ids.astype(np.int32),
            np.where(ids != lacking, lesson.shares, np.float16(0)),
        )


def trim_of(path: Path, vocabulary_size: int) -> TrimmedVocabulary | None:
    """The trimmed vocabulary of a draft in a GGUF file; None where it has the target's whole vocabulary.

    Args:
        vocabulary_size: of the target.
    """
    field = gguf.GGUFReader(path).fields.get(TOKENS_KEY)
    return TrimmedVocabulary(np.asarray(field.contents(), np.int64), vocabulary_size) if field is not None else None


def frequent(target: Model, documents: Sequence[CorpusDocument], sizes: Sequence[int]) -> list[TrimmedVocabulary]:
    """The tokens that texts have most, for draft vocabularies of these ``sizes``; control tokens, single bytes and the
    like are always among them.

    Raises:
        CodespecError: a size has no room for those.
    """
    vocabulary, layout = target.vocabulary, fim_format(target)
    always = vocabulary.control_tokens | vocabulary.end_tokens | (layout.markers if layout is not None else frozenset())
    always |= {token for token in range(vocabulary.used) if len(vocabulary.token_bytes(token)) == 1}
    if min(sizes) <= len(always) + 1:
        raise CodespecError(f"--trim {min(sizes)}: {len(always):,} tokens are always kept; give many more")
    found = counts(vocabulary, random.Random("trim").sample(list(documents), len(documents)))
    found[sorted(always)] = np.iinfo(np.int64).max
    # Tokens that no text has follow in the order of their ids, in which BPE learnt them.
    ranked = np.lexsort((np.arange(vocabulary.used), -found[: vocabulary.used]))
    return [TrimmedVocabulary(np.sort(ranked[: size - 1]), vocabulary.size) for size in sizes]


def counts(vocabulary: LlamaVocabulary, documents: Sequence[CorpusDocument]) -> npt.NDArray[np.int64]:
    """How often each token occurs in the first ``CHARACTERS`` of the texts, int64 [V]."""
    found = np.zeros(vocabulary.size, np.int64)
    left = CHARACTERS
    for document in documents:
        if left <= 0:
            break
        found += np.bincount(vocabulary.tokenize(document.text[:left]), minlength=vocabulary.size)
        left -= len(document.text)
    return found
