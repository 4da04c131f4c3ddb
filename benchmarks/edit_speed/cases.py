"""Edits to replay, as tokens: what was changed, the window as it stands, and as it is written next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from benchmarks.edit.case import Case
from codespec.edits.formats import as_tokens
from codespec.edits.formats.sweep import SweepV1
from codespec.edits.places import Place
from codespec.edits.predictor import around, window_prompt
from codespec.edits.windows import line_of, window_at
from codespec.protocols import TokenChange, Vocabulary

LEAST, MOST = 150, 400
"""Tokens of a window."""

LAYOUT = SweepV1()


@dataclass(frozen=True)
class Tokens:
    """A case as an engine is asked it: prompt, window, the changes made before, the document around the window, and the
    text that is written."""

    case: Case
    prompt: list[int]
    window: list[int]
    changes: list[TokenChange]
    document: list[int]
    written: list[int]


def tokens_of(case: Case, vocabulary: Vocabulary) -> Tokens | None:
    """A case in the layout of Sweep's models; None where nothing changes, or something out of the window."""
    window = window_at(case.path, case.language, case.text, line_of(case.text, case.offset), LAYOUT.around)
    rest = len(case.text) - window.end
    end = len(case.updated) - rest
    same = case.updated[: window.start] == case.text[: window.start] and case.updated[end:] == case.text[window.end :]
    if not same or end <= window.start or case.updated == case.text:
        return None
    prompt = window_prompt(case.request(0.0), Place(window, case.offset - window.start))
    return Tokens(
        case,
        as_tokens(LAYOUT.prompt(prompt), vocabulary),
        vocabulary.tokenize(LAYOUT.unchanged(prompt)),
        [(vocabulary.tokenize(each.before), vocabulary.tokenize(each.after)) for each in prompt.recent],
        around(window, vocabulary),
        vocabulary.tokenize(LAYOUT.unchanged(replace(prompt, window=case.updated[window.start : end]))),
    )


def chosen(cases: Iterable[Case], count: int, vocabulary: Vocabulary) -> list[Tokens]:
    """So many cases of a usual size, of every kind in turn; the longest prompt first."""
    kinds: dict[str, list[Tokens]] = {}
    for case in cases:
        kept = kinds.setdefault(case.kind, [])
        if len(kept) < count:
            tokens = tokens_of(case, vocabulary)
            if tokens is not None and LEAST <= len(tokens.window) <= MOST:
                kept.append(tokens)
    found: list[Tokens] = []
    for place in range(count):
        found += [each[place] for each in kinds.values() if place < len(each)]
    return sorted(found[:count], key=lambda each: -len(each.prompt))
