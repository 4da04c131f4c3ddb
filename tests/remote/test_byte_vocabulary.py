"""Prompts of bytes, and their parts."""

from __future__ import annotations

import numpy as np
import pytest

from codespec.completion.prompt.prompt import Prompts, file_header
from codespec.grammar import Grammar
from codespec.grammar.tokenizer import byte_tokenizer
from codespec.protocols import Snippet
from codespec.remote.streaming.byte_vocabulary import CONTROLS, END, PREFIX, ByteVocabulary, Parts, split, text_layout

BYTES = ByteVocabulary()
FILES = (Snippet("a.py", "one = 1\n"), Snippet("lib/b.py", "two = 2\n"))


@pytest.mark.parametrize("order", ["psm", "spm"])
def test_a_prompt_comes_apart_as_it_was_put_together(order):
    made = Prompts(BYTES, text_layout("files", order))
    prompt = made.prompt("before ä", "after 🦙\n", "c.py", 4000, context=FILES, repository="project")
    assert split(prompt) == Parts("before ä", "after 🦙\n", "c.py", "project", FILES, fills=True)


@pytest.mark.parametrize("order", ["psm", "spm"])
def test_other_files_as_comments(order):
    made = Prompts(BYTES, text_layout("comments", order))
    parts = split(made.prompt("x = ", "\n", "c.py", 4000, context=FILES, comment="#"))
    assert parts.files == ()
    assert parts.path == ""
    assert parts.prefix.endswith("x = ")
    assert "# a.py\n# one = 1\n" in parts.prefix
    assert parts.suffix == "\n"


def test_a_text_that_only_continues():
    layout = text_layout("files")
    header = file_header(BYTES, layout, "main.py")
    assert split([*header, *BYTES.tokenize("x = 1\ny")]) == Parts("x = 1\ny", path="main.py")
    assert split([*file_header(BYTES, layout, ""), *BYTES.tokenize("x = 1\ny")]) == Parts("x = 1\ny")
    assert split(BYTES.tokenize("x\n")) == Parts("x\n")
    assert split([END]) == Parts("")
    assert split([]) == Parts("")


def test_a_budget_counts_bytes_and_characters_stay_whole():
    made = Prompts(BYTES, text_layout("files"))
    for budget in range(40, 120):
        prompt = made.prompt("€" * 200, "🦙" * 100, "", budget)
        assert len(prompt) <= budget
        parts = split(prompt)
        assert set(parts.prefix) <= {"€"}
        assert set(parts.suffix) <= {"🦙"}
        assert parts.prefix


def test_what_does_not_fit():
    long = Parts("a\nb\nc\nd\n", "w\nx\ny\nz\n", files=FILES, fills=True)
    assert long.with_suffix(5).suffix == "w\nx\n"
    assert long.with_suffix(1).suffix == "w"
    assert Parts("", "äöü").with_suffix(3).suffix == "ä"
    half = long.shorter()
    assert half.files == ()
    assert long.prefix.endswith(half.prefix)
    assert len(half.prefix) < len(long.prefix)
    while len(half.prefix) > 1:
        assert len(half.shorter().prefix) < len(half.prefix)
        half = half.shorter()


def test_tokens():
    assert BYTES.tokenize("aä") == [97, 0xC3, 0xA4]
    assert BYTES.token_bytes(97) == b"a"
    assert BYTES.token_bytes(PREFIX) == b""
    with pytest.raises(IndexError):
        BYTES.token_bytes(BYTES.size)


def test_grammars_over_it():
    tokenizer = byte_tokenizer(CONTROLS)
    assert tokenizer.size == BYTES.size
    state = Grammar.from_gbnf('root ::= "ä" [a-z]*').state(tokenizer)
    assert state.accept(BYTES.tokenize("äb1")) == 3
    bits = np.zeros((BYTES.size + 31) // 32, np.uint32)
    state.mask_into(bits)
    allowed = {token for token in range(BYTES.size) if bits[token >> 5] >> (token & 31) & 1}
    assert allowed == {*BYTES.tokenize("abcdefghijklmnopqrstuvwxyz"), END}
    assert not state.allows(PREFIX)
    assert state.accept([END]) == 1
    assert state.finished
