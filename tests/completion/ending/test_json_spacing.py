"""White space in completions of JSON: what a formatter writes may come, stretches of blanks may not."""

import copy
import functools
import json
import random

import llguidance
import pytest

from codespec.completion.ending.fitted_state import FittedState
from codespec.completion.ending.json_spacing import SpacedState, Spacing
from codespec.grammar.tokenizer import Tokenizer
from tests.completion.ending.json_gate import END, Bytes, allowed, json_grammar, masked

EXTRA = (b'": ', b'":', b'"  ', b'",\n', b",\n", b'"\n', b"  ", b", ", b"\n    ", b'":"', b" :")
FORMATS = [
    {"indent": 2},
    {"indent": 4},
    {"indent": "\t"},
    {},
    {"separators": (",", ":")},
    {"indent": 2, "separators": (",", " : ")},
]


SIZE = 257 + len(EXTRA)


class Words:
    """What llguidance asks of a tokenizer: that of ``Bytes(EXTRA)``."""

    eos_token_id = END
    bos_token_id = None
    tokens = (*(bytes([value]) for value in range(256)), b"<end>", *EXTRA)
    special_token_ids = (END,)

    def __call__(self, text):
        return list(text.encode() if isinstance(text, str) else text)


@functools.cache
def tokenizer():
    raw = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Words()), n_vocab=SIZE, eos_token=[END], slices=[])
    return Tokenizer(raw, [END], frozenset(), lambda text: list(text.encode()))


def spaced(text, lead=""):
    """The state where ``|`` is in a JSON text."""
    prefix, _, suffix = text.partition("|")
    state = json_grammar().state(tokenizer())
    assert state.accept(prefix.removesuffix(lead).encode()) == len(prefix.removesuffix(lead).encode())
    return SpacedState(state, Spacing(prefix.removesuffix(lead), suffix), Bytes(EXTRA), len(lead))


def value(chooser, depth=0):
    kind = chooser.randrange(6 if depth < 3 else 4)
    if kind < 4:
        return chooser.choice(["", "a", "b, c:  d", 'q" : [', 1, -2.5, True, None, "ä\\"])
    items = [value(chooser, depth + 1) for _ in range(chooser.randrange(4))]
    return items if kind == 4 else {f"k{index}": item for index, item in enumerate(items)}


@pytest.mark.parametrize("options", FORMATS)
def test_what_a_formatter_wrote_may_be_written_again(options):
    chooser = random.Random(str(options))
    for _ in range(60):
        text = json.dumps({"a": 1, "b": [1, 2], "c": value(chooser), "d": value(chooser)}, **options)
        for offset in range(0, len(text), 7):
            spacing = Spacing(text[:offset], text[offset:])
            assert spacing.after(spacing.start, text[offset:].encode()) is not None, (text, offset)


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ('{\n  "a": 1,\n|  "b": 2\n}', ['  "x": [1,\n    2],\n', '  "x  , y": 1'], ['  "x" : 1', '  "x"\n', "   "]),
        (
            '{\n  "a": 1,\n|  "b": 2\n}',
            ['  "x": 1,\n  "'],
            ['  "x":1', '  "x": 1\n,', '  "x":  1', '  "x": 1, "', "\t"],
        ),
        ('{"a":1|,"b":2}', [',"x":3', ',"x":[1,2]'], [", ", ',"x": ', ",\n", " ", "\n"]),
        ('{"a": 1|, "b" : 2}', [', "x" : 3', ', "x": 3'], [',"x"', ",  "]),
        ('{\n  "a": 1\n  |\n}', [', "x": 2', ', "x": {\n    "y": 1'], ["\n", " "]),
        ('{\n\t"a": 1,\n|\t"b": 2\n}', ['\t"x": {\n\t\t"y": 1\n\t}'], ["  ", "\t\t"]),
        ('{\n  "a":|\n}', [" 1", "1"], ["\n", "  1"]),
        ('{\n  "a": {|\n    "b": 1\n  }\n}', ['\n    "x": 1'], ['\n  "x": 1', "\n  }", '\n"x"']),
        ("|", ['{\n    "a": 1', '{"a":1', "[]"], ["\n", " ", "{  "]),
        ('["a|b"]', ["  , :  ", 'x", "y'], ['x",  ', 'x" ,']),
        ('["\\|"b"]', ['"  , ', '" , "'], ['" , " ,']),
    ],
)
def test_blanks_are_those_of_the_document(text, good, bad):
    prefix, _, suffix = text.partition("|")
    spacing = Spacing(prefix, suffix)
    assert [each for each in good if spacing.after(spacing.start, each.encode()) is None] == []
    assert [each for each in bad if spacing.after(spacing.start, each.encode()) is not None] == []


def test_the_style_of_a_long_line_is_read_from_its_start():
    text = json.dumps({f"k{index}": "a, b: c" for index in range(3000)}, separators=(",", ":"))
    spacing = Spacing(text[:50_000], text[50_000:])
    assert spacing.after(spacing.start, text[50_000:50_400].encode()) is not None
    assert spacing.start.open == "{"


@pytest.mark.parametrize("text", ['{\n    "a": 1,\n    |\n}', '{"a":|}', '{"a": "b|"}', '[1, {"b": 2}|]', "|"])
def test_mask_and_allows_agree_and_something_may_always_come(text):
    chooser = random.Random(text)
    for _ in range(12):
        state = spaced(text)
        for _ in range(60):
            may = masked(state, SIZE)
            assert may == allowed(state, SIZE)
            assert may
            if may == {END}:
                break
            token = chooser.choice(sorted(may - {END}))
            assert state.accept((token,)) == 1


def test_no_long_run_of_blanks_comes_outside_of_strings():
    state = spaced('{\n  "a": 1,\n|\n}')
    assert state.accept(b'  "x"') == 5
    assert not any(state.allows(token) for token in b" \t\n")
    assert state.accept(b": ") == 2
    assert not any(state.allows(token) for token in b" \t\n")
    assert state.accept(b'"  \t') == 3  # the grammar has no tabs in strings


def test_rollback_and_copies():
    state = spaced('{\n  "a": 1,\n|\n}')
    before = masked(state)
    other = copy.deepcopy(state)
    assert state.accept(b'  "x": [') == 8
    assert masked(other) == before
    state.rollback(8)
    assert masked(state) == before
    assert state.accept(b"   ") == 2


def test_what_the_document_has_before_the_cursor_is_not_judged():
    state = spaced('{"a":1,"b"  :|}', "  :")
    assert state.accept(b"  :") == 3
    assert not state.allows(ord(" "))
    fitted = FittedState(spaced('{"a":1,"b"  :|}', "  :"), None, Bytes(EXTRA), "  :")
    assert masked(fitted, SIZE) == {ord(" "), 257 + EXTRA.index(b"  ")}
    assert fitted.accept(b"  :1") == 4
