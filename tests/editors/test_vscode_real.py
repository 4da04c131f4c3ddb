"""VS Code with SmolLM2-135M, as a new user has it: the pictures of the documentation."""

from __future__ import annotations

import ast

from common import REAL
from test_vscode import close_page, trace

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
