"""Keys typed in a row are one edit, and edits keep their place."""

from codespec.edits.history import MOST_EDITS, MOST_LINES, EditHistory

PATH = "a.py"


def followed(*texts, step=1.0):
    history = EditHistory()
    history.opened(PATH, texts[0])
    for index, text in enumerate(texts[1:]):
        history.changed(PATH, text, index * step)
    return history


def pairs(history):
    return [(each.line, each.before, each.after) for each in history.recent()]


def test_keys_in_a_row_are_one_edit():
    history = followed("a\nb\nc\n", "a\nbx\nc\n", "a\nbxy\nc\n", "a\nbxyz\nc\n")
    assert pairs(history) == [(1, "b\n", "bxyz\n")]


def test_context_is_shown():
    (edit,) = followed(
        "".join(f"{n}\n" for n in range(10)), "".join(f"{n if n != 5 else 'x'}\n" for n in range(10))
    ).recent()
    assert (edit.context_before, edit.context_after) == ("2\n3\n4\n", "6\n7\n8\n")


def test_what_is_typed_and_deleted_is_no_edit():
    assert pairs(followed("a\nb\n", "a\nbx\n", "a\nb\n")) == []


def test_places_apart_are_edits_apart_the_last_one_last():
    lines = [f"{n}\n" for n in range(20)]
    first = [*lines[:12], "x\n", *lines[13:]]
    second = [*first[:2], "y\n", "z\n", *first[3:]]
    history = followed("".join(lines), "".join(first), "".join(second))
    assert pairs(history) == [(13, "12\n", "x\n"), (2, "2\n", "y\nz\n")]


def test_one_change_at_two_places_is_two_edits():
    lines = [f"{n}\n" for n in range(20)]
    history = followed("".join(lines), "".join("x\n" if n in (3, 9) else line for n, line in enumerate(lines)))
    assert sorted(pairs(history)) == [(3, "3\n", "x\n"), (9, "9\n", "x\n")]


def test_lines_put_in_above_move_an_edit():
    lines = [f"{n}\n" for n in range(20)]
    changed = [*lines[:12], "x\n", *lines[13:]]
    history = followed("".join(lines), "".join(changed), "".join([*changed[:2], "new\n", *changed[2:]]), step=60.0)
    assert pairs(history) == [(13, "12\n", "x\n"), (2, "", "new\n")]


def test_a_change_over_two_edits_keeps_what_stood_before_both():
    lines = ["a\n", "b\n", "c\n", "d\n", "e\n", "f\n", "g\n", "h\n"]
    one = ["a\n", "B\n", *lines[2:]]
    two = [*one[:5], "F\n", *one[6:]]
    three = ["a\n", "X\n", "h\n"]
    history = followed(*map("".join, (lines, one, two, three)))
    assert pairs(history) == [(1, "b\nc\nd\ne\nf\ng\n", "X\n")]


def test_a_deletion_has_no_lines():
    assert pairs(followed("a\nb\nc\n", "a\nc\n")) == [(1, "b\n", "")]


def test_the_last_line_without_an_end():
    assert pairs(followed("a\nb", "a\nbc")) == [(1, "b", "bc")]


def test_a_large_change_forgets_the_document_s_edits():
    text = "a\n" + "b\n" * 100
    assert pairs(followed(text, "x\n" + "b\n" * 100, "c\n" * (MOST_LINES + 1))) == []


def test_it_is_bounded():
    history = EditHistory()
    lines = [f"{n}\n" for n in range(200)]
    history.opened(PATH, "".join(lines))
    for n in range(0, 200, 4):
        lines[n] = "x\n"
        history.changed(PATH, "".join(lines), n)
    assert [each.line for each in history.recent()] == list(range(0, 200, 4))[-MOST_EDITS:]


def test_an_edit_that_grows_is_bounded():
    text, history = "", EditHistory()
    history.opened(PATH, text)
    for n in range(5 * MOST_LINES // 2):
        text += f"{n}\n"
        history.changed(PATH, text, n)
    ((line, before, after),) = pairs(history)
    assert (before, after) == ("", "".join(f"{n}\n" for n in range(line, 5 * MOST_LINES // 2)))
    assert after.count("\n") <= MOST_LINES


def test_an_edit_of_lines_that_are_others_when_the_document_is_opened_again_is_dropped():
    history = followed("a\nb\nc\n", "a\nB\nc\n")
    history.closed(PATH)
    history.opened(PATH, "a\nB\nother\n")
    assert pairs(history) == [(1, "b\n", "B\n")]
    history.closed(PATH)
    history.opened(PATH, "new\nother\n")
    history.changed(PATH, "new\nothers\n", 1.0)
    assert pairs(history) == [(1, "other\n", "others\n")]


def test_a_document_can_be_forgotten():
    history = followed("a\n", "b\n")
    history.forget(PATH)
    assert history.recent() == ()
    history.changed(PATH, "c\n", 9.0)
    assert history.recent() == ()  # followed from here on


def test_what_was_closed_stays_known():
    history = followed("a\n", "b\n")
    history.closed(PATH)
    assert pairs(history) == [(0, "a\n", "b\n")]
