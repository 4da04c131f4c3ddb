"""Text that is written anew with few changes, as a draft: an edit repeats nearly all of the window it is made in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from codespec.draft.text import spelled
from codespec.draft.window.alignment import Alignment, Difference, Recurrence
from codespec.draft.window.line_analogy import ChangedLine, changed_lines
from codespec.draft.window.repeated_changes import Change, Expected, changes_between, expected_at, expected_places
from codespec.draft.window.window_text import WindowText
from codespec.protocols import GrammarState, Proposal, Sampler, TokenChange, Vocabulary

LONGEST_PROPOSAL = 64
SURE_RUN = 10
"""Tokens in a row that came as the window has them, from which on the next ones are nearly certain."""

_NOT_THE_SAME = 0.99
_AROUND = 8  # tokens before and after a difference that a change may take from


class WindowDraft:
    """Proposes the window from where the text stands in it, and at places that read alike what was changed before.

    ``begin`` says for each generation what its window is; without one nothing is proposed.

    Args:
        vocabulary: of the target; texts are compared, too, since tokens are cut elsewhere around a change.
    """

    source = "window"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.begin(0, ())

    def begin(self, start: int, window: Sequence[int], changes: Sequence[TokenChange] = ()) -> None:
        """Draft for a text that begins after ``start`` tokens of prompt.

        Args:
            window: tokens of what it probably repeats; none: nothing is proposed.
            changes: edits made lately, which are expected at other places, too.
        """
        self._start = start
        self._window = WindowText(self._vocabulary, window) if window else None
        self._changes: list[Change] = []
        self._text: _FollowedText | None = None
        self._lines: list[ChangedLine] = []
        for old, new in changes if window else ():
            texts = spelled(self._vocabulary, old), spelled(self._vocabulary, new)
            self._changes += changes_between(*texts)
            self._lines += [ChangedLine(*pair) for pair in changed_lines(*texts)]

    def follow(self, tokens: Sequence[int]) -> WindowFollower | None:
        """As ``CopyingSource.follow``."""
        alignment = self.alignment(tokens)
        return WindowFollower(alignment) if alignment is not None else None

    def alignment(self, tokens: Sequence[int]) -> Alignment | None:
        """Where ``tokens``, prompt included, stand in the window: a copy to look ahead with; None without a window."""
        if self._window is None or len(tokens) < self._start:
            return None
        text = tokens[self._start :]
        if self._text is None or text[: len(self._text.tokens)] != self._text.tokens:
            self._text = _FollowedText(self._window, self._changes, self._lines)
        self._text.follow(text[len(self._text.tokens) :])
        return self._text.alignment.copy()

    def propose(
        self,
        tokens: Sequence[int],
        grammar: GrammarState | None,
        sampler: Sampler,
        more: Callable[[float], bool],
    ) -> Proposal:
        """As ``protocols.Draft.propose``."""
        alignment = self.alignment(list(tokens))
        predicted: list[int] = []
        while alignment is not None and len(predicted) < LONGEST_PROPOSAL:
            guess = alignment.guess()
            if guess is None or not more(1.0):
                break
            predicted.append(guess[0])
            alignment.step(guess[0])
        count = len(predicted) if grammar is None else grammar.accept(predicted)
        return Proposal(tuple(predicted[:count]), source=self.source)


def _less_likely(one: Change, than: Change) -> bool:
    """Whether a change is the same as another one that did not come, at lines that are no more alike."""
    return one.taken == 0 and one.alike <= than.alike and (one.old, one.new) == (than.old, than.new)


class _FollowedText:
    """A text, its place in the window, and the changes that it has shown.

    Args:
        changes, lines: that are expected from the beginning, at the same texts and at lines like them.
    """

    def __init__(self, window: WindowText, changes: Iterable[Change], lines: Iterable[ChangedLine]) -> None:
        self.tokens: list[int] = []
        self._window = window
        self._places: dict[int, Expected] = {}
        self._changes: dict[bytes, Change] = {}
        for change in changes:
            self._expect(replace(change), 0)
        for line in lines:
            self._expect_alike(line, 0)
        self.alignment = Alignment(window, self._places)

    def follow(self, tokens: Iterable[int]) -> None:
        """Go on by several tokens, and learn from them."""
        for token in tokens:
            self.tokens.append(token)
            found = self.alignment.step(token)
            if isinstance(found, Recurrence):
                self._count(found)
            elif found is not None:
                self._learn(found)

    def _count(self, found: Recurrence) -> None:
        change = found.change
        if found.came:
            change.taken += 1
            return
        change.declined += 1
        for at, each in list(self._places.items()):
            if not each.change.trusted or (change.alike < 1.0 and _less_likely(each.change, change)):
                del self._places[at]

    def _learn(self, found: Difference) -> None:
        """Expect what was replaced to be replaced again."""
        window, data, borders = self._window, self._window.data, self._window.borders
        if found.start > found.end:
            return  # it went on before where it began
        begin, end = borders[found.start], borders[found.end]
        before = data[borders[max(0, found.start - _AROUND)] : begin]
        after = data[end : borders[min(len(window.tokens), found.end + _AROUND)]]
        for change in changes_between(data[begin:end], spelled(window.vocabulary, found.tokens), before, after):
            self._expect(change, self.alignment.at)
        first, last = data.rfind(b"\n", 0, begin) + 1, data.find(b"\n", end)
        old = data[first : last if last >= 0 else None]
        new = data[first:begin] + spelled(window.vocabulary, found.tokens) + data[end : last if last >= 0 else None]
        for pair in changed_lines(old, new):
            self._expect_alike(ChangedLine(*pair), self.alignment.at)

    def _expect(self, change: Change, begin: int) -> None:
        """Expect a change from the window's token ``begin`` on, unless one of the same text is expected already."""
        if self._changes.setdefault(change.old, change) is change:
            for at, expected in expected_places(self._window, change, begin):
                self._places.setdefault(at, expected)

    def _expect_alike(self, line: ChangedLine, begin: int) -> None:
        """Expect lines that begin at the window's token ``begin`` or later to be changed as one like them was."""
        changes: dict[float, Change] = {}
        place, start = 0, self._window.borders[begin]
        for text in self._window.data.splitlines(keepends=True):
            found = line.analogy(text.rstrip(b"\r\n")) if place >= start else None
            for each in found[1] if found is not None else ():
                alike = min(found[0], _NOT_THE_SAME) if found is not None else 0.0
                # What comes of one replacement says something of all where lines are as alike.
                family = changes.setdefault(alike, Change(line.old, line.new, alike))
                expected = expected_at(self._window, family, place + each.start, place + each.end, each.new)
                if expected is not None:
                    self._places.setdefault(*expected)
            place += len(text)


class WindowFollower:
    """What comes next in the window; see ``copying.Follower``."""

    repeats_whole = True

    def __init__(self, alignment: Alignment) -> None:
        self._begin, self._alignment = alignment.copy(), alignment
        self.guess = alignment.guess

    def step(self, token: int) -> None:
        """As ``Follower.step``."""
        self._alignment.step(token)

    def refused(self, kept: Sequence[int]) -> None:
        """As ``Follower.refused``."""
        self._alignment = self._begin.copy()
        self.guess = self._alignment.guess
        for token in kept:
            self._alignment.step(token)

    @property
    def is_sure(self) -> bool:
        """As ``Follower.is_sure``."""
        return self._alignment.run >= SURE_RUN
