"""The completions of a session: those in the cache, those prefetched, and counts of requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codespec.completion.cache import CompletionCache
from codespec.lsp.answer_times import AnswerTimes
from codespec.lsp.traces import Traces

if TYPE_CHECKING:
    from codespec.completion.nothing import Nothing
    from codespec.completion.request import Completion, Request
    from codespec.daemon.asked import Asked


UNASKED = 4
"""Changes in a row without a request after which nothing is prefetched: the user asks by a key, or types faster than
the editor asks."""


@dataclass
class Completions:
    """The generated completions, by document.

    Attributes:
        ahead: for each document, the completion that is prefetched.
        unasked: changes since the client last asked for completions by itself.
    """

    cache: CompletionCache = field(default_factory=CompletionCache)
    traces: Traces = field(default_factory=Traces)
    times: AnswerTimes = field(default_factory=AnswerTimes)
    ahead: dict[str, Asked] = field(default_factory=dict)
    unasked: int = UNASKED

    def keep(self, uri: str, request: Request, completions: Sequence[Completion], current: bool) -> None:
        """Keep what the models have generated.

        Args:
            current: whether the models are still those of the settings: others may give other answers.
        """
        if current:
            self.cache.store(uri, request, completions)
        self.traces.keep(uri, request.language, completions)

    def forget(self, uri: str) -> None:
        """Forget the completions of a document."""
        self.cache.forget(uri)
        self.traces.forget(uri)

    def forget_all(self) -> None:
        """Forget the completions of earlier models."""
        self.cache.forget()
        self.ahead.clear()


@dataclass
class Usage:
    """Counts of the requests of a session.

    Attributes:
        requests, from_memory: how many completions were asked for, and how many of them the cache has answered.
        decoding: requests that wait for the models.
        language: of the latest request.
        languages: that were asked for.
        client_name: of the editor, as it calls itself; empty where it does not.
        nothing: why the latest answer was empty; None where it was not.
    """

    requests: int = 0
    from_memory: int = 0
    decoding: int = 0
    language: str = ""
    languages: set[str] = field(default_factory=set)
    client_name: str = ""
    nothing: Nothing | None = None
