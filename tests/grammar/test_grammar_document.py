"""The grammar at any place of a document that is being edited."""

import random
import re

import pytest

from codespec.errors import Aborted, CodespecError
from codespec.grammar import Grammar, GrammarError, byte_tokenizer
from codespec.grammar.document import Feed, GrammarDocument
from codespec.patience import within
from codespec.syntax.tree import Start
from tests.present import present

JSON = '{\n  "a": [1, 2],\n  "b": {\n    "c": "d",\n    "e": null\n  },\n  "f": true\n}\n'
# Statements in braces; a file begins with a word of its own.
BRACES = r"""
root ::= "file" ws statements
statements ::= ws (statement ws)*
statement ::= [a-z]+ ";" | "{" statements "}"
ws ::= [ \n]*
"""
# Blocks by indentation; `no` is no statement.
LEVELS = r"""
root ::= block<indent>
statements ::= block<indent>
block<i> ::= (i statement<i>)+
statement<i> ::= [a-m]+ "\n" | [a-m]+ "():\n" block<i+>
"""
TOKENS = range(257)


def tokenize(text):
    return list(text.encode("utf-8", "replace"))


def document(source, indented=False, leveled=False, tokenize=tokenize):
    compiled = {}

    def open_state(symbol, levels):
        key = (symbol, levels)
        if key not in compiled:
            compiled[key] = Grammar.from_gbnf(source, "test", extensions=True, start=symbol, levels=levels)
        return compiled[key].state(byte_tokenizer())

    return GrammarDocument("test", open_state, tokenize, leveled, indented)


def json_document():
    grammar = Grammar.load("json")
    return GrammarDocument("json", lambda symbol, levels: grammar.state(byte_tokenizer()), tokenize), grammar


def same(one, other):
    return [one.allows(t) for t in TOKENS] == [other.allows(t) for t in TOKENS] and one.can_end == other.can_end


def test_every_place_has_the_state_that_its_prefix_has():
    found, grammar = json_document()
    for offset in [*range(len(JSON) + 1), *range(len(JSON), -1, -7)]:
        place = found.at(JSON, offset)
        assert place.note == "json"
        fresh = grammar.state(byte_tokenizer())
        assert fresh.accept(tokenize(JSON[:offset])) == offset
        assert same(place.state, fresh)


def test_edits_anywhere_and_in_any_order():
    found, grammar = json_document()
    chooser = random.Random(5)
    text = JSON
    refused = 0
    for _ in range(300):
        start = chooser.randrange(len(text) + 1)
        end = min(len(text), start + chooser.choice((0, 0, 1, 3, 20)))
        edited = text[:start] + chooser.choice(("", "1", '"', ",", "\n", '"é"', "[", "]", "{")) + text[end:]
        text = edited if chooser.random() < 0.2 else JSON if chooser.random() < 0.3 else text
        offset = chooser.randrange(len(edited) + 1)
        place = found.at(edited, offset)
        fresh = grammar.state(byte_tokenizer())
        taken = fresh.accept(tokenize(edited[:offset]))
        if taken == len(edited[:offset].encode()):
            assert same(place.state, fresh)
        else:
            refused += 1
            assert place.state is None
            row = edited[:offset].encode()[:taken].decode("utf-8", "ignore").count("\n") + 1
            # A line break is the last character of its line.
            assert place.note in {f"none (json: line {n} does not match it)" for n in (row - 1, row)}
    assert refused > 20


def test_the_state_is_a_copy():
    found, _ = json_document()
    first = found.at(JSON, 10).state
    first.accept(b"2]")
    assert same(found.at(JSON, 10).state, json_document()[0].at(JSON, 10).state)


def test_only_what_changed_is_fed_again():
    fed = []

    def counting(text):
        fed.append(text)
        return tokenize(text)

    feed = Feed(Grammar.load("json").state(byte_tokenizer()), counting)
    lines = JSON.splitlines(keepends=True)
    assert feed.reach([*lines[:5], ""]) is None
    assert fed == [*lines[:5], ""]
    fed.clear()
    assert feed.reach([*lines[:4], '    "x": 1']) is None
    assert feed.reach([*lines[:3], "  "]) is None
    assert fed == ['    "x": 1', "  "]


def test_what_was_read_before_nobody_wanted_it_any_more_stays_read():
    fed = []

    def counting(text):
        fed.append(text)
        return tokenize(text)

    grammar = Grammar.load("json")
    found = GrammarDocument("json", lambda symbol, levels: grammar.state(byte_tokenizer()), counting)
    with pytest.raises(Aborted), within(60, stopped=lambda: len(fed) > 4):
        found.at(JSON, len(JSON))
    lines = JSON.splitlines(keepends=True)
    assert fed == lines[:5]
    assert present(found.at(JSON, len(JSON)).state).can_end
    assert fed == [*lines[:5], *lines[4:], ""]


def test_restarts_at_the_outermost_statement_that_matches():
    text = "file a; ! {\n b;\n {\n c; d"
    outer, inner = text.index("{"), text.rindex("{")
    starts = [Start(outer, True), Start(outer + 2, False), Start(inner + 3, False)]
    place = document(BRACES).at(text, len(text), lambda offset: starts)
    assert place.note == "test (from line 1)"
    assert place.outside is None
    assert place.state.allows(ord(";"))
    broken = text.replace(" b;", "!b;")
    place = document(BRACES).at(broken, len(broken), lambda offset: starts)
    assert place.note == "test (from line 4)"
    assert not place.state.allows(ord("}"))
    # Where the state refuses the closing bracket, the rest is not its business.
    assert place.outside("; } } e;", 2)
    assert not place.outside("; } } e;", 0)


def test_nothing_matches():
    place = document(BRACES).at("file\n!!", 7, lambda offset: [Start(4, False)])
    assert place.state is None
    assert place.note == "none (test: line 2 does not match it)"
    assert document(BRACES).at("!", 1).note == "none (test: line 1 does not match it)"


def test_a_long_prefix_is_read_from_a_block_on(monkeypatch):
    monkeypatch.setattr("codespec.grammar.document.LONGEST_PREFIX", 50)
    text = "file " + "a; " * 30 + "{ b; c"
    start = text.index("b;")
    place = document(BRACES).at(text, len(text), lambda offset: [Start(start, False)])
    assert place.note == "test (from line 1)"
    assert document(BRACES).at(text, len(text)).note == "none (test: the text before the cursor is too long)"


def test_a_part_of_a_document_is_not_read_as_if_it_were_the_whole():
    text = "file a; { b; c"
    assert document(BRACES).at(text, len(text)).note == "test"
    assert document(BRACES).at(text, len(text), begins=False).state is None
    place = document(BRACES).at(text, len(text), lambda offset: [Start(10, False)], begins=False)
    assert place.note == "test (from line 1)"
    assert place.state.allows(ord(";"))


def test_levels_follow_the_document():
    found = document(LEVELS, leveled=True, indented=True)
    for unit in ("  ", "\t", "    "):
        text = f"a():\n{unit}b():\n{unit * 2}c\n{unit}d\ne():\n{unit}f\n"
        place = found.at(text, len(text) - 2)
        assert place.note == "test"
        # Two deep, and back to the first level again: what the document does.
        assert found.at(text, text.index("c")).state.accept(tokenize("c\n" + unit + "d\n")) == 4 + len(unit)
    assert found.at("a():\nb\n", 7).state is None


def test_a_block_by_indentation_ends_where_a_line_is_less_indented():
    text = "a():\n    no\n    b():\n        c"
    start = text.index("        c")
    place = document(LEVELS, True, True).at(text, len(text), lambda offset: [Start(start, False)])
    assert place.note == "test (from line 4)"
    rest = "c\n        d\n    e\n"
    assert place.outside(rest, rest.index("e"))
    assert place.outside(rest, rest.index("\n    e"))
    assert not place.outside(rest, rest.index("d"))
    assert not place.outside("c no", 2)


@pytest.mark.parametrize("text", ["", "\n", "\ud83d", "{\r", "\x00"])
def test_any_text_is_a_document(text):
    found, _ = json_document()
    for offset in range(len(text) + 1):
        assert found.at(text, offset).note


def test_what_was_refused_is_not_fed_again():
    text = "file a; ! " + "{ b; { c; " * 3
    starts = [Start(match.start(), False) for match in re.finditer("[bc];", text)]
    fed = []
    found = document(BRACES, tokenize=lambda line: fed.append(line) or tokenize(line))
    for typed in ("", "d", "d;", "d; e"):
        fed.clear()
        place = found.at(text + typed, len(text + typed), lambda offset: starts)
        assert place.note == document(BRACES).at(text + typed, len(text + typed), lambda offset: starts).note
        if typed:
            assert len(fed) <= 1
    healed = text.replace("!", " ")
    assert found.at(healed, len(healed), lambda offset: starts).note == "test"


def test_an_engine_that_gives_up_is_not_asked_again():
    class Giving:
        def __getattr__(self, name):
            raise CodespecError("too ambiguous")

    opened = []
    found = GrammarDocument("test", lambda *_: opened.append(1) or Giving(), tokenize)
    for text in ("a\nb", "a\nbc", "a\nbcd"):
        assert found.at(text, len(text)).note == "none (test: line 2 does not match it)"
    assert len(opened) == 1


@pytest.mark.parametrize("before", ["class A", "if x", "for i in y", "def f(a):"])
def test_the_line_being_written_may_open_the_only_block(before):
    found = GrammarDocument("python", python_state, tokenize, leveled=True, indented=True)
    rest = ":\n    def f(self):\n        return 1\n"
    text = before.rstrip(":") + rest
    for offset in (len(before) - 2, len(before)):
        state = present(found.at(text, offset).state)
        left = text[offset:].encode()
        assert state.accept(left) == len(left)


def test_a_very_deep_line_is_no_block():
    found = GrammarDocument("python", python_state, tokenize, leveled=True, indented=True)
    text = "if x:\n" + " " * 5000 + "y = 1\nz = "
    assert found.at(text, len(text)).note


def python_state(symbol, levels):
    try:
        return Grammar.load("python", start=None if symbol == "root" else symbol, levels=levels).state(byte_tokenizer())
    except GrammarError:
        return None
