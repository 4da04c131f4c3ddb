"""Masks over token classes are those over all tokens; and this can fail."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Sequence
from pathlib import Path

import llguidance
import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.grammar.texts import texts_for
from codespec.grammar import Grammar, Tokenizer, class_vocabulary, compiled, shipped
from codespec.grammar.gbnf.gbnf import parse
from codespec.grammar.lower import token_classes
from codespec.grammar.lower.token_classes import TooMuchToTell
from codespec.grammar.rules import Rules
from codespec.grammar.state import LlguidanceState
from codespec.llama.llguidance_tokenizer import tokenizer_from_vocab
from codespec.llama.model import Model
from codespec.models.registry import EMBEDDED_TARGET
from tests.grammar.lower.fusion import LETTERS, grammars, texts
from tests.grammar.lower.masks import Comparison, both
from tests.grammar_fakes import small_tokenizer

UPSTREAM = {
    "arithmetic": 'root ::= (expr "=" ws term "\\n")+\nexpr ::= term ([-+*/] term)*\n'
    'term ::= ident | num | "(" ws expr ")" ws\nident ::= [a-z] [a-z0-9_]* ws\nnum ::= [0-9]+ ws\nws ::= [ \\t\\n]*',
}
"""Grammars in llama.cpp's manner, whose names and white space are lexemes of their own."""


def words(pieces: Sequence[bytes], digest: str = "") -> Tokenizer:
    """A vocabulary of some texts and an end token."""
    end = len(pieces)

    class Words:
        eos_token_id = end
        bos_token_id = None
        tokens = (*pieces, b"<end>")
        special_token_ids = (end,)

        def __call__(self, text: bytes | str) -> list[int]:
            return []

    raw = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Words()), n_vocab=end + 1, eos_token=[end], slices=[])
    return Tokenizer(raw, [end], frozenset(), lambda text: [], digest)


def short_texts() -> Tokenizer:
    """All texts over the letters of random grammars up to four characters, and some with others."""
    return words([text.encode() for text in texts(4) if text] + [b"d", b"ad", b"cdb", "é".encode(), b"\xc3", b"\xa9a"])


def compare_everywhere(rules: Rules, tokenizer: Tokenizer) -> Comparison:
    """Masks behind every text over the letters up to four characters that may begin so."""
    *states, _ = both(rules, tokenizer)
    comparison = Comparison(states, tokenizer)
    letters = [[text.encode() for text in texts(4) if text].index(letter.encode()) for letter in LETTERS]
    comparison.mask()
    for length in range(1, 5):
        for way in itertools.product(letters, repeat=length):
            taken = comparison.accept(way)
            if taken == length:
                comparison.mask()
            comparison.rollback(taken)
    return comparison


def test_random_grammars_keep_their_masks() -> None:
    tokenizer = short_texts()
    masks = merged = 0
    for source, rules in itertools.islice(grammars(seed=21), 40):
        try:
            masks += compare_everywhere(rules, tokenizer).masks
        except AssertionError as error:
            raise AssertionError(source) from error
        merged += both(rules, tokenizer)[2].raw.vocab_size - 256 < tokenizer.size // 2
    assert masks > 1000
    assert merged > 10


def nothing_follows(positions: object, names: Sequence[str]) -> npt.NDArray[np.bool_]:
    return np.zeros((len(names), len(names)), np.bool_)


def only_inside(self: object, outcome: int, after: int) -> int:
    return outcome or 1


@pytest.mark.parametrize(
    ("owner", "name", "broken"),
    [(token_classes, "_follow", nothing_follows), (token_classes._Outcomes, "_join", only_inside)],
)
def test_half_of_the_classes_would_not_do(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, broken: object
) -> None:
    """Which lexemes may follow, and what becomes of the rest in them, tells tokens apart."""
    monkeypatch.setattr(owner, name, broken)
    tokenizer = short_texts()
    wrong = 0
    for _, rules in itertools.islice(grammars(seed=21), 40):
        try:
            compare_everywhere(rules, tokenizer)
        except AssertionError:
            wrong += 1
    assert wrong > 3


def test_pieces_that_are_no_characters() -> None:
    """Tokens that end inside a character, without text, and special ones."""
    tokenizer = small_tokenizer()
    rules = parse('root ::= ("é" [a-c"]* "," | "\\"" [^"]* "\\"" [ \\n]*)*')
    *states, _ = both(rules, tokenizer)
    comparison = Comparison(states, tokenizer)
    rng = random.Random(3)
    for _ in range(60):
        comparison.mask()
        comparison.accept([rng.choice([token for token in comparison.mask() if token not in tokenizer.end_tokens])])


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(Path(EMBEDDED_TARGET), vocabulary_only=True)


@pytest.mark.parametrize("name", [*shipped(), *UPSTREAM])
def test_grammars_keep_their_masks(name: str, model: Model) -> None:
    tokenizer = tokenizer_from_vocab(model.vocabulary)
    rules = parse(UPSTREAM[name]) if name in UPSTREAM else Grammar.load(name).rules
    assert rules is not None
    *states, found = both(rules, tokenizer)
    assert found.raw.vocab_size < tokenizer.size * 0.6
    masks = 0
    for text in texts_for(name):
        comparison = Comparison([state.copy() for state in states], tokenizer)
        comparison.along(model.vocabulary.tokenize(text)[:40])
        masks += comparison.masks
    assert masks > 40


def test_names_have_few_classes() -> None:
    """Words that are no keyword, whatever they begin with, and however they are spelled."""
    rules = parse(
        'root ::= item*\nitem ::= "if" \\b "(" item ")" | name \\b ";"\nname ::= [a-z]+ - "if"', extensions=True
    )
    alike = [
        *([b"i", b"if"], [b"f"], [b"fi", b"iffy", b"of", b"zebra"]),
        *([b";i"], [b";of", b";iffy"], [b"x;of", b"ab;x"], [b"if;"], [b"if(x"]),
    ]
    never = [b" of", b"A"]
    pieces = [*itertools.chain(*alike), *never]
    chosen, of = class_vocabulary.choose(rules, words(pieces), frequent=0)
    assert [chosen[number] if number < len(chosen) else b"" for number in of.tolist()] == [
        *(those[0] for those in alike for _ in those), *[b""] * (len(never) + 1),
    ]  # fmt: skip


LARGE = class_vocabulary.MIN_VOCABULARY + 1000


@pytest.fixture(scope="module")
def large() -> Tokenizer:
    """A vocabulary for which it pays."""
    rng = random.Random(7)
    made = {bytes([value]) for value in range(256)}
    while len(made) < LARGE:
        word = "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(2, 9)))
        made.add((rng.choice(["", " ", "(", "\n"]) + word).encode())
    return words(sorted(made, key=lambda text: (len(text), text)), digest="large")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODESPEC_GRAMMAR_CACHE", str(tmp_path))
    return tmp_path


def test_what_was_found_is_kept(large: Tokenizer, folder: Path) -> None:
    source = UPSTREAM["arithmetic"]
    before = Grammar.from_gbnf(source).state(large)
    assert Grammar.from_gbnf(source).find_token_classes(large)
    kept = len([*folder.iterdir()])
    grammar = Grammar.from_gbnf(source)
    after = grammar.state(large)
    assert grammar.find_token_classes(large)
    assert len([*folder.iterdir()]) == kept
    assert isinstance(before, LlguidanceState)
    assert isinstance(after, LlguidanceState)
    assert (before._class_vocabulary, after._class_vocabulary is None) == (None, False)
    comparison = Comparison([before, after], large)
    rng = random.Random(5)
    for _ in range(40):
        comparison.accept([rng.choice(comparison.mask())])


def test_slow_masks_start_a_thread_for_later_states(
    large: Tokenizer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread does it, once; and not where masks are quick."""
    grammar = Grammar.from_gbnf(UPSTREAM["arithmetic"])
    bits = np.zeros((large.size + 31) // 32, np.uint32)

    def masks(count: int) -> list[threading.Thread]:
        state = grammar.state(large)
        for _ in range(count):
            state.mask_into(bits)
        return [thread for thread in threading.enumerate() if thread.name == compiled.THREAD]

    monkeypatch.setattr(compiled, "SLOW_MASK", 10.0)
    assert not masks(4 * compiled.MASKS)
    monkeypatch.setattr(compiled, "SLOW_MASK", 0.0)
    assert not masks(compiled.MASKS)  # most of all were quick
    (thread,) = masks(compiled.MASKS)
    thread.join()
    state = grammar.state(large)
    assert isinstance(state, LlguidanceState)
    assert state._class_vocabulary is not None
    assert not masks(10 * compiled.MASKS)


def test_small_vocabularies_and_other_grammars_are_left_alone(large: Tokenizer, folder: Path) -> None:
    assert not Grammar.from_gbnf(UPSTREAM["arithmetic"]).find_token_classes(small_tokenizer())
    assert not Grammar.from_regex("[a-z]+").find_token_classes(large)
    assert not [*folder.iterdir()][1:]


def test_grammars_that_tell_too_much_apart_are_given_up(
    large: Tokenizer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_classes, "MAX_WORK", 10_000)
    rules = parse(UPSTREAM["arithmetic"])
    with pytest.raises(TooMuchToTell):
        class_vocabulary.choose(rules, large)
    assert not Grammar.from_gbnf(UPSTREAM["arithmetic"]).find_token_classes(large)
    monkeypatch.undo()
    monkeypatch.setenv("CODESPEC_GRAMMAR_CACHE", str(folder))
    assert class_vocabulary.load(Grammar.from_gbnf(UPSTREAM["arithmetic"])._source or "", large) == (True, None)
