"""Instinct's layout equals that of Continue's own tests and templates."""

from codespec.edits.formats import Snippet, WindowPrompt, as_text
from codespec.edits.formats.instinct import SYSTEM, TASK, Instinct
from codespec.edits.request import RecentEdit

# The parts are those of core/nextEdit/templating/instinct.vitest.ts, in the template of NextEditPromptEngine.ts and
# Qwen's chat layout.
EXPECTED = f"""\
<|im_start|>system
{SYSTEM}<|im_end|>
<|im_start|>user
{TASK}

### Context:
<|context_file|>: src/file1.ts
<|snippet|>
const var1 = "value1";

<|context_file|>: src/file2.ts
<|snippet|>
const var2 = "value2";
function test() {{}}

### User Edits:

User edited file "file1.js"

```diff
@@ -1,3 +1,3 @@
 function test() {{
-  console.log("old");
+  console.log("new");
 }}
```
User edited file "file2.js"

```diff
@@ -1,1 +1,1 @@
-let x = "old";
+let x = "new";
```

### User Excerpt:
a.txt

line 0
<|editable_region_start|>
line 1
line<|user_cursor_is_here|> 2
line 3
<|editable_region_end|>
line 4```
### Response:<|im_end|>
<|im_start|>assistant
"""

PROMPT = WindowPrompt(
    path="a.txt",
    language="plaintext",
    before="line 0\n",
    window="line 1\nline 2\nline 3\n",
    after="line 4",
    cursor=11,
    recent=(
        RecentEdit("file2.js", 0, 'let x = "old";\n', 'let x = "new";\n'),
        RecentEdit("file1.js", 1, '  console.log("old");\n', '  console.log("new");\n', "function test() {\n", "}\n"),
    ),
    snippets=(
        Snippet("src/file1.ts", 'const var1 = "value1";\n'),
        Snippet("src/file2.ts", 'const var2 = "value2";\nfunction test() {}'),
    ),
)


def test_the_prompt_is_the_published_one():
    assert as_text(Instinct().prompt(PROMPT)) == EXPECTED


def test_answers():
    assert Instinct().read(Instinct().unchanged(PROMPT), PROMPT) is None
    assert Instinct().read("line 1\nline two\nline 3\n<|editable_region_end|>", PROMPT) == "line 1\nline two\nline 3\n"


def test_only_lines_near_the_cursor_are_shown():
    long = "".join(f"{n}\n" for n in range(100))
    text = as_text(Instinct().prompt(WindowPrompt("a", "plaintext", "x\ny\n", 2, before=long, after=long)))
    excerpt = text.partition("### User Excerpt:\na\n\n")[2].partition("```\n")[0].split("\n")
    start, end = excerpt.index("<|editable_region_start|>"), excerpt.index("<|editable_region_end|>")
    assert (excerpt[0], start, len(excerpt) - end - 1) == ("76", 24, 25)
