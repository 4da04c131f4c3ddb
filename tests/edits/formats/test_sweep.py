"""Prompts are byte for byte those of the models' own published examples."""

from dataclasses import replace

import pytest

from codespec.edits.formats import Marker, Snippet, WindowPrompt, as_text, as_tokens
from codespec.edits.formats.sweep import SweepV1, SweepV2
from codespec.edits.request import RecentEdit as Change
from codespec.llama.model import Model
from codespec.models.registry import EMBEDDED

# What run_model.py beside sweepai/sweep-next-edit-1.5B gives the model.
GREETING = """\
<|file_sep|>utils.py
def get_time_of_day():
    return "morning"
<|file_sep|>greet.py.diff
original:
def greet():
    print("Hello!")
updated:
def greet(name):
    print(f"Hello, {name}!")
<|file_sep|>original/greet.py
def greet(name):
    print(f"Hello, {name}!")

greet("Alice")
<|file_sep|>current/greet.py
from utils import get_time_of_day

def greet(name):
    print(f"Hello, {name}!")

greet("Alice")
<|file_sep|>updated/greet.py"""

CURRENT = """\
from utils import get_time_of_day

def greet(name):
    print(f"Hello, {name}!")

greet("Alice")
"""
PROMPT = WindowPrompt(
    path="greet.py",
    language="python",
    window=CURRENT,
    cursor=33,
    original=CURRENT.split("\n", 2)[2],
    recent=(
        Change("greet.py", 0, 'def greet():\n    print("Hello!")', 'def greet(name):\n    print(f"Hello, {name}!")'),
    ),
    snippets=(Snippet("utils.py", 'def get_time_of_day():\n    return "morning"\n'),),
)


def test_version_1_is_the_published_example():
    assert as_text(SweepV1().prompt(PROMPT)) == GREETING


def test_version_2_is_the_published_template():
    prompt = WindowPrompt(
        path="a.py", language="python", window="b = 2\nc = 3\nd = 4\n", cursor=8, line=1, before="a = 1\n",
        after="e = 5\n", original="b = 2\nc = 0\nd = 4\n", recent=(Change("a.py", 2, "c = 0", "c = 3"),),
    )  # fmt: skip
    assert (
        as_text(SweepV2().prompt(prompt))
        == """\
<|file_sep|>a.py
a = 1
b = 2
c = 3
d = 4
e = 5

<|file_sep|>a.py:3:3
original:
c = 0
updated:
c = 3
<|file_sep|>original/a.py:2:4
b = 2
c = 0
d = 4

<|file_sep|>current/a.py:2:4
b = 2
c <|cursor|>= 3
d = 4

<|file_sep|>updated/a.py:2:4
b = 2
"""
    )
    assert SweepV2().read("c = 3\nd = 7\n<|file_sep|>x", prompt) == "b = 2\nc = 3\nd = 7\n"


@pytest.mark.parametrize("layout", [SweepV1(), SweepV2()], ids=lambda layout: layout.name)
def test_an_unchanged_window_is_no_edit(layout):
    assert layout.read(layout.unchanged(PROMPT), PROMPT) is None
    assert layout.read(layout.unchanged(PROMPT) + "<|endoftext|>", PROMPT) is None
    assert layout.read("", replace(PROMPT, cursor=0)) is None
    changed = layout.unchanged(PROMPT).replace("Alice", "Bob")
    assert layout.read(changed.rstrip("\n") + "<|file_sep|>updated/x", PROMPT) == CURRENT.replace("Alice", "Bob")


def test_letters_of_a_marker_in_a_document_are_no_marker():
    vocabulary = Model(EMBEDDED / "target.gguf", vocabulary_only=True).vocabulary
    (separator,) = vocabulary.tokenize("<|file_sep|>", special=True)
    prompt = replace(PROMPT, window='x = "<|file_sep|>"\n', original="", recent=(), snippets=())
    parts = SweepV1().prompt(prompt)
    assert as_tokens(parts, vocabulary).count(separator) == sum(isinstance(each, Marker) for each in parts) == 3
