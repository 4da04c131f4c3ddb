"""The folder of a document among those of a workspace."""

import random
import time
from pathlib import Path

from codespec.lsp.workspace.folders import innermost, paths_of


def test_the_innermost_folder():
    chance = random.Random(4)
    for _ in range(300):
        uris = tuple(f"file:///{'/'.join(chance.choices('ab', k=chance.randint(1, 4)))}" for _ in range(4))
        path = "/" + "/".join(chance.choices("ab", k=chance.randint(1, 6)))
        around = [each for each in paths_of(uris) if Path(path).is_relative_to(each)]
        assert innermost(path, uris) == max(around, key=len, default="")


def test_what_is_no_folder_here():
    assert paths_of(("", "untitled:x", "file:///a")) == ["/a"]
    assert innermost("/b/c", ("", "file:///a", "untitled:x")) == ""


def test_a_document_is_found_among_many_folders():
    uris = tuple(f"file:///folder{number}" for number in range(20_000))
    assert innermost("/folder7/x.py", uris) == "/folder7"
    began = time.process_time()
    for _ in range(500):
        innermost("/folder19999/a/b/c.py", uris)
    assert time.process_time() - began < 20  # looking at each of them takes minutes
