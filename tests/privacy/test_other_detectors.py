"""What another detector finds: Kingfisher, whose rules are kept by others, judges texts drawn from its own patterns."""

from __future__ import annotations

import random

import pytest

from codespec.privacy.secrets import is_secret
from tests.privacy_forms.drawn import drawn
from tests.privacy_forms.import_rules import no_secret, scoped

kingfisher = pytest.importorskip("kingfisher_sdk", reason="`make attack` installs it")

EACH = 2
"""Texts of a rule."""
CONTEXTS = {"a.txt": "{}\n", "a.py": 'client.open("{}")\n', "a.yaml": 'server:\n  value: "{}"\n'}


def test_nearly_all_that_kingfisher_takes_is_found() -> None:
    rules, generator = kingfisher.Rules(), random.Random(11)
    scanner = kingfisher.Scanner(rules)
    taken, missed = 0, []
    for each in rules.metadata():
        if not each["visible"] or no_secret(each["id"]):
            continue
        pattern = scoped(rules.detail(each["id"])["pattern"])
        for text in filter(None, (drawn(pattern, generator) for _ in range(EACH))):
            for path, context in CONTEXTS.items():
                document = context.format(text)
                if any(found.visible for found in scanner.scan(document)):
                    taken += 1
                    if not is_secret(path, document):
                        missed.append(each["id"])
    assert taken > 1000
    assert len(missed) <= 0.05 * taken, sorted(set(missed))
