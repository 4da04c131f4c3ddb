"""Zeta's layouts equal those that Zed publishes: byte for byte, and what the models answer is read the same way."""

import json
from pathlib import Path

import pytest

from codespec.edits.formats import Snippet, WindowPrompt, as_text
from codespec.edits.formats.zeta2 import Zeta2, Zeta21
from codespec.edits.request import RecentEdit

# Made with zed-zeta-bindings 1.10.2 (PyPI): `format_prompt` and `parse_output` for V0211SeedCoder and
# V0318SeedMultiRegions, and what `resolve_region` says of the window.
PUBLISHED = json.loads(Path(__file__).with_name("zeta2.json").read_text("utf-8"))

RECENT = (
    RecentEdit("proj/a.py", 1, "    sum = value\n", "    total = value\n", "def f0(value):\n", "    return sum\n"),
    RecentEdit("proj/b.py", 3, "x\n", "y\n"),
)
SNIPPETS = (Snippet("proj/c.py", "def helper():\n    pass\n"),)


def published(version):
    return PUBLISHED[version], WindowPrompt(
        path="proj/a.py",
        language="python",
        recent=RECENT,
        snippets=SNIPPETS,
        **{key: PUBLISHED[version][key] for key in ("before", "window", "after", "cursor")},
    )


@pytest.mark.parametrize(("layout", "version"), [(Zeta2(), "V0211SeedCoder"), (Zeta21(), "V0318SeedMultiRegions")])
def test_the_prompt_is_the_published_one(layout, version):
    expected, prompt = published(version)
    assert as_text(layout.prompt(prompt)) == expected["prompt"]


@pytest.mark.parametrize("case", range(len(PUBLISHED["answers"])))
def test_answers_are_read_as_published(case):
    answer, expected = PUBLISHED["answers"][case]
    _, prompt = published("V0318SeedMultiRegions")
    assert Zeta21().read(answer, prompt) == (None if expected == prompt.window else expected)


@pytest.mark.parametrize("layout", [Zeta2(), Zeta21()])
def test_an_unchanged_window_is_no_edit(layout):
    _, prompt = published("V0318SeedMultiRegions")
    assert layout.read(layout.unchanged(prompt), prompt) is None


def test_no_edits_is_none():
    _, prompt = published("V0211SeedCoder")
    assert Zeta2().read("NO_EDITS\n>>>>>>> UPDATED\n", prompt) is None
    assert Zeta2().read("new\n>>>>>>> UPDATED\n", prompt) == "new" + prompt.window[len(prompt.window.rstrip("\n")) :]
