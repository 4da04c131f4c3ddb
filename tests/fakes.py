"""Stand-ins for models, vocabularies, grammars and drafts: small, deterministic and strict."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from codespec.protocols import (
    Aborted,
    Bits,
    CodespecError,
    ContextFull,
    GrammarState,
    Logits,
    Proposal,
    Sampler,
    Target,
)


class Table:
    """Logits as a function of the last ``order`` tokens, fixed by ``seed``.

    Args:
        step: logits are rounded to multiples of it, so that ties occur; 0 is off.
        noise: how far ``seed`` moves the logits of ``base``, for a draft that resembles its target.
    """

    def __init__(
        self,
        vocabulary: int,
        seed: int,
        order: int = 2,
        scale: float = 2.0,
        step: float = 0.0,
        base: Table | None = None,
        noise: float = 0.0,
    ) -> None:
        self.vocabulary, self.seed, self.order, self.scale = vocabulary, seed, order, scale
        self.step, self.base, self.noise = step, base, noise
        self._rows: dict[tuple[int, ...], np.ndarray] = {}

    def row(self, tokens: Sequence[int]) -> np.ndarray:
        key = tuple(tokens[-self.order :])
        if key not in self._rows:
            row = np.random.default_rng((self.seed, *key)).normal(0, self.scale, self.vocabulary)
            if self.base is not None:
                row = self.base.row(tokens) + self.noise * row
            if self.step:
                row = np.round(row / self.step) * self.step
            self._rows[key] = row.astype(np.float32)
        return self._rows[key]


class TableTarget:
    """A target of table logits; a row handed out is destroyed by the model's next decode, as in llama.cpp.

    Args:
        n_ctx: tokens it holds at most.
        abort_at: the decodes, counted from 0, that raise ``Aborted``.
        on_decode: called before every decode.
    """

    def __init__(
        self,
        table: Table,
        n_ctx: int = 10_000,
        abort_at: Iterable[int] = (),
        on_decode: Callable[[], None] | None = None,
    ) -> None:
        self.table, self.n_ctx = table, n_ctx
        self.abort_at, self.on_decode = set(abort_at), on_decode
        self.tokens: list[int] = []
        self.decodes: list[list[int]] = []
        self.forks: list[TableTarget] = []
        self.passes = 0
        self.closed = False
        self._handed_out: list[np.ndarray] = []  # shared by all forks

    @property
    def n_past(self) -> int:
        return len(self.tokens)

    def decode(self, tokens: Sequence[int], last: int | None = None) -> Logits:
        wanted = len(tokens) if last is None else last
        assert tokens
        assert 0 <= wanted <= len(tokens)
        if self.on_decode is not None:
            self.on_decode()
        call = len(self.decodes)
        self.decodes.append(list(tokens))
        if call in self.abort_at:
            raise Aborted
        if self.n_past + len(tokens) > self.n_ctx:
            raise ContextFull(f"{self.n_past + len(tokens)} tokens do not fit into {self.n_ctx}")
        for stale in self._handed_out:
            stale.fill(np.nan)
        self._handed_out.clear()
        logits = np.empty((wanted, self.table.vocabulary), np.float32)
        for i, token in enumerate(tokens):
            self.tokens.append(token)
            if i >= len(tokens) - wanted:
                logits[i - len(tokens) + wanted] = self.table.row(self.tokens)
        self._handed_out.append(logits)
        return logits

    def rollback(self, n_past: int) -> None:
        assert 0 <= n_past <= self.n_past
        del self.tokens[n_past:]

    def fork(self) -> TableTarget:
        other = copy.copy(self)
        other.tokens, other.decodes = list(self.tokens), []
        other.forks = []
        self.forks.append(other)
        return other

    def decode_each(self, forks: Sequence[Target], tokens: Sequence[Sequence[int]]) -> Logits:
        self.passes += 1
        if self.abort_at:
            raise Aborted
        if sum(fork.n_past + len(each) for fork, each in zip(forks, tokens, strict=True)) > self.n_ctx:
            raise ContextFull("no cells left")
        rows = [fork.decode(each).copy() for fork, each in zip(forks, tokens, strict=True)]
        return np.concatenate(rows)

    def close(self) -> None:
        self.closed = True


class SetGrammar:
    """A finite automaton over token ids.

    Args:
        transitions: for each state, the next state of every token that may come next.
        accepting: the states where the text is complete.
    """

    def __init__(
        self, transitions: Sequence[dict[int, int]], accepting: frozenset[int], end_tokens: frozenset[int]
    ) -> None:
        self.transitions, self.accepting, self.end_tokens = transitions, accepting, end_tokens
        self.history = [0]
        self.calls = {"allows": 0, "mask_into": 0, "copy": 0}

    @property
    def ended(self) -> bool:
        return self.history[-1] < 0

    def copy(self) -> SetGrammar:
        self.calls["copy"] += 1
        other = copy.copy(self)
        other.history, other.calls = list(self.history), dict.fromkeys(self.calls, 0)
        return other

    def __deepcopy__(self, memo: object) -> SetGrammar:
        return self.copy()

    def accept(self, tokens: Sequence[int]) -> int:
        for taken, token in enumerate(tokens):
            if not self._allows(token):
                return taken
            self.history.append(-1 if token in self.end_tokens else self.transitions[self.history[-1]][token])
        return len(tokens)

    def allows(self, token: int) -> bool:
        self.calls["allows"] += 1
        return self._allows(token)

    def _allows(self, token: int) -> bool:
        if self.ended:
            return False
        if token in self.end_tokens:
            return self.can_end
        return token in self.transitions[self.history[-1]]

    def mask_into(self, bits: Bits) -> None:
        self.calls["mask_into"] += 1
        bits.fill(0)
        for token in range(len(bits) * 32):
            if self._allows(token):
                bits[token // 32] |= np.uint32(1 << token % 32)

    def rollback(self, n: int) -> None:
        if not 0 <= n < len(self.history):
            raise ValueError(f"roll back {n} of {len(self.history) - 1} tokens")
        del self.history[len(self.history) - n :]

    def forced(self) -> bytes:
        return b""

    @property
    def can_end(self) -> bool:
        return self.ended or self.history[-1] in self.accepting

    @property
    def finished(self) -> bool:
        return self.ended or (self.can_end and not self.transitions[self.history[-1]])


class TextGrammar:
    """Allows exactly the given texts."""

    def __init__(self, texts: Iterable[bytes], vocabulary: FakeVocabulary) -> None:
        self.texts, self.vocabulary = sorted(texts), vocabulary
        self.history = [b""]
        self.ended = 0

    def copy(self) -> TextGrammar:
        other = copy.copy(self)
        other.history = list(self.history)
        return other

    def __deepcopy__(self, memo: object) -> TextGrammar:
        return self.copy()

    def _next(self, token: int) -> bytes | None:
        piece = self.vocabulary.token_bytes(token)
        text = self.history[-1] + piece
        return text if piece and any(t.startswith(text) for t in self.texts) else None

    def allows(self, token: int) -> bool:
        if self.ended:
            return False
        return self.can_end if token in self.vocabulary.end_tokens else self._next(token) is not None

    def accept(self, tokens: Sequence[int]) -> int:
        for taken, token in enumerate(tokens):
            if not self.allows(token):
                return taken
            if token in self.vocabulary.end_tokens:
                self.ended = 1
                self.history.append(self.history[-1])
            else:
                text = self._next(token)
                assert text is not None
                self.history.append(text)
        return len(tokens)

    def mask_into(self, bits: Bits) -> None:
        bits.fill(0)
        for token in filter(self.allows, range(self.vocabulary.size)):
            bits[token // 32] |= np.uint32(1 << token % 32)

    def rollback(self, n: int) -> None:
        if not 0 <= n < len(self.history):
            raise ValueError(f"roll back {n} of {len(self.history) - 1} tokens")
        if n:
            self.ended = 0
        del self.history[len(self.history) - n :]

    def forced(self) -> bytes:
        here = self.history[-1]
        open_texts = [t for t in self.texts if t.startswith(here)]
        if self.ended or not open_texts:
            return b""
        first, last = open_texts[0], open_texts[-1]
        same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
        # A text that may end has a choice: the end token.
        return first[len(here) : same] if here not in self.texts else b""

    @property
    def can_end(self) -> bool:
        return bool(self.ended) or self.history[-1] in self.texts

    @property
    def finished(self) -> bool:
        return bool(self.ended) or (self.can_end and not any(t.startswith(self.history[-1]) for t in self._longer()))

    def _longer(self) -> list[bytes]:
        return [t for t in self.texts if len(t) > len(self.history[-1])]


class FakeVocabulary:
    """Token 0 ends a text; 1–256 are the bytes; ``words`` follow. Cuts the longest token first."""

    def __init__(self, words: Sequence[str] = ()) -> None:
        self._bytes = [b"", *(bytes([i]) for i in range(256)), *(word.encode() for word in words)]
        self._ids = {piece: i for i, piece in enumerate(self._bytes) if piece}

    @property
    def size(self) -> int:
        return len(self._bytes)

    @property
    def end_tokens(self) -> frozenset[int]:
        return frozenset({0})

    def tokenize(self, text: str, special: bool = False) -> list[int]:
        data, ids = text.encode(), []
        longest = max(map(len, self._bytes))
        while data:
            size = next(n for n in range(min(longest, len(data)), 0, -1) if data[:n] in self._ids)
            ids.append(self._ids[data[:size]])
            data = data[size:]
        return ids

    def token_bytes(self, token: int) -> bytes:
        return self._bytes[token]


class FakeDraft:
    """Proposes what ``guess(tokens)`` gives, as far as the grammar takes it.

    Args:
        polite: False ignores ``more``.
        blind: True neither asks the grammar nor advances it, against the protocol.
        fail_at: the calls, counted from 0, that raise a ``CodespecError``.
    """

    def __init__(
        self,
        guess: Callable[[Sequence[int]], Sequence[int]],
        source: str = "model",
        polite: bool = True,
        blind: bool = False,
        fail_at: Iterable[int] = (),
    ) -> None:
        self.guess, self.source, self.polite, self.blind = guess, source, polite, blind
        self.fail_at, self.calls = set(fail_at), 0

    def propose(
        self,
        tokens: Sequence[int],
        grammar: GrammarState | None,
        sampler: Sampler,
        more: Callable[[float], bool],
    ) -> Proposal:
        self.calls += 1
        if self.calls - 1 in self.fail_at:
            raise CodespecError("the draft failed, as it was told to")
        ids = list(self.guess(tokens))
        if self.polite:
            ids = [token for token in ids if more(1.0)]
        if grammar is not None and not self.blind:
            ids = ids[: grammar.accept(ids)]
        return Proposal(tuple(ids), source=self.source)


def random_draft(vocabulary: int, seed: int, length: int = 8, **options: Any) -> FakeDraft:
    """Proposes anything."""
    rng = np.random.default_rng(seed)
    return FakeDraft(lambda _: rng.integers(0, vocabulary, length).tolist(), source="ngram", **options)


def oracle_draft(text: Sequence[int], **options: Any) -> FakeDraft:
    """Proposes the rest of ``text`` (prompt included) wherever it stands in it."""
    return FakeDraft(lambda tokens: text[len(tokens) :], source="ngram", **options)


def wrong_draft(text: Sequence[int], vocabulary: int) -> FakeDraft:
    """Never proposes a token of ``text`` at its place."""
    return FakeDraft(lambda tokens: [(token + 1) % vocabulary for token in text[len(tokens) :]], source="ngram")


def random_grammar(rng: np.random.Generator, vocabulary: int, end_tokens: frozenset[int]) -> SetGrammar:
    """An automaton of one to six states, dead ends and complete ones without continuation among them."""
    states = int(rng.integers(1, 7))
    share = rng.choice([0.1, 0.4, 0.9])
    transitions: list[dict[int, int]] = []
    for _ in range(states):
        tokens = np.flatnonzero(rng.random(vocabulary) < share).tolist() if rng.random() > 0.1 else []
        transitions.append({t: int(rng.integers(states)) for t in tokens if t not in end_tokens})
    return SetGrammar(transitions, frozenset(np.flatnonzero(rng.random(states) < 0.4).tolist()), end_tokens)
