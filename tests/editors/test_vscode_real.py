"""VS Code with SmolLM2-135M, as a new user has it: the pictures of the documentation."""

from __future__ import annotations

import ast
import os

from tests.editors.common import CALLS, REAL
from tests.editors.test_vscode import close_page, name, notifications, to_the_last_line, trace
from tests.real_model import as_installed

ACCOUNT = '''"""Bank accounts."""

from dataclasses import dataclass, field


@dataclass
class Account:
    owner: str
    balance: float = 0.0
    history: list[float] = field(default_factory=list)

    def deposit(self, amount: float) -> None:
        if amount <= 0:
            raise ValueError("the amount must be positive")
        self.balance += amount
        self.history.append(amount)

'''


def test_a_method_like_the_one_above(window, smollm2):
    settings = {"codespec.target.path": str(smollm2), "codespec.time_budget_ms": 20_000}
    editor = window("real model", {"codespec.command": REAL, **settings})
    editor.wait_until_ready()
    path = editor.open("bank.py", ACCOUNT)
    editor.press("Control+End")
    editor.type("    def withdraw(self, amount: float) -> None:\n")
    shown = editor.wait_for_ghost()
    editor.publish("vscode.png")
    editor.picture("shown")
    page = trace(editor)
    assert "smollm2-135m" in page.locator("body").inner_text()
    editor.picture("trace")
    editor.publish("trace.png")
    close_page(editor)
    editor.press("Alt+\\")
    editor.wait_for_ghost(shown)
    editor.accept()
    text = editor.save(path)
    assert shown.strip().splitlines()[0] in text
    assert [each.name for each in ast.walk(ast.parse(text)) if isinstance(each, ast.FunctionDef)] == [
        "deposit",
        "withdraw",
    ]


def choose_from_the_menu(editor):
    editor.wait_until_ready()
    editor.run("codespec: Get Another Model")
    row = editor.page.locator(".quick-input-list .monaco-list-row", has_text="smollm2-135m")
    row.wait_for(timeout=60_000)
    row.click()


def test_a_model_from_the_menu_is_fetched_and_used(window, smollm2, tmp_path):
    editor = window("menu", {"codespec.command": REAL}, environment=as_installed(tmp_path / "packages", smollm2))
    path = editor.open(name(), CALLS)
    choose_from_the_menu(editor)
    editor.wait(lambda: "smollm2-135m" in notifications(editor), "a bar tells how far it is")
    editor.picture("fetching")
    assert "Cancel" in notifications(editor)
    editor.wait(lambda: "smollm2-135m ·" in editor.status(), "it is in use", 180)
    editor.wait(lambda: "smollm2-135m" not in notifications(editor), "the bar is gone")
    editor.picture("in-use")
    to_the_last_line(editor)
    editor.type("(")
    editor.wait_for_ghost()
    editor.save(path)


def test_a_model_from_the_menu_without_a_network(window, tmp_path):
    gone = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    editor = window("menu without a network", {"codespec.command": REAL}, environment=gone)
    path = editor.open(name(), CALLS)
    choose_from_the_menu(editor)
    editor.wait(lambda: "pip cannot fetch" in notifications(editor), "a message tells why")
    editor.picture("no-network")
    to_the_last_line(editor)
    editor.type("(")
    editor.wait_for_ghost()  # of the model that was there
    editor.save(path)
