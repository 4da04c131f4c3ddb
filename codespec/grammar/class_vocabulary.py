"""A vocabulary with one token of each class that a grammar tells apart.

A mask costs the engine 10 to 15 ns for each token that it has to try, and work of the parser for each way in which one
ends a lexeme. Of 151,936 tokens a programming language tells 2,000 to 5,000 classes apart. The engine computes masks
over the shortest token of each class; tokens that it lacks are spelled in several when they are accepted.
"""

from __future__ import annotations

import base64
import ctypes
import zlib
from collections.abc import Sequence

import llguidance
import numpy as np
import numpy.typing as npt

from codespec.grammar import cache
from codespec.grammar.errors import GrammarError
from codespec.grammar.lower.lower import fused
from codespec.grammar.lower.token_classes import ITSELF, NEVER, TooMuchToTell, classes
from codespec.grammar.rules import Rules
from codespec.grammar.tokenizer import Tokenizer
from codespec.protocols import Bits

MIN_VOCABULARY = 32_768
"""Tokens from which on it pays."""
FREQUENT = 4096
"""Tokens with the lowest ids are in the vocabulary whatever their class. They are the most frequent ones, as
vocabularies are trained, and a token in pieces costs more time than a whole one."""
_CACHED = 128  # masks over all tokens, 19 KB each at 151,936 tokens
_NONE = 2**16 - 1  # the class of tokens that are allowed nowhere


class ClassVocabulary:
    """One token of each class of a vocabulary under one grammar. Any number of threads may share it.

    Attributes:
        raw: llguidance's own object.
        end_tokens: its end token.
        barred: its tokens that no grammar may produce.
    """

    def __init__(self, tokenizer: Tokenizer, texts: Sequence[bytes], of: npt.NDArray[np.uint16]) -> None:
        """
        Args:
            texts: of its tokens; that of class ``n`` is the ``n``-th.
            of: the class of each token of ``tokenizer``; a number beyond ``texts`` for those that are allowed nowhere.
        """
        self._decode, self._textless = tokenizer.raw.decode_bytes, tokenizer.barred
        # With all single bytes every token can be spelled.
        self._numbers = {text: number for number, text in enumerate(dict.fromkeys([*texts, *_BYTES]))}
        self._longest = max(map(len, self._numbers))
        self._spelled: dict[int, list[int]] = {}
        self._never = never = len(self._numbers)
        self.end_tokens, self.barred = (never + 1,), frozenset((never, never + 1))
        vocabulary = _Vocabulary((*self._numbers, _NEVER, _END), never + 1)
        self.raw = llguidance.LLTokenizer(llguidance.TokenizerWrapper(vocabulary), slices=[])
        self._words = (self.raw.vocab_size + 31) // 32
        self._of = np.full((tokenizer.size + 31) // 32 * 32, never, np.intp)
        self._of[: tokenizer.size] = np.where(of < len(texts), of, never)
        self._masks: dict[bytes, Bits] = {}

    def representative(self, token: int) -> int:
        """The token of ``raw`` that is allowed wherever ``token`` is, and nowhere else."""
        return int(self._of[token])

    def spell(self, tokens: Sequence[int]) -> list[int]:
        """The tokens of ``raw`` for the text of some tokens."""
        spelled = self._spelled
        if len(tokens) == 1:
            return spelled.get(tokens[0]) or self._spell(tokens[0])
        return [piece for token in tokens for piece in spelled.get(token) or self._spell(token)]

    def pieces(self, tokens: Sequence[int]) -> int:
        """The length of the spelling of tokens that were spelled before."""
        return sum(map(len, map(self._spelled.__getitem__, tokens)))

    def whole(self, tokens: Sequence[int], pieces: int) -> int:
        """The number of tokens that are complete in the first ``pieces`` of their spelling."""
        for count, token in enumerate(tokens):
            pieces -= len(self._spelled[token])
            if pieces < 0:
                return count
        return len(tokens)

    def _spell(self, token: int) -> list[int]:
        text = b"" if token in self._textless else self._decode([token])
        pieces = []
        while text:
            size = next(size for size in range(min(len(text), self._longest), 0, -1) if text[:size] in self._numbers)
            pieces.append(self._numbers[text[:size]])
            text = text[size:]
        self._spelled[token] = pieces = pieces or [self._never]  # no grammar takes a token without text
        return pieces

    def mask_into(self, matcher: llguidance.LLMatcher, bits: Bits) -> None:
        """Write the mask of a matcher over ``raw``, as one over all tokens; undefined after an error of the matcher."""
        own = np.zeros(self._words, np.uint32)
        matcher.unsafe_compute_mask_ptr(ctypes.addressof(ctypes.c_char.from_buffer(own.data)), own.nbytes)
        key = own.tobytes()
        whole = self._masks.get(key)
        if whole is None:
            allowed = np.unpackbits(own.view(np.uint8), bitorder="little")
            allowed[self._never] = 0
            whole = np.packbits(np.take(allowed, self._of), bitorder="little").view(np.uint32)
            if len(self._masks) >= _CACHED:
                self._masks.clear()
            self._masks[key] = whole
        bits[:] = whole


_BYTES = [bytes([value]) for value in range(256)]
_NEVER, _END = b"\xff<never>", b"\xff<end>"  # special, as llguidance marks them


class _Vocabulary:
    """What llguidance asks of a tokenizer."""

    bos_token_id = None

    def __init__(self, tokens: tuple[bytes, ...], end: int) -> None:
        self.tokens, self.eos_token_id, self.special_token_ids = tokens, end, (end - 1, end)

    def __call__(self, text: bytes | str) -> list[int]:
        return []


def find(rules: Rules, source: str, tokenizer: Tokenizer) -> ClassVocabulary | None:
    """The token classes of a vocabulary under a grammar; None where they would save nothing. Cached on disk.

    Args:
        rules: of the grammar, without token elements.
        source: what they are lowered to.
    """
    try:
        texts, of = choose(rules, tokenizer)
    except (GrammarError, TooMuchToTell):
        texts, of = [], np.zeros(0, np.uint16)
    worth = 0 < len(texts) <= min(_NONE, tokenizer.size // 2)
    cache.store(_key(source, tokenizer), _written(texts, of) if worth else "")
    return ClassVocabulary(tokenizer, texts, of) if worth else None


def load(source: str, tokenizer: Tokenizer) -> tuple[bool, ClassVocabulary | None]:
    """Whether the cache on disk has the result of ``find``, and that result."""
    text = cache.load(_key(source, tokenizer))
    if not text:
        return text is not None, None
    return True, ClassVocabulary(tokenizer, *_read(text))


def _key(source: str, tokenizer: Tokenizer) -> str:
    return cache.key(source, token_classes=tokenizer.digest, frequent=FREQUENT)


def choose(rules: Rules, tokenizer: Tokenizer, frequent: int = FREQUENT) -> tuple[list[bytes], npt.NDArray[np.uint16]]:
    """The texts of a vocabulary with a token of each class, and for each token the number of its class there.

    Args:
        rules: as for ``find``.
        frequent: the number of tokens with the lowest ids that are in it whatever their class.

    Raises:
        TooMuchToTell: the grammar is too large for that, or tells too many tokens apart.
    """
    decode, barred = tokenizer.raw.decode_bytes, tokenizer.barred
    texts = [b"" if token in barred else decode([token]) for token in range(tokenizer.size)]
    found = classes(*fused(rules), texts)
    labels = found.astype(np.int64)
    own: dict[bytes, int] = {}
    free = int(found.max(initial=0)) + 1
    for token in np.flatnonzero(found == ITSELF).tolist():
        labels[token] = free + own.setdefault(texts[token], len(own))
    tokens = np.flatnonzero(labels > NEVER)
    first = np.full(free + len(own), -1, np.int64)
    lengths = np.array([len(texts[token]) for token in tokens.tolist()], np.int64)
    ordered = tokens[np.lexsort((-tokens, -lengths))]
    first[labels[ordered]] = ordered  # the shortest of each class is written last, that with the lowest id among equals
    standing = [texts[token] for token in first[first >= 0].tolist()]
    number = np.full(len(first), _NONE, np.int64)
    number[first >= 0] = np.arange(len(standing))
    of = np.full(len(found), _NONE, np.int64)
    of[tokens] = number[labels[tokens]]
    themselves = [texts[token] for token in tokens[tokens < frequent].tolist()]
    return list(dict.fromkeys(standing + themselves)), np.minimum(of, _NONE).astype(np.uint16)


def _written(texts: Sequence[bytes], of: npt.NDArray[np.uint16]) -> str:
    sizes = np.array([len(texts), *map(len, texts)], "<u4").tobytes()
    return base64.b64encode(zlib.compress(b"".join((sizes, *texts, of.astype("<u2").tobytes())), 6)).decode()


def _read(text: str) -> tuple[list[bytes], npt.NDArray[np.uint16]]:
    content = zlib.decompress(base64.b64decode(text))
    count = int.from_bytes(content[:4], "little")
    sizes = np.frombuffer(content[4 : 4 * count + 4], "<u4")
    ends = np.cumsum(sizes, dtype=np.int64) + 4 * count + 4
    texts = [content[end - size : end] for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)]
    return texts, np.frombuffer(content[ends[-1] :], "<u2")
