"""How a model wants to be asked for the middle of a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from codespec.llama.model import Model

Order = Literal["psm", "spm"]


@dataclass(frozen=True)
class FimFormat:
    """The fill-in-the-middle layout of one model; all token ids are the model's own.

    Attributes:
        order: ``psm`` is ``<PRE>prefix<SUF>suffix<MID>``, ``spm`` is ``<PRE><SUF>suffix<MID>prefix``
            (Bavarian et al., arXiv 2207.14255, section 3).
        file_separator: stands before a file and its path, None where the model has no such token.
        beginning: the token every text begins with, if any.
    """

    prefix: int
    suffix: int
    middle: int
    order: Order
    file_separator: int | None = None
    beginning: int | None = None

    def arrange(self, header: list[int], prefix: list[int], suffix: list[int]) -> list[int]:
        """The whole prompt from its tokenized parts."""
        start = [self.beginning] if self.beginning is not None else []
        if self.order == "psm":
            return [*start, *header, self.prefix, *prefix, self.suffix, *suffix, self.middle]
        return [*start, *header, self.prefix, self.suffix, *suffix, self.middle, *prefix]


def fim_format(model: Model, order: Order | None = None) -> FimFormat | None:
    """The layout that ``model`` was trained with, None if it cannot fill in the middle.

    Args:
        order: overrides the model's preferred one.
    """
    vocabulary = model.vocabulary
    prefix, suffix, middle = (vocabulary.fim_token(name) for name in ("pre", "suf", "mid"))
    if prefix is None or suffix is None or middle is None:
        return None
    preferred: Order = "spm" if model.metadata("codespec.fim.order") == "spm" else "psm"
    return FimFormat(
        prefix=prefix,
        suffix=suffix,
        middle=middle,
        order=order or preferred,
        file_separator=vocabulary.fim_token("sep"),
        beginning=vocabulary.beginning,
    )
