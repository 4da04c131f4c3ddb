"""A text while it is streamed: characters, tokens, and where a grammar cuts it."""

from __future__ import annotations

import pytest

from codespec.grammar import Grammar
from codespec.grammar.tokenizer import byte_tokenizer
from codespec.remote.streaming.byte_vocabulary import CONTROLS, ByteVocabulary
from codespec.remote.streaming.streamed_text import StreamedText
from tests.fakes import FakeVocabulary, TextGrammar
from tests.present import present

BYTES = ByteVocabulary()


def state(gbnf: str):
    return Grammar.from_gbnf(gbnf).state(byte_tokenizer(CONTROLS))


def taken(text: StreamedText, *pieces: str) -> str:
    return "".join(text.take(piece).text for piece in pieces)


def test_without_a_grammar_everything_is_taken():
    text = StreamedText(BYTES, None)
    assert text.begin() == ""
    chunk = text.take("aä")
    assert chunk.text == "aä"
    assert present(chunk.round).tokens == (97, 0xC3, 0xA4)
    text.end()
    assert text.reason == "stop"


def test_the_first_refused_byte_cuts():
    text = StreamedText(BYTES, state('root ::= [a-z]+ "!" "?"'))
    assert taken(text, "abc", "de1fg") == "abcde"
    assert text.reason == "grammar"


def test_a_character_is_taken_whole_or_not():
    text = StreamedText(BYTES, state('root ::= "ä"+ "."'))
    assert taken(text, "ä", "ö") == "ä"  # their first bytes are equal
    assert text.reason == "grammar"


def test_an_end_that_comes_too_early():
    text = StreamedText(BYTES, state('root ::= "ab" [cd]+'))
    text.begin()
    text.end()
    assert text.reason == "grammar"


def test_an_end_where_it_may_be():
    text = StreamedText(BYTES, state('root ::= "ab" [c]*'))
    text.begin()
    assert text.reason is None
    text.end()
    assert text.reason == "stop"


def test_a_complete_text_ends_by_itself():
    text = StreamedText(BYTES, state('root ::= ("a" | "b") "c"'))
    assert taken(text, "acxx") == "ac"
    assert text.reason == "stop"


def test_what_is_forced_is_begun_with():
    grammar = state('root ::= "defä" ("x" | "y")')
    text = StreamedText(BYTES, grammar)
    assert text.begin() == "defä"
    assert taken(text, "x") == "x"


def test_what_is_forced_up_to_the_middle_of_a_character():
    text = StreamedText(BYTES, state('root ::= "a" ("ä" | "ö")'))
    assert text.begin() == "a"
    assert taken(text, "ö") == "ö"
    assert text.reason == "stop"


@pytest.mark.parametrize("pieces", [("a\ud83e", "\udd99b"), ("a\ud83e\udd99b",), ("a", "\ud83e", "\udd99", "b")])
def test_halves_of_a_character_are_joined(pieces):
    text = StreamedText(BYTES, None)
    assert taken(text, *pieces) == "a🦙b"
    assert text.reason is None


@pytest.mark.parametrize("lone", [0xD83E, 0xDD99, 0xFFFD])
def test_a_damaged_character_ends_the_text(lone):
    text = StreamedText(BYTES, None)
    assert taken(text, "ab" + chr(lone) + "x") == "ab"
    assert text.reason == "length"


def test_the_engines_own_tokens_count():
    vocabulary = FakeVocabulary(["ab", "abc", "c"])
    text = StreamedText(vocabulary, None)
    ab, c = vocabulary.tokenize("ab")[0], 1 + ord("c")
    assert present(text.take("abc", (ab, c)).round).tokens == (ab, c)
    assert present(text.take("abc", (ab,)).round).tokens == tuple(vocabulary.tokenize("abc"))  # they do not spell it
    assert present(text.take("abc", (99_999,)).round).tokens == tuple(vocabulary.tokenize("abc"))


def test_a_refused_token_of_several_bytes_is_left_out_whole():
    vocabulary = FakeVocabulary(["ab", "cx"])
    text = StreamedText(vocabulary, TextGrammar([b"abcd"], vocabulary))
    assert text.take("abcx").text == "ab"
    assert text.reason == "grammar"
