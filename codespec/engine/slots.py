"""Texts of several clients, written side by side in a context of their own: one pass gives every text its next tokens.

Each text has a slot, a sequence of that context with room of its own. What a slot has read stays when its text ends,
until another prompt takes the slot: one that begins alike is not read again.
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

FEW, SLOTS = 4, 16
"""How many there are at first, and from when more texts than that are there."""
MEMORY = 512 << 20
"""Bytes that the KV cells of all slots take at most."""
_LEAST = 256
"""Tokens that a slot has room for, at least: else texts are written one after the other."""
_EXPECTED = 256
"""Tokens that a text is expected to have at most: clients often name no limit, or far too high a one."""
_SHORT = 8
"""Tokens of a prompt that a text's first pass may begin with."""
_ROWS = SLOTS * _SHORT
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
    """What slots have of their engine; a ``LocalEngine`` is one.

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
class _Slot:
    own: LlamaSequence
    sequence: HeldSequence
    """The same, with the tokens that it holds."""
    text: SlotText | None = None


@dataclass(eq=False)
class SlotText:
    """A text in a slot; made by ``Slots.begin``.

    Attributes:
        size: tokens that prompt and text are expected to have.
        cut: whether its end is that of its slot's room: it may go on elsewhere.
    """

    generator: Generator
    run: Run
    slot: _Slot
    decode: Callable[[Round], Chunk]
    size: int
    cut: bool

    @property
    def statistics(self) -> Statistics:
        """Counts of its text; of the time of a pass it has its share."""
        return self.run.statistics

    @property
    def in_pass(self) -> Text:
        """What ``next_rounds`` needs of it."""
        return Text(self.generator, self.run)

    @property
    def reads(self) -> bool:
        """Whether more of its prompt is to be read than its first pass can begin with."""
        return len(self.in_pass.lacking) > _SHORT


class Slots:
    """Writes texts side by side. For one thread, but for ``possible``.

    Args:
        engine: with the target; what it has read is not read again.

    Attributes:
        possible: whether there is memory for them.
    """

    def __init__(self, engine: Host) -> None:
        self._engine = engine
        self._context: Context | None = None
        self._slots: list[_Slot] = []
        self.possible = True

    @property
    def _model(self) -> Model:
        return self._engine.context.model

    def fits(self, prompt: Sequence[int], limits: Limits) -> bool:
        """Whether there can be a slot for a text, however few others there are."""
        return self.possible and _size(prompt, limits) <= self._room(FEW)

    def begin(
        self,
        prompt: Sequence[int],
        grammar: GrammarState | None,
        sampling: Sampling,
        limits: Limits,
        cancel: Cancel | None = None,
    ) -> SlotText | None:
        """Begin a text, as ``Generating.generate`` has it; None where there is no slot for it now.

        Raises:
            CodespecError: settings out of range.
        """
        engine, size = self._engine, _size(prompt, limits)
        try:
            slot = self._slot(prompt, size)
        except CodespecError as error:
            _log.warning("texts are written one after the other: %s", error)
            self.close()
            self.possible = False
            return None
        if slot is None:
            return None
        sampling = engine.without_markers(sampling)
        generator = Generator(slot.sequence, None, self._model.vocabulary.end_tokens)
        most = slot.own.context.room + 1 - len(prompt)
        run = generator.begin(
            prompt, sampling, replace(limits, max_tokens=min(limits.max_tokens, most)), grammar, cancel
        )
        run.statistics.reused_tokens = len(slot.sequence.tokens)
        slot.text = SlotText(generator, run, slot, engine.decoder(), size, cut=most < limits.max_tokens)
        return slot.text

    def release(self, text: SlotText, goes_on: bool = False) -> None:
        """Give the slot up; a second call does nothing.

        Args:
            goes_on: whether the text goes on elsewhere: what was read and written of it is put where the engine looks.
        """
        if text.slot.text is text:
            text.slot.text = None
        if goes_on and text.slot.text is None:
            self._lose(text.slot, 0)

    def step(self, texts: Sequence[SlotText], cancel: Cancel) -> list[tuple[SlotText, Chunk | CodespecError]]:
        """Go on for some 50 ms at most: part of a prompt that is to be read, then one pass for all texts whose prompt
        is read. Texts that end give their slots up.

        Args:
            texts: in the order in which they began; those that have given their slots up are passed over.

        Returns:
            What was added to each text, or why it cannot go on; nothing once ``cancel`` is set.

        Raises:
            CodespecError: decoding failed for all.
        """
        context = self._adapted()
        if context is None:
            return []
        texts = [each for each in texts if each.slot.text is each]
        with context.cancellable(self._engine.new_cancellation()):
            self._read(next((each for each in texts if each.reads), None), cancel)
            # llama.cpp decodes sequences together whose numbers follow each other, and all others one by one.
            live = sorted((each for each in texts if not each.reads), key=lambda each: each.slot.own.id)
            if not live or cancel.is_set():
                return []
            try:
                rounds = next_rounds([each.in_pass for each in live])
            except Aborted:
                return []
        found: list[tuple[SlotText, Chunk | CodespecError]] = []
        for text, step in zip(live, rounds, strict=True):
            if isinstance(step, CodespecError) or step.finish_reason is not None:
                self.release(text)
            found.append((text, step if isinstance(step, CodespecError) else text.decode(step)))
        return found

    def _read(self, text: SlotText | None, cancel: Cancel) -> None:
        """Read a part of a prompt."""
        if text is None:
            return
        began, statistics = perf_counter(), text.statistics
        first, most, _ = prefill_steps(self._engine.costs, False, bool(self._model.gpu_layers))

        def stop() -> bool:
            return cancel.is_set() or perf_counter() - began > _STEP_S

        sequence, before_last = text.generator.sequence, text.run.tokens[:-1]
        statistics.prefill_tokens += sequence.read(before_last, first, most, stop, _SHORT - 1)
        statistics.prefill_ms += since(began)

    def _slot(self, prompt: Sequence[int], size: int) -> _Slot | None:
        """A slot with room for ``size`` tokens that holds as much of a prompt as is known; None where there is none.

        Raises:
            CodespecError: there is no memory.
        """
        self._adapted()
        texts = [slot.text for slot in self._slots if slot.text is not None]
        if len(texts) == len(self._slots) == FEW:
            if max(size, *(each.size for each in texts)) > self._room(SLOTS):
                return None
            self._make(SLOTS)
        elif not texts and (not self._slots or size > self._room(len(self._slots))):
            self._make(FEW)
        free = [slot for slot in self._slots if slot.text is None]
        if not free or size > self._room(len(self._slots)):
            return None
        known = {id(slot): common_prefix(slot.sequence.tokens, prompt) for slot in free}
        best = max(free, key=lambda slot: known[id(slot)])
        if known[id(best)] < _WORTH:
            best = min(free, key=lambda slot: slot.own.id)
        self._fill(best, prompt)
        return best

    def _fill(self, slot: _Slot, prompt: Sequence[int]) -> None:
        """Let a slot hold what is known of the beginning of a prompt, and nothing else."""
        own = slot.sequence.kept(prompt)
        self._lose(slot, own)
        kept = self._engine.kept.give(prompt, own + _WORTH)
        if kept is not None and len(kept.tokens) <= slot.own.context.room:
            self._restore(slot, kept.tokens, kept.data)
        slot.sequence.rollback(slot.sequence.kept(prompt))

    def _lose(self, slot: _Slot, count: int) -> None:
        """Let a slot hold ``count`` tokens; much that it loses is kept for later."""
        if len(slot.sequence.tokens) - count >= _WORTH:
            self._engine.kept.keep(slot.sequence.tokens, slot.own.save)
        slot.sequence.rollback(count)

    def _restore(self, slot: _Slot, tokens: list[int], data: npt.NDArray[np.uint8]) -> None:
        """Fill a slot with cells that were saved; it is empty if llama.cpp does not take them."""
        slot.sequence.rollback(0)
        with suppress(CodespecError):
            slot.own.restore(data, len(tokens))
            slot.sequence.tokens = list(tokens)

    def _room(self, slots: int) -> int:
        """Tokens that each of so many slots has room for."""
        most = MEMORY // (slots * self._model.kv_bytes_per_token)
        return min(self._engine.context.length, max(_LEAST, most // _LEAST * _LEAST))

    def _make(self, count: int) -> None:
        """Have so many slots; those with a text keep it.

        Raises:
            CodespecError: there is no memory.
        """
        saved = [(slot, slot.own.save()) for slot in self._slots if slot.text is not None]
        for slot in self._slots:
            if slot.text is None:
                self._lose(slot, 0)
        self.close()
        target = self._engine.context
        self._context = context = target.alike(self._room(count), count, batch=_ROWS, apart=True)
        self._adapted()
        for slot, data in saved:
            slot.own = context.sequence()
            tokens, slot.sequence.tokens = slot.sequence.tokens, []
            slot.sequence.target = slot.own
            self._restore(slot, tokens, data)
        new = [context.sequence() for _ in range(count - len(saved))]
        self._slots = [*(slot for slot, _ in saved), *(_Slot(own, HeldSequence(own)) for own in new)]

    def _adapted(self) -> Context | None:
        """The context with the target's LoRA adapter; what was read with another one is read again."""
        target, context = self._engine.context, self._context
        if context is not None and context.adapter_key != target.adapter_key:
            for slot in self._slots:
                slot.sequence.rollback(0)
            context.use(target.adapter, target.adapter_scale)
        return context

    def close(self) -> None:
        """Free the memory; a second call does nothing."""
        if self._context is not None:
            self._slots = []
            self._context.close()
            self._context = None


def _size(prompt: Sequence[int], limits: Limits) -> int:
    """Tokens that prompt and text are expected to have."""
    return len(prompt) + min(limits.max_tokens, _EXPECTED)
