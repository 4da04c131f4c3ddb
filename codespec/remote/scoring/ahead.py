"""What an engine writes by itself, taken for as long as a generation goes the same way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from codespec.protocols import Cancel
from codespec.remote.errors import Away, Refused
from codespec.remote.scoring.rows import Row
from codespec.remote.scoring.scorers import Scorer


class Ahead:
    """Rows of single tokens from a stream: where nothing is proposed, an engine is not asked about each of them.

    The engine's text is greedy and knows no grammar. Where a generation chooses another token than it did, the stream
    is closed, and the next row comes from another one.
    """

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._open = ExitStack()
        self._rows: Iterator[tuple[int, Row]] | None = None
        self._text: list[int] = []  # that the next row comes after

    def row(self, text: Sequence[int], most: int, best: int, cancel: Cancel | None) -> Row | None:
        """What comes after a text; None where the stream failed, or was refused.

        Args:
            most: tokens that a new stream has at most.
            best: how many tokens a row names.

        Raises:
            Aborted: ``cancel`` was set.
        """
        try:
            if self._rows is None or self._text != text:
                self.stop()
                stream = self._scorer.follow(text, most, best, cancel)
                self._rows, self._text = self._open.enter_context(stream), list(text)
            token, row = next(self._rows)
        except (Away, Refused, StopIteration):  # a request for that one token goes on, or says why not
            self.stop()
            return None
        except BaseException:
            self.stop()
            raise
        self._text.append(token)
        return row

    def stop(self) -> None:
        """Close the stream, by which the engine knows that no more is wanted."""
        self._rows = None
        self._open.close()
