"""What was parsed and completed leaves memory again."""

import gc
import tracemalloc

import pytest

from codespec.completion.completer import Completer
from codespec.completion.ending.suffix_gate import SuffixGate
from codespec.completion.load import load_completer
from codespec.completion.request import Request
from codespec.config import Config
from codespec.config_sections import TargetConfig
from codespec.languages import by_id
from codespec.models.registry import EMBEDDED_TARGET
from codespec.syntax.parsing import TooMuchToParse, new_parser
from codespec.syntax.tree import SyntaxTree
from tests.present import present

LINES = "    value = call(first, second)\n" * 1_000
TIMES = 10


def kept_after(work):
    """Bytes that Python has in use after ``work`` beyond those before it, once it has run before."""
    tracemalloc.start()
    try:
        work()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(TIMES):
            work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["python", "javascript", "c"])
def test_texts_that_were_parsed(name):
    """py-tree-sitter keeps every piece of text that it reads: ten times 30 kB were 1 MB and more."""
    parser = new_parser(by_id(name).parser)
    if parser is None:
        pytest.skip(f"no parser of {name} is installed")
    numbers = iter(range(1_000))

    def parse():
        text = f"{LINES}    number({next(numbers)})\n"
        tree = SyntaxTree(parser, text)
        tree.with_text(200, "x")
        tree.errors_in(text.encode())

    assert kept_after(parse) < 100_000


def test_texts_whose_parse_was_given_up():
    parser = present(new_parser(by_id("c").parser))
    text = b"/* " * 40_000

    def parse():
        with pytest.raises(TooMuchToParse):
            parser.parse(text)

    parse()
    tracemalloc.start()
    try:
        parse()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 50_000
    finally:
        tracemalloc.stop()


def test_what_judged_a_text():
    """The last round of each kind of draft held the grammar, and with it the tree and all that judges a text there."""
    completer = load_completer(Config(target=TargetConfig(path=str(EMBEDDED_TARGET))))
    assert isinstance(completer, Completer)
    try:
        text = "import os\n\n\ndef first(path):\n    return os.path.join(path, \n\n\ndef second():\n    return 2\n"
        offset = text.index("(path, ") + len("(path, ")
        assert completer.complete(Request(text=text, offset=offset, language="python", path="a.py"))
        assert completer.engine.statistics.drafted > 0
        gc.collect()
        assert not [each for each in gc.get_objects() if type(each) is SuffixGate]
    finally:
        completer.close()
