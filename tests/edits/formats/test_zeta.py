"""Zeta's layouts equal those that Zed publishes: byte for byte, and what the models answer is read the same way."""

import json
from pathlib import Path

import pytest

from codespec.edits.formats import Snippet, WindowPrompt, as_text
from codespec.edits.formats.zeta import Zeta1
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


@pytest.mark.parametrize("layout", [Zeta1(), Zeta2(), Zeta21()])
def test_an_unchanged_window_is_no_edit(layout):
    _, prompt = published("V0318SeedMultiRegions")
    assert layout.read(layout.unchanged(prompt), prompt) is None


def test_no_edits_is_none():
    _, prompt = published("V0211SeedCoder")
    assert Zeta2().read("NO_EDITS\n>>>>>>> UPDATED\n", prompt) is None
    assert Zeta2().read("new\n>>>>>>> UPDATED\n", prompt) == "new" + prompt.window[len(prompt.window.rstrip("\n")) :]


# From the crate's own tests, with the header that diffs have.
ZETA_1 = """\
### Instruction:
You are a code completion assistant and your task is to analyze user edits and then rewrite an excerpt that the user \
provides, suggesting the appropriate edits within the excerpt, taking into account the cursor location.

### User Edits:

{edits}

### User Excerpt:

```test.rs
{excerpt}
```

### Response:
"""


def test_the_first_layout_in_the_middle_of_a_file():
    prompt = WindowPrompt(
        path="test.rs",
        language="rust",
        before="// prefix\n",
        window="fn foo() {\n    let x = 1;\n}\n",
        after="// suffix\n",
        cursor=15,
        recent=(RecentEdit("other.rs", 0, "old\n", "new\n"),),
    )
    excerpt = """\
<|start_of_file|>
// prefix
<|editable_region_start|>
fn foo() {
    <|user_cursor_is_here|>let x = 1;
}
<|editable_region_end|>
// suffix
"""
    edits = "User edited other.rs:\n```diff\n@@ -1,1 +1,1 @@\n-old\n+new\n\n```"
    assert as_text(Zeta1().prompt(prompt)) == ZETA_1.format(edits=edits, excerpt=excerpt)


def test_the_first_layout_at_the_end_of_a_file():
    prompt = WindowPrompt(
        path="test.rs", language="rust", before="x" * 2000 + "\n", window="fn foo() {\n    let x = 1;\n}\n", cursor=15
    )
    excerpt = """\
<|editable_region_start|>
fn foo() {
    <|user_cursor_is_here|>let x = 1;
}

<|editable_region_end|>"""
    assert as_text(Zeta1().prompt(prompt)) == ZETA_1.format(edits="", excerpt=excerpt)


def test_the_first_layout_s_answer():
    prompt = WindowPrompt(path="a.rs", language="rust", window="fn main() {\n}\n", cursor=0, after="x\n")
    answer = "<|editable_region_start|>\nfn main() {\n    <|user_cursor_is_here|>a();\n}\n<|editable_region_end|>\n```"
    assert Zeta1().read(answer, prompt) == "fn main() {\n    a();\n}\n"
