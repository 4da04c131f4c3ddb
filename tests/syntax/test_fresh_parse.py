"""A text put into a document: its tree is what a parse from the beginning gives. ``fresh_parse`` does this for long."""

import random
from pathlib import Path

import pytest

from codespec.languages import LANGUAGES, by_id
from codespec.syntax.parsing import new_parser
from tests.syntax.fresh_parse import check

GRAMMARS = Path(__file__).parents[1] / "grammars"
COUNT = 400


@pytest.mark.parametrize("language", [each.id for each in LANGUAGES.values() if each.parser and each.grammar])
def test_a_tree_with_a_text_is_that_of_a_fresh_parse(language):
    known = by_id(language)
    if new_parser(known.parser) is None:
        pytest.skip(f"no parser of {language} is installed")
    paths = sorted((GRAMMARS / known.grammar / "accept").iterdir())
    texts = [path.read_bytes().decode("utf-8").replace("\r", "") for path in paths]
    found = check(known, [text for text in texts if 50 < len(text) < 12_000], COUNT, random.Random(language))
    assert found == []
