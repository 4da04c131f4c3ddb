"""What is particular to the llguidance engine and to our handling of end tokens."""

from __future__ import annotations

import copy
import json
import random
import threading
from pathlib import Path

import llguidance
import numpy as np
import pytest

from codespec.grammar import Grammar, GrammarError, Tokenizer, byte_tokenizer
from codespec.llama.llguidance_tokenizer import tokenizer_from_vocab
from codespec.llama.model import Model
from codespec.protocols import CodespecError, GrammarState
from tests import byte_vocabulary
from tests.grammar_fakes import CONTROL, EMPTY, ENDS, TOKENS, small_tokenizer

V = len(TOKENS)


def state_of(source: str) -> GrammarState:
    return Grammar.from_gbnf(f"root ::= {source}").state(small_tokenizer())


def mask(state: GrammarState, size: int = V) -> list[int]:
    bits = np.full((size + 31) // 32, 0xFFFFFFFF, np.uint32)
    state.mask_into(bits)
    return [token for token in range(size) if bits[token // 32] >> np.uint32(token % 32) & 1]


def tokens(*texts: str) -> list[int]:
    return [TOKENS.index(text.encode()) for text in texts]


def test_mask_holds_every_spelling_of_forced_text() -> None:
    state = state_of('"aaa" [bc]')
    assert mask(state) == tokens("a", "aa", "aaa")
    assert state.forced() == b"aaa"
    assert mask(state) == tokens("a", "aa", "aaa")


def test_complete_without_continuation() -> None:
    state = state_of('"a" "b"?')
    assert (state.can_end, state.finished) == (False, False)
    assert state.accept(tokens("a")) == 1
    assert (state.can_end, state.finished, state.forced()) == (True, False, b"")
    assert mask(state) == [*tokens("b"), *ENDS]
    assert state.accept(tokens("b")) == 1
    assert (state.can_end, state.finished, state.forced()) == (True, True, b"")
    assert mask(state) == ENDS
    assert [token for token in range(V) if state.allows(token)] == ENDS
    assert state.accept(tokens("a")) == 0
    state.rollback(1)
    assert (state.can_end, state.finished) == (True, False)
    assert mask(state) == [*tokens("b"), *ENDS]


@pytest.mark.parametrize("end", ENDS)
def test_end_tokens_roll_back_like_any_other(end: int) -> None:
    state = state_of('"a"+')
    assert state.accept([end]) == 0
    assert state.accept([*tokens("a", "a"), end, *tokens("a"), end]) == 3
    assert (state.can_end, state.finished, state.forced(), mask(state)) == (True, True, b"", [])
    assert not any(state.allows(token) for token in range(V))
    twin = state.copy()
    state.rollback(1)
    assert (state.can_end, state.finished) == (True, False)
    assert state.accept([*tokens("aaa"), end]) == 2
    state.rollback(4)
    assert not state.can_end
    assert state.accept(tokens("a")) == 1
    twin.rollback(2)
    assert twin.can_end
    with pytest.raises(ValueError, match="cannot undo 2 of 1 tokens"):
        twin.rollback(2)
    with pytest.raises(ValueError, match="cannot undo -1"):
        twin.rollback(-1)


@pytest.mark.parametrize("source", ['""', '"a"{0}', "[]"])
def test_only_the_empty_text(source: str) -> None:
    state = state_of(source)
    assert (state.can_end, state.finished, state.forced(), mask(state)) == (True, True, b"", ENDS)
    assert state.accept(tokens("a")) == 0
    assert state.accept([ENDS[1]]) == 1
    assert mask(state.copy()) == []


def test_no_grammar_allows_special_tokens_as_text() -> None:
    state = state_of(".*")
    assert mask(state) == [t for t in range(V) if t not in (EMPTY, CONTROL) and b"\xc0"[0] != t != 0xC1 and _starts(t)]
    for token in (EMPTY, CONTROL, -1, V, 10**9):
        assert not state.allows(token)
        assert state.accept([token]) == 0


def _starts(token: int) -> bool:
    """Whether text may begin with it: everything but what cannot begin UTF-8."""
    first = TOKENS[token][:1]
    return token in ENDS or not (b"\x80" <= first < b"\xc2" or first > b"\xf4")


def test_dead_end_is_an_empty_mask_and_can_be_left() -> None:
    class NoB:
        eos_token_id = 2
        bos_token_id = None
        tokens = (b"a", b"c", b"<end>")
        special_token_ids = (2,)

        def __call__(self, text: bytes | str) -> list[int]:
            return []

    raw = llguidance.LLTokenizer(llguidance.TokenizerWrapper(NoB()), n_vocab=3, eos_token=[2], slices=[])
    state = Grammar.from_gbnf('root ::= "a" "b" | "a" "a" "b" | "c"').state(
        Tokenizer(raw, [2], frozenset(), lambda _: [])
    )
    assert state.accept([0]) == 1
    assert state.accept([0]) == 1
    for _ in range(2):
        assert mask(state, 3) == []
        assert (state.can_end, state.finished) == (False, False)
    twin = state.copy()
    state.rollback(2)
    assert mask(state, 3) == [0, 1]
    assert state.accept([1]) == 1
    assert state.finished
    twin.rollback(1)
    assert mask(twin, 3) == [0]


def test_wrong_buffers_are_refused() -> None:
    state = state_of('"a"')
    for bits in (np.zeros(8, np.uint32), np.zeros(V, np.uint8), np.zeros(2 * ((V + 31) // 32), np.uint32)[::2]):
        with pytest.raises(ValueError, match="contiguous uint32 array"):
            state.mask_into(bits)  # type: ignore[arg-type]


def test_engine_limits_raise() -> None:
    state = Grammar.from_gbnf('root ::= (x y)*\nx ::= [a-z]* | "(" x ")"\ny ::= [a-z]* | "(" y ")"', "slow").state(
        byte_tokenizer()
    )
    with pytest.raises(CodespecError, match=r"^slow: the text can be read in too many ways; make the grammar less"):
        state.accept(b"a" * 3000)


class TestTokenElements:
    def grammar(self, source: str) -> GrammarState:
        return Grammar.from_gbnf(f"root ::= {source}", "g").state(small_tokenizer())

    @pytest.mark.parametrize("element", [f"<[{CONTROL}]>", "<control>"])
    def test_named(self, element: str) -> None:
        state = self.grammar(f'"a" {element} "b"')
        assert state.accept(tokens("a")) == 1
        assert mask(state) == [CONTROL]
        assert state.allows(CONTROL)
        assert state.accept([CONTROL]) == 1
        assert mask(state) == tokens("b")
        state.rollback(1)
        assert mask(state) == [CONTROL]
        state.rollback(1)
        assert mask(state) == tokens("a")
        assert state.accept([*tokens("a"), CONTROL, *tokens("b")]) == 3
        assert state.finished

    def test_negated(self) -> None:
        state = self.grammar('!<[98]>* "b"')
        assert mask(state) == [t for t in range(V) if t not in (EMPTY, CONTROL, *ENDS)]
        assert state.accept([97, 200, 99, 98]) == 4
        assert state.finished

    def test_errors(self) -> None:
        for element, message in [
            ("<nothing>", "g:1:10: <nothing> is not one token of this model but 9"),
            ("<[100000]>", "g:1:10: <[100000]> is not one token of this model; ids run from 0 to"),
            ("<end>", "g:1:10: <end> is an end token; leave it out"),
        ]:
            with pytest.raises(GrammarError) as caught:
                self.grammar(element)
            assert str(caught.value).startswith(message)


SOURCES = {
    "json": None,
    "python": None,
    "nested": 'root ::= "(" root* ")" | [a-c]+ | "éa" | "10" root',
    "ambiguous": 'root ::= ("a" | "aa" | "ab" | "b")* ("abc" | "")',
}


@pytest.mark.parametrize("name", SOURCES)
def test_random_walks_equal_feeding_afresh(name: str) -> None:
    """However a state got where it is (rollback, copy, forced text asked for), it is the one of its tokens."""
    source = SOURCES[name]
    grammar = Grammar.from_gbnf(source) if source else Grammar.load(name)
    tokenizer = small_tokenizer()
    rng = random.Random(5)
    for _ in range(6):
        state, history = grammar.state(tokenizer), []
        for _ in range(25):
            allowed = mask(state)
            assert allowed == [token for token in range(V) if state.allows(token)]
            action = rng.random()
            if action < 0.55 and allowed:
                token = rng.choice(allowed)
                assert state.accept([token]) == 1
                history.append(token)
            elif action < 0.7:
                back = rng.randint(0, len(history))
                state.rollback(back)
                del history[len(history) - back :]
            elif action < 0.8:
                before, state = state, copy.deepcopy(state)
                before.accept(allowed[:1])
            elif action < 0.9:
                refused = [token for token in range(V) if token not in allowed]
                assert state.accept([rng.choice(refused)]) == 0
            elif forced := state.forced():
                assert not state.can_end
                assert state.copy().accept(forced) == len(forced)
                assert all(forced.startswith(TOKENS[t]) or TOKENS[t].startswith(forced) for t in allowed)
            fresh = grammar.state(tokenizer)
            assert fresh.accept(history) == len(history)
            assert (fresh.can_end, fresh.finished, mask(fresh)) == (state.can_end, state.finished, mask(state))


@pytest.mark.parametrize(
    ("grammar", "good", "bad"),
    [
        (Grammar.from_regex("a/b+c?"), ["a/b", "a/bbc"], ["a", "b", "a/bcc"]),
        (Grammar.from_regex(""), [""], ["a"]),
        (Grammar.from_lark('start: "a" B\nB: /b+/'), ["ab", "abb"], ["a", "b"]),
        (
            Grammar.from_json_schema('{"type": "object", "properties": {"n": {"type": "integer"}}}'),
            ['{"n": 1}', "{}"],
            ['{"n": "x"}', "[]", "{"],
        ),
        (Grammar.from_json_schema("true"), ["1", "[]"], ["x"]),
    ],
)
def test_other_sources(grammar: Grammar, good: list[str], bad: list[str]) -> None:
    for text in good + bad:
        state = grammar.state(byte_tokenizer())
        assert (state.accept(text.encode()) == len(text) and state.can_end) == (text in good), text


@pytest.mark.parametrize(
    ("build", "text", "message"),
    [
        ("from_lark", 'start: "a"\nfoo "b"', "g:2:5: '\"b\"' before the colon of 'foo'"),
        ("from_lark", "start: foo", "g:1:8: rule 'foo' is not defined; add: foo: "),
        ("from_lark", "", "g: there is no rule 'start'"),
        ("from_lark", "start: " + "(" * 20_000, "g:1:"),
        (
            "from_lark",
            "start: a0\n" + "".join(f"a{i}: a{i + 1}\n" for i in range(5_000)),
            "g: the grammar is too large",
        ),
        ("from_regex", "(a", "g:1:1: the group is not closed; add )"),
        ("from_regex", "a(?=b)", "g:1:2: look-ahead (?=…) is not supported"),
        ("from_json_schema", '{\n "type":', "g:2:9: not JSON: Expecting value"),
        ("from_json_schema", "[]", "g: a JSON Schema is an object"),
        ("from_json_schema", '{"type": "strin"}', "g: /type: unknown type 'strin'; did you mean 'string'?"),
        ("from_json_schema", "[" * 100_000, "g: the schema is nested too deeply"),
    ],
)
def test_errors_of_other_sources(build: str, text: str, message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        getattr(Grammar, build)(text, "g")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["python", "javascript"])
def test_masks_after_going_back(name: str) -> None:
    """The engine remembers its last mask for longer than it holds: as many lexemes, but other ones."""
    tokenizer = byte_tokenizer()
    state = Grammar.load(name).state(tokenizer)
    for text, follows in ((b"f(x", ord(")")), (b"f[x", ord("]")), (b"f(x", ord(")"))):
        assert state.accept(text) == len(text)
        for each in (state, state.copy()):
            allowed = mask(each, tokenizer.size)
            assert (follows in allowed, sum(each.allows(token) for token in b")]")) == (True, 1)
            assert len(set(allowed) & {*b")]"}) == 1
        state.rollback(len(text))


def test_threads_share_a_grammar() -> None:
    grammar = Grammar.load("json")
    text = json.dumps({"a": [1, 2, {"b": "c"}] * 20}).encode()
    results: list[bool] = []

    def work() -> None:
        for _ in range(5):
            state = grammar.state(byte_tokenizer())
            results.append(state.accept(text) == len(text) and state.can_end)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 20


def test_vocabulary_of_a_model(tmp_path: Path) -> None:
    model = Model(byte_vocabulary.write(tmp_path / "bytes.gguf"), vocabulary_only=True)
    tokenizer = tokenizer_from_vocab(model.vocabulary)
    assert (tokenizer.size, tokenizer.end_tokens, tokenizer.barred) == (257, (256,), frozenset({256}))
    state = Grammar.from_gbnf('root ::= "é" [0-9]').state(tokenizer)
    assert state.forced() == "é".encode()
    assert mask(state, 257) == [0xC3]
    assert state.accept([*"é7".encode(), 256]) == 4
    assert state.finished
    state.rollback(2)
    assert mask(state, 257) == [*b"0123456789"]
    with pytest.raises(GrammarError, match="<end> is an end token"):
        Grammar.from_gbnf('root ::= "a" <end>').state(tokenizer)
    model.close()
