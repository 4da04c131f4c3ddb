"""The JSON-Schema-Test-Suite: nothing invalid is taken. Runs where ``JSON_SCHEMA_TEST_SUITE`` names its folder
``tests/draft2020-12`` (the source distribution of the ``jsonschema`` package holds it as ``json/tests/draft2020-12``).
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import json_judge
import pytest

from codespec.errors import CodespecError
from codespec.grammar import Grammar
from codespec.grammar.check import accepts_text

FOLDER = os.environ.get("JSON_SCHEMA_TEST_SUITE")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER, reason="set JSON_SCHEMA_TEST_SUITE to the suite's folder tests/draft2020-12"),
]


def test_nothing_invalid_is_taken() -> None:
    counts: Counter[str] = Counter()
    taken: list[str] = []
    for path in sorted(Path(FOLDER or "").rglob("*.json")):
        for group in json.loads(path.read_text("utf-8")):
            counts["schemas"] += 1
            try:
                grammar = Grammar.from_json_schema(json.dumps(group["schema"]))
            except CodespecError:
                counts["refused schemas"] += 1
                continue
            for case in group["tests"]:
                accepted = any(accepts_text(grammar, text).accepted for text in json_judge.texts(case["data"]))
                counts[f"{'valid' if case['valid'] else 'invalid'}, {'taken' if accepted else 'refused'}"] += 1
                if accepted and not case["valid"]:
                    taken.append(f"{path.name}: {group['description']}: {case['description']}")
    print(dict(counts))
    assert taken == []
    assert counts["schemas"] > 400
    assert counts["refused schemas"] < 0.3 * counts["schemas"]
    assert counts["valid, taken"] > 15 * counts["valid, refused"]
