"""Healing for every vocabulary: the tokens before a lead are those of the whole text, whatever follows the cursor.

The texts are real files, the vocabularies those of models that people run: the embedded one, SmolLM2's, and the ones
that the source distribution of llama-cpp-python carries. ``CODESPEC_PLACES=5000`` tries as many places in each.
"""

import os
import random
import re
import sysconfig
from pathlib import Path

import pytest

from codespec.completion.lead import LONGEST_LEAD, lead_of
from codespec.llama.model import Model
from codespec.models.registry import EMBEDDED_TARGET
from tests.present import present
from tests.vocabularies import skip_without, vocabulary_files

PLACES = int(os.environ.get("CODESPEC_PLACES", "400"))
ROOT = Path(__file__).parents[2]
FOLDERS = {
    "*.py": (ROOT / "codespec", Path(sysconfig.get_path("purelib")) / "openai", Path(sysconfig.get_path("stdlib"))),
    "*.ts": (ROOT / "editors",),
    "*.lua": (ROOT / "editors",),
    "*.md": (ROOT / "docs",),
    "*.gbnf": (ROOT / "grammars",),
    "*.json": (ROOT / "examples", ROOT / "tests"),
    "*.h": (Path("/usr/include"), Path(sysconfig.get_path("include"))),
}
EACH = 10
"""Files of a folder."""
SEEN = 1500
"""Characters before the cursor that are tokenized."""
LONG = re.compile(r"([!-/:-@\[-`{-~]{16,}\w*|[!-/:-@\[-`{-~]*\w{24,}|\s{96,})\Z")
"""Rulers, long words and much white space: their tokens depend on all of them."""


def texts():
    chance = random.Random(3)
    for pattern, folders in FOLDERS.items():
        for folder in folders:
            files = sorted(each for each in folder.rglob(pattern) if "node_modules" not in each.parts)
            for path in chance.sample(files, min(EACH, len(files))):
                yield path.read_text("utf-8", "ignore").replace("\r\n", "\n")[:200_000]


TEXTS = [text for text in texts() if text.strip()]


def places(seed):
    """Cursors anywhere in a text, at the start of a line, and behind its indentation."""
    chance = random.Random(seed)
    for number in range(PLACES):
        text = chance.choice(TEXTS)
        offset = chance.randrange(len(text) + 1)
        if number % 3:
            offset = text.rfind("\n", 0, offset) + 1
        if number % 3 == 2:
            offset += present(re.compile(r"[ \t]*").match(text, offset)).end() - offset
        yield text, offset


def listed(prefix):
    """Why a place may break a token: no border near the cursor is one whatever follows."""
    return LONG.search(prefix[-400:]) is not None


@pytest.mark.parametrize("path", vocabulary_files())
def test_tokens_of_prompt_and_text_are_those_of_the_whole(request, path):
    skip_without(path)
    path = {"embedded": EMBEDDED_TARGET}.get(path) or (
        request.getfixturevalue("smollm2") if path == "smollm2" else path
    )
    broken, unhealed = [], 0
    with Model(path, vocabulary_only=True) as model:
        vocabulary = model.vocabulary
        for text, offset in places(7):
            start = text.rfind("\n", 0, max(0, offset - SEEN)) + 1
            prefix = text[max(start, offset - 2 * SEEN) : offset]
            whole = vocabulary.tokenize(prefix + text[offset : offset + SEEN // 5])
            lead = lead_of(prefix, vocabulary)
            assert prefix.endswith(lead)
            assert len(lead.lstrip()) <= LONGEST_LEAD
            before = vocabulary.tokenize(prefix[: len(prefix) - len(lead)])
            if before != whole[: len(before)] and not listed(prefix):
                broken.append((prefix[-40:], text[offset : offset + 20], lead))
            before = vocabulary.tokenize(prefix)
            unhealed += before != whole[: len(before)]
    assert not broken
    assert unhealed > PLACES // 20  # the places are such that healing is needed
