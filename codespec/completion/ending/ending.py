"""Finds the end of a generated text: a stop at which the text after the cursor fits, or a cut back to where it fits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from codespec.completion.ending.repetition import Repetition
from codespec.completion.ending.stop_rule import StopRule
from codespec.completion.ending.suffix_gate import OPENERS, SuffixGate
from codespec.completion.ending.tidy import Tidy
from codespec.patience import left
from codespec.protocols import FinishReason
from codespec.syntax.scopes.inventions import Inventions

GateOutcome = Literal["passed", "cut", "broken", "dropped", "off", "unavailable"]
"""What became of the text at the suffix gate: ``passed`` at its end, ``cut`` back to a position where it passed,
``dropped`` for want of one, ``off`` by the settings, ``unavailable`` without a judge.
``broken``: nothing fitted, but the document has an error without the text, too, and the text makes it no worse, or is
right once brackets that other lines lack are there."""

REFUSED_STOPS = 6
"""Stops that the gate may refuse before the generation ends; each refusal makes the text a line longer."""
MOST_CUTS = 16
"""Positions that are tried when cutting back."""
MOST_LINES = 6
"""Of these, the ends of lines, the first and the last ones, which are tried first."""
MOST_ASKED, ASKED_TO_CLOSE = 80, 8
"""Questions to the gate while cutting back, each of which may take a parse; and about how many of them one attempt at
closing takes."""
MOST_CLOSED = 3
"""Of these positions, those where closing brackets are tried, too."""
CLOSING_S = 1.2
"""Seconds that must be left of the request's time for that: shorter texts cost less, and some come to nothing."""
NO_CHARACTER = "\ufffd"
"""What stands for bytes that are no character, which a model writes of alphabets that it hardly knows."""


@dataclass(frozen=True)
class Ended:
    """A finished text, why it ended, and what the gate did.

    Attributes:
        broken_line: of one that was dropped, see ``SuffixGate.broken_line``.
        invented: the name that it was dropped for, which nothing defines.
    """

    text: str
    reason: FinishReason
    gate: GateOutcome
    broken_line: int | None = None
    invented: str = ""


class Ending:
    """Finds the end of one generated text: by stop rule, repetition, suffix gate, or by cutting back.

    Args:
        rule: None never stops.
        gate: None where it is off or can judge nothing.
        tidy: trims the text where there is no gate (the gate judges trimmed variants itself); None: as it is.
        without: the outcome to report where there is no gate.
        names: finds names that nothing defines, for a gate; a text ends before the line that holds the first.
    """

    def __init__(
        self,
        rule: StopRule | None,
        gate: SuffixGate | None,
        tidy: Tidy | None = None,
        without: GateOutcome = "off",
        names: Inventions | None = None,
    ) -> None:
        self._rule, self._gate, self._tidy, self._without = rule, gate, tidy, without
        self._names = names if gate is not None else None
        self._invented = ""
        self._refused: list[int] = []
        self._skipped = -1
        self._seen = 0  # characters at which the rule was asked
        self._questions = 0
        self._repetition = Repetition(len(tidy.lead), tidy.comment) if tidy is not None else Repetition()
        self._kept = ""  # before what the text repeats
        self._whole = 0  # characters of the whole lines that were looked at
        self._begun = False  # whether one of them says something of its own

    def stop(self, text: str) -> Ended | None:
        """The end, once there is one. Called as the text grows; the steps in which it grows make no difference."""
        if self._rule is None:
            return None
        text, broken_off, _ = text.partition(NO_CHARACTER)
        newline = text.find("\n", self._whole)
        while newline >= 0:
            self._whole = newline + 1
            ended = self._stopped(self._rule, text[:newline]) or self._said_before(text[: newline + 1])
            if ended is not None:
                return ended
            newline = text.find("\n", self._whole)
        ended = self._stopped(self._rule, text)
        return self.finish(text.rstrip(), "length") if ended is None and broken_off else ended

    def until_stop(self, text: str) -> str:
        """``text`` up to where the rule first stops it, whatever the gate says."""
        return text if self._rule is None else text[: self._rule.cut(text)]

    def _stopped(self, rule: StopRule, text: str) -> Ended | None:
        if self._tidy is not None and self._tidy.repeats_word(text):
            return self._dropped("length")
        repeated = self._repetition.follow(text)
        if repeated is None and not rule.may_end(text, self._seen):
            return None
        self._seen = len(text)
        ended = self._stop_by_rule(rule, text if repeated is None else text[: repeated[0]])
        if ended is not None or repeated is None:
            return ended
        self._kept = kept = text[: repeated[1]]
        return self.finish(kept, "stop" if self._says_something(kept) else "length")

    def _said_before(self, lines: str) -> Ended | None:
        """The end of a text whose first lines are those after the cursor: what comes then is of no use either, and the
        time is better spent on another text."""
        if self._tidy is None or self._begun or not self._says_something(lines):
            return None
        self._begun = self._says_something(lines[: self._tidy.new(lines)])
        return None if self._begun else self._dropped("length")

    def _with_known_names(self, ended: Ended) -> Ended:
        """``ended``, or what comes of its text before the line with the first name that nothing defines."""
        if self._names is None or not self._says_something(ended.text):
            return ended
        lead = len(self._tidy.lead) if self._tidy is not None else 0
        found = self._names.first(ended.text[lead:])
        if found is None:
            return ended
        self._invented = found.name
        end = lead + found.start
        cut_off = ended.reason != "stop" and not re.search(r"\w", ended.text[end + len(found.name) :])
        if not cut_off:  # else the rest of the name is missing, and what stands before it is whole
            end = ended.text.rfind("\n", 0, end) + 1
        reason: FinishReason = "length" if ended.reason == "stop" else ended.reason
        known = ended.text[:end].rstrip()
        return self._cut_back(known, reason) if self._says_something(known) else self._dropped(reason)

    def _dropped(self, reason: FinishReason) -> Ended:
        return Ended("", reason, self._without if self._gate is None else "dropped", invented=self._invented)

    @property
    def another_beginning(self) -> str:
        """The start of another attempt where this text repeated itself within a string: the text up to the repetition
        and the closing quote; else empty."""
        quote = self._tidy.quote(self._kept) if self._tidy is not None else ""
        return self._kept + quote if quote else ""

    def _stop_by_rule(self, rule: StopRule, text: str) -> Ended | None:
        if self._gate is None:
            cut = rule.cut(text)
            return None if cut is None else Ended(self._tidied(text[:cut]), "stop", self._without)
        for cut in rule.cuts(text, after=max(self._skipped, *self._refused[-1:], -1)):
            fitting = self._gate.fit(text[:cut])
            if fitting is not None:
                return self._with_known_names(Ended(fitting, "stop", self._outcome(fitting, "passed")))
            if self._tidy is not None and not any(map(self._tidy.may_fit, self._tidy.variants(text[:cut]))):
                self._skipped = cut  # brackets are open: the gate was not asked
                continue
            self._refused.append(cut)
            if len(self._refused) >= REFUSED_STOPS:
                return self._cut_back(text[:cut], "length")
        return None

    def finish(self, text: str, reason: FinishReason, wanted: Sequence[str] = ()) -> Ended:
        """The end of a generation that did not end at a stop rule.

        Args:
            wanted: the texts at which the model would have ended, but the gate refused.
        """
        return self._with_known_names(self._finished(text, reason, wanted))

    def _finished(self, text: str, reason: FinishReason, wanted: Sequence[str]) -> Ended:
        if reason == "cancelled":
            return self._dropped(reason)
        if reason != "stop" and self._tidy is not None:
            text = text[: self._tidy.new(text)]
            if not self._says_something(text):
                return self._dropped(reason)
        if self._gate is None:
            if self._rule is None:
                return Ended(text, reason, self._without)
            return Ended(self._tidied(text if reason == "stop" else whole_lines(text)), reason, self._without)
        if reason != "stop":
            text = whole_lines(text) if self._says_something(self._gate.fit(whole_lines(text)) or "") else text
        fitting = self._gate.fit(text) if reason == "stop" or not self._refused else None
        if fitting is not None and (reason == "stop" or self._says_something(fitting)):
            return Ended(fitting, reason, self._outcome(fitting, "passed"))
        return self._cut_back(text, "length" if reason == "stop" else reason, wanted)

    def _outcome(self, fitting: str, otherwise: GateOutcome) -> GateOutcome:
        return otherwise if self._gate is None or self._gate.mends(fitting) else "broken"

    def _tidied(self, text: str) -> str:
        return text if self._tidy is None else self._tidy.first(text)

    def _cut_back(self, text: str, reason: FinishReason, wanted: Sequence[str] = ()) -> Ended:
        """The longest beginning of ``text`` that fits, closing signs added; one up to the first refused stop is
        preferred."""
        assert self._gate is not None
        self._questions = MOST_ASKED
        new = len(text) if self._tidy is None else self._tidy.new(text)
        limits = [min(new, *self._refused[:1], len(text)), new]
        if text[: limits[0]].rstrip().endswith(OPENERS):
            limits.reverse()  # a block with its beginning is worth more than an empty one
        for limit in dict.fromkeys(limits):
            ends = [each for each in wanted if self._says_something(each) and len(each) <= limit][:MOST_CLOSED]
            found = self._beginning(text[:limit], ends)
            if found is not None:
                return Ended(found, reason, self._outcome(found, "cut"))
        # No position fits: in a document that is broken at the cursor anyway, a text that makes it no worse.
        if self._gate.broken:
            beginnings = [text[:length] for length in some(places(text[: min(limits)]), MOST_CUTS)]
            self._questions = MOST_CUTS + MOST_CLOSED
            kept = self._first(self._gate.no_worse, ends + beginnings)
            if kept is not None:
                return Ended(kept, reason, "broken")
        return Ended("", reason, "dropped", self._gate.broken_line)

    def _beginning(self, text: str, ends: Sequence[str]) -> str | None:
        """The longest beginning of ``text`` that fits; before that, one of ``ends`` with its closing signs."""
        assert self._gate is not None
        lines = [text[:length] for length in some(line_ends(text), MOST_LINES)]
        beginnings = [text[:length] for length in some(places(text), MOST_CUTS)]
        return (
            self._first(self._close, ends)
            or self._first(self._gate.fit, lines)
            or self._first(self._gate.fit, beginnings[:MOST_CLOSED])
            or self._first(self._close, beginnings[:MOST_CLOSED])
            or self._first(self._gate.fit, beginnings)
            or self._first(self._close, beginnings[-MOST_CLOSED:][::-1])
        )

    def _close(self, text: str) -> str | None:
        """``text`` with closing signs: those that its brackets call for, else those found by trying."""
        assert self._gate is not None
        text = text.rstrip()
        closed = text if self._tidy is None else text + self._tidy.closing(text)
        return (
            self._gate.fit(closed) or self._gate.close(closed) or (self._gate.close(text) if closed != text else None)
        )

    def _first(self, attempt: Callable[[str], str | None], texts: Iterable[str]) -> str | None:
        """The first answer of ``attempt`` that is more than blanks, within the budget of questions."""
        for text in texts:
            if self._questions <= 0 or (attempt == self._close and left() < CLOSING_S):
                return None
            self._questions -= ASKED_TO_CLOSE if attempt == self._close else 1
            answer = attempt(text)
            if answer is not None and self._says_something(answer):
                return answer
        return None

    def _says_something(self, text: str) -> bool:
        """Whether ``text`` has more than its lead and blanks."""
        return bool(text[len(self._tidy.lead) if self._tidy is not None else 0 :].strip())


def line_ends(text: str) -> Sequence[int]:
    """Lengths of ``text`` up to the end of each line but the last, longest first."""
    ends, begin = [], 0
    for line in text.split("\n")[:-1]:
        if code := line.rstrip():
            ends.append(begin + len(code))
        begin += len(line) + 1
    return ends[::-1]


def whole_lines(text: str) -> str:
    """``text`` without its last line, which may be incomplete; a single line stays."""
    return text[: next(iter(line_ends(text)), len(text))]


def some(lengths: Sequence[int], count: int) -> Sequence[int]:
    """At most ``count`` of ``lengths``, half from each end."""
    return lengths if len(lengths) <= count else [*lengths[: count // 2], *lengths[-count // 2 :]]


def places(text: str) -> Sequence[int]:
    """Lengths that a text may be cut to, longest first: the ends of its words and signs."""
    return list(_places(text))[::-1]


def _places(text: str) -> Iterator[int]:
    # Signs that are repeated are one, such as those of a comment; brackets never are.
    for match in re.finditer(r"\w+|([^\w\s()\[\]{}])\1*|\S", text):
        yield match.end()
