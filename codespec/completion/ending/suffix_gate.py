"""The suffix gate: a generated text may end only where the text after the cursor still fits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Protocol

from codespec.patience import check, within
from codespec.protocols import CodespecError, GrammarState

WINDOW = 1000
"""Characters after the cursor that must fit, extended to the end of their line."""
LONGEST_WINDOW = 4000
"""Where that line does not end."""


CLOSERS = (")", "]", "}", '"', "'", ",", ":", ";")
OPENERS = ("(", "[", "{", ":")
MOST_JUDGING = 10.0
"""Seconds for all texts at one position, however long the request may take. A text takes some milliseconds, in a
document of 2 MB some hundred."""
MOST_CLOSERS, MOST_TRIED = 4, 40
"""How many closing signs are added at most, and how many combinations are tried."""


class TokenText(Protocol):
    """The part of a vocabulary that the gate needs."""

    @property
    def size(self) -> int: ...
    @property
    def end_tokens(self) -> frozenset[int]: ...
    def tokenize(self, text: str) -> list[int]: ...
    def token_bytes(self, token: int) -> bytes: ...
    def __hash__(self) -> int: ...


def window(suffix: str, size: int = WINDOW) -> str:
    """The beginning of ``suffix`` that must fit: ``size`` characters and the rest of that line."""
    if len(suffix) <= size:
        return suffix
    end = suffix.find("\n", size, LONGEST_WINDOW)
    return suffix[: end + 1] if end >= 0 else suffix[: max(size, min(len(suffix), LONGEST_WINDOW))]


class Check(Protocol):
    """A second judge beside the grammar."""

    def __call__(self, text: str, strict: bool = True) -> bool: ...


class SuffixGate:
    """Judges whether the text after the cursor fits after a generated text; remembers every answer.

    Args:
        vocabulary: of the model, whose tokens ``state`` takes.
        suffix: all the text after the cursor.
        state: the grammar's state at the cursor, this object's own from now on; None where no grammar holds there.
        check: a second judge of the document with the text inserted, such as tree-sitter; None without one. With
            ``strict=False`` it says whether the document is no worse than without the text.
        variants: the texts that may stand for a generated one, the preferred first: trimmed, and as it is.
        outside: given the suffix and where in it the grammar refused to go on, whether that lies beyond the block that
            ``state`` parses; None where it parses the whole file.
        whole: the suffix must fit as a whole, not only its beginning.
        nothing: the text of an empty completion: the lead.
        sound: whether another parser finds no error in the document as it is; what the grammar refuses of the suffix
            then is the grammar's own limit, and not demanded.
        closes: whether ``close`` tries what may end a text.
        instead: given a text, a gate before another suffix, where it may fit as well: the one of this document once its
            brackets are in pairs; None where that is this one.
    """

    def __init__(
        self,
        vocabulary: TokenText,
        suffix: str,
        state: GrammarState | None = None,
        check: Check | None = None,
        variants: Callable[[str], Sequence[str]] | None = None,
        outside: Callable[[str, int], bool] | None = None,
        whole: bool = False,
        nothing: str = "",
        sound: Callable[[], bool] | None = None,
        closes: bool = True,
        instead: Callable[[str], SuffixGate | None] | None = None,
    ) -> None:
        self._vocabulary, self._state, self._check = vocabulary, state, check
        self._closes, self._instead = closes, instead
        self._nothing, self._sound = nothing, sound
        self._variants = variants or (lambda text: (text,))
        self._outside = outside
        self._window = suffix if whole else window(suffix)
        self._to_the_end = len(self._window) == len(suffix)
        self._tokens: list[int] | None = None
        self._gave_up = False
        self._left = MOST_JUDGING
        self._answers: dict[str, str | None] = {}
        self._elsewhere: set[str] = set()  # answers of ``instead``
        self._reached: dict[str, int] = {}

    @property
    def available(self) -> bool:
        """Whether there is any judge: a grammar, a parser, or brackets that come in pairs."""
        return self._state is not None or self._check is not None

    def fit(self, text: str) -> str | None:
        """``text``, or the variant of it that fits; None where it may not end here."""
        if self._sound is not None:
            self._limit()
        if text not in self._answers:
            found = self._fit_elsewhere(text)
            fitting = (variant for variant in dict.fromkeys(self._variants(text)) if self._fits(variant))
            if found is not None:
                self._elsewhere.add(found)
            self._answers[text] = next(fitting, None) if found is None else found
        return self._answers[text]

    def _fit_elsewhere(self, text: str) -> str | None:
        if self._instead is None:
            return None
        with self._in_time():
            gate = self._instead(text)
        return gate.fit(text) if gate is not None else None

    def mends(self, fitting: str) -> bool:
        """Whether an answer of ``fit`` leaves the document in order, and not only no worse."""
        return fitting not in self._elsewhere

    def _limit(self) -> None:
        """End the window before text that the grammar refuses although the document is in order."""
        sound, self._sound = self._sound, None
        if self._state is None or self._follows(self._nothing) or sound is None or not sound():
            return
        reached = self._reached.get(self._nothing)
        if reached is not None:
            self._window = self._window[: self._window.rfind("\n", 0, reached) + 1]
            self._tokens, self._to_the_end = None, False
            self._reached.clear()

    def close(self, text: str) -> str | None:
        """``text`` with the fewest closing brackets, quotes and separators after it that make it fit; None without."""
        waiting, tried = deque([""] if self._closes else ()), 0
        while waiting:
            before = waiting.popleft()
            for sign in CLOSERS:
                added = before + sign
                if sum(map(added.count, "\"'")) > 1:
                    continue  # closes one string and opens another
                fitting = self.fit(text + added)
                if fitting is not None:
                    return fitting
                tried += 1
                if tried == MOST_TRIED:
                    return None
                # Only what the grammar takes leads further.
                if text + added in self._reached and len(added) < MOST_CLOSERS:
                    waiting.append(added)
        return None

    @property
    def broken(self) -> bool:
        """Whether even an empty text does not fit: the document has an error at the cursor already."""
        return self.fit(self._nothing) is None

    def no_worse(self, text: str) -> str | None:
        """For a ``broken`` document: ``text``, or the variant of it, after which no less of the suffix fits than
        without it, and no errors are added."""
        for variant in dict.fromkeys(self._variants(text)):
            self.fit(variant)
            known = self._state is None or self._reached.get(variant, -1) >= self._reached.get(self._nothing, 0)
            with self._in_time():
                if known and (self._check is None or self._check(variant, strict=False)):
                    return variant
        return None

    @property
    def broken_line(self) -> int | None:
        """The line behind the cursor, 0 its own, before whose end the grammar refused what follows after each text that
        was asked about; None where it is not the grammar that refuses."""
        reached = max((length for text, length in self._reached.items() if text != self._nothing), default=None)
        if self._state is None or reached is None or reached >= len(self._window):
            return None
        return self._window.count("\n", 0, reached)

    def _fits(self, text: str) -> bool:
        with self._in_time():
            return self._follows(text) and (self._check is None or self._check(text))

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        began = perf_counter()
        try:
            with within(self._left):
                check()
                yield
        finally:
            self._left -= perf_counter() - began

    def _follows(self, text: str) -> bool:
        """Whether the grammar takes ``text`` and the window after it. The state is as before."""
        state = self._state
        if state is None:
            return self._check is not None or not self._gave_up
        if self._tokens is None:
            self._tokens = self._vocabulary.tokenize(self._window)
        try:
            own = self._vocabulary.tokenize(text)
            taken = state.accept(own)
            further = state.accept(self._tokens) if taken == len(own) else 0
            complete = further == len(self._tokens) and (not self._to_the_end or state.can_end)
            state.rollback(taken + further)
        except CodespecError:
            # The engine gave up on a text that can be read in too many ways: the grammar has nothing more to say, and
            # without another judge no text is known to fit.
            self._state, self._gave_up = None, True
            return self._check is not None
        if taken < len(own):
            return False
        reached = self._reached[text] = self._length(further)
        return complete or (
            reached < len(self._window) and self._outside is not None and self._outside(self._window, reached)
        )

    def _length(self, taken: int) -> int:
        """How many characters of the window its first ``taken`` tokens are."""
        assert self._tokens is not None
        read = b"".join(self._vocabulary.token_bytes(token) for token in self._tokens[:taken])
        return len(read.decode("utf-8", "ignore"))
