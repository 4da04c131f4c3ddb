"""A model's sequence that knows which tokens it holds, and so what of a new text it need not decode again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codespec.protocols import Aborted, Logits, Target


class HeldSequence:
    """A ``Target`` together with the tokens in its KV cache.

    Args:
        target: the sequence; nobody else may decode into it.
        held: the tokens that it holds already, where it was forked or restored.

    Attributes:
        target: may be replaced by another one that holds as many tokens.
        tokens: that it holds.
    """

    def __init__(self, target: Target, held: Sequence[int] = ()) -> None:
        if len(held) > target.n_past:
            raise ValueError(f"{len(held)} tokens said to be held, the sequence has {target.n_past}")
        self.target = target
        self.tokens = list(held)

    def bring_to(self, tokens: Sequence[int]) -> tuple[Logits, int]:
        """Make the sequence hold exactly ``tokens`` (at least one); the logits after the last, float32 [1, V].

        Keeps the longest common prefix and decodes the rest, the last token always.

        Returns:
            The logits, and how many tokens were decoded.

        Raises:
            CodespecError, Aborted: as ``Target.decode``; the sequence holds the common prefix.
        """
        kept = self.kept(tokens)
        self.rollback(kept)
        return self.extend(tokens[kept:], 1), len(tokens) - kept

    def read(self, tokens: Sequence[int], first: int, most: int, stop: Callable[[], bool], rest: int = 0) -> int:
        """Decode what is not held of ``tokens``, in steps that begin with ``first`` tokens and double up to ``most``.

        Args:
            stop: asked before every step. What was read until then stays, and until a step was aborted.
            rest: so many tokens or fewer are left for the caller to decode.

        Returns:
            How many tokens were decoded.
        """
        kept = place = common_prefix(self.tokens, tokens)
        self.rollback(kept)
        step = first
        while len(tokens) - place > rest and not stop():
            end = min(len(tokens), (place // step + 1) * step)
            try:
                self.extend(tokens[place:end], 0)
            except Aborted:
                break
            place = end
            step = min(2 * step, max(first, most))
        return place - kept

    def kept(self, tokens: Sequence[int]) -> int:
        """How many of ``tokens`` are held, the last one never counted."""
        return min(common_prefix(self.tokens, tokens), len(tokens) - 1)

    def extend(self, tokens: Sequence[int], last: int | None = None) -> Logits:
        """``Target.decode``."""
        logits = self.target.decode(tokens, last)
        self.tokens.extend(tokens)
        return logits

    def extend_each(self, others: Sequence[HeldSequence], tokens: Sequence[Sequence[int]]) -> Logits:
        """``Target.decode_each``."""
        logits = self.target.decode_each([each.target for each in others], tokens)
        for each, own in zip(others, tokens, strict=True):
            each.tokens.extend(own)
        return logits

    def fork(self) -> Target:
        """``Target.fork``."""
        return self.target.fork()

    def rollback(self, count: int) -> None:
        """Hold only the first ``count`` tokens, if there are more."""
        if count < self.target.n_past:
            self.target.rollback(count)
        del self.tokens[count:]


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens ``a`` and ``b`` begin with in common."""
    shorter = end = min(len(a), len(b))
    same, step = 0, 16
    # Slices compare in C: ever longer ones while they are the same, then ever shorter ones up to the difference.
    while same < end and step:
        here = min(end, same + step)
        if a[same:here] == b[same:here]:
            same, step = here, 4 * step
        else:
            end, step = here, (here - same) // 2
    while same < shorter and a[same] == b[same]:  # of two types no slices are the same
        same += 1
    return same
