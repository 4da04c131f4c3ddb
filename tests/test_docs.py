"""What the pages promise: their links lead somewhere, their commands parse, and what a reader meets first is short."""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.options import build_parser as benchmarks_parser
from codespec.cli.options import build_parser as codespec_parser
from tests.prose import MOST_WORDS, ROOT, ninetieth, pages, sentences

PAGES = [
    *pages(),
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "editors").glob("*/README.md")),
    *sorted((ROOT / "examples").rglob("README.md")),
]
MOST_WORDS_OF_README = 700

_FENCE = re.compile(r" *```(\w*)")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_SPAN = re.compile(r"`([^`]+)`")
_HEADING = re.compile(r"#{1,6} +(.+)")
# What a reader puts something else in place of, and what a shell does.
STANDS_FOR = {"FILE:LINE": "a.py:1", "$language": "python", "$n": "1", "N": "1", "MS": "1"}


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def split(text: str) -> tuple[list[str], list[str]]:
    """The lines of prose and those of a shell, where one that ends with ``\\`` is one with the next."""
    prose, code = [], []
    language = None
    for line in text.replace("\\\n", " ").splitlines():
        if fence := _FENCE.match(line):
            language = fence[1] if language is None else None
        elif language in ("", "sh") or (language is None and line.startswith("    ")):
            code.append(line)
        elif language is None:
            prose.append(line)
    return prose, code


def anchors(path: Path) -> set[str]:
    """Those of a page's headings, as GitHub makes them."""
    found: dict[str, int] = {}
    names = set()
    for line in split(path.read_text("utf-8"))[0]:
        if heading := _HEADING.fullmatch(line):
            text = _LINK.sub(lambda link: link[0][1 : link[0].index("]")], heading[1])
            name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            names.add(f"{name}-{found[name]}" if name in found else name)
            found[name] = found.get(name, 0) + 1
    return names


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    wrong = []
    prose = _SPAN.sub("", "\n".join(split(page.read_text("utf-8"))[0]))
    for address in _LINK.findall(prose):
        if ":" in address:
            continue
        path, _, anchor = address.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(address)
    assert not wrong


def pieces(line: str) -> Iterator[list[str]]:
    """The commands of a line of a shell; ``[--option]`` counts as given, of ``NAME|PATH`` the first, ``FILE…`` once."""
    line = re.sub(r"\[(-[^\]]*)\]", r"\1", line)
    line = re.sub(r"\b([A-Z]+)…", r"\1", line)
    line = re.sub(r"(\w)(\|[\w.]+)+", r"\1", line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    for operator, tokens in itertools.groupby(lexer, lambda token: set(token) <= set("();<>|&")):
        if not operator:
            yield [STANDS_FOR.get(token, token) for token in tokens]


def whole(command: list[str], lenient: bool) -> None:
    """Parse a command of ours.

    Raises:
        SystemExit: it has no such command or option.
    """
    while command[:1] and ("=" in command[0] or command[0] in ("unshare", "-rn")):
        command = command[1:]
    if command[:1] == ["codespec"]:
        parser = codespec_parser()
    elif command[:3] == ["python", "-m", "benchmarks"]:
        parser, command = benchmarks_parser(), command[2:]
    else:
        if command[:2] == ["python", "-m"] and command[2].startswith("benchmarks."):
            assert importlib.util.find_spec(command[2]), f"no module {command[2]}"
        return
    if lenient:
        demand_nothing(parser)
    parser.parse_args(command[1:])


def demand_nothing(parser: argparse.ArgumentParser) -> None:
    """A sentence may name a command without what it needs."""
    for group in parser._mutually_exclusive_groups:
        group.required = False
    for action in parser._actions:
        action.required = False
        if action.option_strings and action.nargs is None:
            action.nargs = "?"
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                demand_nothing(each)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_parse(page, capsys):
    prose, code = split(page.read_text("utf-8"))
    spans = [span for span in _SPAN.findall("\n".join(prose)) if span.startswith(("codespec ", "python -m benchmarks"))]
    wrong = []
    for line, lenient in [*((line, False) for line in code), *((span, True) for span in spans)]:
        if re.search(r"(?<![A-Z])…", line) or not re.search(r"\b(codespec|benchmarks)\b", line):
            continue
        try:
            for command in pieces(line):
                whole(command, lenient)
        except SystemExit as stopped:
            if stopped.code != 0:
                wrong.append(f"{line}: {capsys.readouterr().err.splitlines()[-1]}")
        except ValueError as error:
            wrong.append(f"{line}: {error}")
    assert not wrong, "\n".join(wrong)


def test_the_site_has_the_parts_of_the_index():
    """What mkdocs itself finds is not asked here: a page that its ``nav`` lacks, or has and does not exist."""
    index = re.split(r"^## ", (ROOT / "docs/index.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    site = re.split(r"^  - (?=[A-Z][a-z ]+:$)", (ROOT / "mkdocs.yml").read_text("utf-8"), flags=re.MULTILINE)[1:]
    assert [part.partition(":")[0] for part in site] == [part.partition("\n")[0] for part in index]
    for ours, theirs in zip(site, index, strict=True):
        assert set(_LINK.findall(theirs)) <= {line.split()[-1] for line in ours.splitlines()}


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= MOST_WORDS_OF_README


@pytest.mark.parametrize("page", pages(), ids=named)
def test_sentences_are_short(page):
    assert ninetieth(sentences(page.read_text("utf-8"))) <= MOST_WORDS
