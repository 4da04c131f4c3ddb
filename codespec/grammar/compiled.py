"""A grammar compiled for one vocabulary; where its masks are slow, for a vocabulary of token classes."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable

import llguidance
import numpy as np

from codespec.grammar import class_vocabulary
from codespec.grammar.class_vocabulary import ClassVocabulary
from codespec.grammar.deep_stack import with_deep_stack
from codespec.grammar.rules import Rules
from codespec.grammar.state import LlguidanceState
from codespec.grammar.tokenizer import Tokenizer
from codespec.protocols import CodespecError

# Where lexemes are single code points a mask visits many more items than llguidance expects; its own limit of 50,000
# gives up after some milliseconds. This one is for grammars that would take more than 2 s.
LIMITS = llguidance.LLParserLimits(verbose_errors=False, step_max_items=2_000_000, step_lexer_fuel=10_000_000)
MASKS, SLOW_MASK = 16, 100e-6
"""Token classes are computed after so many masks that took longer than so many seconds, at least a quarter of all."""
THREAD = "token-classes"
"""The name of the thread that computes them."""
_FIRST = 128  # tokens tried one by one before a mask: single characters in most vocabularies

_log = logging.getLogger(__name__)


class Compiled:
    """A grammar for one vocabulary. Any number of threads may share it."""

    def __init__(
        self,
        name: str,
        source: str,
        tokenizer: Tokenizer,
        rules: Callable[[], Rules | None] | None,
        refused: Callable[[str], CodespecError],
    ) -> None:
        """
        Args:
            name: file or name, for messages.
            source: what llguidance compiles.
            tokenizer: the vocabulary.
            rules: gives what ``source`` was lowered from; None where it was not lowered, or names tokens.
            refused: the error for llguidance's message.
        """
        self._name, self._source, self._refused = name, source, refused
        self._rules = rules if tokenizer.digest and tokenizer.size >= class_vocabulary.MIN_VOCABULARY else None
        self._lock = threading.Lock()
        self._masks = self._slow = 0
        known, found = (True, None) if self._rules is None else class_vocabulary.load(source, tokenizer)
        self._counts = not known
        self._use(tokenizer, found)

    def _use(self, tokenizer: Tokenizer, found: ClassVocabulary | None) -> None:
        raw = found.raw if found is not None else tokenizer.for_json if ": %json" in self._source else tokenizer.raw
        matcher = with_deep_stack(lambda: llguidance.LLMatcher(raw, self._source, log_level=0, limits=LIMITS))
        if matcher.is_error():
            raise self._refused(matcher.get_error())
        only_empty = _matches_only_empty(matcher, raw.vocab_size, found or tokenizer)
        with self._lock:
            self._current = matcher, found, only_empty

    def state(self, tokenizer: Tokenizer) -> LlguidanceState:
        """A state at the start of the grammar; ``tokenizer`` is the one that this was made for."""
        with self._lock:
            pristine, found, only_empty = self._current

        def fresh() -> llguidance.LLMatcher:
            with self._lock:
                return pristine.deep_copy()

        on_mask = None
        if self._counts:
            weak = weakref.ref(tokenizer)
            on_mask = lambda seconds: self._took(seconds, weak)  # noqa: E731
        return LlguidanceState(fresh, tokenizer, self._name, only_empty, found, on_mask)

    def _took(self, seconds: float, tokenizer: weakref.ref[Tokenizer]) -> None:
        """Count a mask; after some slow ones a thread computes the token classes, which later states use."""
        self._masks += 1
        self._slow += seconds > SLOW_MASK
        if self._counts and self._slow >= MASKS and 4 * self._slow >= self._masks:
            self._counts = False
            threading.Thread(target=self._classify, args=(tokenizer,), daemon=True, name=THREAD).start()

    def _classify(self, tokenizer: weakref.ref[Tokenizer]) -> None:
        there = tokenizer()
        if there is not None:
            try:
                self.find_token_classes(there)
            except Exception:  # whatever it is, masks only stay as slow as they were
                _log.warning("%s: no token classes", self._name, exc_info=True)

    def find_token_classes(self, tokenizer: Tokenizer) -> bool:
        """As ``Grammar.find_token_classes``."""
        if self._current[1] is None and self._rules is not None:
            self._counts = False
            known, found = class_vocabulary.load(self._source, tokenizer)  # another grammar object may have been first
            if not known and (rules := self._rules()) is not None:
                found = class_vocabulary.find(rules, self._source, tokenizer)
            if found is not None:
                self._use(tokenizer, found)
        return self._current[1] is not None


def _matches_only_empty(matcher: llguidance.LLMatcher, size: int, tokens: Tokenizer | ClassVocabulary) -> bool:
    """Whether a fresh matcher is complete and can take no token, which llguidance notices only after a token."""
    if not matcher.is_accepting():
        return False
    probe = matcher.deep_copy()
    if any(token not in tokens.barred and probe.validate_tokens([token]) for token in range(min(size, _FIRST))):
        return False  # known in 10 µs; the first mask of a programming language takes 2 ms
    bits = np.zeros((size + 31) // 32, np.uint32)
    probe.unsafe_compute_mask_ptr(bits.ctypes.data, bits.nbytes)
    for token in tokens.end_tokens:
        bits[token >> 5] &= ~np.uint32(1 << (token & 31))
    return not bits.any()
