"""What stands around a target."""

from __future__ import annotations

from collections.abc import Sequence

from codespec.protocols import Logits, Target


class WrappedTarget:
    """Passes everything on to ``target``: a ``Target`` to derive others from."""

    def __init__(self, target: Target) -> None:
        self._target = target

    @property
    def n_past(self) -> int:
        return self._target.n_past

    def decode(self, tokens: Sequence[int], last: int | None = None) -> Logits:
        return self._target.decode(tokens, last)

    def rollback(self, n_past: int) -> None:
        self._target.rollback(n_past)

    def fork(self) -> Target:
        return self._target.fork()

    def decode_each(self, forks: Sequence[Target], tokens: Sequence[Sequence[int]]) -> Logits:
        return self._target.decode_each(forks, tokens)

    def close(self) -> None:
        self._target.close()
