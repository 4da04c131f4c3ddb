"""``codespec complete`` on what is no file, or far too large: an error, or bounded memory."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from codespec.cli.complete import LARGE, excerpt

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only /proc tells what a process took at most")

MEGABYTES = 400
CHILD = """
import sys
sys.path[:] = {path!r}
from codespec.cli.main import main
code = main(sys.argv[1:])
with open("/proc/self/status") as file:  # what getrusage says begins with what the process had that started this one
    print(next(line for line in file if line.startswith("VmHWM")), file=sys.stderr)
raise SystemExit(code)
"""


def complete(position: str) -> tuple[int, str, int]:
    """Exit status, what was said, and megabytes."""
    command = [sys.executable, "-c", CHILD.format(path=sys.path), "complete", position, "--max-tokens", "2"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    *said, used = done.stderr.strip().split("\n")
    return done.returncode, "\n".join(said), int(used.split()[1]) // 1024


@pytest.mark.parametrize("kind", ["/dev/zero", "pipe", "folder", "socket"])
def test_what_is_no_file(kind, tmp_path):
    place = tmp_path / "x.py"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(place))
    else:
        place = Path(kind)
    code, said, used = complete(f"{place}:1")
    assert (code, said) == (2, f"codespec: {place}: is no file; give a file, or - for standard input")
    assert used < MEGABYTES


@pytest.mark.parametrize("piece", ["x", "x\n", "\n", "é🦙", "x = 1; "])
@pytest.mark.parametrize("size", [30, 200])
def test_large_files(piece, size, tmp_path):
    place = tmp_path / "x.py"
    data = piece.encode()
    with place.open("wb") as file:
        for _ in range(size):
            file.write(data * (1_000_000 // len(data)))
    code, said, used = complete(f"{place}:1")
    assert used < MEGABYTES
    assert code == (0 if size == 30 else 2), said
    if size == 200:
        assert "larger than 33554432 bytes" in said


def test_the_part_that_is_completed():
    assert excerpt("abc", 2) == ("abc", 2, True, True)
    text = "".join(f"line {number}\n" for number in range(100_000))
    for place in (0, 7, 100_003, 500_000, len(text) - 1, len(text)):
        part, offset, begins, ends = excerpt(text, place)
        assert len(part) <= LARGE
        assert (begins, ends) == (text.startswith(part), text.endswith(part))
        assert part[offset : offset + 20] == text[place : place + 20]
        assert text[:place].endswith(part[:offset])
        assert begins or part.startswith("line ")
    part, offset, begins, ends = excerpt("x" * 1_000_000, 500_000)
    assert (len(part), offset, begins, ends) == (LARGE, LARGE // 2, False, False)
