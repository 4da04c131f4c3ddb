"""The suffix gate, and the ends of texts that ask it."""

import json
import random

import pytest

from codespec.completion.ending.ending import Ending, places
from codespec.completion.ending.fitted_state import FreeState
from codespec.completion.ending.stop_rule import StopRule
from codespec.completion.ending.suffix_gate import LONGEST_WINDOW, WINDOW, SuffixGate, window
from codespec.completion.ending.tidy import Tidy
from codespec.languages import by_id
from codespec.patience import within
from codespec.protocols import Aborted, CodespecError
from tests.completion.ending.json_gate import Bytes, gate_at
from tests.present import present


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ('{"a": |}', ["1", '"x"', "[1, 2]", "1\n"], ["", "[", '"x', "1,", "1}"]),
        ("[1|]", ["", ", 2", "2"], [",", "]", " 2"]),
        ('["a|b"]', ["", "x", '", "'], ['"', '",']),
        ("|", ["1", "{}"], ["", "{", "[1"]),
    ],
)
def test_what_fits_behind_a_json_cursor(text, good, bad):
    gate = gate_at(text)
    assert [each for each in good if gate.fit(each) is None] == []
    assert [each for each in bad if gate.fit(each) is not None] == []


def test_true_middles_always_fit_and_strange_ones_seldom():
    chooser = random.Random(11)
    text = json.dumps({"name": ["x", {"y": [1, 2.5, None, True]}, "z\\u0041"], "w": {"": []}}, indent=1)
    corrupted = refused = 0
    for _ in range(300):
        start = chooser.randrange(len(text))
        end = min(len(text), start + chooser.randrange(40))
        gate = gate_at(f"{text[:start]}|{text[end:]}", whole=True)
        assert gate.fit(text[start:end]) is not None
        wrong = text[start:end] + chooser.choice(('"', "]", "}", ",", "x", "{"))
        corrupted += 1
        answer = gate.fit(wrong) is not None
        try:
            json.loads(text[:start] + wrong + text[end:])
        except ValueError:
            assert not answer
            refused += 1
        else:
            assert answer
    assert refused > corrupted / 2


def test_the_window_ends_at_a_line():
    suffix = "x" * 70 + "\n"
    assert window(suffix * 100) == suffix * -(-WINDOW // len(suffix))
    assert window("short") == "short"
    assert len(window("y" * 10_000)) == LONGEST_WINDOW


def test_errors_beyond_the_window_do_not_count():
    suffix = ", 1" * 2000 + "!]"
    assert gate_at(f"[1|{suffix}").fit("2") is not None
    assert gate_at(f"[1|{suffix}", whole=True).fit("2") is None


def test_the_end_of_the_file_must_be_complete():
    assert gate_at('{"a": [1|]').fit("") is None
    assert gate_at('{"a": [1|]').fit("]}") is None
    assert gate_at('{"a": [1|').fit("]}") is not None


def test_what_lies_outside_of_the_block_is_left_alone():
    gate = gate_at("[1|] !", outside=lambda text, position: text[position] == "!")
    assert gate.fit("2") is not None
    assert gate.fit("[") is None


@pytest.mark.parametrize(
    ("text", "asked", "line"),
    [
        ('{"a": [1|],\n "b": 2\n}', [", [", "}"], 1),  # `}` is refused itself; what follows `, [` at the end of line 2
        ('{"a": [1|], "b": 2\n}', [", ["], 0),
        ("[1|\n]", [", 2"], None),
    ],
)
def test_the_line_that_is_left_broken(text, asked, line):
    gate = gate_at(text)
    for each in asked:
        gate.fit(each)
    assert gate.broken_line == line


def test_answers_are_remembered():
    asked = []

    def check(text, strict=True):
        asked.append(text)
        return text == "b"

    gate = SuffixGate(Bytes(), "", None, check)
    assert [gate.fit(text) for text in ("a", "b", "a", "b")] == [None, "b", None, "b"]
    assert asked == ["a", "b"]


def test_the_first_variant_that_fits():
    gate = gate_at("[[1|]]", variants=lambda text: (text.removesuffix("]"), text))
    assert gate.fit(", 2]") == ", 2"
    assert gate.fit("], [3") == "], [3"


def test_both_judges_must_agree():
    for answer in (True, False):
        gate = gate_at("[1|]", check=lambda text, strict=True, answer=answer: answer)
        assert (gate.fit("2") is not None) == answer
    gate = gate_at("[1|]", check=lambda text, strict=True: True)
    assert gate.fit("]") is None


@pytest.mark.parametrize(
    ("text", "generated", "closed"),
    [
        ("[1|]", ", [2", ", [2]"),
        ('{"a": |}', '{"b', None),
        ('{"a": |}', '["b', '["b"]'),
        ("[|\n 2]", "1", "1,"),
        ("[1|\n]", ",", None),
        ('[1|\n "x"]', ", 2", ", 2,"),
    ],
)
def test_closing_what_is_open(text, generated, closed):
    assert gate_at(text).close(generated) == closed
    assert gate_at(text, closes=False).close(generated) is None


def test_a_broken_document_may_stay_as_broken():
    gate = gate_at('{"a": [1|\n  "b": 2\n}')
    assert gate.broken
    assert gate.no_worse(", 2") == ", 2"
    assert not gate_at("[1|]").broken


def test_no_less_of_the_suffix_may_fit_than_before():
    gate = gate_at("[1|, 2, !]")
    assert gate.broken
    assert gate.no_worse("0") == "0"
    assert gate.no_worse("]") is None


def test_what_the_grammar_does_not_know_is_not_demanded_of_a_sound_document():
    text = '{"a": 1|,\n"b": 2,\n"c": 0x3}'
    assert gate_at(text).fit("2") is None
    gate = gate_at(text, sound=lambda: True)
    assert gate.fit("2") is not None
    assert gate.fit("]") is None
    assert gate.fit(", {") is None
    assert not gate.broken
    assert gate_at(text, sound=lambda: False).fit("2") is None


@pytest.mark.parametrize(("check", "fits"), [(None, None), (lambda text, strict=True: True, "1")])
def test_where_the_grammar_gives_up_and_no_other_judges_nothing_fits(check, fits):
    class GivesUp(FreeState):
        def accept(self, tokens):
            raise CodespecError("too many ways")

    gate = SuffixGate(Bytes(), "}", GivesUp(), check)
    assert [gate.fit("1"), gate.fit("1")] == [fits, fits]
    assert gate.fit("2") == (None if fits is None else "2")


def test_a_gate_without_judges_is_not_available():
    assert not SuffixGate(Bytes(), "x").available
    assert gate_at("[|]").available


def ending(text, extent="line"):
    prefix, _, suffix = text.partition("|")
    return Ending(StopRule(extent), gate_at(text, variants=Tidy(prefix, suffix).variants))


def test_a_stop_rule_stops_where_the_suffix_fits():
    ended = ending("[1|\n]").stop(", 2\n")
    assert (ended.text, ended.reason, ended.gate) == (", 2", "stop", "passed")


def test_a_refused_stop_moves_to_a_later_line():
    follow = ending("[1|\n]")
    assert follow.stop(", [2,\n") is None
    assert follow.stop(", [2,\n3") is None
    ended = follow.stop(", [2,\n3]\n")
    assert (ended.text, ended.gate) == (", [2,\n3]", "passed")


@pytest.mark.parametrize(
    ("text", "generated", "expected"),
    [
        ('{"a": 1, |"b": 2}', '"Gr' + "k" * 40, '"Grk"'),
        ('{"a": 1, |"b": 2}', '"Gr', ""),
        ('{"a": 1, |"b": 2}', '"a": 1' + "0" * 40, ""),
        ('{"a|": 2}', "Gr" + "k" * 40, ""),
    ],
)
def test_a_string_that_goes_round_in_circles_is_closed_for_another_text(text, generated, expected):
    prefix, _, suffix = text.partition("|")
    language = by_id("json")
    rule = StopRule.at(prefix, suffix, language)
    tidy = Tidy(prefix, suffix, language, rule)
    follow = Ending(rule, gate_at(text, variants=tidy.variants), tidy)
    follow.stop(generated)
    assert follow.another_beginning == expected


def test_the_answer_does_not_depend_on_how_the_text_grew():
    text = ", [2,\n3,\n4]\n5\n"
    whole = ending("[1|\n]").stop(text)
    follow = ending("[1|\n]")
    steps = [follow.stop(text[:size]) for size in range(len(text) + 1)]
    assert next(step for step in steps if step is not None) == whole


def test_nor_does_what_so_many_refused_stops_come_to():
    gate = SuffixGate(Bytes(), "\n", check=lambda text, strict=True: text.endswith("a6"))
    text = "".join(f"a{number}\n" for number in range(9))
    found = set()
    for size in (1, 2, 5, len(text)):
        follow = Ending(StopRule("line"), gate)
        steps = [follow.stop(text[:end]) for end in range(size, len(text) + size, size)]
        found.add(next(step for step in steps if step is not None))
    assert len(found) == 1


@pytest.mark.parametrize(
    ("text", "generated", "expected", "verdict"),
    [
        ("[1|]", ", 2", ", 2", "passed"),
        ("[1|]", ", 2, tru", ", 2", "cut"),
        ("[1|]", ", [2", ", [2]", "cut"),
        ("[[1|]]", ", 2]", ", 2", "passed"),
        ('{"a": 1|}', ', "b', "", "dropped"),
        ('{"a": [|\n  : 2\n}', '"x", "y', '"x",', "broken"),
    ],
)
def test_at_the_limit_a_text_is_cut_back_to_where_it_fits(text, generated, expected, verdict):
    ended = ending(text).finish(generated, "length")
    assert (ended.text, ended.reason, ended.gate) == (expected, "length", verdict)


def test_an_endless_search_for_a_stop_is_given_up():
    follow = ending("[1|\n]")
    assert follow.stop(", [" + "2,\n" * 20).gate == "cut"


def test_without_a_gate_nothing_changes():
    follow = Ending(StopRule("line"), None, Tidy("f(", ")"))
    ended = present(follow.stop("a, b)\n"))
    assert (ended.text, ended.reason, ended.gate) == ("a, b", "stop", "off")


def test_places_to_cut_at_are_the_ends_of_words():
    assert [" foo(bar_1, 2"[:size] for size in places(" foo(bar_1, 2")] == [
        " foo(bar_1, 2",
        " foo(bar_1,",
        " foo(bar_1",
        " foo(",
        " foo",
    ]


def test_whoever_stops_the_gate_waits_for_one_answer_at_most():
    asked = []

    def check(text, strict=True):
        asked.append(text)
        return False

    gate = SuffixGate(Bytes(), ")\n", check=check)
    with pytest.raises(Aborted), within(60, stopped=lambda: len(asked) >= 3):
        gate.close("f(a")
    assert len(asked) == 3
