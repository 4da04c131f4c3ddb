"""The completions that were shown in a session, what became of them, and what the drafts learn from that.

The models learn once nobody asks for anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from codespec.draft.storage.token_log import clear, noted
from codespec.paths import folder_of
from codespec.recent import Recent

if TYPE_CHECKING:
    from codespec.completion.request import Request
    from codespec.config import Config
    from codespec.daemon.client import ModelClient
    from codespec.lsp.statistics import Showing, UsageStatistics

ACCEPT = "codespec.accept"
"""The command of a completion, which a client runs when it is accepted."""

MOST_OFFERS = 64
"""Completions that may still be accepted."""


@dataclass
class ShownCompletion:
    """A completion that was shown, or the rest of one.

    Attributes:
        showing: the count that it is a part of.
        taken: how many characters of it were accepted and learnt so far.
    """

    request: Request
    text: str
    showing: Showing
    taken: int = 0


class Feedback:
    """Remembers the shown completions; passes accepted ones, and documents that are opened or saved, to the drafts.

    Attributes:
        statistics: of completions that were shown and accepted.
    """

    def __init__(self, models: ModelClient, statistics: UsageStatistics) -> None:
        self._models = models
        self.statistics = statistics
        self._offers: Recent[str, ShownCompletion] = Recent(MOST_OFFERS)
        self._latest: dict[str, Showing] = {}  # by document
        self._numbers = count(1)

    def use(self, config: Config) -> None:
        """Follow these settings: whether to count."""
        self.statistics.enabled = config.statistics

    def offer(self, uri: str, request: Request, texts: Sequence[str], from_memory: bool) -> list[str]:
        """Remember alternatives until one is accepted; returns identifiers for that.

        The rest of a completion that the user types along with is not counted as shown once more.
        """
        if not texts:
            return []
        showing = self._latest.get(uri)
        if showing is None or not from_memory or not any(each.endswith(texts[0]) for each in showing.texts):
            showing = self._latest[uri] = self.statistics.shown(request.language, texts)
        identifiers = []
        for text in texts:
            identifier = str(next(self._numbers))
            self._offers[identifier] = ShownCompletion(request, text, showing)
            identifiers.append(identifier)
        return identifiers

    def closed(self, uri: str) -> None:
        """A document is no longer open."""
        self._latest.pop(uri, None)

    def text_of(self, identifier: str) -> str | None:
        """The text of a shown completion; None if it is not known (any more)."""
        offer = self._offers.get(identifier)
        return offer.text if offer is not None else None

    async def accept(self, identifier: str, length: int | None = None) -> None:
        """Learn and count an accepted completion; one that is not known (any more) is ignored.

        Args:
            length: how many characters of it were accepted so far; None is all.
        """
        offer = self._offers.get(identifier)
        if offer is None:
            return
        length = len(offer.text) if length is None else length
        whole = length == len(offer.text)
        if whole:
            del self._offers[identifier]
        self.statistics.accepted(offer.showing, offer.text, length)
        before, fresh, offer.taken = offer.text[: offer.taken], offer.text[offer.taken : length], length
        if not fresh:
            return
        prefix = offer.request.text[: offer.request.offset] + before
        lesson = replace(offer.request, text=prefix, offset=len(prefix))
        name = f"accepted {identifier} {length}"
        await self._models.submit("accepted", name, request=lesson, completion=fresh).future

    def reject(self, identifier: str) -> None:
        """Count a rejected completion; one that is not known (any more) is ignored."""
        offer = self._offers.pop(identifier, None)
        if offer is not None:
            self.statistics.rejected(offer.showing)

    def document(self, uri: str, request: Request, edited: bool = False) -> None:
        """Learn the text of a document.

        Args:
            edited: whether it is being edited, at the offset of ``request``.
        """
        # A document that was opened or saved is learnt whole, whatever is asked for afterwards.
        kind = "edited" if edited else "document"
        self._models.submit("learn", f"{kind} {uri}", request=request, edited=edited)

    def forget_file(self, folder: str, path: str, learnt: bool) -> None:
        """A file of a workspace must not be kept, as is known only now: forget all that was learnt in the workspace if
        something of the file was.

        Args:
            learnt: whether it may have been in this session; of earlier ones there is a note.
        """
        place = folder_of(folder)
        if place is not None and (learnt or noted(place, Path(path))):
            self._forget([folder])

    async def forget(self, folders: Sequence[str]) -> None:
        """Forget what was learnt in some folders.

        Raises:
            CodespecError: a file cannot be deleted.
        """
        await asyncio.gather(*self._forget(folders))

    def _forget(self, folders: Sequence[str]) -> list[asyncio.Future[None]]:
        for folder in folders:  # at once, since there may be no model
            place = folder_of(folder)
            if place is not None:
                clear(place)
        return [self._models.submit("forget", f"forget {each}", workspace=each).future for each in folders]
