"""What a repository holds may not make others wait: refused grammars, pipes among grammars, lists of patterns."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codespec.completion.open_documents import Grammars
from codespec.engine.local import LocalEngine
from codespec.errors import CodespecError
from codespec.grammar import Grammar, GrammarError, sandbox
from codespec.languages import by_path
from codespec.models.registry import EMBEDDED_TARGET
from codespec.paths import own_python
from codespec.privacy.ignore_files import GIT, MOST_PATTERNS, OWN, IgnoreFiles


@pytest.mark.parametrize(
    ("name", "text", "cause"),
    [
        ("long.gbnf", 'root ::= "' + "a" * 100_007 + '"', "at most 60000 are allowed|more than 1.5 s|no result within"),
        ("wrong.gbnf", "root ::= nowhere", "nowhere"),
        ("s.json", '{"type": "nonsense"}', "unknown type"),
    ],
)
def test_a_refused_grammar_is_examined_once(name, text, cause, tmp_path, monkeypatch):
    asked = []
    examine = sandbox.shared.examine
    monkeypatch.setattr(sandbox.shared, "examine", lambda request: asked.append(request) or examine(request))
    messages = set()
    for folder in ("one", "two", "one"):
        file = tmp_path / folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        with pytest.raises(GrammarError, match=cause) as caught:
            Grammar.load(file)
        assert str(caught.value).startswith(str(file))
        messages.add(str(caught.value).removeprefix(str(file)))
    assert len(asked) == 1
    assert len(messages) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes among files")
@pytest.mark.parametrize("kind", ["pipe", "link", "large"])
def test_what_a_grammar_imports_is_a_file(kind, tmp_path):
    (tmp_path / "main.lark").write_text("%import .part.x\nstart: x\n", "utf-8")
    part = tmp_path / "part.lark"
    if kind == "pipe":
        os.mkfifo(part)
    elif kind == "link":
        outside = tmp_path / "outside"
        outside.mkdir()
        os.mkfifo(outside / "part.lark")
        part.symlink_to(outside / "part.lark")
    else:
        part.write_text('x: "a"\n' + "// comment\n" * 200_000)
    with pytest.raises(CodespecError, match="is no file"):
        Grammar.load(tmp_path / "main.lark")


HELPER = """
from codespec.grammar import sandbox_child
import os, time
def work(*_):
    print(os.getpid(), file=open({file!r}, "w"), flush=True)
    time.sleep({seconds})
sandbox_child.PATIENCE = {patience}
print(sandbox_child.examine_in_copy(dict(kind="gbnf", text="", name="g", options=dict()), work)["kind"], flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no copies of processes")
def test_a_copy_that_only_waits_ends(tmp_path):
    code = HELPER.format(file=str(tmp_path / "pid"), seconds=600, patience=1.0)
    done = subprocess.run(own_python(code), capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "overdue", done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere an orphan ends by its limits")
def test_a_copy_ends_with_its_helper(tmp_path):
    file = tmp_path / "pid"
    helper = subprocess.Popen(own_python(HELPER.format(file=str(file), seconds=600, patience=500.0)))
    deadline = time.monotonic() + 60
    while not (file.exists() and file.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.05)
    copy = int(file.read_text())
    helper.send_signal(signal.SIGKILL)
    helper.wait()
    while Path(f"/proc/{copy}").exists() and _state(copy) != "Z" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{copy}").exists() or _state(copy) == "Z"


def _state(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@pytest.mark.parametrize("name", [GIT, OWN])
def test_many_patterns_are_not_read(name, tmp_path):
    """59 nested files of 63 KB took 45 s, and 8 s for each file after that."""
    (tmp_path / ".git").mkdir()
    folder = tmp_path
    for number in range(59):
        folder = folder / f"f{number}"
        folder.mkdir()
        (folder / name).write_text("".join(f"x{each}\n" for each in range(9_000)))
    (folder / "a.py").write_text("")
    files = IgnoreFiles(name)
    assert files.excludes(folder / "a.py", tmp_path)
    assert sum(len(file.patterns) for _, file in files._read.values()) <= MOST_PATTERNS


def test_as_many_patterns_as_there_may_be_count(tmp_path):
    (tmp_path / ".git").mkdir()
    patterns = [f"x{each}" for each in range(MOST_PATTERNS - 1)]
    (tmp_path / ".gitignore").write_text("# a comment\n\n" + "\n".join([*patterns, "build/"]) + "\n")
    (tmp_path / "sub").mkdir()
    files = IgnoreFiles(GIT)
    assert files.excludes(tmp_path / "build" / "a.py", tmp_path)
    assert not files.excludes(tmp_path / "a.py", tmp_path)
    (tmp_path / "sub" / ".gitignore").write_text("one-more\n")
    assert IgnoreFiles(GIT).excludes(tmp_path / "sub" / "a.py", tmp_path)


def test_a_file_of_settings_says_little_about_itself(tmp_path):
    from codespec.config import load

    for text in ("a." * 20_000 + "a = 1", "\n".join(f"k{number} = 1" for number in range(4_000)), "x = " + "[" * 900):
        (tmp_path / "codespec.toml").write_text(text)
        _, messages = load(tmp_path)
        assert 0 < len(json.dumps(messages)) < 3_000


def loads(grammars, file):
    try:
        grammars.document(str(file), by_path("a.py"))
    except GrammarError:
        return False
    return True


def eventually(condition):
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_a_grammar_that_is_refused_slowly_rests(tmp_path):
    file, language = tmp_path / "g.gbnf", by_path("a.py")
    with contextlib.closing(LocalEngine(EMBEDDED_TARGET)) as engine:
        grammars = Grammars(engine)
        for number in range(4):  # another one each time: what is refused is remembered
            file.write_text(f'root ::= "{number}' + "a" * 50_000 + '"' + ' | "b"' * 2_000)
            began = time.process_time()
            with pytest.raises(GrammarError):
                grammars.document(str(file), language)
            took = time.process_time() - began
            assert number == 0 or took < 0.1
        file.write_text("root ::= nowhere")
        other = Grammars(engine)
        with pytest.raises(GrammarError):
            other.document(str(file), language)
        file.write_text('root ::= "a"')
        assert eventually(lambda: loads(other, file))
