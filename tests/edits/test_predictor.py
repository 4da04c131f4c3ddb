"""What a model changes of a window is offered where it does no harm."""

import pytest

from codespec.draft.ngram import BREAK
from codespec.edits.difference import hunks
from codespec.edits.formats.sweep import SweepV1
from codespec.edits.history import EditHistory
from codespec.edits.predictor import EditPredictor, brings_names
from codespec.edits.request import EditRequest, OtherDocument
from tests.edits.scripted import scripted_engine
from tests.present import present

BEFORE = """def area(width, height):
    size = width * height
    print(size)
    return size


def other():
    return 1
"""
AFTER = BEFORE.replace("    size = ", "    result = ")
RENAMED = AFTER.replace("print(size)", "print(result)").replace("return size", "return result")


def request(before=BEFORE, after=AFTER, path="a.py", language="python", **more):
    history = EditHistory()
    history.opened(path, before)
    history.changed(path, after, 1.0)
    more.setdefault("offset", after.find("result") + len("result"))
    return EditRequest(path, language, after, recent=history.recent(), budget_ms=10_000, **more)


def predicted(asked, *answers, **engine):
    predictor = EditPredictor(scripted_engine(*answers, **engine), SweepV1(), renames=False)
    return predictor.predict(asked), predictor


def test_a_rename_is_offered_as_two_small_edits():
    offer, predictor = predicted(request(), RENAMED)
    assert predictor.why == ""
    assert [(AFTER[each.start : each.end], each.text) for each in offer.edits] == [("size", "result")] * 2
    assert offer.applied(AFTER) == RENAMED
    assert (offer.line, offer.jump) == (2, False)


def test_the_old_window_and_the_last_edits_are_drafts():
    engine = scripted_engine(RENAMED)
    EditPredictor(engine, SweepV1(), renames=False).predict(request())
    ((_, window, changes),) = engine.asked
    assert window == "\n" + AFTER
    assert [tuple(bytes(each).decode() for each in change) for change in changes] == [
        ("    size = width * height\n", "    result = width * height\n")
    ]


def test_what_stands_around_the_window_is_a_draft():
    lines = "".join(f"value_{n} = {n}\n" for n in range(40))
    engine = scripted_engine(RENAMED)
    EditPredictor(engine, SweepV1(), renames=False).predict(request(lines + BEFORE, lines + AFTER))
    ((_, window, _),), (document,) = engine.asked, engine.documents
    before, after = document[: document.index(BREAK)], document[document.index(BREAK) + 1 :]
    assert bytes(before).decode() + window[1:] + bytes(after).decode() == lines + AFTER
    assert before


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (AFTER, "no edit"),
        (BEFORE, "reversal"),
        (RENAMED.replace("    result = width", "    size = width"), "reversal"),
        (RENAMED.replace("print(result)", "print(result"), "parses worse"),
        (AFTER.replace("return 1", "return  1"), "white space"),
        (RENAMED.replace("width, height", "width, width"), "compiles worse"),
    ],
)
def test_what_is_not_shown(answer, why):
    offer, predictor = predicted(request(), answer)
    assert (offer, predictor.why) == (None, why)


def test_what_was_dropped_is_not_offered_again():
    offer, _ = predicted(request(), RENAMED)
    dropped = frozenset(offer.parts)
    again, predictor = predicted(request(rejected=dropped), RENAMED)
    assert (again, predictor.why) == (None, "rejected")
    moved = request("# x\n" + BEFORE, "# x\n" + AFTER, rejected=dropped)
    assert predicted(moved, "# x\n" + RENAMED)[0] is None


def test_what_was_dropped_is_no_part_of_another_offer():
    filler = "".join(f"    x{n} = {n}\n" for n in range(8))
    before = f"def f(size):\n    print(size)\n{filler}    g(size)\n{filler}    return size\n"
    text, dropped, lines = before.replace("size", "total", 1), set(), []
    for offset in (8, len(text) // 2):
        asked = request(before, text, offset=offset, rejected=frozenset(dropped))
        offer = present(EditPredictor(scripted_engine(), SweepV1()).predict(asked))
        lines.append([text.count("\n", 0, each.start) for each in offer.edits])
        dropped |= {*offer.parts}
    assert lines == [[1, 10], [19]]


def test_where_the_name_is_left_elsewhere_that_is_a_jump():
    filler = "".join(f"x{n} = {n}\n" for n in range(40))
    before, after = "a = size\n" + filler + "print(size)\n", "a = result\n" + filler + "print(result)\n"
    between = "a = result\n" + filler + "print(size)\n"
    tail = "".join(f"x{n} = {n}\n" for n in range(30, 40))
    offer, _ = predicted(request(before, between, offset=5), tail + "print(result)\n")
    assert offer.applied(between) == after
    assert (offer.line, offer.jump) == (41, True)


def test_another_document_is_a_jump():
    other = OtherDocument("b.py", "python", "from a import size\n")
    offer, _ = predicted(request("size = 1\n", "result = 1\n", offset=6, others=(other,)), "from a import result\n")
    assert (offer.path, offer.line, offer.jump) == ("b.py", 0, True)
    assert offer.applied(other.text) == "from a import result\n"


def test_comments_and_strings_are_no_places():
    filler = "".join(f"x{n} = {n}\n" for n in range(40))
    asked = request("size = 1\n" + filler + "# size\n", "result = 1\n" + filler + "# size\n", offset=6)
    window = "".join(asked.text.splitlines(keepends=True)[:11])
    offer, predictor = predicted(asked, window)
    assert (offer, len(predictor.attempts)) == (None, 1)


def test_a_part_is_offered_where_the_rest_is_as_it_was():
    lines = "".join(f"x{n} = {n}\n" for n in range(9))
    before, after = "a = size\nprint(size)\n" + lines, "a = result\nprint(size)\n" + lines
    part = "a = result\nprint(result)\nx0 = 0\nx1 = 1\nx2 = 2\nx3"
    offer, _ = predicted(request(before, after, offset=5), part, finish="time")
    assert offer.applied(after) == "a = result\nprint(result)\n" + lines
    none, predictor = predicted(request(before, after, offset=5), "a = result\nprint(result)\nx0 =", finish="time")
    assert (none, predictor.why) == (None, "time")


def test_a_rename_needs_no_model():
    engine = scripted_engine()
    predictor = EditPredictor(engine, SweepV1())
    offer = present(predictor.predict(request()))
    assert (offer.applied(AFTER), predictor.by, predictor.attempts, engine.asked) == (RENAMED, "rename", [], [])
    dropped = request(rejected=frozenset(offer.parts))
    predictor = EditPredictor(scripted_engine(RENAMED), SweepV1())
    assert (predictor.predict(dropped), predictor.why) == (None, "rejected")


def test_a_rename_goes_on_out_of_sight():
    filler = "".join(f"    x{n} = {n}\n" for n in range(30))
    before = f"def f(size):\n{filler}    print(size)\n{filler}    return size\n"
    text = before.replace("def f(size)", "def f(total)")
    lines = []
    for _ in range(3):
        predictor = EditPredictor(scripted_engine(*[""] * 4), SweepV1())
        offer = predictor.predict(request(before, text, offset=12))
        if offer is None:
            break
        assert offer.jump
        lines.append(offer.line)
        text = offer.applied(text)
    assert (lines, text) == ([31, 62], before.replace("size", "total"))


def test_another_thing_of_the_same_name_is_left_alone():
    before = "def f(size):\n    return size\n\ndef g(size):\n    return size\n"
    after = before.replace("size", "total", 2)
    wrong = before.replace("size", "total")
    offer, predictor = predicted(request(before, after, offset=12), wrong)
    assert (offer, predictor.why) == (None, "another name")
    right = after + "# the end\n"
    assert predicted(request(before, after, offset=12), right)[0].applied(after) == right


def test_only_a_model_that_can_repeat_names_alone_is_held_to_known_ones():
    known, made_up = AFTER.replace("print(size)", "print(width)"), AFTER.replace("print(size)", "print(wdith)")
    assert not brings_names(request(), AFTER, hunks(AFTER, known))
    assert brings_names(request(), AFTER, hunks(AFTER, made_up))
    assert not brings_names(request(others=(OtherDocument("b.py", "python", "wdith"),)), AFTER, hunks(AFTER, made_up))


def test_what_was_just_typed_is_not_put_in_once_more():
    before, after = "f(a)\nf(b)\n", "f(a, 1)\nf(b)\n"
    for answer in ("f(a, 1, 1)\nf(b, 1)\n", "f(a, 1)\nf(b, 1)\n"):
        offer, _ = predicted(request(before, after, offset=6), answer)
        assert offer.applied(after) == "f(a, 1)\nf(b, 1)\n"
    offer, predictor = predicted(request(before, after, offset=6), "f(a, 1, 1)\nf(b)\n")
    assert (offer, predictor.why) == (None, "again")


def test_a_property_keeps_its_name():
    before = "function f(size) {\n  return { size }\n}\n"
    after = before.replace("f(size)", "f(total)")
    asked = request(before, after, path="a.js", language="javascript", offset=16)
    offer = present(EditPredictor(scripted_engine(), SweepV1()).predict(asked))
    assert offer.applied(after) == "function f(total) {\n  return { size: total }\n}\n"
