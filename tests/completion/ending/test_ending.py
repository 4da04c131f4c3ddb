"""What becomes of a generated text, before and after: the cases in ``cases/``, one file for each rule.

A case has a ``document`` with the cursor at █, the ``raw`` text of the model, and the ``expected`` completion. ``end``
is how the generation ended: ``token`` (the model's end token, the default), ``length`` or ``time``. ``gate`` is as in
the settings. They go through what the completer asks: the document's tree, the stop rule, the gate, and the ending.
"""

import random
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from codespec.completion.ending.ending import Ending, GateOutcome
from codespec.completion.ending.stream import TextStream, follow
from codespec.completion.open_documents import OpenDocuments
from codespec.languages import by_id
from codespec.protocols import Chunk, FinishReason
from codespec.syntax.tree import syntax_tree
from tests.fakes import FakeVocabulary
from tests.present import present

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).with_name("cases")
CURSOR = "█"
REASONS: dict[str, FinishReason] = {"token": "stop", "length": "length", "time": "time"}


KNOWN = {
    f"{path.stem}: {case['name']}": case
    for path in sorted(FOLDER.glob("*.toml"))
    for case in tomllib.loads(path.read_text("utf-8"))["case"]
}
CASES = [pytest.param(case, id=name) for name, case in KNOWN.items()]


def outcome(case, size):
    """What comes of the case's text when it comes ``size`` characters at a time: the text, how it ended, whether the
    model said anything, and what another attempt begins with."""
    prefix, _, suffix = case["document"].partition(CURSOR)
    documents = OpenDocuments(SimpleNamespace(vocabulary=FakeVocabulary()))
    gate = case.get("gate", "window")
    cursor = documents.context_at("a", by_id(case["language"]), "none", prefix + suffix, len(prefix), gate)
    without: GateOutcome = "unavailable" if cursor.unavailable else "off"
    ending = Ending(cursor.rule, cursor.gate, cursor.tidy, without, cursor.names)
    raw = cursor.lead + case["raw"]
    stream = TextStream(ending)
    pieces = [raw[start : start + size] for start in range(0, len(raw), size)]
    chunks = [*map(Chunk, pieces), Chunk("", finish_reason=REASONS[case.get("end", "token")])]
    follow((each for each in chunks), stream.add)
    found = stream.end()
    assert found.text.startswith(cursor.lead) or not found.text
    text, more = found.text.removeprefix(cursor.lead), stream.says_more_than(cursor.lead)
    return text, found.reason, found.gate, more, ending.another_beginning


def ended(case, size):
    return outcome(case, size)[0]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_text_becomes_a_completion(case, size):
    assert ended(case, size) == case["expected"]


@pytest.mark.parametrize("case", CASES)
def test_the_steps_in_which_a_text_grows_make_no_difference(case):
    """Each is as long as what the draft proposed and the target accepted."""
    assert len({outcome(case, size) for size in (1, 2, 3, 7, 10_000)}) == 1


@pytest.mark.parametrize("case", CASES)
def test_no_completion_makes_a_document_worse(case):
    prefix, _, suffix = case["document"].partition(CURSOR)
    tree = syntax_tree(by_id(case["language"]), prefix + suffix)
    if tree is None or case.get("gate") == "off":
        return
    assert tree.with_text(len(prefix), case["expected"]).problems.count <= tree.problems.count


def test_every_rule_has_cases_in_several_languages():
    known = KNOWN.values()
    files = Counter(name.split(":")[0] for name in KNOWN)
    assert all(count >= 4 for count in files.values())
    assert len(known) >= 60
    assert len({case["language"] for case in known}) >= 6
    assert all(CURSOR in case["document"] and case["name"] for case in known)


SOURCES = [
    ("python", "codespec/completion/ending/ending.py"),
    ("typescript", "editors/vscode/src/statistics.ts"),
    ("json", "editors/vscode/package.json"),
]


def duplicated(prefix, text, suffix):
    """The line behind the cursor, where a completion begins or ends with it."""
    following = [line.strip() for line in suffix.split("\n")[1:] if line.strip()][:1]
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    joined = (prefix.rsplit("\n", 1)[-1] + text + suffix.split("\n", 1)[0]).split("\n")
    said = {*lines[:1], *lines[-1:], joined[0].strip(), joined[-1].strip()} if lines else set()
    return [line for line in following if len(line) > 2 and line in said]


@pytest.mark.parametrize(("language", "path"), SOURCES)
def test_anywhere_in_a_file_no_line_comes_twice_and_no_error_comes_in(language, path):
    text = (Path(__file__).parents[3] / path).read_text("utf-8")
    lines = text.split("\n")
    chooser = random.Random(path)
    answered = 0
    for _ in range(10):
        row = chooser.randrange(len(lines) - 1)
        start = sum(len(line) + 1 for line in lines[:row]) + chooser.randrange(len(lines[row]) + 1)
        gone = chooser.choice((0, len(text[start:].split("\n", 1)[0]), len("\n".join(text[start:].split("\n")[:3]))))
        prefix, middle, suffix = text[:start], text[start : start + gone], text[start + gone :]
        other = "\n".join(lines[chooser.randrange(len(lines)) :][:4]).lstrip()
        # What was there, and on into what is there still; something from elsewhere; nonsense.
        for raw in (middle + suffix[:300], other, "".join(chooser.choices(text, k=60))):
            case = {"language": language, "document": prefix + CURSOR + suffix, "raw": raw, "end": "length"}
            completion = ended(case, 10_000)
            assert len({outcome(case, size) for size in (1, 2, 9, 10_000)}) == 1
            assert not duplicated(prefix, completion, suffix)
            tree = present(syntax_tree(by_id(language), prefix + suffix))
            assert tree.with_text(len(prefix), completion).problems.count <= tree.problems.count
            answered += bool(completion.strip())
    assert answered > 5


def test_a_text_that_begins_with_what_follows_ends_with_its_first_line():
    prefix, suffix = "def f(a):\n    first(a)\n    ", "\n    second(a)\n    third(a)\n"
    documents = OpenDocuments(SimpleNamespace(vocabulary=FakeVocabulary()))
    cursor = documents.context_at("a", by_id("python"), "none", prefix + suffix, len(prefix), "window")
    ending = Ending(cursor.rule, cursor.gate, cursor.tidy)
    raw = cursor.lead + "second(a)\n    third(a)\n"
    at = next(end for end in range(len(raw)) if ending.stop(raw[:end]) is not None)
    assert raw[:at] == cursor.lead + "second(a)\n", "time is left for another text"


@pytest.mark.parametrize(
    ("document", "raw", "expected", "gate"),
    [
        # Blocks that were opened above are no concern of a line in them.
        ("function f() {\n  █", "return 1;\n", "return 1;", "broken"),
        ("function f() {\n  █", "return 1;\n}\n", "return 1;\n}", "passed"),
        ("const e = {\n  a: 'b',\n  █", "c: 'd',\n", "c: 'd',", "broken"),
        # A text may close some of them, and needs not close the others.
        ("f(() => {\n  g(() => {\n    █", "return 1;\n  });\n", "return 1;\n  });", "broken"),
        ("if (a) {\n  if (b) {\n    █", "c;\n  } else {\n    d;\n  }\n", "c;\n  } else {\n    d;\n  }", "broken"),
        ("if (a) {\n  if (b) {\n    c;\n  █", "}\n", "}", "broken"),
        ("if (a) {\n  if (b) {\n    c;\n    █", "}\n", "", "dropped"),  # where nobody would write it
        # What the line opens is closed, as ever.
        ("function f() {\n  return g(█", "1", "1)", "broken"),
        ("function f() {\n  if (a) {█", "\n    return 1;\n", "\n    return 1;\n  }", "broken"),
        # A block whose beginning is gone.
        ("█\n  return a;\n}\n", "a += 1;\n", "a += 1;", "broken"),
        ("█\n  return a;\n}\n", "function f(a) {\n", "function f(a) {", "passed"),
        # Nothing to mend.
        ("function f() {\n  █\n}\n", "return 1;\n", "return 1;", "passed"),
    ],
)
def test_a_text_need_not_mend_what_other_lines_lack(document, raw, expected, gate):
    case = {"language": "javascript", "document": document, "raw": raw, "end": "length"}
    for size in (1, 10_000):
        text, _, found, *_ = outcome(case, size)
        assert (text, found) == (expected, gate)
