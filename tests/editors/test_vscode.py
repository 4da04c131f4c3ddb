"""The extension in a real VS Code with the embedded models: what is on the screen, in the document, in the file."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal

import pytest

from tests.editors.common import CALLS, REAL
from tests.present import present

SEARCHES = """def first(items):
    for item in items:
        if item.ready:
            return item
    return None


def last(items):
    for item in reversed(items):
        if item.ready:
            return item
    return None


"""
NUMBERS = itertools.count(1)


@pytest.fixture
def editor(window):
    """A window with the real server, whose models are loaded."""
    editor = window("real", {"codespec.command": REAL, "codespec.max_tokens": 48})
    editor.wait_until_ready()
    return editor


def name(suffix: str = "py") -> str:
    return f"example{next(NUMBERS)}.{suffix}"


def to_the_last_line(editor, above: int = 1) -> None:
    editor.press("Control+End", *["ArrowUp"] * above, "End")


def test_ghost_text_is_accepted_and_saved(editor):
    path = editor.open(name(), CALLS)
    to_the_last_line(editor)
    editor.type("(")
    shown = editor.wait_for_ghost()
    line = editor.lines()[4]  # the editor has closed the parenthesis: the text stands in the middle of the line
    assert line.startswith(f"    last = total({shown.partition(chr(10))[0]}")
    assert path.read_text() == CALLS
    editor.picture("shown")
    editor.accept()
    assert editor.save(path) == CALLS.replace("    last = total\n", f"{line}\n")
    editor.picture("saved")
    editor.press("Control+Z")
    undone = ("    last = total()", "    last = total(")
    editor.wait(lambda: editor.document()[4] in undone, "it is undone in one step")
    editor.save(path)


def test_several_lines(editor):
    path = editor.open(name(), SEARCHES)
    editor.press("Control+End")
    found = ""
    for start in ("def find(items):\n", "for", " item in", " items", ":"):
        editor.type(start)
        found = editor.wait_for_ghost()
        if "\n" in found:
            break
        editor.press("Escape")
        editor.wait_for_no_ghost()
    assert "\n" in found, "the embedded models had several lines to say nowhere"
    editor.picture("shown")
    before = editor.lines()
    editor.accept()
    saved = editor.save(path)
    rest = found.split("\n")
    assert saved.startswith("\n".join(before[:-1]))
    assert [each.rstrip() for each in saved.split("\n")][-len(rest) + 1 :] == [each.rstrip() for each in rest[1:]]
    editor.picture("accepted")


def test_in_the_middle_of_a_line(editor):
    path = editor.open(name(), "def area(width, height):\n    return \n\nprint(area(1, ) + 2)\n")
    editor.press("Control+End", "ArrowUp", "Home", *["ArrowRight"] * len("print(area(1, "))
    editor.press("Alt+\\")
    shown = editor.wait_for_ghost()
    assert editor.lines()[3] == f"print(area(1, {shown}) + 2)"
    editor.picture("shown")
    editor.accept()
    assert editor.save(path).split("\n")[3] == f"print(area(1, {shown}) + 2)"


def test_word_by_word_is_told_to_the_server(editor):
    in_part = counts(editor).get("in part", 0)
    path = editor.open(name(), SEARCHES)
    editor.press("Control+End")
    editor.type("def find(items):\nfor")
    shown = editor.wait_for_ghost()
    words = len(shown.split())
    assert words > 1, f"{shown!r} is only one word"
    row = len(editor.lines()) - 1
    before = editor.lines()[row].removesuffix(shown.partition("\n")[0].rstrip())
    taken = ""
    while not taken.strip():  # white space before a word counts as one
        left = editor.ghost()
        editor.press("Control+ArrowRight")
        editor.wait(lambda before=left: editor.ghost() and editor.ghost() != before, "some is taken, the rest is shown")
        left = editor.ghost()
        taken = shown[: len(shown) - len(left)]
        assert shown == taken + left
    assert len(taken.split()) == 1
    assert editor.lines()[row].rstrip() == (before + shown.partition("\n")[0]).rstrip()
    editor.picture("a-word")
    editor.press("Escape")
    editor.wait_for_no_ghost()
    assert editor.save(path) == SEARCHES + "def find(items):\n    for" + taken
    editor.wait(lambda: counts(editor).get("in part", 0) == in_part + 1, "the server has counted it")


def test_dismissed(editor):
    dismissed = counts(editor).get("dismissed", 0)
    path = editor.open(name(), CALLS)
    to_the_last_line(editor)
    editor.type("(")
    editor.wait_for_ghost()
    editor.press("Escape")
    editor.wait_for_no_ghost()
    editor.picture("dismissed")
    assert editor.save(path) == CALLS.replace("    last = total\n", "    last = total()\n")
    editor.wait(lambda: counts(editor).get("dismissed", 0) == dismissed + 1, "the server has counted it")


def test_typing_what_is_shown_does_not_flicker(editor):
    path = editor.open(name(), SEARCHES)
    editor.press("Control+End")
    editor.type("def find(items):\nfor")
    shown = editor.wait_for_ghost()
    typed = shown.partition("\n")[0].rstrip()[: 12 if "\n" in shown else -1]
    assert len(typed) >= 4, f"{shown!r} is too short to be typed along"
    editor.record()
    for character in typed:
        editor.type(character)
        left = shown[len(typed) :]
    editor.wait_for_ghost(left)
    frames = editor.frames()
    print(f"{len(frames)} frames while {len(typed)} characters of {len(shown)} were typed")
    assert all(frames), f"no ghost text in {sum(not each for each in frames)} of {len(frames)} frames"
    assert all(shown.endswith(each) for each in frames), set(frames)
    editor.press("Escape")
    assert editor.save(path) == SEARCHES + "def find(items):\n    for" + typed


def test_another_draft_the_same_text(editor):
    path = editor.open(name(), CALLS)
    to_the_last_line(editor)
    editor.type("(")
    shown = editor.wait_for_ghost()
    editor.press("Escape")
    editor.open_menu("Draft for python")
    editor.wait(
        lambda: "no draft model" in editor.page.locator(".quick-input-list").inner_text(), "the drafts are listed"
    )
    editor.picture("drafts")
    editor.choose("none")
    editor.wait(lambda: "Draft: n-grams" in editor.told(), "the status bar says so")
    assert editor.server.settings["codespec.language"] == {"python": {"draft": "none"}}
    editor.press("Backspace")
    editor.type("(")
    editor.wait_for_ghost(shown)
    editor.picture("without-a-draft")
    editor.open_menu("Draft for python")
    editor.choose("the language's own")
    editor.wait(lambda: "Draft: python" in editor.told(), "the draft is back")
    editor.press("Escape")
    editor.save(path)


def test_a_grammar_for_one_file(editor):
    text = '{\n  "items": [\n    {"id": 1, "label": "a"},\n    {"id": 2, "label": "b"},\n    \n  ]\n}\n'
    path = editor.open(name("json"), text)
    editor.open_menu("Grammar for This File")
    editor.wait(
        lambda: editor.page.locator(".quick-input-list .monaco-list-row").count() > 4, "the grammars are listed"
    )
    editor.page.keyboard.insert_text("json")
    editor.picture("grammars")
    editor.choose("json")
    editor.wait(lambda: editor.page.locator(".quick-input-widget").is_hidden(), "the list is closed")
    editor.focus()
    editor.press(*["ArrowDown"] * 4, "End")
    editor.press("Alt+\\")
    shown = editor.wait_for_ghost()
    editor.picture("shown")
    editor.accept()
    saved = editor.save(path)
    assert saved == text.replace("\n    \n", f"\n    {shown}\n")
    json.loads(saved)
    assert fact(trace(editor), "Grammar") == "json"
    close_page(editor)


def completes_a_call_again(editor):
    """Type the bracket behind the cursor anew, see ghost text, and take both away."""
    editor.press("Backspace")
    editor.type("(")
    editor.wait_for_ghost()
    editor.press("Escape", "Backspace")


def test_paused_here_and_for_a_language(editor):
    path = editor.open(name(), CALLS)
    to_the_last_line(editor)
    for pause, resume in (("Pause Here", "Resume Here"), ("Pause for python", "Resume for python")):
        editor.open_menu(pause)
        editor.wait(lambda: "·" not in editor.status() and "codespec" in editor.status(), "the status bar shows it")
        editor.record()
        editor.type("(")
        editor.press("Alt+\\")
        editor.wait(lambda: "()" in editor.lines()[4], "what was typed is shown")
        editor.picture("paused")
        editor.open_menu(resume)
        editor.wait_until_ready()
        assert not any(editor.frames())
        completes_a_call_again(editor)
    editor.save(path)


def test_paused_for_a_while(editor):
    path = editor.open(name(), CALLS)
    to_the_last_line(editor)
    editor.open_menu("Pause for a While")
    editor.page.locator(".quick-input-list .monaco-list-row", has_text="An Hour").click()
    editor.wait(lambda: "·" not in editor.status() and "codespec" in editor.status(), "the status bar shows it")
    editor.picture("snooze")
    editor.type("(")
    editor.press("Alt+\\")
    editor.wait(lambda: "Completions are paused here" in notifications(editor), "the key says why nothing comes")
    editor.page.locator(".notification-toast .monaco-button", has_text="Resume").first.click()
    editor.wait_until_ready()
    completes_a_call_again(editor)
    editor.save(path)


def test_models_that_fit_this_machine(editor):
    path = editor.open(name(), CALLS)
    editor.wait_until_ready()
    editor.run("codespec: Get Another Model")
    row = editor.page.locator(".quick-input-list .monaco-list-row", has_text="smollm2-135m")
    row.wait_for(timeout=60_000)
    editor.picture("models")
    said = row.inner_text()
    assert "98 MB" in said
    assert "tokens/s" in said
    assert "Apache-2.0" in said
    editor.press("Escape")
    editor.save(path)


def test_the_server_dies_and_comes_back(editor):
    path = editor.open(name(), CALLS)
    to_the_last_line(editor)
    editor.type("(")
    shown = editor.wait_for_ghost()
    [pid] = editor.server.server_pids()
    os.kill(pid, signal.SIGKILL)
    editor.wait(lambda: "restarting" in editor.status() or "starting" in editor.status(), "the status bar tells")
    editor.wait(lambda: "ended unexpectedly" in notifications(editor), "a message tells")
    editor.picture("dead")
    editor.type("i")  # nothing keeps the user from typing
    editor.wait(lambda: "total(i" in editor.lines()[4], "typing goes on")
    editor.wait_until_ready()
    editor.wait_for_ghost()  # what was typed meanwhile is completed
    editor.picture("back")
    assert pid not in editor.server.server_pids()
    editor.press("Escape")
    editor.wait_for_no_ghost()
    editor.press("Backspace")
    editor.press("Alt+\\")
    editor.wait_for_ghost(shown)
    editor.accept()
    assert editor.save(path).startswith(CALLS[:-1] + "(" + shown.partition("\n")[0])
    editor.run("codespec: Restart the Server")  # forgets its deaths: after six in a row it is given up
    editor.wait_until_ready()
    editor.run("Notifications: Clear All Notifications")


def test_the_trace_tells_where_each_token_came_from(editor):
    path = editor.open(name(), SEARCHES)
    editor.press("Control+End")
    editor.type("def find(items):\nfor")
    shown = editor.wait_for_ghost()
    page = trace(editor)
    editor.picture("trace")
    written = page.evaluate(
        "() => { const text = document.querySelector('pre.text').cloneNode(true);"
        " text.querySelectorAll('del, i').forEach((each) => each.remove()); return text.textContent; }"
    )
    assert shown.rstrip() in written
    kinds = set(page.evaluate("() => [...document.querySelectorAll('pre .token')].map((each) => each.classList[1])"))
    assert "target" in kinds
    assert kinds <= {"target", "model", "ngram", "forced", "rejected"}
    rows = page.locator("tbody tr", has=page.locator("td.code")).all_inner_texts()
    assert len(rows) == int(present(re.search(r"in (\d+) passes", page.locator("p").first.inner_text()))[1])
    assert page.evaluate("() => document.querySelector('meta[http-equiv]').content").startswith("default-src 'none'")
    assert page.locator("body script").count() == 0
    editor.press("Tab")  # the page is walked through by keys
    focused = "() => document.activeElement.getAttribute('aria-label')"
    editor.wait(lambda: page.evaluate(focused) == "The completion", "the text has the focus")
    close_page(editor)
    editor.save(path)


def test_settings_reach_the_server(window):
    draft = {"python": {"draft": "draft-go"}}
    settings = {"codespec.max_tokens": 3, "codespec.language": draft, "codespec.showLatency": True}
    editor = window("few", {"codespec.command": REAL, **settings})
    editor.wait_until_ready()
    path = editor.open(name(), SEARCHES)
    editor.press("Control+End")
    editor.type("def find(items):\nfor")
    editor.wait_for_ghost()
    editor.wait(lambda: "Draft: go" in editor.told(), "the draft of the settings is in force")
    editor.wait(lambda: re.search(r"· \d+ ms$", editor.status()), "the status bar says how long it took")
    assert re.search(r"Last completion: \d+ ms", editor.told())
    page = trace(editor)
    assert int(present(re.search(r"(\d+) tokens in", page.locator("p").first.inner_text()))[1]) <= 3
    close_page(editor)
    editor.save(path)


def test_activation_is_quick(editor):
    [ms] = map(float, re.findall(r"activated in ([\d.]+) ms", editor.server.extension_log))
    editor.run("codespec: Show the Log")
    longest = editor.wait(
        lambda: re.findall(r"longest step on this thread so far: (.+)", editor.server.extension_log), "log"
    )
    shown = editor.page.locator(".part.panel .view-lines")
    editor.wait(lambda: "longest step" in shown.first.inner_text().replace("\u00a0", " "), "the log is on the screen")
    editor.wait_until_ready()  # the status is still that of the document
    print(f"activated in {ms} ms; longest step on the extension host's thread: {longest[-1]}")
    editor.picture("log")
    editor.run("View: Hide Panel")
    assert ms < 1_000  # the bar is 100 ms on an idle machine; this one may be busy


def notifications(editor) -> str:
    return " ".join(editor.page.locator(".notification-toast").all_inner_texts())


def trace(editor):
    editor.run("codespec: Show the Trace of the Last Completion")
    return page_with(editor, "Where each token came from")


def page_with(editor, heading: str):
    """The frame of an extension's page."""

    from playwright.sync_api import Error

    def find():
        for frame in editor.page.frames:
            with contextlib.suppress(Error):  # it is gone by now
                if frame.locator("h1", has_text=heading).count():
                    return frame
        return None

    return editor.wait(find, f"a page {heading!r}")


def close_page(editor) -> None:
    tab = editor.page.locator(".tab", has_text="codespec: ")
    tab.first.click(button="middle")
    editor.wait(lambda: tab.count() == 0, "the page is closed")


def fact(page, name: str) -> str:
    """What a page's list says of something."""
    return page.locator("dt", has_text=name).locator("xpath=following-sibling::dd[1]").inner_text()


def counts(editor) -> dict[str, int]:
    """What the page of statistics says of Python."""
    editor.run("codespec: Show Statistics")
    page = page_with(editor, "Statistics")
    head = page.locator("thead th").all_inner_texts()[1:]
    row = page.locator("tbody tr", has=page.locator("th", has_text="python")).locator("td").all_inner_texts()
    close_page(editor)
    return {
        title.lower(): int(present(re.match(r"\d*", count))[0] or 0) for title, count in zip(head, row, strict=False)
    }
