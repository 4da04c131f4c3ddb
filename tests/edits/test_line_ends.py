"""A document keeps its line ends; what the model sees has line feeds."""

import pytest

from codespec.edits.formats.sweep import SweepV1
from codespec.edits.history import EditHistory
from codespec.edits.predictor import EditPredictor
from codespec.edits.request import EditRequest
from tests.edits.scripted import ScriptedEngine


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_carriage_returns(end):
    def crlf(text):
        return text.replace("\n", end)

    before, after = "size = 1\nx = 2\nprint(size)\n", "total = 1\nx = 2\nprint(size)\n"
    history = EditHistory()
    history.opened("a.py", crlf(before))
    history.changed("a.py", crlf(after), 1.0)
    engine = ScriptedEngine("total = 1\nx = 2\nif x:\n    print(total)\n")
    asked = EditRequest("a.py", "python", crlf(after), 5, history.recent(), budget_ms=10_000)
    offer = EditPredictor(engine, SweepV1(), renames=False).predict(asked)
    assert offer.applied(asked.text) == crlf("total = 1\nx = 2\nif x:\n    print(total)\n")
    assert "\r" not in engine.asked[0][0]
