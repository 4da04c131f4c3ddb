"""An engine over bytes that writes given texts, whatever it is asked."""

from __future__ import annotations

from typing import Any

from codespec.protocols import Chunk, Statistics


class Bytes:
    """A vocabulary of bytes, with a token for Sweep's separator."""

    size = 257
    beginning = None
    end_tokens = frozenset({256})

    def tokenize(self, text, special=False):
        if special and text == "<|file_sep|>":
            return [256]
        return list(text.encode())

    def token_bytes(self, token):
        return bytes([token]) if token < 256 else b""


def scripted_engine(*answers: str, **options: Any) -> Any:
    """An engine as far as next edits ask it."""
    return ScriptedEngine(*answers, **options)


class ScriptedEngine:
    """Writes the texts one after the other, each in chunks of ``size`` characters."""

    def __init__(self, *answers, finish="stop", size=7, context_length=20_000):
        self.answers, self.finish, self.size, self.context_length = list(answers), finish, size, context_length
        self.name, self.vocabulary, self.statistics = "scripted", Bytes(), Statistics()
        self.asked, self.documents = [], []

    def generate(
        self,
        prompt,
        grammar=None,
        sampling=None,
        limits=None,
        cancel=None,
        *,
        language="",
        window=(),
        changes=(),
        document=(),
    ):
        self.documents.append(list(document))
        self.asked.append((bytes(token for token in prompt if token < 256).decode(), bytes(window).decode(), changes))
        answer = self.answers.pop(0)
        for start in range(0, len(answer), self.size):
            yield Chunk(answer[start : start + self.size])
        yield Chunk("", finish_reason=self.finish)
