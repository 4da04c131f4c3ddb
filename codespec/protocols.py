"""The seams between the parts of codespec, and the plain data that crosses them.

Three seams carry everything: ``Target`` (a model that decodes), ``GrammarState`` (what may come next)
and ``Draft`` (what probably comes next). Every other module may import this one; it imports only the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from codespec.errors import Aborted, CodespecError, ContextFull

if TYPE_CHECKING:  # a language server starts without it
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "Aborted", "Bits", "Cancel", "Chunk", "CodespecError", "ContextFull", "Draft", "FinishReason",
    "GrammarState", "Limits", "Logits", "Pick", "Proposal", "Round", "Sampler", "Sampling", "Snippet", "SourceCount",
    "Statistics", "Target", "TokenChance", "TokenChange", "Vocabulary",
]  # fmt: skip

Logits: TypeAlias = "npt.NDArray[np.float32]"
"""float32 [rows, vocabulary]."""

Bits: TypeAlias = "npt.NDArray[np.uint32]"
"""uint32 [(vocabulary + 31) // 32]; bit ``t % 32`` of word ``t // 32`` is set where token ``t`` may come next."""

TokenChange: TypeAlias = "tuple[Sequence[int], Sequence[int]]"
"""Tokens of a text, and of what replaced it."""

FinishReason = Literal["stop", "length", "time", "cancelled", "grammar"]
"""``stop``: end token, stop rule, or a complete grammar with no continuation. ``grammar``: a dead end."""


class Vocabulary(Protocol):
    """The tokens of one model."""

    @property
    def size(self) -> int:
        """The number of tokens, V."""
        ...

    @property
    def end_tokens(self) -> frozenset[int]:
        """Every token that ends a generation."""
        ...

    def tokenize(self, text: str, special: bool = False) -> list[int]:
        """Token ids of ``text``; with ``special``, the names of special tokens in it become those tokens."""
        ...

    def token_bytes(self, token: int) -> bytes:
        """The text of one token; empty for control tokens."""
        ...


class Target(Protocol):
    """One sequence of a model: the large one, or a draft's own."""

    @property
    def n_past(self) -> int:
        """How many tokens have been decoded and kept."""
        ...

    def decode(self, tokens: Sequence[int], last: int | None = None) -> Logits:
        """Append ``tokens`` and return the logits after each of the last ``last`` of them (None: after each).

        float32 [last or len(tokens), V], valid until the next decode of any sequence of this model.
        ``last=0`` only fills the KV cache.

        Raises:
            ContextFull: no room for ``tokens``; the sequence is as before the call.
            CodespecError: decoding failed; the sequence is as before the call.
            Aborted: another thread asked to stop; the sequence is as before the call.
        """
        ...

    def rollback(self, n_past: int) -> None:
        """Forget everything after the first ``n_past`` tokens."""
        ...

    def fork(self) -> Target:
        """Another sequence that shares this one's tokens so far; close it after use."""
        ...

    def decode_each(self, forks: Sequence[Target], tokens: Sequence[Sequence[int]]) -> Logits:
        """Append tokens to each of several sequences of this model, in one pass; float32 [all tokens, V].

        Raises:
            ContextFull, CodespecError, Aborted: as ``decode``; every sequence is as before the call.
        """
        ...

    def close(self) -> None:
        """Give the sequence up; a second call does nothing."""
        ...


class GrammarState(Protocol):
    """The state of a grammar after a sequence of tokens: one for the target, one for every draft that looks ahead."""

    def copy(self) -> GrammarState:
        """An independent deep copy; ``copy.deepcopy`` gives the same."""
        ...

    def accept(self, tokens: Sequence[int]) -> int:
        """Advance over ``tokens``; return how many were taken. A refused token changes nothing."""
        ...

    def allows(self, token: int) -> bool:
        """Whether ``token`` may come next; no change of state. An end token may where the text so far is complete."""
        ...

    def mask_into(self, bits: Bits) -> None:
        """Write the set of tokens that may come next, end tokens included."""
        ...

    def rollback(self, n: int) -> None:
        """Undo the last ``n`` accepted tokens.

        Raises:
            ValueError: fewer than ``n`` tokens were accepted.
        """
        ...

    def forced(self) -> bytes:
        """Text that has no alternative from here; empty where there is a choice."""
        ...

    @property
    def can_end(self) -> bool:
        """Whether the text so far is complete."""
        ...

    @property
    def finished(self) -> bool:
        """Whether nothing can follow: the text is complete and has no continuation, or an end token was accepted."""
        ...


@dataclass(frozen=True)
class Sampling:
    """The parameters of sampling. The filters apply in the order of llama.cpp: penalties, top-k, top-p, min-p.

    Attributes:
        temperature: 0 is greedy.
        top_k: 0 is off.
        top_p: 1 is off.
        min_p: 0 is off.
        seed: same seed, same text.
        sample: index among several samples of one prompt with one seed.
        repeat_penalty: 1 is off; divides positive and multiplies negative logits of recent tokens.
        frequency_penalty, presence_penalty: 0 is off.
        penalty_window: how many recent tokens the penalties look at, prompt included.
        logit_bias: added to the logits; ``-inf`` bans a token.
        logprobs: how many of the best tokens are told at each place, beside the chosen one, where the target gives the
            logits of all tokens; None: nothing is told, which takes no time.
        written: tokens at the end of the prompt that an earlier call has generated: chance goes on where it stopped.
    """

    temperature: float = 0.0
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    seed: int = 0
    sample: int = 0
    repeat_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    penalty_window: int = 64
    logit_bias: dict[int, float] = field(default_factory=dict)
    logprobs: int | None = None
    written: int = 0


@dataclass(frozen=True)
class Limits:
    """The bounds of a generation.

    Attributes:
        max_tokens: generated tokens, the end token not counted.
        time_budget_ms: from the start of the call; None is no limit.
        first_alone: whether nothing is proposed before the first token is chosen: it comes sooner, the last one later.
    """

    max_tokens: int = 128
    time_budget_ms: float | None = None
    first_alone: bool = False


class Cancel(Protocol):
    """A flag that another thread sets to stop a generation; ``threading.Event`` is one."""

    def is_set(self) -> bool:
        """Whether to stop."""
        ...


@dataclass(frozen=True)
class Pick:
    """A chosen token and the probability the chooser gave it, after masking and filters."""

    token: int
    confidence: float


class Sampler(Protocol):
    """Chooses the next token; the same object serves target and drafts, which is what couples them."""

    def pick(
        self,
        logits: npt.NDArray[np.float32],
        tokens: Sequence[int],
        grammar: GrammarState | None,
        among: npt.NDArray[np.int64] | None = None,
    ) -> Pick | None:
        """The token after ``tokens`` (prompt included) given its logits [V]; None where the grammar allows no token.

        Args:
            among: ids in ascending order, where all other logits are ``-inf``: knowing them saves time.
        """
        ...


@dataclass(frozen=True)
class Snippet:
    """A part of another file that a prompt may show.

    Attributes:
        path: relative to the workspace, with ``/``; or just a name.
        text: whole lines.
    """

    path: str
    text: str


@dataclass(frozen=True)
class Proposal:
    """The tokens that a draft predicts.

    Attributes:
        tokens: in order.
        source: which draft: ``model``, ``window``, ``ngram``, ``forced``.
        sources: for each token, where they are not all from ``source``.
    """

    tokens: Sequence[int]
    source: str = "model"
    sources: Sequence[str] = ()

    @property
    def every_source(self) -> tuple[str, ...]:
        """Where each token came from."""
        return tuple(self.sources) or (self.source,) * len(self.tokens)

    def first(self, count: int) -> Proposal:
        """A proposal of the first ``count`` tokens."""
        return Proposal(self.tokens[:count], self.source, self.sources[:count])


class Draft(Protocol):
    """A source of proposals: predicts the target's next tokens."""

    def propose(
        self,
        tokens: Sequence[int],
        grammar: GrammarState | None,
        sampler: Sampler,
        more: Callable[[float], bool],
    ) -> Proposal:
        """Predict the tokens after ``tokens`` (prompt included).

        The draft syncs itself to ``tokens`` first, whatever it saw before. It advances ``grammar`` over its
        proposal; the caller rolls that back. It asks ``more(confidence of the last token)`` before each further
        token, and ``more(1.0)`` before the first. A draft that fails half-way proposes what it has.
        """
        ...


@dataclass
class SourceCount:
    """Counts of the tokens of one draft source."""

    drafted: int = 0
    accepted: int = 0


@dataclass
class Statistics:
    """Counts and times of one generation, growing while it runs."""

    tokens: int = 0
    target_calls: int = 0
    prefill_tokens: int = 0
    reused_tokens: int = 0
    by_source: dict[str, SourceCount] = field(
        default_factory=lambda: {name: SourceCount() for name in ("model", "window", "ngram", "forced")}
    )
    prefill_ms: float = 0.0
    draft_ms: float = 0.0
    verify_ms: float = 0.0
    target_ms: float = 0.0
    grammar_ms: float = 0.0
    total_ms: float = 0.0

    @property
    def drafted(self) -> int:
        return sum(c.drafted for c in self.by_source.values())

    @property
    def accepted(self) -> int:
        return sum(c.accepted for c in self.by_source.values())

    def count(self, sources: Sequence[str], accepted: int) -> None:
        """Count a proposal by where each of its tokens came from, of which the first ``accepted`` were accepted."""
        for source in set(sources):
            count = self.by_source.setdefault(source, SourceCount())
            count.drafted += sources.count(source)
            count.accepted += sources[:accepted].count(source)

    def add(self, other: Statistics) -> None:
        """Add the counts of another generation."""
        for field_ in fields(self):
            if field_.name != "by_source":
                setattr(self, field_.name, getattr(self, field_.name) + getattr(other, field_.name))
        for name, count in other.by_source.items():
            own = self.by_source.setdefault(name, SourceCount())
            own.drafted += count.drafted
            own.accepted += count.accepted


@dataclass(frozen=True)
class TokenChance:
    """What the target thought of a token, before penalties, grammar and temperature.

    Attributes:
        logprob: natural logarithm of its probability.
        best: the best tokens at its place and theirs, in order.
    """

    token: int
    logprob: float
    best: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Round:
    """One target call, which verifies a proposal.

    Attributes:
        tokens: added to the text: the accepted part of the proposal, then the target's own token. End tokens are
            not among them.
        proposed: the draft's proposal.
        accepted: how many of ``proposed`` the target accepted.
        sources: which draft each of ``proposed`` came from.
        finish_reason: set on the last round only.
        chances: for each of ``tokens``, where ``Sampling.logprobs`` asks for them.
    """

    tokens: tuple[int, ...]
    proposed: tuple[int, ...] = ()
    accepted: int = 0
    sources: tuple[str, ...] = ()
    finish_reason: FinishReason | None = None
    chances: tuple[TokenChance, ...] = ()


@dataclass(frozen=True)
class Chunk:
    """A piece of generated text, as engines yield it: whole characters only.

    Attributes:
        text: the characters that were added.
        round: the round it came from; None from a remote engine.
        finish_reason: set on the last chunk only.
    """

    text: str
    round: Round | None = None
    finish_reason: FinishReason | None = None
