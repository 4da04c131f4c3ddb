"""The prompt of a request that can be read in time."""

from __future__ import annotations

from collections.abc import Sequence

from codespec.completion.prompt.prompt import LEAST_CONTEXT, Prompts, file_name, relative_path
from codespec.completion.request import Request
from codespec.engine.engine import Generating
from codespec.languages import by_id
from codespec.models.fim import FimFormat
from codespec.protocols import Limits, Snippet

READING = 0.5
"""The part of the time budget that reading a prompt may take."""
SHORTER = (1536, 1024, 768, 512, 384, 256, 192, 128)
"""Tokens of the shorter prompts that are tried where a whole one takes longer. The steps are coarse: one that begins
elsewhere at every key would be read anew."""


class TimelyPrompts:
    """Builds prompts for the model of one engine that it can read within the time budget.

    Attributes:
        unread: the whole prompt of the latest request, where a shorter one had to do; else empty.
    """

    def __init__(self, engine: Generating, layout: FimFormat | None) -> None:
        self._engine, self._layout = engine, layout
        self._prompts = Prompts(engine.vocabulary, layout)
        self.unread: list[int] = []

    def prompt(self, prefix: str, suffix: str, request: Request, limits: Limits) -> list[int]:
        """The longest prompt that can be read within ``READING`` of the time budget, with what was read before."""
        engine = self._engine
        # One more row than tokens: exact decoding pads.
        room = engine.context_length - min(limits.max_tokens, engine.context_length // 2) - 1
        context = request.context if engine.context_length >= LEAST_CONTEXT else ()
        whole = prompt = self._built(prefix, suffix, request, room, context)
        for size in (size for size in SHORTER if size < min(room, len(whole))):
            ms = engine.reading_ms(engine.lacking(prompt))
            if not limits.time_budget_ms or ms <= READING * limits.time_budget_ms:
                break
            prompt = self._built(prefix, suffix, request, size)  # the text nearest to the cursor
        self.unread = whole if prompt is not whole else []
        return prompt

    def _built(
        self, prefix: str, suffix: str, request: Request, budget: int, context: Sequence[Snippet] = ()
    ) -> list[int]:
        vocabulary = self._engine.vocabulary
        path, workspace = request.path, request.workspace
        tokens = self._prompts.prompt(
            prefix,
            suffix,
            relative_path(path, workspace) if context else file_name(path),
            budget,
            context=context,
            repository=file_name(workspace.rstrip("/")),
            comment=by_id(request.language).line_comment,
        )
        if self._layout is None and vocabulary.beginning is not None:
            tokens = [vocabulary.beginning, *tokens]
        return tokens or sorted(vocabulary.end_tokens)[:1]
