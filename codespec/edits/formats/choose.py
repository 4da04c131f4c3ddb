"""Which layout a model was trained on: told by its name and its tokens."""

from __future__ import annotations

from codespec.edits.formats import EditFormat
from codespec.edits.formats.embedded import Embedded
from codespec.edits.formats.instinct import Instinct
from codespec.edits.formats.sweep import SweepV1, SweepV2
from codespec.edits.formats.zeta2 import Zeta2, Zeta21
from codespec.engine.engine import Generating

MOST_EMBEDDED = 10_000
"""Tokens of a vocabulary of codespec's own."""


def format_of(engine: Generating) -> EditFormat | None:
    """The layout of an engine's target; None where it is no model for next edits that is known.

    Seed-Coder's tokens tell Zeta 2, and codespec's vocabulary the embedded model; all others have Qwen's tokens, and
    only their names tell one from another, and from a model that was never taught to edit.
    """
    name = engine.name.lower().replace("_", "-")
    if _has(engine, "<[fim-suffix]>"):
        return Zeta21() if "2.1" in name or "2-1" in name else Zeta2()
    if not _has(engine, "<|file_sep|>"):
        return None
    if engine.vocabulary.size < MOST_EMBEDDED:
        return Embedded()
    if "instinct" in name:
        return Instinct()
    if "sweep" in name or "next-edit" in name:
        # Only 7B has the second version; `q8_0.v2` of Sweep's own 1.5B is another conversion of the first.
        return SweepV2() if "7b" in name or "edit-v2" in name else SweepV1()
    return None


def _has(engine: Generating, marker: str) -> bool:
    """Whether there is a token of this name: as text it would be several."""
    return len(engine.vocabulary.tokenize(marker, special=True)) == 1
