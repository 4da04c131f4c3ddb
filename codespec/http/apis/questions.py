"""What llama-server's clients ask beside texts: ``/props``, ``/tokenize``, ``/detokenize``, ``/apply-template``."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeAlias

from codespec.engine.engine import Generating
from codespec.engine.slots import SLOTS
from codespec.errors import CodespecError
from codespec.http.apis.chat import messages_of
from codespec.http.apis.chat_template import rendered
from codespec.http.apis.fields import Fields
from codespec.http.backend import Backend
from codespec.http.errors import HttpError, unloaded

Question: TypeAlias = Callable[[Generating], dict[str, Any]]
"""Asked in the decode thread."""
MOST_TOKENS = LONGEST = 1 << 18


class Questions:
    """Puts questions to the engine, one by one: they are answered between two passes of a text for another program, or
    behind what runs for an editor."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._waiting: deque[Callable[[Generating], None]] = deque()
        self._turn = asyncio.Lock()  # one is before the editors' requests, not hundreds

    def answer(self, engine: Generating) -> bool:
        """Answer one question, if any waits, and say yes; in the decode thread, where an editor may wait, too."""
        with suppress(IndexError):
            self._waiting.popleft()(engine)
        return True

    async def ask(self, question: Question) -> dict[str, Any]:
        """The answer to a question.

        Raises:
            HttpError: as the question, or the model was unloaded.
        """
        future: Future[dict[str, Any]] = Future()

        def put(engine: Generating) -> None:
            try:
                future.set_result(question(engine))
            except Exception as error:
                future.set_exception(error)

        async with self._turn:
            return await self._answer(put, future)

    async def _answer(self, put: Callable[[Generating], None], future: Future[dict[str, Any]]) -> dict[str, Any]:
        self._waiting.append(put)
        answer = asyncio.wrap_future(future)
        while True:
            job = self._backend.ask(lambda completer, cancel: self.answer(completer.engine))
            await asyncio.wait({answer, asyncio.wrap_future(job.future)}, return_when=asyncio.FIRST_COMPLETED)
            if future.done():
                self._backend.cancel(job)  # where it waits
                return await answer
            if not (job.overtaken or job.future.result()):
                with suppress(ValueError):
                    self._waiting.remove(put)
                raise unloaded()


def about(engine: Generating) -> dict[str, Any]:
    """The answer to ``GET /props``."""
    chat = engine.chat_template
    return {
        "default_generation_settings": {"n_ctx": engine.context_length},
        "total_slots": SLOTS if engine.slots is not None else 1,
        "model_alias": engine.name,
        "chat_template": chat.source if chat is not None else "",
        "bos_token": chat.beginning if chat is not None else "",
        "eos_token": chat.end if chat is not None else "",
        "build_info": "codespec",
        "modalities": {"vision": False, "audio": False},
    }


def tokenize(fields: Fields) -> Question:
    """``POST /tokenize``.

    Raises:
        HttpError: a field is wrong; here as of the functions below.
    """
    text, special, pieces = fields.text("content"), fields.flag("parse_special", True), fields.flag("with_pieces")
    start = fields.flag("add_special")
    if len(text) > LONGEST:
        raise fields.bad("content", f"a text of at most {LONGEST:,} characters")

    def answer(engine: Generating) -> dict[str, Any]:
        vocabulary = engine.vocabulary
        first = [vocabulary.beginning] if start and vocabulary.beginning is not None else []
        tokens = [*first, *vocabulary.tokenize(text, special)]
        return {"tokens": [_piece(engine, each) for each in tokens] if pieces else tokens}

    return answer


def _piece(engine: Generating, token: int) -> dict[str, Any]:
    """A token and its text, as bytes where that is none."""
    data = engine.vocabulary.token_bytes(token)
    try:
        return {"id": token, "piece": data.decode()}
    except UnicodeDecodeError:
        return {"id": token, "piece": list(data)}


def detokenize(fields: Fields) -> Question:
    """``POST /detokenize``."""
    tokens = fields.entries("tokens", MOST_TOKENS)

    def answer(engine: Generating) -> dict[str, Any]:
        vocabulary = engine.vocabulary
        if not all(isinstance(each, int) and 0 <= each < vocabulary.size for each in tokens):
            raise fields.bad("tokens", "a list of token ids of this model")
        return {"content": b"".join(map(vocabulary.token_bytes, tokens)).decode("utf-8", "replace")}

    return answer


def apply_template(fields: Fields) -> Question:
    """``POST /apply-template``."""
    messages = messages_of(fields)

    def answer(engine: Generating) -> dict[str, Any]:
        try:
            return {"prompt": rendered(engine, messages)}
        except CodespecError as error:
            raise HttpError(400, str(error), "messages", "no_chat_template") from None

    return answer
