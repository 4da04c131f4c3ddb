"""Whether an engine's tokens are those of the vocabulary here: else each would mean something else there."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

from codespec.llama.model import LlamaVocabulary
from codespec.remote.errors import Refused
from codespec.remote.scoring.rows import Row
from codespec.remote.scoring.scorers import Scorer

PROBE = """def fibonacci(n: int) -> list[int]:
    \"\"\"The first numbers.\"\"\"
    a, b = 0, 1
\twhile (x := 3.14e-10) != 0xFF: /* größer */ 日本語 🦙
        return {"key": [None, True], 'other': f"{a:>10}\\\\n"}
#include <stdio.h>
fn main<T: Into<String>>(v: &mut Vec<u8>) -> Result<(), Box<dyn Error>> { println!("{:?}", v); }
const fetchAll = async (urls) => await Promise.all(urls.map(u => fetch(u).then(r => r.json())));
SELECT id, COUNT(*) FROM users WHERE created_at >= '2024-01-01' GROUP BY id;
"""
"""Text of several languages, with digits, spaces, characters of several bytes."""


def check_vocabulary(scorer: Scorer, vocabulary: LlamaVocabulary, file: Path, host: str) -> None:
    """Compare the tokens of a text, and of the names of the markers that prompts are made with.

    Raises:
        Away: the engine did not answer.
        Refused: they differ, or the engine does not tell.
    """
    for text, what in ((PROBE, "text"), (_markers(vocabulary), "markers")):
        there = scorer.tokenize(text) if text else []
        if there is None:
            raise Refused(
                f"{host} does not tell how it makes tokens of a text; is `remote.kind` = {scorer.kind} right?"
            )
        here = vocabulary.tokenize(text, special=True)
        if there != here:
            place, (own, other) = next(
                (place, pair) for place, pair in enumerate(zip_longest(here, there)) if pair[0] != pair[1]
            )
            raise Refused(
                f"{scorer.model} on {host} has another vocabulary than {file} (token {place} of a {what} is "
                f"{_said(own)} here, {_said(other)} there); name the file of the same model as `remote.vocabulary`"
            )


def check_rows(scorer: Scorer, vocabulary: LlamaVocabulary, host: str) -> None:
    """See whether the engine tells log-probabilities, after one token and after several.

    Raises:
        Away: the engine did not answer.
        Refused: it does not tell, or what it tells are none.
    """
    tokens = some_tokens(vocabulary, 8)
    for last in (1, 2):
        rows: list[Row] = scorer.score(tokens, last, scorer.best)
        if any(len(row.ids) < 2 for row in rows):
            raise Refused(f"{host} tells no log-probabilities of {scorer.model}; see docs/remote.md for its options")


def some_tokens(vocabulary: LlamaVocabulary, count: int) -> list[int]:
    """The first tokens of a text."""
    text: list[int] = [] if vocabulary.beginning is None else [vocabulary.beginning]
    return [*text, *vocabulary.tokenize("total = count + 1\n" * count)][:count]


def _said(token: int | None) -> str:
    return "missing" if token is None else f"{token:,}"


def _markers(vocabulary: LlamaVocabulary) -> str:
    found = [vocabulary.fim_token(name) for name in ("pre", "suf", "mid")]
    names = [vocabulary.name(token).decode("utf-8", "replace") for token in found if token is not None]
    return "a = 1\n".join(["", *names, ""]) if names else ""
