"""What a terminal gets to see."""

import os
import subprocess
import sys

import pytest

from codespec.models.registry import EMBEDDED
from codespec.terminal import printable, printable_lines

BAD = "\x1b\x07\r\x9b\b\x7f\0\u202e\udcff"
HARMLESS = "naïve \u00a0 日本語 👩\u200d💻 é"


@pytest.mark.parametrize("character", BAD)
def test_what_acts_on_a_terminal_is_replaced(character):
    assert character not in printable(f"a{character}b") + printable_lines(f"a{character}b")


def test_what_is_read_stays():
    assert printable(HARMLESS) == HARMLESS
    assert printable("a\tb\nc") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"
    assert printable_lines("a\tb\r\nc\n") == "a\tb\nc\n"


pty = pytest.importorskip("pty", reason="no terminals of this kind on Windows")


def on_a_terminal(*arguments: str, cwd: os.PathLike) -> bytes:
    main_end, other_end = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "CODESPEC_DATA": str(cwd), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "codespec", *arguments]
    process = subprocess.Popen(command, stdin=other_end, stdout=other_end, stderr=other_end, cwd=cwd, env=environment)
    os.close(other_end)
    seen = b""
    try:
        while piece := os.read(main_end, 1 << 16):
            seen += piece
    except OSError:  # how Linux says that the other end is closed
        pass
    process.wait()
    os.close(main_end)
    return seen


def _text_of_a_model(folder):
    (folder / "g.gbnf").write_text('root ::= "\x1b[2J\x1b]0;t\x07"')
    return "generate", "", "--grammar", str(folder / "g.gbnf")


def _bad_schema(folder):
    (folder / "s.json").write_text('{"$ref": "#/\\u001b[2J\\u001b]0;t\\u0007"}')
    return "grammar", "check", str(folder / "s.json")


def _bad_name(folder):
    return "complete", f"{folder}/\x1b[2Jno.py:1"


def _bad_settings(folder):
    (folder / "codespec.toml").write_text('"\\u001b[2J\\u001b]0;t\\u0007" = 1\n')
    (folder / "a.py").write_text("x = 1")
    return "complete", "a.py:1", "--max-tokens", "1"


def _bad_model(folder):
    data = (EMBEDDED / "draft-python.gguf").read_bytes()
    (folder / "models").mkdir()
    (folder / "models" / "\x1b[2Jm.gguf").write_bytes(data.replace(b"llama", b"l\x1b[2m"))
    return "models", "list"


def _text_of_a_document(folder):
    (folder / "a.py").write_text('x = "\x1b[2J\x1b]0;t\x07"\ny = \n')
    return "complete", "--show", f"{folder}/a.py:2", "--max-tokens", "4"


@pytest.mark.parametrize(
    "prepare", [_text_of_a_model, _bad_schema, _bad_name, _bad_settings, _bad_model, _text_of_a_document]
)
def test_nothing_that_a_file_says_acts_on_a_terminal(prepare, tmp_path):
    seen = on_a_terminal(*prepare(tmp_path), cwd=tmp_path)
    assert "\N{REPLACEMENT CHARACTER}".encode() in seen, seen
    assert b"\x1b[2J" not in seen
    assert b"\x1b]" not in seen
    assert b"\x07" not in seen


def test_a_file_or_program_gets_what_there_is(tmp_path):
    (tmp_path / "g.gbnf").write_text('root ::= "a\x1b[2Jb"')
    command = [sys.executable, "-m", "codespec", "generate", "", "--grammar", str(tmp_path / "g.gbnf")]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout == b"a\x1b[2Jb\n"
