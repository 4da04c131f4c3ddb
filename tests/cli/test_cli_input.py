"""Standard input, wherever a command reads a text."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "shapes.py"


def run_on(content: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """A command with ``content`` in its standard input."""
    return subprocess.run([sys.executable, "-m", "codespec", *arguments], input=content, capture_output=True)


SCHEMA = b'{"type": "integer"}'
READ = [
    (["complete", "-:22", "--language", "python", "--max-tokens", "8", "--exact"], EXAMPLE.read_bytes(), b"ValueError"),
    (["generate", "-", "--regex", "é+", "--max-tokens", "4"], "déjà".encode(), "é".encode()),
    (["generate", "--json-schema", "-", "--max-tokens", "4"], b'{"const": 7}', b"7"),
    (["generate", "--lark", "-"], b'start: "l" "k"', b"lk"),
    (["generate", "--grammar", "-"], b'root ::= "gb"', b"gb"),
    (["grammar", "check", "-"], b'root ::= "a"', b"<stdin>: no problems found"),
    (["grammar", "check", "-", "--lexemes"], b'\xef\xbb\xbfroot ::= "a"', b"1 lexemes:"),
    (["grammar", "check", "-", "--from", "json"], SCHEMA, b"<stdin>: no problems found"),
    (["grammar", "accepts", "json", "-"], b'\xef\xbb\xbf{"a": 1}', b"<stdin>: accepted"),
    (["grammar", "accepts", "-", str(EXAMPLE.parent / "project.schema.json"), "--from", "lark"],
     b"start: /(.|\\n)*/", b"project.schema.json: accepted"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "content", "shown"), READ, ids=lambda value: str(value)[:40])
def test_standard_input_is_read(arguments, content, shown):
    done = run_on(content, *arguments)
    assert (done.returncode, done.stderr) == (0, b"")
    assert shown in done.stdout


@pytest.mark.parametrize("arguments", [["grammar", "accepts", "json", "-"], ["complete", "-:1"], ["generate", "-"]])
def test_standard_input_that_is_no_text(arguments):
    done = run_on(b'["a",\n"\xe9"]', *arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().splitlines() == ["codespec: <stdin>:2:2: not UTF-8; save the file as UTF-8"]


def test_standard_input_is_given_once():
    done = run_on(b'root ::= "a"', "grammar", "accepts", "-", "-")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"<stdin>: closed, or read already; give - once" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_a_terminal_is_told_that_it_is_read():
    screen, terminal = os.openpty()
    command = [sys.executable, "-m", "codespec", "grammar", "accepts", "json", "-"]
    process = subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert process.stderr.readline() == b"codespec: reads standard input; Ctrl-D ends it\n"
    os.write(screen, b"[1]\n\x04")
    assert process.communicate()[0] == b"<stdin>: accepted\n"
    os.close(screen)
    os.close(terminal)
