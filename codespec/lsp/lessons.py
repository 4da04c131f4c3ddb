"""What the drafts are to learn from a session: queued behind the requests, in the decode thread."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import count
from typing import TYPE_CHECKING, Any

from codespec.draft.log import clear
from codespec.places import folder_of

if TYPE_CHECKING:
    from codespec.completion.executor import Completes, DecodeThread
    from codespec.completion.request import Request

ACCEPTED = "codespec.accepted"
"""The command of a completion, which a client runs when it is accepted."""
FORGET = "codespec.forgetWorkspace"
"""The command that forgets what was learnt in a workspace."""

MOST_OFFERS = 64
"""Completions that may still be accepted."""


class Lessons:
    """Keeps what was offered and hands over what was accepted, opened or saved."""

    def __init__(self, decode: DecodeThread) -> None:
        self._decode = decode
        self._offers: OrderedDict[str, tuple[Request, str]] = OrderedDict()
        self._numbers = count(1)

    def offer(self, request: Request, text: str) -> str:
        """Remember a completion until it is accepted; returns the identifier for that."""
        identifier = str(next(self._numbers))
        self._offers[identifier] = (request, text)
        if len(self._offers) > MOST_OFFERS:
            self._offers.popitem(last=False)
        return identifier

    def accepted(self, identifier: Any) -> Future[None]:
        """Teach a completion that was accepted; one that is not known (any more) is none."""
        found = self._offers.pop(identifier, None) if isinstance(identifier, str) else None
        if found is None:
            return _done()
        request, text = found
        return self._decode.later(f"accepted {identifier}", lambda completer: completer.accepted(request, text))

    def document(self, uri: str, request: Request, edited: bool = False) -> None:
        """Teach the text of a document.

        Args:
            edited: at the offset of ``request``.
        """

        def work(completer: Completes) -> None:
            offset = request.offset if edited else None
            completer.learn(request.text, request.path, request.language, request.workspace, offset)

        # A document that was opened or saved is learnt whole, whatever is asked for afterwards.
        self._decode.later(f"{'edited' if edited else 'document'} {uri}", work)

    def forget(self, folders: Sequence[str]) -> Future[None]:
        """Forget what was learnt in some folders.

        Raises:
            CodespecError: a file cannot be deleted.
        """
        for folder in folders:  # at once, since there may be no completer
            place = folder_of(folder)
            if place is not None:
                clear(place)

        def work(completer: Completes) -> None:
            for folder in folders:
                completer.forget(folder)

        return self._decode.later("forget", work)


def _done() -> Future[None]:
    future: Future[None] = Future()
    future.set_result(None)
    return future
