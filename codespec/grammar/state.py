"""The implementation of the ``GrammarState`` protocol with llguidance."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from time import perf_counter, thread_time

import llguidance
import numpy as np

from codespec.grammar.class_vocabulary import ClassVocabulary
from codespec.grammar.errors import GrammarGaveUp, one_line
from codespec.grammar.tokenizer import Tokenizer
from codespec.patience import check, give_up, left, over
from codespec.protocols import Bits

SLOW, PATIENCE = 0.003, 0.25
"""Seconds of processor time that a token may take, and how many more all slow ones may take, less what others save."""
_FOLLOW = 8  # tokens that the matcher for masks accepts one after the other; beyond that a copy is cheaper
_SLICE = 16  # tokens between two looks at the clock
_MASK = 1000  # a mask takes about as long as so many tokens where these are slow, because the text is nested deeply
_AMBIGUOUS = "the text can be read in too many ways; make the grammar less ambiguous, or recursive on the left"


class LlguidanceState:
    """The state of a grammar after a sequence of tokens. One thread at a time.

    End tokens never reach llguidance, which knows the length of only one of them when it rolls back: this
    class allows them where the text is complete and remembers that one was taken.
    """

    __slots__ = (
        "_class_vocabulary",
        "_ended",
        "_fresh",
        "_known",
        "_mask_matcher",
        "_mask_position",
        "_matcher",
        "_name",
        "_on_mask",
        "_only_empty",
        "_owed",
        "_paces",
        "_slow_forced",
        "_taken",
        "_tokenizer",
        "_undone",
    )

    def __init__(
        self,
        fresh: Callable[[], llguidance.LLMatcher],
        tokenizer: Tokenizer,
        name: str,
        only_empty: bool = False,
        vocabulary: ClassVocabulary | None = None,
        on_mask: Callable[[float], None] | None = None,
    ) -> None:
        """
        Args:
            fresh: gives a matcher at the start of the grammar, over ``vocabulary`` if there is one.
            only_empty: the grammar matches only the empty text.
            vocabulary: the token classes that the matcher reads; None: it reads the tokens of ``tokenizer``.
            on_mask: told the seconds of each mask.
        """
        self._fresh, self._tokenizer, self._name, self._only_empty = fresh, tokenizer, name, only_empty
        self._class_vocabulary, self._on_mask = vocabulary, on_mask
        self._matcher = fresh()
        # llguidance caches its last mask by the lexer's state and the number of lexemes, and a rollback does not clear
        # the cache: the mask after ``f[x`` is the one that it gave after ``f(x``. Masks therefore come from a copy
        # that never rolls back; the matcher itself computes none, so that its copies have nothing cached.
        self._mask_matcher: llguidance.LLMatcher | None = None
        self._mask_position = 0  # number of tokens that the copy has accepted
        self._undone: list[int] = []  # the last of them, where this state rolled them back
        self._taken: list[int] = []
        self._ended = False
        self._known = -1  # the token that ``allows`` found allowed at this position
        self._paces = 0.0, 0.0  # seconds that a token took the last two times; one that had to wait says little
        self._owed = 0.0  # seconds that slow tokens took too long
        self._slow_forced = False

    def copy(self) -> LlguidanceState:
        """An independent deep copy, in time linear in the tokens taken so far."""
        other = object.__new__(LlguidanceState)
        other._fresh, other._tokenizer, other._name = self._fresh, self._tokenizer, self._name
        other._only_empty, other._class_vocabulary, other._on_mask = (
            self._only_empty,
            self._class_vocabulary,
            self._on_mask,
        )
        other._matcher = self._matcher.deep_copy()
        other._mask_matcher, other._mask_position, other._undone = None, 0, []
        other._taken = self._taken.copy()
        other._known = self._known
        other._ended, other._slow_forced = self._ended, self._slow_forced
        other._paces, other._owed = self._paces, self._owed
        return other

    def __deepcopy__(self, memo: dict[int, object]) -> LlguidanceState:
        return self.copy()

    def accept(self, tokens: Sequence[int]) -> int:
        """Advance over ``tokens``; return how many were taken. A refused token changes nothing.

        Raises:
            CodespecError: the engine gave up (the text is too ambiguous for its limits); the state is unusable.
            Aborted: there is no time for so many tokens (``codespec.patience``); none is taken.
        """
        if self._ended:
            return 0
        tokenizer = self._tokenizer
        ends, taken = tokenizer.end_tokens, 0
        if len(tokens) == 1 and tokens[0] not in ends:  # the usual case, kept short
            return self._consume([int(tokens[0])]) if 0 <= tokens[0] < tokenizer.size else 0
        tokens = [int(token) for token in tokens]
        size = tokenizer.size
        text = next((i for i, token in enumerate(tokens) if token in ends or not 0 <= token < size), len(tokens))
        while taken < text:
            if over():
                self.rollback(taken)
                check()
            part = tokens[taken : min(taken + (_SLICE if self._paces[1] < SLOW else 1), text)]
            count = self._consume(part)
            taken += count
            if count < len(part):
                return taken
        if text < len(tokens) and tokens[text] in ends and self.can_end:
            self._ended = True
            self._taken.append(tokens[text])
            taken += 1
        return taken

    def _consume(self, tokens: list[int]) -> int:
        """Advance over a few tokens of text; how many were taken."""
        if self._only_empty:
            return 0
        began, processor = perf_counter(), thread_time() if self._owed else 0.0
        taken = self._consume_known(tokens)
        self._known = -1
        if taken < len(tokens):
            self._check()
        self._taken += tokens if taken == len(tokens) else tokens[:taken]
        took = perf_counter() - began
        self._paces = self._paces[1], took / len(tokens)
        # Some texts can be read in so many ways that each further token takes longer, without end.
        more = took - SLOW * len(tokens)
        if more > 0 and not self._owed:
            # Perhaps the machine is busy. Reading the processor's clock costs 10 to 200 µs: only from now on.
            self._owed = SLOW
        elif more > 0:
            self._owed += max(0.0, thread_time() - processor - SLOW * len(tokens))
            if self._owed > PATIENCE:
                raise GrammarGaveUp(f"{self._name}: {_AMBIGUOUS} after {len(self._taken)} tokens")
        elif self._owed:
            self._owed = max(0.0, self._owed + more)
        return taken

    def _consume_known(self, tokens: list[int]) -> int:
        """The same, without the clock."""
        matcher, vocabulary = self._matcher, self._class_vocabulary
        spelled = tokens if vocabulary is None else vocabulary.spell(tokens)
        if len(tokens) == 1 and tokens[0] == self._known:  # half the time of validating it again
            return 1 if matcher.consume_tokens(spelled) else 0
        if vocabulary is None or len(spelled) == 1:
            return int(matcher.try_consume_tokens(spelled))
        if len(tokens) == 1:
            valid = len(spelled) * matcher.validate_tokens([vocabulary.representative(tokens[0])])
        else:
            valid = matcher.validate_tokens(spelled)
        if valid == len(spelled):
            return len(tokens) if matcher.consume_tokens(spelled) else 0
        taken = vocabulary.whole(tokens, valid)
        return taken if taken == 0 or matcher.consume_tokens(vocabulary.spell(tokens[:taken])) else 0

    def allows(self, token: int) -> bool:
        """Whether ``token`` may come next; no change of state.

        Raises:
            CodespecError: the engine gave up; the state is unusable.
        """
        if self._ended:
            return False
        if token in self._tokenizer.end_tokens:
            return self.can_end
        if not 0 <= token < self._tokenizer.size or self.finished:
            return False
        asked = token if self._class_vocabulary is None else self._class_vocabulary.representative(token)
        allowed: bool = self._matcher.validate_tokens([asked]) == 1
        self._check()
        if allowed:
            self._known = token
        return allowed

    def mask_into(self, bits: Bits) -> None:
        """Write the set of tokens that may come next, end tokens included.

        Raises:
            ValueError: ``bits`` is not a contiguous uint32 array of (vocabulary + 31) // 32 words.
            CodespecError: the engine gave up; the state is unusable.
            OutOfTime: it would take longer than there is time.
        """
        words = (self._tokenizer.size + 31) // 32
        if bits.dtype != np.uint32 or bits.shape != (words,) or not bits.flags.c_contiguous:
            raise ValueError(f"bits must be a contiguous uint32 array of {words} words")
        if self.finished:
            bits[:] = 0
        else:
            if min(self._paces) * _MASK > left():
                give_up()
            began = perf_counter()
            matcher = self._follow()
            if self._class_vocabulary is not None:
                self._class_vocabulary.mask_into(matcher, bits)
            else:
                # Half the time of bits.ctypes.data, which would be a tenth of a mask.
                address = ctypes.addressof(ctypes.c_char.from_buffer(bits.data))
                matcher.unsafe_compute_mask_ptr(address, bits.nbytes)
            if self._on_mask is not None:
                self._on_mask(perf_counter() - began)
            if matcher.is_error():
                self._mask_matcher = None
                # Or no token of the vocabulary continues the text: a dead end, which llguidance counts as an error.
                if "NoExtensionBias" not in matcher.get_error():
                    raise self._failed(matcher)
                bits[:] = 0
        if self.can_end and not self._ended:
            for word, ends in self._tokenizer.end_bits:
                bits[word] |= ends
        else:
            for word, ends in self._tokenizer.end_bits:
                bits[word] &= ~ends

    def rollback(self, n: int) -> None:
        """Undo the last ``n`` accepted tokens.

        Raises:
            ValueError: ``n`` is negative, or fewer tokens were accepted.
        """
        if not 0 <= n <= len(self._taken):
            raise ValueError(f"cannot undo {n} of {len(self._taken)} tokens")
        if n == 0:
            return
        text = n - self._ended
        left = len(self._taken) - n
        if left < (kept := self._mask_position - len(self._undone)):
            self._undone = self._taken[left:kept] + self._undone
        if text:
            undone = self._taken[left : left + text]
            self._matcher.rollback(text if self._class_vocabulary is None else self._class_vocabulary.pieces(undone))
            self._check()
        self._ended, self._known = False, -1
        del self._taken[left:]

    def forced(self) -> bytes:
        """Text that has no alternative from here; empty where there is a choice, ending being one.

        It may stop in the middle of a character. Where finding it once took long, it is always empty from then on.
        """
        if self._slow_forced or self.finished:
            return b""
        began = thread_time()
        forced: bytes = self._matcher.compute_ff_bytes()
        self._check()
        if thread_time() - began > SLOW:
            # It may have stopped at a limit; then the matcher's next operation, whatever it is, would fail.
            self._slow_forced = True
            self._renew()
        return forced

    @property
    def can_end(self) -> bool:
        """Whether the text so far is complete."""
        return self._ended or bool(self._matcher.is_accepting())

    @property
    def finished(self) -> bool:
        """Whether nothing can follow: the text is complete and has no continuation, or an end token was accepted."""
        return self._ended or self._only_empty or bool(self._matcher.is_stopped())

    def _follow(self) -> llguidance.LLMatcher:
        """The matcher that computes masks, brought to the position of this state."""
        matcher, taken = self._mask_matcher, self._taken
        if matcher is not None and self._undone:
            if taken[self._mask_position - len(self._undone) : self._mask_position] == self._undone:
                self._undone = []
            else:
                matcher = None
        ahead = len(taken) - self._mask_position
        if matcher is None or ahead > _FOLLOW:
            matcher = self._mask_matcher = self._matcher.deep_copy()
            self._undone = []
        elif ahead:
            new = taken[self._mask_position :]
            matcher.consume_tokens(new if self._class_vocabulary is None else self._class_vocabulary.spell(new))
        self._mask_position = len(taken)
        return matcher

    def _renew(self) -> None:
        """Another matcher in the same place."""
        self._matcher = self._fresh()
        taken = self._taken
        self._matcher.try_consume_tokens(
            taken if self._class_vocabulary is None else self._class_vocabulary.spell(taken)
        )
        self._check()

    def _check(self) -> None:
        if self._matcher.is_error():
            raise self._failed(self._matcher)

    def _failed(self, matcher: llguidance.LLMatcher) -> GrammarGaveUp:
        return GrammarGaveUp(f"{self._name}: {explain(matcher.get_error())} after {len(self._taken)} tokens")


def explain(error: str) -> str:
    """One line from llguidance's message of many."""
    first = one_line(error.split("<state>")[0].split("\n\n")[0], 200)
    if "Current row has" in first or "max_items_in_row" in first:
        return _AMBIGUOUS
    if "Too many items" in first:
        return (
            "too much to consider for one token; make the grammar less ambiguous (see codespec grammar check --lexemes)"
        )
    if "symbols.len()" in first or "too big" in first:
        return "the grammar is too large for the engine; shorten it"
    return first
