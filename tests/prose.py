"""How long the sentences of a page are: ``python -m tests.prose [PAGE…]`` prints the 90th percentile of each, in words.

What is no prose does not count: code, tables, pictures, headings, and the addresses of links.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_WORDS = 28
"""That nine of ten sentences of a page may have."""
_ITEM = re.compile(r"(?:[-*]|\d+\.)\s+")
_END = re.compile(r"(?<=[.!?])[)*_\"”]*\s+(?=[\"“(*_`\[]*[A-Z0-9`])")


def pages() -> list[Path]:
    """README and everything under ``docs/``."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs and list items of a page in Markdown."""
    lines: list[str] = []
    code = False
    for line in [*text.splitlines(), ""]:
        stripped = line.strip()
        if stripped.startswith("```"):
            code = not code
        ends = code or not stripped or stripped.startswith(("```", "|", "#", "!", "<")) or _ITEM.match(stripped)
        if ends and lines:
            yield " ".join(lines)
            lines = []
        if not code and stripped and not stripped.startswith(("```", "|", "#", "!", "<")):
            lines.append(_ITEM.sub("", stripped, count=1))


def sentences(text: str) -> list[int]:
    """The number of words of each sentence of a page."""
    found = []
    for paragraph in paragraphs(text):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
        plain = re.sub(r"`[^`]*`", "code", plain)
        found += [len(sentence.split()) for sentence in _END.split(plain) if len(sentence.split()) > 1]
    return found


def ninetieth(counts: list[int]) -> int:
    """The 90th percentile; 0 of nothing."""
    return sorted(counts)[math.ceil(0.9 * len(counts)) - 1] if counts else 0


def main(paths: list[str]) -> int:
    """Print a line for each page; 1 where one has too long sentences."""
    long = 0
    for path in [Path(each) for each in paths] or pages():
        counts = sentences(path.read_text("utf-8"))
        worst = ninetieth(counts)
        long += worst > MOST_WORDS
        print(f"{worst:3} of {len(counts):4} sentences, longest {max(counts, default=0):3}: {path}")
    return int(long > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
