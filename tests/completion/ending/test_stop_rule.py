"""Where a completion ends: text before and after the rule."""

import pytest

from codespec.completion.ending.stop_rule import StopRule, extent
from codespec.languages import by_id

PYTHON, JAVASCRIPT = by_id("python"), by_id("javascript")


@pytest.mark.parametrize(
    ("prefix", "suffix", "language", "expected"),
    [
        ("x = ", "\n", PYTHON, "line"),
        ("x = f(", ")\n", PYTHON, "line"),
        ("def f():", "\n", PYTHON, "block"),
        ("def f():\n    ", "\n", PYTHON, "block"),
        ("", "", PYTHON, "block"),
        ("x = [", "\n]", PYTHON, "block"),
        ("if (x) {", "\n}", JAVASCRIPT, "block"),
        ("case 1:", "\n", JAVASCRIPT, "line"),
    ],
)
def test_a_place_asks_for_a_line_or_a_block(prefix, suffix, language, expected):
    assert extent(prefix, suffix, language) == expected


@pytest.mark.parametrize(
    ("prefix", "suffix", "expected"),
    [("f(x);", "\n", True), ("}", "", True), ("f(x);", " g();\n", False), ("f(x)", ";\n", False), ("x", "\n", False)],
)
def test_lines_that_seem_complete(prefix, suffix, expected):
    assert StopRule.at(prefix, suffix, JAVASCRIPT).line_seems_complete == expected


CASES = [
    # prefix, suffix, generated, what is left of it (None: go on)
    ("x = ", "\n", "1\ny = 2\n", "1"),
    ("x = ", "\n", "1", None),
    ("x = 1", "\n", "\ny = 2\nz", "\ny = 2"),
    ("def f():\n    ", "\n", "a = 1\n    return a\n\ndef g", "a = 1\n    return a"),
    ("def f():\n    ", "\n", "a = 1\n    return a\n\n", None),
    ("def f():\n    ", "\n", "a = 1\n\n    return a\n", None),
    ("def f():\n    ", "\n", "a = 1\n\n\n    return a\n", "a = 1"),
    ("def f():", "\n", "\n    return 1\nx = 2", "\n    return 1"),
    ("def f():", "\n", "\n    return 1\n    ", None),
    ("class A:\n    def f(self):\n        ", "\n", "return 1\n    def g", "return 1"),
    ("def f():\n    ", "\n    return a\n", "a = 1\n    return a\n    b = 2", "a = 1"),
    ("if (x) {\n    ", "\n}", "y();\n}\n", "y();"),
    ("def f():\n\t", "\n", "a = 1\n\tb = 2\nc", "a = 1\n\tb = 2"),
    ("", "", "import os\nimport sys\n\n\nx = 1", "import os\nimport sys"),
]


@pytest.mark.parametrize(("prefix", "suffix", "generated", "expected"), CASES)
def test_a_text_ends_with_its_line_or_block(prefix, suffix, generated, expected):
    language = JAVASCRIPT if "{" in prefix else PYTHON
    cut = StopRule.at(prefix, suffix, language).cut(generated)
    assert (None if cut is None else generated[:cut]) == expected


@pytest.mark.parametrize(("prefix", "suffix", "generated", "expected"), CASES)
def test_a_cut_does_not_depend_on_how_the_text_arrives(prefix, suffix, generated, expected):
    rule = StopRule.at(prefix, suffix, JAVASCRIPT if "{" in prefix else PYTHON)
    first = next(
        (rule.cut(generated[:n]) for n in range(len(generated) + 1) if rule.cut(generated[:n]) is not None), None
    )
    for more in ("", "x", "\n\n\nx", "    y\n"):
        if first is not None:
            assert rule.cut(generated + more) == first


@pytest.mark.parametrize(("prefix", "suffix", "generated", "expected"), CASES)
def test_a_cut_does_not_depend_on_how_much_before_the_cursor_is_said_again(prefix, suffix, generated, expected):
    language = JAVASCRIPT if "{" in prefix else PYTHON
    for size in range(1, len(prefix.rsplit("\n", 1)[-1]) + 1):
        lead = prefix[-size:]
        rule = StopRule.at(prefix, suffix, language, lead=lead)
        cut = rule.cut(lead + generated)
        if lead[-1].isalnum() and generated.startswith("\n"):
            assert cut == size  # behind half a word nothing comes on another line
        else:
            assert (None if cut is None else (lead + generated)[size:cut]) == expected
        assert rule.cut(lead[:-1]) is None


@pytest.mark.parametrize(
    ("prefix", "lead", "generated", "expected"),
    [
        ('x = f("', '("', 'a.txt")\ny', 'a.txt")'),
        ("f(x)", ")", ";\ng", ";"),
        ("function f() {", " {", "\n  g();\n}\n", "\n  g();\n}"),
        ("if (x) {", ") {", "\n  g();\n}\nh", "\n  g();\n}"),
    ],
)
def test_brackets_and_quotes_before_the_cursor_stay_there_when_they_are_said_again(prefix, lead, generated, expected):
    cut = StopRule.at(prefix, "\n", JAVASCRIPT, lead=lead).cut(lead + generated)
    assert cut is not None
    assert (lead + generated)[len(lead) : cut] == expected


# fmt: off
PIECES = {
    "rust": "fn f<'a>(x: &'a str) -> char {\n    let c = ')';\n    match c { '\\'' => 'a' }\n}\n\n// a\nfn g() {}\n",
    "python": "def f(x):\n    '''A (b)\n\n    in c'''\n    return {'a': [\"2)\"]}  # so\n\n\n@x\nclass B:\n    y = 1\n",
    "javascript": "f(`a${b})`, /* { */ function () {\n  return [1];\n});\n\nconst g = (x) => {\n  x();\n}\n// }\n",
    "c": 'int f(void) {\n  char c = \'}\', *s = "\\"(";\n#if X\n  g();\n#endif\n}\n\nint h;\n',
    "markdown": "# A\n\nSome text (with\nbrackets\n\n\nand more.\n",
}
# fmt: on


@pytest.mark.parametrize("name", PIECES)
def test_a_rule_has_nothing_new_to_say_where_it_need_not_be_asked(name):
    language, text, skipped = by_id(name), PIECES[name], 0
    for start in range(len(text)):
        for suffix in ("\n", "\n}\n", ")\n", '"""\n'):
            rule = StopRule.at(text[:start], suffix, language)
            seen = 0
            for end in range(start + 1, len(text) + 1):
                grown = text[start:end]
                if rule.may_end(grown, seen):
                    seen = len(grown)
                else:
                    skipped += 1
                    assert list(rule.cuts(grown)) == list(rule.cuts(grown[:seen]))
    assert skipped > 5 * len(text)
