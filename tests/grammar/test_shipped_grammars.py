"""Every shipped grammar against the files in ``tests/grammars/NAME/accept`` and ``reject``, taken as they are.

A file's name may carry a start symbol: ``x.expression.txt`` is fed to ``expression``, ``x.txt`` to the root. A grammar
names its start symbols in a comment, ``# Start symbols: file, statements, statement, expression.``
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codespec.grammar import Grammar, byte_tokenizer, indentation, shipped
from codespec.grammar.check import accepts_text

FOLDER = Path(__file__).parents[1] / "grammars"
SMALL = 2000
"""Bytes of a file that is fed one by one."""
HOLDS = {"typescript": "javascript", "python3.14": "python"}
"""Languages that hold another."""
LEVELED = ("python", "python3.14", "yaml")
_STARTS = re.compile(r"^# Start symbols: ([A-Za-z0-9, -]+)\.?$", re.MULTILINE)


@functools.cache
def load(name: str, start: str | None, found: tuple[str, ...] | None) -> Grammar:
    return Grammar.load(name, start=start, levels=found)


def grammar_for(name: str, start: str | None, text: str) -> Grammar:
    """The grammar from ``start`` on, with the indentations of ``text`` where it has levels."""
    grammar = load(name, start, None)
    return load(name, start, indentation.detect(text)) if grammar.leveled else grammar


def files(verdict: str, names: Iterable[str] = ("*",)) -> list[Any]:
    """(grammar, file) for every file of the grammars, and of those that they hold."""
    found = [(path.parent.parent.name, path) for name in names for path in sorted(FOLDER.glob(f"{name}/{verdict}/*"))]
    if verdict == "accept":
        found += [(name, path) for name, part in HOLDS.items() for of, path in found if of == part]
    return [pytest.param(name, path, id=f"{name}-{path.name}") for name, path in found]


def start_of(name: str, path: Path) -> str | None:
    """The start symbol in a file's name, if its last dotted part is one."""
    found = _STARTS.search(shipped()[name].read_text("utf-8"))
    start = Path(path.stem).suffix[1:]
    return start if found and start in found[1].replace(" ", "").split(",") else None


def read(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


@pytest.mark.parametrize(("name", "path"), files("accept"))
def test_accepts(name: str, path: Path) -> None:
    text = read(path)
    result = accepts_text(grammar_for(name, start_of(name, path), text), text, path.name)
    assert result.accepted, f"{path.name}:{result.line}:{result.column}: expected {result.expected}"


@pytest.mark.parametrize(("name", "path"), files("reject"))
def test_rejects(name: str, path: Path) -> None:
    text = read(path)
    assert not accepts_text(grammar_for(name, start_of(name, path), text), text, path.name).accepted


def small(given: list[Any]) -> list[Any]:
    return [each for each in given if each.values[1].stat().st_size <= SMALL]


@pytest.mark.parametrize(("name", "path"), small(files("accept")))
def test_mask_holds_what_follows(name: str, path: Path) -> None:
    content = path.read_bytes()
    state = grammar_for(name, start_of(name, path), content.decode()).state(byte_tokenizer())
    bits = np.zeros((byte_tokenizer().size + 31) // 32, np.uint32)
    for at, byte in enumerate(content):
        state.mask_into(bits)
        assert bits[byte >> 5] >> np.uint32(byte & 31) & 1, f"byte {at}: {content[at : at + 20]!r} is masked"
        assert state.accept([byte]) == 1
    assert state.can_end


@pytest.mark.parametrize(("name", "path"), small(files("accept", LEVELED)))
def test_every_beginning_can_go_on(name: str, path: Path) -> None:
    """The levels come from what there is of a document so far; they must fit it, and leave something to come."""
    start, text = start_of(name, path), read(path)
    for end in (match.end() for match in re.finditer(r"\n[ \t]*", text)):
        content = text[:end].encode()
        state = grammar_for(name, start, text[:end]).state(byte_tokenizer())
        assert state.accept(content) == len(content), f"refused as a beginning: …{text[max(0, end - 40) : end]!r}"
        assert state.can_end or not state.finished


@pytest.mark.parametrize("name", shipped())
def test_start_symbols(name: str) -> None:
    found = _STARTS.search(shipped()[name].read_text("utf-8"))
    assert found, f"{name}.gbnf names none; add a line such as '# Start symbols: file, statement, expression.'"
    for start in found[1].split(","):
        state = load(name, start.strip(), None).state(byte_tokenizer())
        assert state.can_end or not state.finished


@pytest.mark.parametrize("name", shipped())
def test_has_files_of_both_kinds(name: str) -> None:
    for verdict in ("accept", "reject"):
        assert any((FOLDER / name / verdict).glob("*")), f"no file in tests/grammars/{name}/{verdict}"


@pytest.mark.parametrize("name", shipped())
def test_which_have_levels(name: str) -> None:
    assert load(name, None, None).leveled == (name in LEVELED)
