"""What two vocabularies share beside text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codespec.llama.model import LlamaVocabulary

FIM = ("pre", "suf", "mid", "pad", "rep", "sep")
DISPENSABLE = ("pad", "rep", "sep")
"""Without them a prompt still means the same."""


@dataclass(frozen=True)
class Markers:
    """How the control tokens of a target read for a draft.

    Attributes:
        same: for tokens of the target's the draft's own, or None where one may be left out.
        fim: the target's tokens before the text before the cursor and before the text after it.
        beginning: the draft's own token that every text begins with.
    """

    same: Mapping[int, int | None] = field(default_factory=dict)
    fim: tuple[int, int] | None = None
    beginning: int | None = None


def shared_markers(own: LlamaVocabulary, target: LlamaVocabulary) -> Markers:
    """The markers of a draft with the vocabulary ``own``: the same by role, else by name."""
    by_name = {own.name(token): token for token in own.control_tokens}
    same: dict[int, int | None] = {
        token: by_name[target.name(token)] for token in target.control_tokens if target.name(token) in by_name
    }
    for role in FIM:
        theirs, ours = target.fim_token(role), own.fim_token(role)
        if theirs is not None and ours is not None:
            same[theirs] = ours
        elif theirs is not None and role in DISPENSABLE:
            same.setdefault(theirs, None)
    if target.beginning is not None:
        same[target.beginning] = own.beginning
    prefix, suffix = target.fim_token("pre"), target.fim_token("suf")
    fim = None if prefix is None or suffix is None else (prefix, suffix)
    return Markers(same, fim, own.beginning)
