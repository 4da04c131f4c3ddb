"""Documents that once took minutes, over what a request goes through: learning, context, prompt, completion, checks."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from codespec.completion.completer import Completer
from codespec.completion.request import Request
from codespec.config import Config
from codespec.engine.local import LocalEngine
from codespec.languages import by_path
from codespec.lsp.workspace.documents import Document
from codespec.lsp.workspace.surroundings import Surroundings
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import Sampling

LIMIT_S = 20.0
"""Processor time of this thread; an idle machine takes 0.1 to 7 s: two completions within their time, and learning."""
TILDES = "a" + "~" * 48 + "x"
DOCUMENTS = {
    "a name of tildes": (f"{TILDES}.py", "import os\n\n"),
    "an import of a name of tildes": ("a.py", f"from {TILDES} import b\nimport {TILDES}\n\nb."),
    "an import of a file of tildes": ("a.js", f"import {{ b }} from './{TILDES}.js';\nconst c = b("),
    "a name of copies": (".bak~" * 40 + ".py", "x = "),
    "a POM": ("pom.xml", "<key" + "a" * 24_000),
    "a POM of names": ("pom.xml", "<" + "key" * 8_000),
    "tokens in YAML": ("a.yaml", "token=" * 5_000),
    "a long word": ("a.py", "x = " + "a" * 60_000 + "("),
    "blanks in a line": ("a.py", "x = 1" + " " * 60_000 + "y"),
    "line breaks": ("a.py", "x = 1" + "\n" * 60_000),
    "open strings of JSON": ("a.json", '{"a": ' + '"\\' * 20_000),
    "comments in a directive": ("a.c", "#if " + "/*" * 20_000 + "\nint x"),
    "definitions of one name": ("a.c", "#define A 1\n" * 4_000 + "int x = (A) + "),
    "labels of Go": ("a.go", "package a\nfunc f() {" + "\n" * 30_000 + "x"),
    "classes of a regular expression": ("a.js", "x = /" + "[\\\\]" * 10_000 + "/;\n"),
    "calls in calls": ("a.js", "f(" * 500 + "\n"),
    "awaits": ("a.ts", "async function f() { x = " + "await " * 20_000 + "a; }\n"),
    "nots": ("a.js", "x = " + "!" * 20_000 + "x(a;\n"),
    "initialisers": ("a.java", "class A { int[] x = " + "{" * 50_000 + "1" + "}" * 50_000 + "; }\n"),
    "lists": ("a.py", "x = " + "[" * 50_000 + "x(1" + "]" * 50_000 + "\n"),
    "pairs of brackets in one line": ("a.js", "function f() {\n  x = [" + "(), " * 60_000 + "\n"),
    "quotes": ("a.rs", "'''" * 100_000),
    "open texts": ("a.go", '"' * 50_004),
    "keys that nothing closes": ("a.json", '{"a": ' * 20_000),
}


@pytest.fixture(scope="module")
def completer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Completer]:
    engine = LocalEngine(EMBEDDED_TARGET, learnt_folder=tmp_path_factory.mktemp("learnt"))
    with contextlib.closing(engine):
        yield Completer(engine, replace(Config(), max_tokens=2))


@pytest.mark.parametrize("name", ["awaits", "quotes", "open texts", "keys that nothing closes"])
def test_where_time_has_no_limit_judging_has_one(completer: Completer, name: str) -> None:
    file, text = DOCUMENTS[name]
    began = time.thread_time()
    request = Request(text, len(text) // 2, by_path(file).id, file)
    completer.bounded(Sampling(), None).complete(request)
    assert time.thread_time() - began < 2 * LIMIT_S


def test_levels_of_many_blocks_are_lowered_within_the_time(
    completer: Completer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grammar for the levels of each block takes seconds; eight of them were lowered for one request."""
    monkeypatch.setenv("CODESPEC_GRAMMAR_CACHE", "off")
    text = "".join(f"{' ' * each}class A:\n" for each in range(770, 888)) + " " * 888 + "b = 1\n"
    began = time.thread_time()
    completer.complete(Request(text, len(text) - 6, "python", "a.py", begins=False))
    assert time.thread_time() - began < LIMIT_S


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_request_takes_its_time_and_ends(completer: Completer, tmp_path: Path, name: str) -> None:
    file, text = DOCUMENTS[name]
    path, language = tmp_path / file, by_path(file).id
    (tmp_path / f"{TILDES}.js").write_text("export function b(c) { return c; }\n")
    began = time.thread_time()
    surroundings, document = Surroundings(), Document(path.as_uri(), text, 1, language)
    surroundings.opened(document, str(tmp_path))
    surroundings.private(document, str(tmp_path))
    request = Request(text, len(text), language, str(path), workspace=str(tmp_path))
    completer.learn(text, str(path), language, str(tmp_path))
    completer.prefill(request)
    completer.complete(request)
    completer.complete(replace(request, offset=len(text) // 2))
    assert time.thread_time() - began < LIMIT_S
