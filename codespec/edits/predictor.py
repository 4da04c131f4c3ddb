"""Asks a model for a window anew, and offers what it changed where that does no harm."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter

from codespec.completion.ending.stream import follow
from codespec.draft.ngram import BREAK
from codespec.edits.completing import completed
from codespec.edits.difference import Hunk, applied, hunks
from codespec.edits.formats import EditFormat, WindowPrompt, as_tokens
from codespec.edits.formats.choose import format_of
from codespec.edits.formats.embedded import Embedded
from codespec.edits.places import Place, cursor_place, place_at, places, related
from codespec.edits.renames import renames_another, rest_of_rename
from codespec.edits.request import Edit, EditOffer, EditRequest
from codespec.edits.reversal import done, swaps, undoes, without_repeats
from codespec.edits.soundness import Soundness
from codespec.edits.windows import Window, line_of, original
from codespec.engine.engine import Generating
from codespec.languages import by_id
from codespec.patience import JUDGING_S, within
from codespec.protocols import Aborted, Cancel, Chunk, CodespecError, FinishReason, Limits, Statistics, Vocabulary

NEAR = 2
"""Lines from the cursor where an edit is in sight of whoever types."""
MOST_RECENT = 8
"""Edits that a prompt shows."""
LEAST_MS = 5.0
"""Left of the budget, below which no window is begun."""
SPARE_TOKENS = 64
"""That a new window may be longer than one and a half old ones."""
AROUND = 4_000
"""Characters of the document before a window, and as many after it, that drafts may take new text from."""

_NAME = re.compile(r"[^\W\d]\w*")


@dataclass
class Attempt:
    """What a model made of one window.

    Attributes:
        place: the window.
        answer: what the model wrote.
        updated: the new window; None where there is none.
        finish_reason: why the generation ended.
        why: it is not offered; empty where it is.
        statistics: of the generation.
        ms: all of it.
    """

    place: Place
    answer: str = ""
    updated: str | None = None
    finish_reason: FinishReason | None = None
    why: str = ""
    statistics: Statistics = field(default_factory=Statistics)
    ms: float = 0.0

    def add(self, stops: Sequence[str], chunk: Chunk) -> bool:
        """Take the next chunk of the answer; whether one of ``stops`` ends it."""
        self.answer += chunk.text
        stopped = any(stop in self.answer[-len(chunk.text) - len(stop) :] for stop in stops)
        self.finish_reason = "stop" if stopped else chunk.finish_reason
        return stopped


class EditPredictor:
    """Predicts next edits with one model. For one thread at a time.

    Args:
        engine: of the model.
        format: its layout; None: as its name and tokens tell.
        around: lines of a window above and below its place; None: as the model was trained.
        renames: whether a rename that was begun is carried on by the syntax tree, before the model is asked.
        clock: seconds.

    Raises:
        CodespecError: the model's layout is not known.

    Attributes:
        why: the last prediction came to nothing: ``no edit``, ``time``, ``cancelled``, ``reversal``, ``white space``,
            ``parses worse``, ``compiles worse``, ``rejected``, ``too long``,
            ``marks`` (the window holds the model's own), ``another name`` (a rename of what is something else),
            ``unknown name`` (of a model that can only repeat names),
            ``again`` (what was just typed, once more); empty where there is an offer.
        attempts: the windows that the model was asked for.
        by: what made the last offer: ``rename`` or ``model``; empty without one.
    """

    def __init__(
        self,
        engine: Generating,
        format: EditFormat | None = None,
        *,
        around: tuple[int, int] | None = None,
        renames: bool = True,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        found = format or format_of(engine)
        if found is None:
            raise CodespecError(
                f"{engine.name}: no model for next edits; name one such as Sweep's or Zeta in `edits.model`"
            )
        self.format: EditFormat = found
        self._engine, self._around, self._clock = engine, around or found.around, clock
        self._soundness = Soundness()
        self._renames = renames
        self._copies = isinstance(found, Embedded)
        self.why = self.by = ""
        self.attempts: list[Attempt] = []

    def predict(self, request: EditRequest, cancel: Cancel | None = None) -> EditOffer | None:
        """The next edit; None where there is none worth showing, and ``why`` says so.

        Raises:
            CodespecError: decoding failed.
        """
        end = self._clock() + request.budget_ms / 1000
        stopped = cancel.is_set if cancel is not None else lambda: False
        with within(request.budget_ms / 1000 + JUDGING_S, stopped):
            try:
                return self._predict(request, end, cancel)
            except Aborted:  # while an edit was judged
                self.why = "cancelled" if stopped() else "time"
                return None

    def _predict(self, request: EditRequest, end: float, cancel: Cancel | None) -> EditOffer | None:
        self.attempts = []
        self.why, self.by = "no edit", ""
        renamed = self._renamed(request)
        if renamed is not None:
            self.why, self.by = "", "rename"
            return renamed
        for place in places(request, self._around):
            left = (end - self._clock()) * 1000
            if cancel is not None and cancel.is_set():
                self.why = "cancelled"
                return None
            if left < LEAST_MS:
                self.why = "time"
                return None
            offer = self._at(request, place, left, cancel)
            if offer is not None:
                self.why, self.by = "", "model"
                return offer
        return None

    def _renamed(self, request: EditRequest) -> EditOffer | None:
        """What is left of a rename: around the cursor, else at the next place."""
        left = rest_of_rename(request) if self._renames else []
        windows = [] if not left else [cursor_place(request, self._around)]
        ahead = [each for each in left if each.start >= request.offset]
        for change in [*ahead, *reversed(left[: len(left) - len(ahead)])]:
            if not any(each.window.start <= change.start < each.window.end for each in windows):
                windows.append(place_at(request.path, request.language, request.text, change.start, self._around))
        for place in windows:
            window = place.window
            changes = [each for each in left if window.start <= each.start and each.end <= window.end]
            changes = not_rejected(request, place, changes)
            if changes and not self._why_not(request, place, changes):
                return offered(request, place, changes)
        return None

    def _at(self, request: EditRequest, place: Place, left: float, cancel: Cancel | None) -> EditOffer | None:
        began = self._clock()
        attempt = Attempt(place)
        self.attempts.append(attempt)
        self._generate(request, attempt, left, cancel)
        offer = None
        if attempt.updated is not None:
            offer = self._checked(request, attempt, attempt.updated)
        if attempt.why:
            self.why = attempt.why
        attempt.ms = (self._clock() - began) * 1000
        return offer

    def _generate(self, request: EditRequest, attempt: Attempt, left: float, cancel: Cancel | None) -> None:
        """Fill in what the model writes for a window."""
        vocabulary = self._engine.vocabulary
        prompt = window_prompt(request, attempt.place)
        if any(mark in prompt.window for mark in self.format.reserved):
            attempt.why = "marks"
            return
        draft = vocabulary.tokenize(self.format.unchanged(prompt))
        most = len(draft) * 3 // 2 + SPARE_TOKENS
        tokens = self._fitted(prompt, most)
        if tokens is None:
            attempt.why = "too long"
            return
        changes = [(vocabulary.tokenize(each.before), vocabulary.tokenize(each.after)) for each in prompt.recent]
        limits = Limits(max_tokens=most, time_budget_ms=left)
        steps = self._engine.generate(
            tokens,
            limits=limits,
            cancel=cancel,
            language=request.language,
            window=draft,
            changes=changes,
            document=() if self._copies else around(attempt.place.window, vocabulary),
        )
        follow(steps, partial(attempt.add, self.format.stop))
        attempt.statistics = self._engine.statistics
        self._read(prompt, attempt)

    def _read(self, prompt: WindowPrompt, attempt: Attempt) -> None:
        if attempt.finish_reason in ("stop", "grammar"):
            attempt.updated = self.format.read(attempt.answer, prompt)
            attempt.why = "no edit" if attempt.updated is None else ""
            return
        attempt.why = "cancelled" if attempt.finish_reason == "cancelled" else "time"
        if attempt.finish_reason in ("time", "length"):
            whole = attempt.answer[: attempt.answer.rfind("\n") + 1]  # the last line may go on
            updated = self.format.read(whole, prompt)
            attempt.updated = completed(updated, prompt.window) if updated is not None else None
            attempt.why = "" if attempt.updated is not None else attempt.why

    def _fitted(self, prompt: WindowPrompt, most: int) -> list[int] | None:
        """The tokens of the prompt, with less around the window where they are too many; None where the rest is."""
        smaller = (
            prompt,
            replace(prompt, snippets=()),
            replace(prompt, snippets=(), recent=prompt.recent[-3:]),
            replace(prompt, snippets=(), recent=prompt.recent[-1:], before="", after=""),
        )
        vocabulary = self._engine.vocabulary
        beginning = [vocabulary.beginning] if vocabulary.beginning is not None else []
        for each in smaller:
            tokens = beginning + as_tokens(self.format.prompt(each), vocabulary)
            if len(tokens) + most < self._engine.context_length:
                return tokens
        return None

    def _checked(self, request: EditRequest, attempt: Attempt, updated: str) -> EditOffer | None:
        """What may be shown of a new window; else ``attempt.why``."""
        window = attempt.place.window
        found = [
            Hunk(window.start + each.start, window.start + each.end, each.text)
            for each in hunks(window.inside, updated)
        ]
        new = without_repeats(found, window.text, done(window.text, window.path, request.recent))
        changes = not_rejected(request, attempt.place, new)
        if changes or not found:
            attempt.why = self._why_not(request, attempt.place, changes)
        else:
            attempt.why = "rejected" if new else "again"
        if not attempt.why and renames_another(request, window, changes):
            attempt.why = "another name"
        if not attempt.why and self._copies and brings_names(request, window.text, changes):
            attempt.why = "unknown name"
        return offered(request, attempt.place, changes) if not attempt.why else None

    def _why_not(self, request: EditRequest, place: Place, changes: Sequence[Hunk]) -> str:
        """Why changes are not shown; empty where they are."""
        if not changes:
            return "no edit"
        window = place.window
        new = applied(window.text, changes)
        if "".join(new.split()) == "".join(window.text.split()):
            return "white space"
        if undoes(changes, window.text, done(window.text, window.path, request.recent), swaps(request.recent)):
            return "reversal"
        return self._soundness.why_worse(window.path, by_id(window.language), window.text, new)


def window_prompt(request: EditRequest, place: Place) -> WindowPrompt:
    """All that a prompt may show for a window."""
    window = place.window
    return WindowPrompt(
        path=window.path,
        language=window.language,
        window=window.inside,
        cursor=place.offset,
        line=window.line,
        before=window.text[: window.start],
        after=window.text[window.end :],
        original=original(window, request.recent),
        recent=request.recent[-MOST_RECENT:],
        snippets=tuple(related(request, window.path)),
    )


def around(window: Window, vocabulary: Vocabulary) -> list[int]:
    """The tokens of a document around a window, which most prompts do not show."""
    before, after = window.text[: window.start][-AROUND:], window.text[window.end :][:AROUND]
    return [*vocabulary.tokenize(before), BREAK, *vocabulary.tokenize(after)]


def offered(request: EditRequest, place: Place, changes: Sequence[Hunk]) -> EditOffer:
    """The offer of these changes, which are in characters of the document."""
    window = place.window
    edits = tuple(Edit(window.path, *change) for change in changes)
    line = line_of(window.text, edits[0].start)
    there = window.path == request.path
    return EditOffer(
        offer_id(window.path, window.text, changes),
        edits,
        line,
        not there or abs(line - line_of(request.text, request.offset)) > NEAR,
        tuple(offer_id(window.path, window.text, [each]) for each in changes),
    )


def not_rejected(request: EditRequest, place: Place, changes: Sequence[Hunk]) -> list[Hunk]:
    """The changes but for those that the user dropped, alone or among others."""
    window = place.window
    return [each for each in changes if offer_id(window.path, window.text, [each]) not in request.rejected]


def offer_id(path: str, text: str, changes: Sequence[Hunk]) -> str:
    """The same for the same change of the same lines, wherever in the document they stand."""
    parts = [path]
    for change in changes:
        start = text.rfind("\n", 0, change.start) + 1
        end = text.find("\n", change.end)
        old = text[start : end if end >= 0 else len(text)]
        parts += [old, old[: change.start - start] + change.text + old[change.end - start :]]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def brings_names(request: EditRequest, text: str, changes: Sequence[Hunk]) -> bool:
    """Whether changes bring in a name that stands neither in the document, nor in the recent edits, nor in others."""
    come = set(_NAME.findall(applied(text, changes))) - set(_NAME.findall(text))
    for edit in request.recent if come else ():
        come -= set(_NAME.findall(edit.before + edit.after))
    for other in request.others if come else ():
        come -= set(_NAME.findall(other.text))
    return bool(come)
