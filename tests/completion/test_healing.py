"""A completion behind half a word, or a sign, is one of the whole word, and of what the sign begins."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from codespec import Completer, Config, Request, Sampling
from codespec.completion.ending.fitted_state import FittedState, FreeState
from codespec.completion.ending.token_prefixes import keep_leading
from codespec.completion.lead import LONGEST_LEAD, lead_of
from codespec.completion.open_documents import OpenDocuments
from codespec.languages import by_id
from codespec.llama.model import Model
from codespec.models.registry import EMBEDDED_TARGET
from tests.drafting import drafting_engine
from tests.fakes import FakeVocabulary
from tests.present import present

BASE = replace(Config(), max_tokens=24, time_budget_ms=0)
TEXT = """import argparse


class Shape:
    def __init__(self, width, height):
        self.width = width
        self.height = height

    def area(self):
        return self.width * self.height


def größe(breite, höhe):
    fläche = breite * höhe
    return fläche
"""
PLACES = [match.start() + 1 + len(match[0]) // 2 for match in re.finditer(r"[^\W\d]\w{2,}", TEXT)]
SIGNS = [match.end() for match in re.finditer(r"[^\w\s]+", TEXT)]


@pytest.fixture(scope="module")
def engine():
    with drafting_engine() as engine:
        yield engine


@pytest.mark.parametrize(
    ("prefix", "lead"),
    [
        ("", ""),
        ("import ar", " ar"),
        ("    retu", " retu"),
        ("foo(sel", "(sel"),
        ("self.wi", ".wi"),
        ("self.", "."),
        ("for x in y:", ":"),
        ('f("', '("'),
        ("=" * 8, "=" * 8),
        ("=" * 9, ""),
        ("# " + "-" * 9 + "wo", "wo"),
        ("x = ", " "),
        ("x =  ", " "),
        ("x = (", " ("),
        ("\n", ""),
        ("\n    ", " "),
        ("word", "word"),
        (" größ", " größ"),
        ("\tname", "name"),
        ("漢字", "漢字"),
        ("12", "12"),
        ("a\n_b", "_b"),
        ("x" * LONGEST_LEAD, "x" * LONGEST_LEAD),
        ("x" * (LONGEST_LEAD + 1), ""),
        (" " + "x" * LONGEST_LEAD, " " + "x" * LONGEST_LEAD),
        (" " + "x" * 5000, ""),
    ],
)
def test_a_completion_begins_with_the_word_the_signs_and_the_space_before_it(prefix, lead):
    assert lead_of(prefix) == lead
    assert prefix.endswith(lead)


@pytest.mark.parametrize(
    ("prefix", "embedded", "real"),
    [
        ("", "", ""),
        ("x = 1\n", "\n", "\n"),
        ("    x = 1\n    ", "    ", "\n    "),  # a line break and the indentation are one token to SmolLM2
        ("def f():\n        ", "        ", "\n        "),
        ("x = 1\n\n    ", "    ", "\n\n    "),
        ("x = 1\n\nre", "re", "\nre"),  # two line breaks are one token, but not before a word
        ("    retu", " retu", " retu"),
        ("a.__init__(sel", "__(sel", "__(sel"),
        ("x" * (LONGEST_LEAD + 1), "", ""),
    ],
)
def test_what_a_token_of_the_vocabulary_may_reach_over_is_generated_again(prefix, embedded, real, engine, smollm2):
    assert lead_of(prefix, engine.vocabulary) == embedded
    with Model(smollm2, vocabulary_only=True) as model:
        assert lead_of(prefix, model.vocabulary) == real


def whole(completer, offset, text=TEXT, language="python", **options):
    [completion] = completer.complete(Request(text, offset, language, "a.py", **options))
    rounds = b"".join(completer.engine.vocabulary.token_bytes(t) for r in completion.rounds for t in r.tokens)
    return completion, rounds.decode("utf-8", "replace")


@pytest.mark.parametrize("grammar", ["none", "auto"])
@pytest.mark.parametrize("gate", ["off", "window"])
def test_what_is_generated_begins_with_the_lead_and_what_is_inserted_does_not_repeat_it(engine, grammar, gate):
    completer = Completer(engine, replace(BASE, grammar=grammar, gate=gate))
    filled = 0
    places = PLACES[::3] + SIGNS[::2]
    for offset in places:
        lead = lead_of(TEXT[:offset], engine.vocabulary)
        end = TEXT.find("\n", offset)
        completion, generated = whole(completer, offset, TEXT[:offset] + TEXT[end:])
        assert completion.finish_reason != "grammar"
        assert completion.backed_up == len(lead)
        assert generated.startswith(lead)
        if completion.text and completion.report["gate"] in ("passed", "off"):
            # Without a gate brackets that the line leaves open are closed; the gate may put in more.
            said = completion.text.rstrip(")]}\"'")
            assert generated[len(lead) :].startswith(said) or completion.report["gate"] == "passed"
            filled += 1
    assert filled > len(places) // 3


@pytest.mark.parametrize("gate", ["off", "window"])
def test_behind_what_opens_a_block_comes_its_first_line(engine, gate):
    completer = Completer(engine, replace(BASE, gate=gate))
    text = "def first(items):\n    for item in items:"
    completion, _ = whole(completer, len(text), text + "\n")
    assert completion.text.startswith("\n        ")
    assert completion.text.strip()


def test_drafts_change_nothing(engine):
    alone = Completer(engine, replace(BASE, grammar="auto", draft="none"))
    drafted = Completer(engine, replace(BASE, grammar="auto"))
    accepted = 0
    for offset in PLACES[::4]:
        one, _ = whole(alone, offset)
        other, _ = whole(drafted, offset)
        assert one.text == other.text
        accepted += other.report["by_source"]["forced"]["accepted"]
    assert accepted > 0  # the lead, where it takes more than a token


def test_a_key_inside_a_word_leaves_the_prompt_as_it_is(engine):
    completer = Completer(engine, BASE)
    offset = TEXT.index("self.height = height") + len("self.")
    completer.prefill(Request(TEXT[:offset] + TEXT[offset + 6 :], offset, "python", "a.py"))
    for typed in range(1, 6):
        text = TEXT[: offset + typed] + TEXT[offset + 6 :]
        assert completer.prefill(Request(text, offset + typed, "python", "a.py")) <= 1


def test_samples_and_alternatives_begin_with_the_word(engine):
    offset = TEXT.index("argparse") + 3
    text = TEXT[:offset] + TEXT[offset + 5 :]
    for seed in range(3):
        completer = Completer(engine, BASE, Sampling(temperature=1.5, top_k=0, top_p=1, min_p=0, seed=seed))
        for completion in completer.complete(Request(text, offset, "python", "a.py", count=2)):
            generated = b"".join(engine.vocabulary.token_bytes(t) for r in completion.rounds for t in r.tokens)
            assert generated.startswith(b" arg")


def test_a_word_where_the_grammar_allows_none_is_left_alone(engine):
    cursor = OpenDocuments(engine).context_at("a.json", by_id("json"), "json", '{"a": 1 bogus', 13, "window")
    assert cursor.lead == ""
    assert cursor.grammar.state is None
    cursor = OpenDocuments(engine).context_at("a.json", by_id("json"), "json", '{"a": fals', 10, "window")
    assert cursor.lead == " fals"
    completion, _ = whole(Completer(engine, replace(BASE, grammar="json")), 10, '{"a": fals}', "json")
    assert completion.text.startswith("e")


def test_a_document_is_judged_with_its_word(engine):
    # `height` stands there already: no empty text is dropped for a word that only begins.
    cursor = OpenDocuments(engine).context_at(
        "a.py", by_id("python"), "python", TEXT, TEXT.index("height):") + 3, "window"
    )
    assert cursor.lead == " hei"
    assert present(cursor.gate).fit(" hei") == " hei"
    assert present(cursor.gate).fit(" hei)") is None
    assert not present(cursor.gate).broken


def test_trimming_leaves_the_word(engine):
    text = "print(fo)\n"
    cursor = OpenDocuments(engine).context_at("a.py", by_id("python"), "none", text, 8, "window")
    assert cursor.lead == "(fo"
    assert present(cursor.gate).fit("(foo)") == "(foo"
    # What follows the cursor begins with the word itself.
    cursor = OpenDocuments(engine).context_at("a.py", by_id("python"), "none", "print(value_value_a)\n", 12, "window")
    assert cursor.lead == "(value_"
    assert present(cursor.gate).fit("(value_") == "(value_"


def test_a_vocabulary_without_the_letters_heals_nothing(engine):
    class Spare:
        def __init__(self, own):
            self._own = own

        def __getattr__(self, name):
            return getattr(self._own, name)

        def tokenize(self, text, special=False):
            return self._own.tokenize(text.replace("ß", "?"), special)

    documents = OpenDocuments(SimpleNamespace(vocabulary=Spare(engine.vocabulary)))
    assert documents.context_at("a", by_id("plaintext"), "none", "x größ", 6, "off").lead == ""
    assert documents.context_at("a", by_id("plaintext"), "none", "x größ", 4, "off").lead == " gr"


def test_no_end_before_the_lead_is_complete():
    vocabulary = FakeVocabulary(["fo", "foo", "oo", "food", " f"])
    state = FittedState(FreeState(), None, vocabulary, "foo")
    names = {vocabulary.token_bytes(t): t for t in range(vocabulary.size)}

    def allowed():
        bits = np.full((vocabulary.size + 31) // 32, 0xFFFFFFFF, np.uint32)
        state.mask_into(bits)
        masked = {t for t in range(vocabulary.size) if bits[t // 32] >> (t % 32) & 1}
        assert masked == {t for t in range(vocabulary.size) if state.allows(t)}
        return {vocabulary.token_bytes(t) for t in masked}

    assert allowed() == {b"f", b"fo", b"foo", b"food"}
    assert not state.can_end
    assert state.forced() == b"foo"
    assert state.accept([names[b"f"]]) == 1
    assert allowed() == {b"o", b"oo"}
    assert state.accept([0]) == 0
    assert state.accept([names[b"oo"]]) == 1
    assert state.can_end
    assert b"" in allowed()
    state.rollback(2)
    assert state.accept([names[b"food"]]) == 1
    assert state.can_end


def test_the_mask_of_a_text_is_that_of_asking_token_by_token():
    with Model(EMBEDDED_TARGET, vocabulary_only=True) as model:
        vocabulary = model.vocabulary
        pieces = [vocabulary.token_bytes(token) for token in range(vocabulary.size)]
        for text in (b" ", b" sel", b"self", "größe".encode(), b"\xff", b"q" * 32, "漢".encode()[:2]):
            bits = np.full((vocabulary.size + 31) // 32, 0xFFFFFFFF, np.uint32)
            bits[1] = 0x0F0F0F0F
            before = bits.copy()
            keep_leading(vocabulary, bits, text)
            for token, piece in enumerate(pieces):
                good = bool(piece) and (piece.startswith(text) or text.startswith(piece))
                was = bool(before[token // 32] >> (token % 32) & 1)
                assert bool(bits[token // 32] >> (token % 32) & 1) == (good and was)
