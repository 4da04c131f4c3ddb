"""Random texts put into real files, blanked where their parser cannot read them: is the tree what a parse from the
beginning gives.

``python -m tests.syntax.fresh_parse --count 20000 --seed 1 FOLDER…`` takes the files of every language with a parser
under the folders. Compared are errors (where the document has some, also with a text put in: their number and extent)
and, where there are none, all tokens with what they are part of.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from codespec.completion.trees import find_blanking
from codespec.languages import LANGUAGES, Language
from codespec.syntax.parsing import new_parser
from codespec.syntax.tree import SyntaxTree, syntax_tree

LARGEST = 12_000
MOST_FILES = 300
PER_FILE = 20
SIGNS = (
    *"(){}[]\"'`:,;#=.<>\\\n\t$x1",
    "    ", "//", "/*", "*/", '"""', "return ", "if ", "else:", "<<EOF\n", "EOF\n", "${", 'r#"', "- ", "'''",
)  # fmt: skip


def insertion(text: str, chooser: random.Random) -> tuple[int, str]:
    """A position (the start, indentation, middle or end of a line) and a text for it."""
    lines = text.split("\n")
    row, other = chooser.randrange(len(lines)), chooser.randrange(len(lines))
    line = lines[row]
    column = chooser.choice((0, len(line) - len(line.lstrip()), chooser.randrange(len(line) + 1), len(line)))
    copied = "\n".join(lines[other : other + chooser.choice((1, 1, 2, 4))])
    start = chooser.randrange(len(text))
    texts = (
        copied,
        copied.strip()[: chooser.randrange(1, 40)],
        "".join(chooser.choices(SIGNS, k=chooser.randrange(1, 8))),
        text[start : start + chooser.randrange(1, 60)],
    )
    return sum(len(each) + 1 for each in lines[:row]) + column, chooser.choice(texts)


def differs(tree: SyntaxTree, fresh: SyntaxTree, length: int) -> bool:
    """Whether two trees of one text of ``length`` characters say different things."""
    if tree.problems.count or fresh.problems.count:
        return tree.problems != fresh.problems
    return tree.tokens(0, length) != fresh.tokens(0, length)


def check(language: Language, texts: Sequence[str], count: int, chooser: random.Random) -> list[tuple[str, int, str]]:
    """(document, position, text) of every one that differs; errors in a sound document count as one, however many."""
    parser, found = new_parser(language.parser), []
    assert parser is not None
    for done in range(0, count, PER_FILE):
        text = chooser.choice(texts)
        tree = syntax_tree(language, text)
        blanking = find_blanking(language, text)
        for _ in range(min(PER_FILE, count - done)):
            offset, added = insertion(text, chooser)
            blank = partial(blanking, cursor=len(text[:offset].encode())) if blanking else None
            tree = syntax_tree(language, text, blank) if blanking else tree
            assert tree is not None
            fresh = SyntaxTree(parser, text[:offset] + added + text[offset:], blank=blank)
            other = tree.with_text(offset, added)
            both = bool(other.problems.count and fresh.problems.count and not tree.problems.count)
            if not both and differs(other, fresh, len(text) + len(added)):
                found.append((text, offset, added))
    return found


def texts_of(language: Language, folders: Sequence[Path], chooser: random.Random) -> list[str]:
    """Of some small files."""
    paths = [path for folder in folders for path in folder.rglob("*") if path.suffix in language.suffixes]
    chooser.shuffle(paths)
    texts: list[str] = []
    for path in paths:
        if len(texts) < MOST_FILES and path.is_file() and 50 < path.stat().st_size < LARGEST:
            content = path.read_bytes()
            if b"\0" not in content and b"\r" not in content:
                texts.append(content.decode("utf-8", "replace"))
    return texts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--language", action="append", help="only these")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    failures = 0
    for language in LANGUAGES.values():
        if not language.parser or (options.language and language.id not in options.language):
            continue
        chooser = random.Random(f"{options.seed} {language.id}")
        texts = texts_of(language, options.folders, chooser)
        if not texts or new_parser(language.parser) is None:
            print(f"{language.id}: no {'parser' if texts else 'files'}")
            continue
        found = check(language, texts, options.count, chooser)
        print(f"{language.id}: {options.count - len(found)} of {options.count} equal, {len(texts)} files", flush=True)
        for text, offset, added in found[:3]:
            print(f"    {text[max(0, offset - 60) : offset]!r} + {added!r} + {text[offset : offset + 60]!r}")
        failures += len(found)
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
