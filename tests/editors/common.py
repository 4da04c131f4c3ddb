"""What the tests of all editors start from."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON = os.environ.get("CODESPEC_PYTHON", sys.executable)
REAL = [PYTHON, "-m", "codespec", "serve"]
STUB = [PYTHON, str(ROOT / "tests" / "lsp" / "stub_server.py")]
"""Completes a line that ends in ``two lines`` with two, ``nothing`` with nothing, others with ``<its end|20>``."""

WHY_NOTHING = {
    "breaking unfitting": "did not fit",
    "late": "time was up",
    "nothing": "nothing to add",
}
"""Lines behind whose end the stand-in has nothing to show, and what the status then says."""

LOOPS = "for i in range(10):\n    print(i)\n\nfor j in range(10):\n    print\n"
"""What the embedded models complete behind ``print(`` in the last line."""

CALLS = "first = total(items)\nsecond = total(items)\nthird = total(items)\nif more:\n    last = total\n"
"""Where the models are sure of what comes behind ``total(``: elsewhere noise of a CPU may decide, and the text is
another one the next time."""

PRICES = """def total(items):
    count = 0
    for item in items:
        count = count + item.price
    return count
"""
"""Where the embedded model goes on with a rename of ``count``."""

EDIT_MODEL = ROOT / "codespec" / "data" / "edit.gguf"
