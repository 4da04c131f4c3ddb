"""Real files have no early errors; of statements put into them, codespec refuses those that the compilers refuse."""

import random
import shutil

import pytest

from codespec.early_errors import early_errors
from codespec.languages import by_id
from codespec.syntax.tree import syntax_tree
from tests.early_errors import compilers, samples
from tests.present import present

FILES = 30
INSERTIONS = 6


@pytest.fixture(params=["python", "javascript"])
def language(request):
    return request.param


@pytest.fixture
def found(language):
    """Files that have no errors at all."""
    texts = []
    for path, text in samples.files(language, FILES, random.Random(7)):
        tree = syntax_tree(by_id(language), text)
        if tree is not None and not tree.problems.count:
            texts.append((path, text, tree))
    if not texts:
        pytest.skip(f"no files of {language} here")
    return texts


def all_errors(language, text, path):
    tree = present(syntax_tree(by_id(language), text))
    return early_errors(by_id(language), tree._root, text.encode(), str(path))


def is_fine(language, path, text):
    """Whether nothing is wrong with a file: the standard library has some that are broken on purpose."""
    return language != "python" or compilers.python(text) is None


def test_real_files_have_none(language, found):
    wrong = {str(path): all_errors(language, text, path) for path, text, _ in found if is_fine(language, path, text)}
    assert {path: errors for path, errors in wrong.items() if errors} == {}


def test_what_a_text_brings_is_what_the_whole_file_has_more(language, found):
    """Looking only into what a text touches, and into what it moved, finds the same as looking into everything."""
    chooser = random.Random(11)
    differing = []
    judged = 0
    for path, text, tree in found:
        if not is_fine(language, path, text):
            continue
        for offset, added in samples.insertions(language, text, INSERTIONS, chooser):
            new = tree.with_text(offset, added)
            if new.problems.count:
                continue
            judged += 1
            early = tree.early_errors(by_id(language), offset, str(path))
            # Of a whole file nobody knows what it was before.
            short = {error.kind for error in new.early_errors_added(early, strict=False)} - {
                "import or export in a CommonJS module"
            }
            whole = {error.kind for error in all_errors(language, text[:offset] + added + text[offset:], path)}
            # Of Python, whose compiler stops at the first error, only whether there is one.
            if bool(short) != bool(whole) if language == "python" else short != whole:
                differing.append((str(path), added, short, whole))
    assert judged > 40
    assert differing == []


def test_verdicts_are_those_of_the_compiler(language, found):
    """At most one in a hundred texts that a compiler takes is refused, and at most five of those that it refuses are
    taken."""
    if language == "javascript" and shutil.which("node") is None:
        pytest.skip("no node")
    node = compilers.Node("javascript_errors.js") if language == "javascript" else None
    judge = node.javascript if node else lambda text, before: compilers.python(text)
    chooser = random.Random(13)
    counts = {(refused, ours): 0 for refused in (False, True) for ours in (False, True)}
    for path, text, tree in found:
        if judge(text, text) is not None:
            continue
        for offset, added in samples.insertions(language, text, INSERTIONS, chooser):
            new = tree.with_text(offset, added)
            if not new.problems.count:
                early = tree.early_errors(by_id(language), offset, str(path))
                refused = judge(text[:offset] + added + text[offset:], text) is not None
                counts[refused, bool(new.early_errors_added(early))] += 1
    if node:
        node.close()
    assert counts[True, True] > 20
    assert counts[False, True] <= 0.01 * (counts[False, True] + counts[False, False])
    assert counts[True, False] <= 0.05 * (counts[True, True] + counts[True, False])
