"""Texts of several clients, written side by side in a context of their own: one pass gives every text its next tokens.

Each text has a seat, a sequence of that context with room of its own. What a seat has read stays when its text ends,
until another prompt takes the seat: one that begins alike is not read again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Protocol

import numpy as np
import numpy.typing as npt

from codespec.draft.costs import RunningCosts
from codespec.draft.sequence import HeldSequence, common_prefix
from codespec.engine.prefill_steps import prefill_steps
from codespec.engine.prompt_store import StoredPrompt
from codespec.llama.context import Context
from codespec.llama.model import Model
from codespec.llama.runtime import Cancellation
from codespec.llama.sequence import LlamaSequence
from codespec.protocols import (
    Aborted,
    Cancel,
    Chunk,
    CodespecError,
    GrammarState,
    Limits,
    Round,
    Sampling,
    Statistics,
)
from codespec.speculative.generate import Generator
from codespec.speculative.run import Run, since
from codespec.speculative.side_by_side import Text, next_rounds

FEW, SEATS = 4, 16
"""Seats: at first, and from when more texts than that are there."""
MEMORY = 512 << 20
"""Bytes that the KV cells of all seats take at most."""
_LEAST = 256
"""Tokens that a seat has room for, at least: else texts are written one after the other."""
_EXPECTED = 256
"""Tokens that a text is expected to have at most: clients often name no limit, or far too high a one."""
_SHORT = 8
"""Tokens of a prompt that a text's first pass may begin with."""
_ROWS = SEATS * _SHORT
"""Tokens of a pass at most."""
_STEP_S = 0.05
"""For which a prompt is read between two passes of the other texts, unless a step of it takes longer."""
_WORTH = 32
"""Tokens of a prompt from which on it pays to copy what was read of them elsewhere."""

_log = logging.getLogger("codespec")


class Keeper(Protocol):
    """Keeps what was read of prompts; a ``PromptCache`` is one."""

    def give(self, prompt: Sequence[int], least: int) -> StoredPrompt | None:
        """See ``PromptCache.give``."""
        ...

    def keep(self, tokens: Sequence[int], save: Callable[[], npt.NDArray[np.uint8]]) -> None:
        """See ``PromptCache.keep``."""
        ...


class Host(Protocol):
    """What a company has of its engine; a ``LocalEngine`` is one.

    Attributes:
        context: of the target.
        kept: has what other sequences have read.
    """

    context: Context
    kept: Keeper

    @property
    def costs(self) -> RunningCosts:
        """Of the target's passes."""
        ...

    def without_markers(self, sampling: Sampling) -> Sampling:
        """See ``SpeculativeEngine``."""
        ...

    def decoder(self) -> Callable[[Round], Chunk]:
        """See ``SpeculativeEngine``."""
        ...

    def new_cancellation(self) -> Cancellation:
        """See ``SpeculativeEngine``."""
        ...


@dataclass(eq=False)
class _Seat:
    own: LlamaSequence
    sequence: HeldSequence
    """The same, with the tokens that it holds."""
    member: Member | None = None


@dataclass(eq=False)
class Member:
    """A text in company; made by ``Company.join``.

    Attributes:
        size: tokens that prompt and text are expected to have.
        cut: whether its end is that of its seat's room: it may go on elsewhere.
    """

    generator: Generator
    run: Run
    seat: _Seat
    decode: Callable[[Round], Chunk]
    size: int
    cut: bool

    @property
    def statistics(self) -> Statistics:
        """Counts of its text; of the time of a pass it has its share."""
        return self.run.statistics

    @property
    def text(self) -> Text:
        """For a pass."""
        return Text(self.generator, self.run)

    @property
    def reads(self) -> bool:
        """Whether more of its prompt is to be read than its first pass can begin with."""
        return len(self.text.lacking) > _SHORT


class Company:
    """Writes texts side by side. For one thread, but for ``possible``.

    Args:
        engine: with the target; what it has read is not read again.

    Attributes:
        possible: whether there is memory for it.
    """

    def __init__(self, engine: Host) -> None:
        self._engine = engine
        self._context: Context | None = None
        self._seats: list[_Seat] = []
        self.possible = True

    @property
    def _model(self) -> Model:
        return self._engine.context.model

    def fits(self, prompt: Sequence[int], limits: Limits) -> bool:
        """Whether there can be a seat for a text, however few others there are."""
        return self.possible and _size(prompt, limits) <= self._room(FEW)

    def join(
        self,
        prompt: Sequence[int],
        grammar: GrammarState | None,
        sampling: Sampling,
        limits: Limits,
        cancel: Cancel | None = None,
    ) -> Member | None:
        """Begin a text, as ``Generating.generate`` has it; None where there is no seat for it now.

        Raises:
            CodespecError: settings out of range.
        """
        engine, size = self._engine, _size(prompt, limits)
        try:
            seat = self._seat(prompt, size)
        except CodespecError as error:
            _log.warning("texts are written one after the other: %s", error)
            self.close()
            self.possible = False
            return None
        if seat is None:
            return None
        sampling = engine.without_markers(sampling)
        generator = Generator(seat.sequence, None, self._model.vocabulary.end_tokens)
        most = seat.own.context.room + 1 - len(prompt)
        run = generator.begin(
            prompt, sampling, replace(limits, max_tokens=min(limits.max_tokens, most)), grammar, cancel
        )
        run.statistics.reused_tokens = len(seat.sequence.tokens)
        seat.member = Member(generator, run, seat, engine.decoder(), size, cut=most < limits.max_tokens)
        return seat.member

    def leave(self, member: Member, goes_on: bool = False) -> None:
        """Give the seat up; a second call does nothing.

        Args:
            goes_on: whether the text goes on elsewhere: what was read and written of it is put where the engine looks.
        """
        if member.seat.member is member:
            member.seat.member = None
        if goes_on and member.seat.member is None:
            self._lose(member.seat, 0)

    def step(self, members: Sequence[Member], cancel: Cancel) -> list[tuple[Member, Chunk | CodespecError]]:
        """Go on for some 50 ms at most: part of a prompt that is to be read, then one pass for all texts whose prompt
        is read. Texts that end leave.

        Args:
            members: in the order in which they joined; those that have left are passed over.

        Returns:
            What was added to each text, or why it cannot go on; nothing once ``cancel`` is set.

        Raises:
            CodespecError: decoding failed for all.
        """
        context = self._adapted()
        if context is None:
            return []
        members = [each for each in members if each.seat.member is each]
        with context.cancellable(self._engine.new_cancellation()):
            self._read(next((each for each in members if each.reads), None), cancel)
            # llama.cpp decodes sequences together whose numbers follow each other, and all others one by one.
            live = sorted((each for each in members if not each.reads), key=lambda each: each.seat.own.id)
            if not live or cancel.is_set():
                return []
            try:
                rounds = next_rounds([each.text for each in live])
            except Aborted:
                return []
        found: list[tuple[Member, Chunk | CodespecError]] = []
        for member, step in zip(live, rounds, strict=True):
            if isinstance(step, CodespecError) or step.finish_reason is not None:
                self.leave(member)
            found.append((member, step if isinstance(step, CodespecError) else member.decode(step)))
        return found

    def _read(self, member: Member | None, cancel: Cancel) -> None:
        """Read a part of a prompt."""
        if member is None:
            return
        began, statistics = perf_counter(), member.statistics
        first, most, _ = prefill_steps(self._engine.costs, False, bool(self._model.gpu_layers))

        def stop() -> bool:
            return cancel.is_set() or perf_counter() - began > _STEP_S

        sequence, before_last = member.generator.sequence, member.run.tokens[:-1]
        statistics.prefill_tokens += sequence.read(before_last, first, most, stop, _SHORT - 1)
        statistics.prefill_ms += since(began)

    def _seat(self, prompt: Sequence[int], size: int) -> _Seat | None:
        """A seat with room for ``size`` tokens that holds as much of a prompt as is known; None where there is none.

        Raises:
            CodespecError: there is no memory.
        """
        self._adapted()
        members = [seat.member for seat in self._seats if seat.member is not None]
        if len(members) == len(self._seats) == FEW:
            if max(size, *(each.size for each in members)) > self._room(SEATS):
                return None
            self._make(SEATS)
        elif not members and (not self._seats or size > self._room(len(self._seats))):
            self._make(FEW)
        free = [seat for seat in self._seats if seat.member is None]
        if not free or size > self._room(len(self._seats)):
            return None
        known = {id(seat): common_prefix(seat.sequence.tokens, prompt) for seat in free}
        best = max(free, key=lambda seat: known[id(seat)])
        if known[id(best)] < _WORTH:
            best = min(free, key=lambda seat: seat.own.id)
        self._fill(best, prompt)
        return best

    def _fill(self, seat: _Seat, prompt: Sequence[int]) -> None:
        """Let a seat hold what is known of the beginning of a prompt, and nothing else."""
        own = seat.sequence.kept(prompt)
        self._lose(seat, own)
        kept = self._engine.kept.give(prompt, own + _WORTH)
        if kept is not None and len(kept.tokens) <= seat.own.context.room:
            self._restore(seat, kept.tokens, kept.data)
        seat.sequence.rollback(seat.sequence.kept(prompt))

    def _lose(self, seat: _Seat, count: int) -> None:
        """Let a seat hold ``count`` tokens; much that it loses is kept for later."""
        if len(seat.sequence.tokens) - count >= _WORTH:
            self._engine.kept.keep(seat.sequence.tokens, seat.own.save)
        seat.sequence.rollback(count)

    def _restore(self, seat: _Seat, tokens: list[int], data: npt.NDArray[np.uint8]) -> None:
        """Fill a seat with cells that were saved; it is empty if llama.cpp does not take them."""
        seat.sequence.rollback(0)
        with suppress(CodespecError):
            seat.own.restore(data, len(tokens))
            seat.sequence.tokens = list(tokens)

    def _room(self, seats: int) -> int:
        """Tokens that each of so many seats has room for."""
        most = MEMORY // (seats * self._model.kv_bytes_per_token)
        return min(self._engine.context.length, max(_LEAST, most // _LEAST * _LEAST))

    def _make(self, count: int) -> None:
        """Have so many seats; members keep theirs.

        Raises:
            CodespecError: there is no memory.
        """
        saved = [(seat, seat.own.save()) for seat in self._seats if seat.member is not None]
        for seat in self._seats:
            if seat.member is None:
                self._lose(seat, 0)
        self.close()
        target = self._engine.context
        self._context = context = target.alike(self._room(count), count, batch=_ROWS, apart=True)
        self._adapted()
        for seat, data in saved:
            seat.own = context.sequence()
            tokens, seat.sequence.tokens = seat.sequence.tokens, []
            seat.sequence.target = seat.own
            self._restore(seat, tokens, data)
        new = [context.sequence() for _ in range(count - len(saved))]
        self._seats = [*(seat for seat, _ in saved), *(_Seat(own, HeldSequence(own)) for own in new)]

    def _adapted(self) -> Context | None:
        """The context with the target's LoRA adapter; what was read with another one is read again."""
        target, context = self._engine.context, self._context
        if context is not None and context.adapter_key != target.adapter_key:
            for seat in self._seats:
                seat.sequence.rollback(0)
            context.use(target.adapter, target.adapter_scale)
        return context

    def close(self) -> None:
        """Free the memory; a second call does nothing."""
        if self._context is not None:
            self._seats = []
            self._context.close()
            self._context = None


def _size(prompt: Sequence[int], limits: Limits) -> int:
    """Tokens that prompt and text are expected to have."""
    return len(prompt) + min(limits.max_tokens, _EXPECTED)
