"""What programs say of a text counts where they are installed, and only what the text brings."""

import os
import shutil
import sys

import pytest

from codespec.early_errors import EarlyErrors, early_errors, programs
from codespec.early_errors.programs import GOFMT, NO_ANSWER, RUSTFMT, Program, ProgramErrors
from codespec.languages import by_id
from codespec.syntax.tree import syntax_tree
from tests.present import present

# Says of each line with "bad" that it is, at that word; "crash", "sleep": what it says.
STAND_IN = r"""
import os, sys, time
text = sys.stdin.buffer.read()
if b"crash" in text:
    os.abort()
if b"sleep" in text:
    time.sleep(60)
for number, line in enumerate(text.split(b"\n"), 1):
    if b"bad" in line:
        sys.stderr.write(f"<standard input>:{number}:{line.index(b'bad') + 1}: it is bad\n")
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "SECONDS", 60.0)  # it is one of Python's own, which starts late on a busy machine
    script = tmp_path / "program.py"
    script.write_text(STAND_IN)
    return Program((sys.executable, "-I", "-S", str(script)), GOFMT.place)


def added(program, before, text, after, strict=True):
    """What ``text`` brings between ``before`` and ``after``: the kinds, and where."""

    class Errors(ProgramErrors):
        pass

    Errors.program = program
    errors = Errors(None, (before + after).encode(), len(before.encode()), "")
    return [(error.kind, error.start) for error in errors.added(None, (before + text + after).encode(), strict)]


def test_an_error_of_the_text_counts_and_where_it_is_in_bytes(program):
    assert added(program, "é\n", "a bad", "\nb\n") == [("it is bad", 5)]
    assert added(program, "é\n", "a", "\nb\n") == []


def test_in_a_document_without_errors_the_text_brings_those_far_behind_it_too(program):
    assert added(program, "a\nb", "ad", "\n") == [("it is bad", 2)]
    assert added(program, "a\n", "x\n\n\nbad\n", "b\n") == [("it is bad", 6)]


def test_errors_elsewhere_are_not_the_texts(program):
    assert added(program, "bad\n", "a", "\nb\nbad\n") == []
    assert added(program, "bad\n", "bad", "\nb\n") == [("it is bad", 4)]
    # What comes next is what a text that is unfinished is refused at.
    assert added(program, "a\n", "x", "\n\n  bad\n") == [("it is bad", 7)]


def test_less_strict_than_that_errors_that_were_there_do_not_count(program):
    assert added(program, "a\n", "x", "\n\n  bad\n", strict=False) == []
    assert added(program, "a\n", "bad", "\n  bad\n", strict=False) == [("it is bad", 2)]


def test_a_text_that_gets_no_answer_is_refused_and_a_document_that_gets_none_is_not_judged(program, monkeypatch):
    monkeypatch.setattr(programs, "SECONDS", 0.5)
    assert added(program, "a\n", "crash", "\n") == [(NO_ANSWER, 2)]
    assert added(program, "a\n", "sleep", "\n") == [(NO_ANSWER, 2)]
    assert added(program, "crash\n", "bad", "\n") == []


def test_a_long_document_is_not_judged(program):
    assert added(program, "a\n" * programs.MOST_BYTES, "bad", "\n") == []


def test_without_the_program_nothing_is_judged():
    missing = Program(("no-such-program",), GOFMT.place)
    assert not missing.installed
    assert added(missing, "a\n", "bad", "\n") == []


@pytest.mark.skipif(os.name == "nt", reason="needs a program without a suffix")
def test_a_program_in_the_current_folder_is_not_run(tmp_path, monkeypatch):
    (tmp_path / "gofmt-of-the-workspace").write_text("#!/bin/sh\necho\n")
    (tmp_path / "gofmt-of-the-workspace").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".")
    assert shutil.which("gofmt-of-the-workspace")
    assert not Program(("gofmt-of-the-workspace",), GOFMT.place).installed


REFUSED = {
    "go": [
        ("package p\n\nfunc f() {\n\t", "a.b := 1", "\n}\n"),
        ("package p\n\nfunc f(a int", ", string", ") {\n}\n"),
        ("package p\n\nfunc f() {\n\t", "x", "\n\telse {\n\t}\n}\n"),
    ],
    "rust": [
        ("fn f(a: u8", ", self", ") {}\n"),
        ("fn f() {\n    ", "let a = ;", "\n}\n"),
        ("fn f(a: u8, b: u8, c: u8) -> bool {\n    ", "a < b < c", "\n}\n"),
        ("struct S;\n\n", "let x = 1;", "\n\nmod other;\n"),
    ],
}
TAKEN = {
    "go": [
        ("package p\n\nfunc f() {\n\t", "ab := 1", "\n}\n"),
        # Unfinished elsewhere.
        ("package p\n\nfunc g() {\n\tx := \n}\n\nfunc f() {\n\t", "ab := 1", "\n}\n"),
    ],
    "rust": [
        ("mod other;\n\nfn f() {\n    ", 'let é = "ü";', "\n}\n"),
        ("fn g() {\n    let x = ;\n}\n\nfn f() {\n    ", "g();", "\n}\n"),
    ],
}


@pytest.mark.parametrize("language", ["go", "rust"])
def test_the_languages_own_programs_judge(language):
    program = {"go": GOFMT, "rust": RUSTFMT}[language]
    if not program.installed:
        pytest.skip(f"no {program.command[0]}")
    for expected, cases in ((True, REFUSED[language]), (False, TAKEN[language])):
        for before, text, after in cases:
            assert bool(added(program, before, text, after)) == expected, (before, text, after)
            data = (before + after).encode()
            root = present(syntax_tree(by_id(language), before + after))._root
            errors = EarlyErrors(by_id(language), root, data, len(before.encode()))
            assert bool(errors.added(root, (before + text + after).encode())) == expected
    unfinished = {"go": b"package p\nfunc f( {", "rust": b"fn f( {"}[language]
    assert early_errors(by_id(language), root, unfinished)
