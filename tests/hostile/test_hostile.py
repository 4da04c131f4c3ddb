"""Nothing a user can write may crash, hang or exhaust the process; ``python -m tests.fuzz`` is the long run."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codespec.grammar import Grammar, GrammarError, byte_tokenizer, cache, sandbox
from codespec.grammar.sandbox_child import examine_in_copy
from codespec.protocols import CodespecError
from tests.fuzz import generators
from tests.fuzz.exercise import Report, exercise, feed_on

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="limits are per process, and here is no fork")


def chain(length: int, last: str = '"c"') -> str:
    rules = [f'{f"r{i}" if i else "root"} ::= "a" r{i + 1} | "b"' for i in range(length)]
    return "\n".join([*rules, f"r{length} ::= {last}"])


# What kills or hangs llama.cpp, llguidance (the long chain) or xgrammar (nested counts), and what Earley parsers hate.
WORKING = {
    "hidden left recursion": ('root ::= a\na ::= b a "x" | "x"\nb ::= ""', "x" * 2000),
    "left recursion": ('root ::= root "a" | "a"', "a" * 3000),
    "nested counts": ("root ::= ([a-z]{0,40}){0,40}", "a" * 1600),
    "powers": ('root ::= ((("a"{2000}){2000}){2000}){2000}', "a" * 3000),
    "chain": (chain(1500), "a" * 1500 + "c"),
    "runs of runs": ("root ::= (x y)*\nx ::= [a-z]*\ny ::= [a-z]*", "a" * 3000),
}
REFUSED = {
    "reversed count": ('root ::= "a"{3,1}', "the first number must not exceed the second"),
    "parentheses": ("root ::= " + "(" * 20_000 + '"a"' + ")" * 20_000, "more than 64 levels of nesting"),
    "long chain": (chain(10_000), "more than 2000 rules|more than 1.5 s"),
    "long literal": ('root ::= "' + "a" * 100_000 + '"', "at most 60000 are allowed|more than 1.5 s"),
    "no end": ('root ::= "a" root', "no text matches 'root'"),
    "large count": ('root ::= "a"{100000}', "too large"),
}
EXPLODING = {
    "ambiguous list": ("root ::= root root | [a-z]", "a"),
    "ambiguous triples": ('root ::= root root root | [a-z] | ""', "a"),
    "optional parts": ('root ::= ("ab"? "c"?){0,2000}', "abc"),
    "suffixes": ('root ::= a*\na ::= [a-z]+ a? | [a-z] [a-z] | a "a" | "a"?', "ab"),
}


def written(folder: Path, text: str) -> Path:
    path = folder / "hostile.gbnf"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("name", WORKING)
def test_hostile_grammars_that_work(name: str, tmp_path: Path) -> None:
    source, text = WORKING[name]
    state = Grammar.load(written(tmp_path, source)).state(byte_tokenizer())
    began = time.process_time()
    assert state.accept(text.encode()) == len(text)
    assert time.process_time() - began < 2
    exercise(Grammar.load(written(tmp_path, source)), Random(1), walks=1, steps=20)


@pytest.mark.parametrize("name", REFUSED)
def test_hostile_grammars_that_are_refused(name: str, tmp_path: Path) -> None:
    source, message = REFUSED[name]
    began = time.process_time()
    with pytest.raises(GrammarError, match=message) as caught:
        Grammar.load(written(tmp_path, source))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000
    assert time.process_time() - began < 2


@pytest.mark.parametrize("name", EXPLODING)
def test_texts_that_explode_end_in_an_error(name: str) -> None:
    """Each operation stays within 2 s of processor time, and the grammar serves the next text."""
    source, unit = EXPLODING[name]
    grammar, report, message = Grammar.from_gbnf(source), Report(), ""
    try:
        feed_on(grammar.state(byte_tokenizer()), list(unit.encode() * 10), report, length=400)
    except CodespecError as error:
        message = str(error)
    assert not message or "less ambiguous" in message  # it may also get through
    assert "\n" not in message
    assert report.slowest < 2, report.operation
    assert grammar.state(byte_tokenizer()).accept(unit.encode()) == len(unit)


# --- the child process -------------------------------------------------------------------------------


def examined(text: str, kind: str = "gbnf", **options: Any) -> str:
    return str(sandbox.shared.examine({"kind": kind, "text": text, "name": "g", "options": options})["kind"])


def test_verdicts() -> None:
    assert examined('root ::= "a" [b-z]*') == "ok"
    assert examined("root ::= <think> <[70000]> !<[3]> [a-z]*") == "ok"
    assert examined("root ::= x") == "error"
    assert examined('{"type": "integer"}', "json", lenient=True) == "ok"
    assert examined('{"type": "integer"', "json") == "error"
    assert examined("start: /[a-z]+/", "lark") == "ok"
    assert examined("(", "regex") == "error"
    assert examined('root ::= block<indent>\nblock<i> ::= i "x\\n"', extensions=True, levels=("", "  ")) == "ok"


def test_the_error_is_the_one_of_the_front_end() -> None:
    for kind, text in [("gbnf", "root ::= x"), ("json", '{"type": 3}'), ("lark", "start: foo"), ("regex", "(a")]:
        with pytest.raises(GrammarError) as here:
            Grammar.from_source(kind, text, "g")
        with pytest.raises(GrammarError) as there:
            Grammar.from_outside(kind, text, "g")
        assert str(there.value) == str(here.value)


@posix
@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("import os; os.abort()", "SIGABRT"),
        ("import os; os._exit(3)", "exit status 3"),
        ("raise KeyError('bug')", "KeyError: 'bug'"),
        ("while True: pass", "takes more than 1.5 s of processor time"),
        ("x = bytearray(3 * 2**30)", "takes more than 500 MB of memory"),
        ("def f(): f()\nf()", "it is nested too deeply"),
        ("assert False, 'token 65'", "the grammar engine contradicts itself on it: token 65"),
    ],
)
def test_harm_stays_in_the_copy(harm: str, expected: str) -> None:
    def work(*_: object) -> None:
        exec(harm, {})

    verdict = examine_in_copy({"kind": "gbnf", "text": "", "name": "g", "options": {}}, work)
    assert expected in str(sandbox.refusal("g", verdict))


def test_what_the_helper_compiled_is_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    monkeypatch.setattr("codespec.grammar.grammar.lower", None)
    grammar = Grammar.from_outside("gbnf", f'root ::= "{tmp_path.name}"', "g")
    assert grammar.state(byte_tokenizer()).accept(list(tmp_path.name.encode())) == len(tmp_path.name)


def test_what_a_lark_file_imports_is_examined_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    examine = sandbox.shared.examine
    monkeypatch.setattr(sandbox.shared, "examine", lambda request: asked.append(request) or examine(request))
    (tmp_path / "part.lark").write_text('x: "a"\n', "utf-8")
    for main, times in (("%import .part.x\nstart: x\n", 2), (f'start: "{tmp_path.name}"\n', 1)):
        (tmp_path / "main.lark").write_text(main, "utf-8")
        asked.clear()
        for _ in range(2):
            Grammar.load(tmp_path / "main.lark")
        assert len(asked) == times


def test_a_name_that_cannot_be_a_file() -> None:
    for name in ("root ::= " + "a" * 300, "a\0b", "x" * 5000 + ".gbnf:root"):
        with pytest.raises(CodespecError, match="no such grammar"):
            Grammar.load(name)


def test_a_helper_that_dies_or_hangs_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    box = sandbox.Sandbox()
    request = {"kind": "gbnf", "text": 'root ::= "a"', "name": "g", "options": {}}
    try:
        assert box.examine(request)["kind"] == "ok"
        assert box._process is not None
        first = box._process.pid
        box._process.kill()
        box._process.wait()
        assert box.examine(request)["kind"] == "ok"
        assert box._process.pid != first
        monkeypatch.setattr(sandbox, "PATIENCE", 0.0)
        assert box.examine({**request, "text": chain(1000)})["kind"] == "overdue"
        monkeypatch.setattr(sandbox, "PATIENCE", 60.0)
        assert box.examine(request)["kind"] == "ok"
    finally:
        box.close()


def test_no_helper_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    box = sandbox.Sandbox()
    monkeypatch.setattr(sys, "executable", str(Path(sys.executable).with_name("no-such-python")))
    with pytest.raises(GrammarError, match="no process to check it in can be started"):
        box.examine({"kind": "gbnf", "text": "", "name": "g", "options": {}})
    box.close()


def test_many_threads_share_a_helper() -> None:
    verdicts: list[str] = []
    threads = [
        threading.Thread(target=lambda i=i: verdicts.append(examined(f'root ::= "{i}"' if i % 2 else "root ::= x")))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(verdicts) == ["error"] * 4 + ["ok"] * 4


# --- random grammars -----------------------------------------------------------------------------------


@pytest.fixture(autouse=True, scope="module")
def _helper_ends() -> Any:
    yield
    sandbox.shared.close()


quick = settings(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))


def from_outside(kind: str, text: str, **options: Any) -> Grammar | str:
    """The grammar, or the message that says why there is none."""
    try:
        return Grammar.from_outside(kind, text, "g", **options)
    except GrammarError as error:
        return str(error)


@settings(quick, max_examples=120)
@given(st.integers(0, 2**32))
def test_random_grammars_work_or_say_why_not(seed: int) -> None:
    rng = Random(seed)
    kind, text, options = generators.any_source(rng)
    began = time.process_time()
    grammar = from_outside(kind, text, **options)
    assert time.process_time() - began < 2
    if isinstance(grammar, str):
        assert re.fullmatch(r"g[^\n]*: .+", grammar)
        assert "fails on it" not in grammar, text
    elif not grammar.needs_vocabulary:
        report = exercise(grammar, rng, walks=1, steps=15, length=200)
        assert report.slowest < 2, (report.operation, text)


@settings(quick, max_examples=80)
@given(st.sampled_from(["gbnf", "json", "lark", "regex"]), st.text(max_size=60))
def test_any_text_is_a_grammar_or_an_error(kind: str, text: str) -> None:
    assert "fails on it" not in str(from_outside(kind, text))
