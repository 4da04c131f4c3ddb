"""No depth of a document ends anything, or takes time by its square. ``python -m tests.nesting`` tries the rest."""

from __future__ import annotations

import time
import zlib

import pytest

from codespec import patience
from codespec.early_errors import TooMuchToJudge, c, javascript
from codespec.early_errors.walk import MOST_STEPS, STEPS_A_NODE, Walk
from codespec.errors import Aborted
from codespec.http.apis.fields import read_fields
from codespec.http.apis.json_shape import size_of
from codespec.http.errors import HttpError
from codespec.languages import by_id
from codespec.syntax.parsing import TooMuchToParse, new_parser
from codespec.syntax.tree import syntax_tree
from tests.nesting.documents import NESTS
from tests.nesting.work import WORK, Document
from tests.present import present

KINDS = {str(nest): nest for nest in NESTS}
PARSED = [nest for nest in NESTS if by_id(nest.language).parser and new_parser(by_id(nest.language).parser)]
ALIKE = {"javascriptreact": "javascript", "typescriptreact": "typescript", "cpp": "c", "scss": "css"}
"""Languages that share what is done with them: most kinds are tried in one of the two."""
LONG = [
    ("syntax", "typescript-objects-in-arrays"),
    ("syntax", "javascript-summands"),
    ("syntax", "javascript-iife"),
    ("gate", "typescript-unclosed-objects"),
    ("gate", "python-chain"),
    ("gate", "json-mixed"),
    ("early", "javascript-else-ifs"),
    ("early", "c-dereferences"),
    ("names", "javascript-methods"),
    ("edits", "typescript-unions"),
]
WHOLE = 60.0
"""Seconds of the processor for 400 KB: a tenth of it is usual. By the square of the depth it would be hours."""


def _sample() -> list[tuple[str, str]]:
    """Every kind in one language of those alike, each with one of the pieces of work, in turn, and half of them with
    the gate, which does most of the others."""
    works = [work for work in WORK if work not in ("grammar", "renames")]
    found = []
    for name, nest in KINDS.items():
        if nest.kind not in {other.kind for other in NESTS if other.language == ALIKE.get(nest.language)}:
            first = zlib.crc32(name.encode())
            found += [(works[first % len(works)], name)] + [("gate", name)] * (first // 16 % 2)
    return sorted(set(found))


@pytest.mark.parametrize("language", sorted({nest.language for nest in NESTS}))
def test_1200_levels(language):
    for work, name in _sample():
        if KINDS[name].language == language:
            document = Document(language, *KINDS[name].text(1200))
            began = time.process_time()
            try:
                WORK[work](document)
                assert not document.out_of_time
            except Exception as error:
                raise AssertionError(f"{work} of {name}") from error
            assert time.process_time() - began < WHOLE / 4, f"{work} of {name}"


@pytest.mark.parametrize(("work", "name"), LONG)
def test_20_000_levels_and_more(work, name):
    # The gate judges a dozen texts; in more than 10,000 nodes it gives up, which takes no time either.
    document = Document(KINDS[name].language, *KINDS[name].text(20_000 if work == "gate" else 100_000))
    began = time.process_time()
    WORK[work](document)
    assert time.process_time() - began < WHOLE


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("name", ["java-unary", "java-ifs", "javascript-typeof", "c-dereferences", "c-unary"])
def test_what_waits_for_its_end_keeps_no_grammar_busy(name, whole):
    """llguidance takes the square of the operators for the token behind them, 35 s here, and cannot be stopped."""
    document = Document(KINDS[name].language, *KINDS[name].text(100_000, whole))
    began = time.process_time()
    with patience.within(2.0):
        document.gate("auto")
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    "name",
    ["javascript-summands", "javascript-else-ifs", "typescript-unions", "c-else-ifs", "c-dereferences"],
)  # fmt: skip
def test_the_steps_of_a_walk_grow_with_the_document(name):
    checkers = {"javascript": javascript, "typescript": javascript, "c": c}
    language = KINDS[name].language
    taken = []
    for depth in (500, 1000, 2000):
        data = KINDS[name].text(depth)[0].encode()
        root = present(new_parser(by_id(language).parser)).parse(data).root_node
        walk = Walk(root, data, checkers[language].HANDLERS)
        checkers[language].check(walk, root, "")
        walk.run()
        taken.append(MOST_STEPS + STEPS_A_NODE * root.descendant_count - walk.steps)
    assert 0 < taken[2] <= 2.1 * taken[1] <= 4.5 * taken[0]


@pytest.mark.parametrize("name", ["javascript-vars-in-blocks", "javascript-labels"])
def test_the_steps_of_a_walk_have_a_bound(name):
    """These checks take steps by the square of the depth."""
    language = by_id(KINDS[name].language)
    with pytest.raises(TooMuchToJudge):
        present(syntax_tree(language, KINDS[name].text(4000)[0])).all_early_errors(language, "")


def test_a_text_that_makes_a_document_too_much_to_judge_does_not_fit():
    language = by_id("javascript")
    around = "{ let a = 1; "
    before, text, after = "", around * 1500 + "var b = 2;" + " }" * 1500, "\nx = 1;\n"
    whole = present(syntax_tree(language, before + after))
    early = whole.early_errors(language, 0, "")
    tree = whole.with_text(0, text)
    assert [error.kind for error in tree.early_errors_added(early)] == ["too much to judge"]
    # As it is, the document cannot be judged: texts in it are judged by the parser and by their signs alone.
    early = tree.early_errors(language, len(text), "")
    assert tree.with_text(len(text), "y = 2;").early_errors_added(early) == []


@pytest.mark.parametrize("depth", [201, 900, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_a_body_that_is_nested_too_deeply_is_told_so(depth, opening, closing):
    body = f'{{"a": {opening * depth}1{closing * depth}}}'.encode()
    with pytest.raises(HttpError, match="nested more than 200 levels"):
        read_fields(body, size_of(body)[1])


def test_a_parse_has_a_bound():
    """The parser of C goes back to the beginning at every sign of a comment that nothing closes."""
    text = "int a;\n" + "/* " * 4000
    began = time.thread_time()
    assert syntax_tree(by_id("c"), text) is None
    assert time.thread_time() - began < 10
    parser = present(new_parser("tree_sitter_c"))
    with pytest.raises(TooMuchToParse):
        parser.parse(text.encode())
    assert not parser.parse(b"int a;\n").root_node.has_error


@pytest.mark.parametrize("wanted", [True, False])
def test_a_parse_ends_with_the_time_of_the_work_that_it_is_for(wanted):
    parser = present(new_parser("tree_sitter_c"))
    began = time.thread_time()
    ends = pytest.raises(patience.OutOfTime if wanted else Aborted)
    with patience.within(0.05 if wanted else 60.0, lambda: not wanted), ends:
        parser.parse(b"int a;\n" + b"/* " * 4000)
    assert time.thread_time() - began < 1
    assert not parser.parse(b"int a;\n").root_node.has_error


@pytest.mark.parametrize(
    "text",
    [
        "- " * 300 + "1\n",
        "? " * 300 + "1\n",
        ": " * 300 + "1\n",
        "".join(" " * level + "a:\n" for level in range(300)) + " " * 300 + "b\n",
        "".join(" " * level + "a:\n" + " " * level + "-\n" for level in range(130)),
        "".join("  " * level + "- - a:\n" for level in range(130)),
        "a:\n" + "\r".join(" " * level + "-" for level in range(300)),
        "\t- " * 300 + "1\n",
    ],
)
def test_yaml_that_its_parser_has_no_room_for(text):
    """It would end the process."""
    assert syntax_tree(by_id("yaml"), text) is None
    Document("yaml", text, len(text) // 2).gate()


@pytest.mark.parametrize("end", ["\n", "\r"])
def test_python_that_its_parser_has_no_room_for(end):
    """It would end the process, too; Python itself takes 100 levels."""
    for levels, parsed in ((99, True), (600, False)):
        text = end.join(" " * level + "if x:" for level in range(levels)) + end + " " * levels + "pass" + end
        assert (syntax_tree(by_id("python"), text) is not None) is parsed
        Document("python", text, len(text) // 2).gate()


def test_yaml_of_usual_depth():
    pytest.importorskip("tree_sitter_yaml")
    text = "".join("  " * level + "a:\n" for level in range(40)) + "".join(
        f"{'k' * size}: {'v' * 80}\n" for size in range(1, 90)
    )
    assert syntax_tree(by_id("yaml"), text) is not None
