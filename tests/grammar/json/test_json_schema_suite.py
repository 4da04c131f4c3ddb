"""The official JSON-Schema-Test-Suite, required and optional parts, of five drafts: nothing invalid is taken.

``make test`` puts it into the virtual environment; ``JSON_SCHEMA_TEST_SUITE`` names another folder with its drafts.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from codespec.grammar import Grammar, GrammarError
from codespec.grammar.check import accepts_text
from tests.grammar.json import json_judge

FOLDER = Path(os.environ.get("JSON_SCHEMA_TEST_SUITE") or Path(sys.prefix) / "json-schema-suite")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the JSON-Schema-Test-Suite is missing: `make test` fetches it"),
]
DRAFTS = {  # the address of each draft, and its schemas that are refused by name at most
    "draft4": ("http://json-schema.org/draft-04/schema#", 20),
    "draft6": ("http://json-schema.org/draft-06/schema#", 39),
    "draft7": ("http://json-schema.org/draft-07/schema#", 42),
    "draft2019-09": ("https://json-schema.org/draft/2019-09/schema", 64),
    "draft2020-12": ("https://json-schema.org/draft/2020-12/schema", 74),
}
# They say that a format is only an annotation, and others of the suite that it is an assertion, as it is here.
ANNOTATIONS = "format.json"


@pytest.mark.parametrize("draft", DRAFTS)
def test_nothing_invalid_is_taken(draft: str) -> None:
    address, most_refused = DRAFTS[draft]
    counts: Counter[str] = Counter()
    taken: list[str] = []
    lost: list[str] = []
    unnamed: list[str] = []  # refusals that do not say which keyword
    for path in sorted((FOLDER / draft).rglob("*.json")):
        for group in json.loads(path.read_text("utf-8")):
            schema = group["schema"]
            if isinstance(schema, dict):
                schema = {"$schema": address, **schema}
            counts["schemas"] += 1
            try:
                grammar = Grammar.from_json_schema(json.dumps(schema))
            except GrammarError as error:
                counts["refused schemas"] += 1
                unnamed += [] if error.cause.startswith(("/", "no value satisfies")) else [str(error)]
                continue
            for case in group["tests"]:
                texts = json_judge.texts(case["data"], alike=draft != "draft4")
                accepted = any(accepts_text(grammar, text).accepted for text in texts)
                counts[f"{'valid' if case['valid'] else 'invalid'}, {'taken' if accepted else 'refused'}"] += 1
                name = f"{path.relative_to(FOLDER / draft)}: {group['description']}: {case['description']}"
                if accepted and not case["valid"]:
                    taken.append(name)
                elif case["valid"] and not accepted and path.name != ANNOTATIONS:
                    lost.append(name)
    print(draft, dict(counts), *lost, sep="\n")
    assert taken == unnamed == []
    assert counts["schemas"] > 150
    assert counts["refused schemas"] <= most_refused
    assert len(lost) <= 0.02 * counts["valid, taken"]
