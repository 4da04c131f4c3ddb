"""What the languages' own compilers say of a text: the judges of what codespec takes for an early error."""

from __future__ import annotations

import json
import os
import re
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

from benchmarks.quality.judges import FOLDER

HERE = Path(__file__).parent
MODULE = re.compile(r"^(?:export\b|import(?!\s*[(.]))", re.MULTILINE)
SCRIPT = re.compile(r"\brequire\(|\bexports\b")

Judge = Callable[[str], str | None]
"""What is wrong with a text; None where nothing is."""


def python(text: str) -> str | None:
    """Python's own, of this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "text", "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            return str(error)
    return None


class Node:
    """A program for node that answers line by line."""

    def __init__(self, script: str, environment: dict[str, str] | None = None) -> None:
        command = ["node", "--experimental-vm-modules", "--no-warnings", str(HERE / script)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
        )

    def ask(self, question: object) -> str | None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer: str | None = json.loads(self._process.stdout.readline())
        return answer

    def javascript(self, text: str, before: str = "") -> str | None:
        """What is wrong with a text; what it was ``before`` says whether it is a module."""
        kind = bool(MODULE.search(before or text)) or (False if SCRIPT.search(before) else None)
        return self.ask({"text": text, "module": kind})

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def _run(command: list[str], text: str | None = None) -> str | None:
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip() or "refused" if done.returncode else None


def c(folder: Path) -> Judge:
    """gcc, as the standard of C11 has it, or that of C23 with GNU's words."""

    def judge(text: str) -> str | None:
        command = ["gcc", "-fsyntax-only", "-pedantic-errors", "-x", "c", f"-I{folder}"]
        refusals = [_run([*command, f"-std={standard}", "-"], text) for standard in ("c11", "gnu2x")]
        return refusals[0] if all(refusals) else None

    return judge


def typescript_folder() -> Path | None:
    """Where the judges of ``bench gate`` have ``typescript``; None where it is not installed (``make judges``)."""
    folder = Path(os.environ.get(FOLDER, ".venv/judges")).resolve() / "node_modules"
    return folder if (folder / "typescript").is_dir() else None
