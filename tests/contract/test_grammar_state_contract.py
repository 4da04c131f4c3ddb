"""What every grammar engine must do, run over all of them and compared with the plainest one at each step."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest

from codespec.grammar import Grammar
from codespec.protocols import GrammarState
from tests.grammar_fakes import EMPTY, ENDS, TOKENS, SetState, small_tokenizer

V = len(TOKENS)


def llguidance_gbnf(texts: set[str]) -> GrammarState:
    quoted = ('"' + text.replace('"', '\\"') + '"' for text in sorted(texts))
    return Grammar.from_gbnf("root ::= " + " | ".join(quoted)).state(small_tokenizer())


def llguidance_tree(texts: set[str]) -> GrammarState:
    """The same texts as a right-recursive grammar of one rule for each common beginning."""
    rules = []
    prefixes = sorted({text[:n] for text in texts for n in range(len(text) + 1)})
    names = {prefix: f"r{i}" if prefix else "root" for i, prefix in enumerate(prefixes)}
    for prefix, name in names.items():
        options = [
            '"' + other[-1].replace('"', '\\"') + '" ' + names[other]
            for other in prefixes
            if len(other) == len(prefix) + 1 and other.startswith(prefix)
        ]
        rules.append(f"{name} ::= " + " | ".join([*(['""'] if prefix in texts else []), *options]))
    return Grammar.from_gbnf("\n".join(rules)).state(small_tokenizer())


def from_lark(texts: set[str]) -> GrammarState:
    return Grammar.from_lark("start: " + " | ".join(map(json.dumps, sorted(texts)))).state(small_tokenizer())


def from_regex(texts: set[str]) -> GrammarState:
    return Grammar.from_regex("|".join(f"(?:{re.escape(text)})" for text in sorted(texts))).state(small_tokenizer())


def from_json_schema(texts: set[str]) -> GrammarState:
    schema = {"enum": [json.loads(text) for text in sorted(texts)]}
    return Grammar.from_json_schema(json.dumps(schema)).state(small_tokenizer())


def from_type(texts: set[str]) -> GrammarState:
    pytest.importorskip("pydantic")
    kind = Literal[tuple(json.loads(text) for text in sorted(texts))]  # type: ignore[valid-type]  # made as the test runs
    return Grammar.from_type(kind).state(small_tokenizer())


ENGINES: dict[str, Callable[[set[str]], GrammarState]] = {
    "set": lambda texts: SetState(text.encode() for text in texts),
    "llguidance": llguidance_gbnf,
    "llguidance-tree": llguidance_tree,
    "lark": from_lark,
    "regex": from_regex,
}
# Their texts are JSON.
JSON_ENGINES = {"json-schema": from_json_schema, "type": from_type}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Callable[[set[str]], GrammarState]:
    return ENGINES[request.param]


def mask(state: GrammarState) -> list[int]:
    bits = np.full((V + 31) // 32, 0xFFFFFFFF, np.uint32)
    state.mask_into(bits)
    return [token for token in range(V) if bits[token // 32] >> np.uint32(token % 32) & 1]


def observe(state: GrammarState) -> tuple[object, ...]:
    allowed = [token for token in range(-1, V + 1) if state.allows(token)]
    assert mask(state) == allowed
    return allowed, state.can_end, state.finished, state.forced()


def random_texts(rng: random.Random) -> set[str]:
    letters = ["a", "b", "c", "é", '"', "1", "0", ","]
    texts = {
        "".join(rng.choice(letters) for _ in range(rng.choice([0, 1, 2, 3, 5, 8])))
        for _ in range(rng.choice([1, 2, 3, 6]))
    }
    if rng.random() < 0.5:
        stem = "".join(rng.choice("abc") for _ in range(4))
        texts = {stem + text for text in texts}
    return texts


def test_walks_agree_with_the_definition(engine: Callable[[set[str]], GrammarState]) -> None:
    walks(engine, random_texts, 25)


@pytest.mark.parametrize("engine", JSON_ENGINES.values(), ids=JSON_ENGINES)
def test_walks_through_json_agree_with_the_definition(engine: Callable[[set[str]], GrammarState]) -> None:
    walks(engine, lambda rng: {json.dumps(text, ensure_ascii=False) for text in random_texts(rng)}, 25)


def walks(
    engine: Callable[[set[str]], GrammarState], texts_of: Callable[[random.Random], set[str]], count: int
) -> None:
    rng = random.Random(3)
    for _ in range(count):
        texts = texts_of(rng)
        plain: GrammarState = ENGINES["set"](texts)
        state, taken = engine(texts), 0
        for _ in range(12):
            assert observe(state) == observe(plain), texts
            action = rng.random()
            if action < 0.65:
                tokens = [rng.choice(mask(plain) or [0]), *rng.choices(range(-2, V + 2), k=rng.randrange(3))]
                count = plain.accept(tokens)
                assert state.accept(tokens) == count, (texts, tokens)
                taken += count
            elif action < 0.85:
                back = rng.randint(0, taken)
                plain.rollback(back)
                state.rollback(back)
                taken -= back
            else:
                other = state.copy() if rng.random() < 0.5 else copy.deepcopy(state)
                seen = observe(state)
                state.accept(mask(state)[:1])
                state = other
                assert observe(state) == seen


def test_refused_tokens_change_nothing(engine: Callable[[set[str]], GrammarState]) -> None:
    state = engine({"ab", "ac"})
    before = observe(state)
    assert state.accept([98]) == 0
    assert state.accept([]) == 0
    assert observe(state) == before
    assert state.accept([97, 97, 98]) == 1
    assert observe(state) == ([98, 99], False, False, b"")


def test_end_tokens(engine: Callable[[set[str]], GrammarState]) -> None:
    state = engine({"a", "ab"})
    for end in ENDS:
        assert not state.allows(end)
        assert state.accept([97, end, 98]) == 2
        assert observe(state) == ([], True, True, b"")
        state.rollback(1)
        assert observe(state) == ([98, *ENDS], True, False, b"")
        state.rollback(1)


def test_rollback_to_the_start_and_no_further(engine: Callable[[set[str]], GrammarState]) -> None:
    state = engine({"aab"})
    start = observe(state)
    assert state.accept([97, 97, 98, ENDS[0]]) == 4
    state.rollback(0)
    with pytest.raises(ValueError):  # noqa: PT011
        state.rollback(5)
    state.rollback(4)
    assert observe(state) == start
    with pytest.raises(ValueError):  # noqa: PT011
        state.rollback(1)


def test_forced_text(engine: Callable[[set[str]], GrammarState]) -> None:
    assert engine({"abc", "abd"}).forced() == b"ab"
    assert engine({"abc"}).forced() == b"abc"
    assert engine({"", "abc"}).forced() == b""
    assert engine({"é", "è"}).forced() == b"\xc3"


def test_tokens_without_text_are_never_allowed(engine: Callable[[set[str]], GrammarState]) -> None:
    assert not engine({"", "a"}).allows(EMPTY)
