"""Next edits in a real VS Code: offered, gone to, applied, dropped, and never in the way of something else."""

from __future__ import annotations

import pytest

from tests.editors.common import EDIT_MODEL, PRICES, REAL
from tests.editors.drawn_edits import (
    AUTOMATIC,
    DRAWN,
    MANUAL,
    TEXT,
    colours,
    drawn,
    expected,
    name,
    offered,
    open_editor,
    rename,
    wait_for,
)
from tests.editors.test_vscode import close_page, page_with

FAR = "count = 0\n" + "\n" * 60 + "print(count)\n"

# Whether ghost text and an edit were ever drawn in the same frame.
WATCH = f"""() => {{
  const drawn = {DRAWN};
  window.codespecBoth = 0;
  const step = () => {{
    const ghost = document.querySelector('.editor-instance .ghost-text-decoration');
    const edit = drawn();
    if (ghost?.getClientRects().length && edit.gone.length + edit.come.length) window.codespecBoth++;
    requestAnimationFrame(step);
  }};
  requestAnimationFrame(step);
}}"""


@pytest.fixture
def editor(window):
    return open_editor(window)


def test_offered_and_applied_one_after_the_other(editor):
    path = rename(editor)
    assert drawn(editor) == {"gone": [], "come": []}, "on demand only"
    editor.press("Alt+N")
    wait_for(editor, ["count"], "total", "Tab: apply")
    editor.picture("offered")
    editor.press("Tab")
    editor.wait(lambda: editor.document()[2] == "    total += 1", "it is applied")
    wait_for(editor, ["count"], "total", "Tab: apply")
    editor.press("Tab")
    editor.wait(lambda: editor.document()[3] == "print(total)", "the one after it is applied")
    wait_for(editor, [])
    editor.picture("applied")
    editor.wait(lambda: "Ln 4, Col 12" in editor.page.locator(".statusbar").inner_text(), "the cursor is behind it")
    editor.type("!")
    editor.wait(lambda: editor.document()[3] == "print(total!)", "typing goes on there")
    editor.press("Escape", "Control+Z", "Control+Z")
    editor.wait(lambda: editor.document()[3] == "print(count)", "it is undone in one step")
    editor.save(path)


def test_gone_to_where_it_is_out_of_sight(editor):
    path = rename(editor, FAR)
    editor.press("Alt+N")
    wait_for(editor, [], "Tab: jump to line 62")
    editor.picture("hint")
    editor.press("Tab")
    wait_for(editor, ["count"], "total", "Tab: apply")
    editor.picture("there")
    assert "print(count)" in editor.document()
    editor.press("Tab")
    wait_for(editor, [])
    assert editor.save(path) == FAR.replace("count", "total")


def test_gone_to_where_the_user_has_scrolled_away(editor):
    """The cursor is beside the edit, but neither is on the screen: nothing is applied that is not seen."""
    path = offered(editor, TEXT + "\n" * 200)
    editor.press("Alt+PageDown", "Alt+PageDown")
    editor.wait(lambda: not any(editor.document()), "the edit is out of sight")
    editor.press("Tab")
    wait_for(editor, ["count"], "total", "Tab: apply")
    assert editor.document()[2] == "    count += 1"
    editor.press("Tab")
    editor.wait(lambda: editor.document()[2] == "    total += 1", "it is applied")
    editor.save(path)


def test_gone_to_where_it_is_beside_the_screen(editor):
    """In a long line, which does not wrap."""
    path = rename(editor, f"count = 0\n{'x' * 200} = count\n")
    editor.press("Alt+N")
    wait_for(editor, ["count"], "Tab: jump to line 2", "total")
    editor.press("Tab")
    wait_for(editor, ["count"], "total", "Tab: apply")
    editor.press("Tab")
    wait_for(editor, [])
    assert editor.save(path).endswith(" = total\n")


@pytest.mark.parametrize("theme", ["Dark Modern", "Light Modern"])
def test_what_goes_looks_deleted_and_what_comes_inserted(editor, theme):
    if theme != "Dark Modern":
        editor.use_theme(theme)
    path = offered(editor)
    gone, come = (
        expected(editor, "diffEditor-removedTextBackground"),
        expected(editor, "diffEditor-insertedTextBackground"),
    )
    editor.wait(lambda: close(colours(editor), gone, come), f"{gone} {come}")
    editor.picture(theme.lower().replace(" ", "-"))
    red, green, _ = towards(editor, colours(editor)["gone"][0])
    assert red > green
    red, green, _ = towards(editor, colours(editor)["come"][0])
    assert green > red
    editor.press("Escape")
    editor.save(path)
    if theme != "Dark Modern":
        editor.use_theme("Dark Modern")


def towards(editor, colour: list[int]) -> list[float]:
    """What a colour has more of than the background of the editor: red, green and blue."""
    return [one - other for one, other in zip(colour, expected(editor, "editor-background"), strict=True)]


def close(found: dict[str, list[list[int]]], gone: list[float], come: list[float]) -> bool:
    """Whether the one text that goes and the one that comes have these backgrounds, as far as a screen is exact."""
    wanted = {"gone": gone, "come": come}
    return all(
        len(found[kind]) == 1 and all(abs(a - b) <= 3 for a, b in zip(found[kind][0], wanted[kind], strict=True))
        for kind in wanted
    )


def test_dropped_and_not_offered_again(editor):
    path = offered(editor)
    editor.press("Escape")
    wait_for(editor, [])
    editor.press("Alt+N")
    wait_for(editor, ["count"], "Tab: jump to line 4", "total")
    editor.picture("another")
    editor.press("Escape")
    wait_for(editor, [])
    editor.press("Tab")
    editor.wait(lambda: editor.document()[0] != "total = 0", "Tab is itself again")
    editor.press("Control+Z")
    assert editor.save(path) == TEXT.replace("count", "total", 1)


def test_never_beside_ghost_text(editor):
    path = editor.open(name(), TEXT)
    editor.press(*["Shift+ArrowRight"] * 5)
    editor.type("total")
    editor.wait_for_ghost()
    editor.page.evaluate(WATCH)
    editor.press("Alt+N")
    wait_for(editor, ["count"], "total", "Tab: apply")
    assert not editor.ghost()
    editor.press("Alt+\\")
    editor.wait_for_ghost()
    editor.picture("ghost")
    assert drawn(editor) == {"gone": [], "come": []}
    before = editor.document()
    editor.press("Tab")
    editor.wait(lambda: editor.document()[0] != before[0], "the ghost text is accepted")
    assert editor.document()[1:] == before[1:]
    assert editor.page.evaluate("() => window.codespecBoth") == 0
    editor.save(path)


def test_never_beside_selected_text(editor):
    path = offered(editor)
    editor.press("Shift+ArrowLeft")
    wait_for(editor, [])
    editor.press("Alt+N")
    wait_for(editor, ["count"], "total", "Tab: apply")
    editor.press("Tab")
    editor.wait(lambda: editor.document()[2] == "    total += 1", "it is applied")
    wait_for(editor, ["count"], "total", "Tab: apply")
    editor.press("Escape")
    wait_for(editor, [])
    assert editor.save(path) == TEXT.replace("count", "total", 2)


def test_by_itself_where_the_settings_say_so(editor):
    editor.configure(AUTOMATIC)
    path = editor.open(name(), TEXT)
    editor.press(*["Shift+ArrowRight"] * 5)
    editor.type("nothing")  # after which the server completes nothing
    wait_for(editor, ["count"], "nothing", "Tab: apply")
    editor.picture("by-itself")
    editor.press("Tab")
    editor.wait(lambda: editor.document()[2] == "    nothing += 1", "it is applied")
    editor.press("Escape")
    editor.configure(MANUAL)
    editor.save(path)


def test_several_lines(editor):
    path = editor.open(name(), "first\ntwo lines\nreplaced\nlast\nend\n")
    editor.press("Alt+N")
    wait_for(editor, [], "one ⏎ two ⏎", "Tab: apply")
    editor.picture("added")
    editor.press("Tab")
    wait_for(editor, ["replaced", "last"], "1", "Tab: apply", "    2 ⏎ 3".strip())
    editor.picture("replaced")
    editor.press("Tab")
    wait_for(editor, [])
    assert editor.save(path) == "first\ntwo lines\none\ntwo\n1\n\t2\n3\nend\n"


def test_what_is_taken_back_within_half_a_minute_is_counted(editor):
    before = counts_of_go(editor)
    path = offered(editor, suffix=".go")
    editor.press("Tab")
    editor.wait(lambda: editor.document()[2] == "    total += 1", "it is applied")
    wait_for(editor, ["count"], "total", "Tab: apply")
    editor.press("Escape")
    wait_for(editor, [])
    editor.press("Control+Z")
    editor.wait(lambda: editor.document()[2] == "    count += 1", "it is taken back")
    editor.save(path)
    after = [count + more for count, more in zip(before, (2, 1, 1, 1), strict=True)]
    editor.wait(lambda: counts_of_go(editor) == after, "shown, applied, dropped, taken back")


def counts_of_go(editor) -> list[int]:
    """What the page of statistics says of next edits in Go, as they were when it was asked for: how many were shown,
    applied, dropped and taken back."""
    editor.run("codespec: Show Statistics")
    page = page_with(editor, "Statistics")
    row = page.locator("[aria-label='Next edits by language'] tbody tr", has=page.locator("th", has_text="go"))
    found = [int(text.split()[0]) for text in row.locator("td").all_inner_texts()]
    close_page(editor)
    return found or [0] * 4


def test_why_there_is_none(editor):
    status = editor.page.locator(".statusbar")
    path = editor.open(name(), "alone\n")
    editor.type("nothing")  # a rename of what stands nowhere else
    editor.press("Alt+N")
    editor.wait(lambda: "codespec: there is no next edit" in status.inner_text(), "there is none")
    editor.picture("none")
    editor.configure({**MANUAL, "codespec.edits.mode": "off"})
    said = "codespec: next edits are switched off (codespec.edits.mode)"
    editor.wait(lambda: editor.press("Alt+N") or said in status.inner_text(), "they are off")
    editor.picture("off")
    editor.configure(MANUAL)
    editor.save(path)


def test_in_another_file(editor):
    other = name()
    there = editor.open(other, "import a\na.count\n")
    path = rename(editor, "count = 0\n")
    editor.press("Alt+N")
    wait_for(editor, [], f"Tab: jump to {other}, line 2")
    editor.picture("hint")
    editor.press("Tab")
    editor.page.locator(f".tab.active[data-resource-name='{other}']").wait_for()
    wait_for(editor, ["count"], "total", "Tab: apply")
    editor.press("Tab")
    wait_for(editor, [])
    assert editor.save(there) == "import a\na.total\n"
    editor.page.locator(f".tab[data-resource-name='{path.name}']").click()
    assert editor.save(path) == "total = 0\n"


def test_not_in_a_file_that_has_no_part_in_it(editor):
    path = rename(editor, FAR)
    editor.press("Alt+N")
    wait_for(editor, [], "Tab: jump to line 62")
    third = editor.open(name(), "third\n")
    wait_for(editor, [])
    editor.press("Tab")
    editor.wait(lambda: editor.document()[0].strip() == "third" != editor.document()[0], "Tab is the user's")
    assert editor.save(third).strip() == "third"
    editor.page.locator(f".tab[data-resource-name='{path.name}']").click()
    editor.save(path)


@pytest.mark.skipif(not EDIT_MODEL.is_file(), reason="there is no embedded model of next edits here")
def test_a_rename_with_the_embedded_model(window):
    editor = window("real edits", {"codespec.command": REAL, "codespec.edits.budget_ms": 20_000})
    editor.wait_until_ready()
    path = editor.open(name(stem="prices"), PRICES)
    editor.press("ArrowDown", "Home", *["Shift+ArrowRight"] * 5)
    editor.type("subtotal")
    editor.wait_for_ghost()  # which goes first, also where it comes later
    editor.press("Escape")
    editor.wait_for_no_ghost()
    editor.press("Alt+N")
    editor.wait(lambda: drawn(editor)["gone"] == ["count"] * 3, "all uses are to be renamed")
    assert sorted(drawn(editor)["come"]) == ["Tab: apply", *["subtotal"] * 3]
    editor.picture("rename")
    group = editor.page.locator(".editor-group-container").first.bounding_box()
    editor.publish("next-edit.png", x=group["x"], y=group["y"], width=640, height=160)
    editor.press("Tab")
    editor.wait(lambda: editor.document()[4] == "    return subtotal", "it is applied")
    assert editor.save(path) == PRICES.replace("count", "subtotal")
