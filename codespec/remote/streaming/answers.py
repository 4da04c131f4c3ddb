"""Answers to what an engine is asked for, and asking it again for less where it refuses a part of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from dataclasses import replace

from codespec.protocols import Aborted
from codespec.remote.connection import Connection
from codespec.remote.errors import Away, Refused, RemoteError
from codespec.remote.streaming.asked import Asked, Streamer, Way
from codespec.remote.streaming.events import Piece
from codespec.remote.streaming.stop import Stop

DRAIN_MS = 50.0
"""Milliseconds that the rest of a stream may take after the text's end, so that its connection can be used again."""
MOST_SILENT = 10_000
"""Lines in a row without text or end, such as comments, after which an engine is not listened to."""
MOST_TRIES = 6

_TOO_LONG = re.compile(r"context (size|length|window)|maximum context|longer than", re.IGNORECASE)
_NO_SUFFIX = re.compile(r"suffix|insert|infill|fim\b|fill.in", re.IGNORECASE)
_NO_GRAMMAR = re.compile(r"grammar|schema|structured|format|ebnf|guided", re.IGNORECASE)


class Answers:
    """Answers of one engine.

    Args:
        ways: how a prompt can be put, the best one first.
        note: told what the user should know of what the engine refuses.

    Attributes:
        ways: those that it has not refused.
    """

    def __init__(
        self, connection: Connection, streamer: Streamer, ways: list[Way], note: Callable[[str], None]
    ) -> None:
        self._connection, self._streamer, self._note = connection, streamer, note
        self._host = connection.address.host
        self.ways = ways

    def pieces(self, asked: Asked, stop: Stop) -> Generator[Piece]:
        """The pieces of a text, asked for in the best way that the engine does not refuse.

        Raises:
            Aborted: ``stop`` was set.
            Away, Refused: there is no text, or it broke off.
        """
        for _ in range(MOST_TRIES):
            begun = False
            try:
                with closing(self._answer(asked, stop)) as answer:
                    for piece in answer:
                        begun = True
                        yield piece
                return
            except RemoteError as error:
                simpler = None if begun else self._simpler(asked, error)
                if simpler is None:
                    raise
                asked = simpler
        raise Refused(f"{self._host} refuses every way to ask it; check `remote.kind` and `remote.model`")

    def _answer(self, asked: Asked, stop: Stop) -> Generator[Piece]:
        path, body = self._streamer.request(asked)
        silent, ended = 0, False
        with self._connection.stream(path, body, stop) as lines:
            for line in lines:
                piece = self._streamer.piece(line, self._host)
                if stop.is_set():
                    raise Aborted
                silent = 0 if piece is not None and (piece.text or piece.end) else silent + 1
                if silent > MOST_SILENT:
                    raise Away(f"{self._host} sends events without text; is `remote.kind` right?")
                if piece is not None:
                    ended = ended or bool(piece.end)
                    yield piece
        if not ended:
            raise Away(f"{self._host}: the answer broke off; the engine's own log may say why")

    def _simpler(self, asked: Asked, error: RemoteError) -> Asked | None:
        """The same asked for with less, where that is what the engine refused; None where it is not."""
        said, refused = str(error), isinstance(error, Refused)
        if refused and asked.grammar is not None and _NO_GRAMMAR.search(said):
            self._note(f"{self._host} does not take the grammar: the text is cut where it does not match")
            return replace(asked, grammar=None)
        if refused and not asked.prompt and _TOO_LONG.search(said) and len(asked.parts.prefix) > 1:
            return replace(asked, parts=asked.parts.shorter())
        # llama-server has no 4xx for a model without markers.
        if asked.way == "fields" and len(self.ways) > 1 and _NO_SUFFIX.search(said):
            self.ways.remove("fields")
            if self.ways[0] == "prefix":
                self._note(f"{self._host} takes no text after the cursor: completions do not look at it")
            return replace(asked, way=self.ways[0])
        return None


def drain(pieces: Iterator[Piece], stop: Stop) -> None:
    """Take the rest of a stream that has ended, unless that takes time."""
    stop.allow(DRAIN_MS)
    with suppress(RemoteError, Aborted):
        for _ in pieces:
            pass
