"""Reading brackets and texts off a piece of source that may break off anywhere."""

import random

import pytest

from codespec.completion.ending.brackets import closer_of, end_of, scan
from codespec.languages import LANGUAGES, by_id


@pytest.mark.parametrize(
    ("language", "text", "unmatched", "left_open"),
    [
        ("python", "f(')', a[0]) # (\n)", [17], []),
        ("python", "'''\n)\n''' + (", [], [12]),
        ("javascript", "`${a}` + '}' /* } */ // }\n}", [26], []),
        ("go", "'{' + '\\'' + `}` + \"}\"", [], []),
        ("rust", "fn f<'a>(x: &'a str) { '}'", [], [21]),
        ("json", '{"a": "]", "b": [', [], [0, 16]),
        ("plaintext", "a) b (", [], []),
        ("shellscript", "case a in b) c ;;", [], []),
    ],
)
def test_brackets_in_code(language, text, unmatched, left_open):
    read = scan(text, by_id(language))
    assert (list(read.unmatched), list(read.open)) == (unmatched, left_open)


@pytest.mark.parametrize(
    ("language", "text", "broken_off"),
    [
        ("python", "x = 'abc", "'abc"),
        ("python", "x = 'abc'", ""),
        ("python", "x = 'abc\n", ""),
        ("python", '"""a\n"b"', '"""a\n"b"'),
        ("python", "a # b", "# b"),
        ("c", "a /* b\n * c", "/* b\n * c"),
        ("c", "a /* b */", ""),
        ("typescript", "`a ${b}", "`a ${b}"),
    ],
)
def test_what_a_text_ends_in(language, text, broken_off):
    assert scan(text, by_id(language)).broken_off == broken_off


@pytest.mark.parametrize(
    ("language", "opened", "closer"),
    [
        ("python", 'rb"x', '"'),
        ("python", "f'''x", "'''"),
        ("python", "# x", "\n"),
        ("go", "/* x", "*/"),
        ("rust", 'r#"x', '"'),
        ("html", "<!-- x", "-->"),
    ],
)
def test_what_closes_a_text(language, opened, closer):
    assert closer_of(opened, by_id(language)) == closer


@pytest.mark.parametrize(
    ("closer", "text", "end"),
    [('"', 'a"', 1), ('"', '\\"a"', 3), ('"', "a", -1), ("*/", "\\*/", 1), ('"""', 'a"b"""', 3)],
)
def test_where_a_text_is_closed(closer, text, end):
    assert end_of(closer, text) == end


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_any_text_can_be_read_and_a_bracket_that_closes_nothing_stays_one(language):
    chooser = random.Random(7)
    for _ in range(200):
        # No single quotes: whether they hold one character shows behind it.
        text = "".join(chooser.choices('ab \n\\"`(){}[]/*#-<!>', k=30))
        first: list[int] = []
        for size in range(len(text) + 1):
            found = list(scan(text[:size], by_id(language)).unmatched[:1])
            assert not first or found == first
            first = found
