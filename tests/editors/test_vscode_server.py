"""The extension and a server that is slow, loading, dead or not there: the stand-in for its models makes that happen.

It completes a line that ends in ``two lines`` with two, others with ``<its end|20>``, after ``steps=N`` in N steps;
alternatives end in one ``!`` more each.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.editors.common import STUB, WHY_NOTHING
from tests.editors.test_vscode import close_page, name, notifications, trace

STUBBED = {"codespec.max_tokens": 20, "codespec.generate_ahead": False, "codespec.prefetch": False}


@pytest.fixture
def editor(window):
    """A window whose server has the stand-in."""
    editor = window("stub", {**STUBBED, "codespec.command": STUB}, environment={"STUB_STEP_S": "0.05"})
    editor.wait_until_ready()
    yield editor
    if editor.server.settings["codespec.command"] != STUB:
        use(editor, STUB)
        editor.wait_until_ready()
        editor.run("Notifications: Clear All Notifications")


def use(editor, command: list[str]) -> None:
    """Change the setting of the server's command, by the file of settings."""
    editor.server.write({**STUBBED, "codespec.command": command})


def test_alternatives(editor):
    path = editor.open(name(), "x\n")
    editor.press("End")
    editor.type("yz")
    editor.wait_for_ghost("<xyz|20>")
    editor.press("Alt+]")
    editor.wait_for_ghost("<xyz|20>!")
    editor.picture("second")
    editor.press("Alt+]")
    editor.wait_for_ghost("<xyz|20>!!")
    editor.press("Alt+]")
    editor.wait_for_ghost("<xyz|20>")
    editor.press("Alt+[")
    editor.wait_for_ghost("<xyz|20>!!")
    editor.accept()
    assert editor.lines()[0] == "xyz<xyz|20>!!"
    assert editor.save(path) == "xyz<xyz|20>!!\n"
    editor.wait(lambda: "accepted '<xyz|20>!!' in" in editor.server.extension_log, "the server was told which")


def test_a_line_is_taken(editor):
    path = editor.open(name(), "\nlast\n")
    editor.type("two lines")
    editor.wait_for_ghost("one\ntwo\n")
    editor.picture("shown")
    editor.press("Control+Alt+ArrowRight")
    editor.wait(lambda: editor.lines()[0] == "two linesone", "a line is taken")
    editor.wait(lambda: r"accepted 'one\n' in" in editor.server.extension_log, "the server was told")
    editor.press("Escape")
    assert editor.save(path) == "two linesone\n\nlast\n"


def test_a_stale_answer_is_never_shown(editor):
    path = editor.open(name(), "\n")
    begun = editor.server.extension_log.count("begin ")
    editor.type("steps=90")
    editor.wait(lambda: editor.server.extension_log.count("begin ") > begun, "the server is at it")
    editor.record()
    editor.press("Enter")
    editor.type("abc")
    editor.wait_for_ghost("<abc|20>")
    editor.wait(lambda: re.findall("stopped", editor.server.extension_log), "the server has stopped the other")
    shown = set(editor.frames())
    assert not any("=90" in each for each in shown), shown
    editor.accept()
    assert editor.save(path) == "steps=90\nabc<abc|20>\n"


def test_a_server_that_is_still_loading(editor):
    path = editor.open(name(), "\n")
    use(editor, ["/usr/bin/env", "STUB_LOAD_S=20", *STUB])
    editor.wait(lambda: "loading" in editor.status(), "the status bar says that the model is being loaded")
    editor.type("abc")
    editor.wait(lambda: editor.lines()[0] == "abc", "typing goes on meanwhile")
    assert not editor.ghost()
    editor.picture("loading")
    editor.wait_until_ready()
    editor.wait_for_ghost("<abc|20>")
    editor.picture("loaded")
    editor.accept()
    assert editor.save(path) == "abc<abc|20>\n"


def test_what_was_typed_before_the_server_was_there_is_completed(editor):
    path = editor.open(name(), "\n")
    use(editor, ["/usr/bin/env", "bash", "-c", 'sleep 5; exec "$@"', "late", *STUB])
    editor.wait(lambda: "starting" in editor.status(), "the server is started")
    editor.type("abc")
    editor.wait_for_ghost("<abc|20>")
    editor.accept()
    assert editor.save(path) == "abc<abc|20>\n"


def test_a_model_that_cannot_be_loaded(editor):
    use(editor, ["/usr/bin/env", "STUB_LOAD_ERROR=the model is no GGUF file; fetch it again", *STUB])
    editor.wait(lambda: "the model is no GGUF file; fetch it again" in notifications(editor), "a message says why")
    editor.wait(lambda: "codespec" in editor.status(), "the status bar shows it")
    editor.picture("failed")


def test_a_program_that_does_not_exist(editor):
    use(editor, ["no-such-codespec", "serve"])
    editor.wait(lambda: 'There is no program "no-such-codespec"' in notifications(editor), "a message says so")
    assert "Open Settings" in notifications(editor)
    editor.picture("missing")


def test_a_server_that_always_dies_is_given_up(editor):
    script = "import sys; print('cannot go on', file=sys.stderr); sys.exit(7)"
    use(editor, [sys.executable, "-c", script])
    editor.wait(lambda: "The server did not start" in notifications(editor), "a message says so")
    assert "Show Log" in notifications(editor)
    editor.picture("does-not-start")


def test_a_server_that_says_nothing_can_be_replaced(editor):
    use(editor, [sys.executable, "-c", "import time; time.sleep(10_000)", "serve"])
    editor.wait(lambda: editor.server.runs("10_000"), "it runs")
    editor.wait(lambda: "starting" in editor.status(), "the status bar says that it is starting")
    editor.picture("starting")
    use(editor, STUB)
    editor.wait_until_ready()
    editor.wait(lambda: not editor.server.runs("10_000"), "it is gone")
    path = editor.open(name(), "\n")
    editor.type("abc")
    editor.wait_for_ghost("<abc|20>")
    editor.press("Tab")
    assert editor.save(path) == "abc<abc|20>\n"


def test_no_python(window, windows, tmp_path):
    windows.close()  # installation is offered once
    editor = window("bare", {"codespec.installFrom": str(tmp_path)}, path=str(tmp_path))
    editor.wait(lambda: "not installed" in editor.status(), "the status bar says so")
    editor.wait(lambda: "Its server is not installed yet" in notifications(editor), "installation is offered")
    editor.picture("offered")
    press_button(editor, "Install codespec")
    editor.wait(
        lambda: "codespec needs Python 3.10 or newer, which was not found" in notifications(editor), "what is missing"
    )
    assert "python3-venv" in notifications(editor)
    assert "Try Again" in notifications(editor)
    editor.picture("no-python")
    path = editor.open(name(), "\n")
    editor.type("abc")
    assert editor.save(path) == "abc\n"


def test_an_installation_that_fails_says_why(window, windows, tmp_path):
    windows.close()
    (tmp_path / "python3").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
    wrong = tmp_path / "empty"
    wrong.mkdir()
    editor = window("failing", {"codespec.installFrom": str(wrong)}, path=str(tmp_path))
    editor.wait(lambda: "Its server is not installed yet" in notifications(editor), "installation is offered")
    press_button(editor, "Install codespec")
    editor.wait(lambda: "making a Python environment" in notifications(editor), "progress is shown")
    editor.picture("progress")
    editor.wait(
        lambda: re.search("does not appear to be a Python project|is not installable", notifications(editor)),
        "what pip said",
    )
    assert "Try Again" in notifications(editor)
    editor.picture("failed")
    assert not list(editor.server.home.glob("user/User/globalStorage/codespec.codespec/venv"))


def press_button(editor, label: str) -> None:
    editor.page.locator(".notification-toast .monaco-button", has_text=label).first.click()


def test_the_status_bar_says_why_nothing_is_shown(editor):
    path = editor.open(name(), "x\n")
    editor.press("End")
    editor.type("unfitting")
    editor.wait(lambda: "· did not fit" in editor.status(), "the status bar says why")
    editor.picture("nothing")
    page = trace(editor)
    assert "does not fit what follows the cursor" in page.locator("body").inner_text()
    editor.picture("trace")
    close_page(editor)
    for text, short in WHY_NOTHING.items():
        editor.press("Enter")
        editor.type(text)
        editor.wait(lambda short=short: f"· {short}" in editor.status(), f"the status bar says {short}")
        editor.picture(short.replace(" ", "-"))
    editor.press("Enter")
    editor.type("steps=60")
    editor.wait(lambda: "· reading 40 %" in editor.status(), "the status bar says that the model reads")
    editor.picture("reading")
    editor.wait_for_ghost()
    editor.wait(lambda: "reading" not in editor.status() and "did not" not in editor.status(), "there is something")
    editor.save(path)
    editor.open(".env", "A=1\n")
    editor.press("End")
    editor.type("y")
    editor.wait(lambda: "· private file" in editor.status(), "the status bar says that the file is private")
    editor.picture("private")
