"""Whether a whole file is well formed, in the words of programs and libraries that share nothing with codespec.

| language | judge |
|---|---|
| Python | ``compile`` |
| JSON | ``json`` |
| JavaScript | V8, as ``node --check`` does |
| TypeScript | the TypeScript compiler: syntax, and what it refuses of a file on its own |
| Go | ``gofmt -e`` |
| Rust | ``rustfmt`` |
| C, C++ | gcc: errors of syntax only; names and types that are not there say nothing |
| Java | javac's parser |
| shell | ``bash -n`` |
| TOML | ``tomllib`` |
| YAML | ruamel.yaml |
| SQL | sqlglot |
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codespec.extras import remedy
from codespec.languages import Language
from codespec.protocols import CodespecError

Judge = Callable[[str, Path], list[str]]
"""The errors of a text, as if it were the file of that name; none where it is well formed."""

FOLDER = "CODESPEC_JUDGES"
"""The variable that names the folder with ``node_modules/typescript``; else ``.venv/judges`` here (``make judges``)."""

TIMEOUT_S = 60
# What gcc says where the text is no C at all, whatever is declared elsewhere.
_C_SYNTAX = re.compile(
    r"expected |stray |missing terminating|unterminated|before .* token|extra .* at end|unbalanced"
    r"|two or more data types|duplicate (?:label|case|member)|(?:break|continue|case|default).*not within"
    r"|label .*(?:used but not defined|at end)|redefinition of parameter|else. without"
)
_C_NAMES = re.compile(
    r"undeclared|unknown type name|has not been declared|was not declared|does not name a type|No such file"
)


# Where `T` is not known to be a type: `(T *)`, `T<1>()`, `(T)a`, `(T)1`, `(T){1}`.
_AFTER_A_TYPE = re.compile(
    r"expected (?:primary-)?expression before '[])]'|before '(?:\w+|\{)'|before (?:string|numeric) constant"
)
_MISSING = re.compile(r"fatal error: (.+): No such file or directory")
_TYPE = re.compile(r"error: unknown type name '(\w+)'")


def judge_of(language: Language) -> Judge:
    """What judges the files of a language.

    Raises:
        CodespecError: nothing does, or a program is missing; the message says what to install.
    """
    found = _JUDGES.get(language.id)
    if found is None:
        raise CodespecError(f"nothing judges {language.id}; there are judges of {', '.join(sorted(_JUDGES))}")
    return found()


def _python() -> Judge:
    def errors(text: str, path: Path) -> list[str]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(text, path.name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return [str(error)]
        return []

    return errors


def _loads(load: Callable[[str], object]) -> Judge:
    def errors(text: str, _path: Path) -> list[str]:
        try:
            load(text)
        except Exception as error:  # each library has its own
            return [f"{type(error).__name__}: {error}"]
        return []

    return errors


def _library(module: str, function: Callable[[Any], Callable[[str], object]]) -> Callable[[], Judge]:
    def made() -> Judge:
        try:
            return _loads(function(importlib.import_module(module)))
        except ImportError:
            raise CodespecError(f"{module} is missing: {remedy('judges')}") from None

    return made


def _program(command: list[str], package: str, errors_in: Callable[[str], list[str]]) -> Callable[[], Judge]:
    """A program that reads a file from standard input and tells of errors on standard error."""

    def made() -> Judge:
        if shutil.which(command[0]) is None:
            raise CodespecError(f"{command[0]} is missing: {package}")

        def errors(text: str, path: Path) -> list[str]:
            line = [part.replace("{folder}", str(path.parent)) for part in command]
            done = subprocess.run(
                line, input=text.encode(), capture_output=True, timeout=TIMEOUT_S, env={**os.environ, "LC_ALL": "C"}
            )
            return errors_in(done.stderr.decode("utf-8", "replace")) if done.returncode else []

        return errors

    return made


def _lines_with(*marks: str) -> Callable[[str], list[str]]:
    def found(output: str) -> list[str]:
        return [line for line in output.splitlines() if any(mark in line for mark in marks)] or [
            output[:200] or "failed"
        ]

    return found


def _of_c(output: str) -> list[str]:
    """gcc's errors of syntax: not those that come from a name before them in the line that may be a type."""
    errors, unknown = [], set()
    for line in output.splitlines():
        if ": error: " in line:
            where = line.split(": error: ")[0].rpartition(":")[0]
            if _C_NAMES.search(line):
                unknown.add(where)
            elif _C_SYNTAX.search(line) and not (where in unknown and _AFTER_A_TYPE.search(line)):
                errors.append(line)
    return errors


def _compiler(command: str, language: str) -> Callable[[], Judge]:
    """gcc, with an empty file for each header that is not there, since it stops at the first of these, and a
    declaration for each type that is not known, since it reads on badly behind one."""

    def made() -> Judge:
        folder = Path(tempfile.mkdtemp(prefix="codespec-headers-")).resolve()
        # Below several others, so that what a name such as `../a.h` means is still in the folder.
        headers = folder / "1/2/3/4"
        headers.mkdir(parents=True)
        options = ["-w", "-fsyntax-only", "-fmax-errors=0", "-I{folder}", "-I{folder}/include", "-I{folder}/../include"]
        line = [command, "-x", language, *options, f"-I{headers}", "-"]
        run = _program(line, f"Debian's package {command}", str.splitlines)()

        def errors(text: str, path: Path) -> list[str]:
            types: set[str] = set()
            while True:
                declared = "".join(f"typedef int {name};" for name in sorted(types))
                output = "\n".join(run(f'{declared}\n# 1 "<stdin>"\n{text}', path))
                if missing := _MISSING.search(output):
                    if not _add_header(folder, headers / missing[1]):
                        return [missing[0]]
                elif types >= (unknown := set(_TYPE.findall(output))):
                    return _of_c(output)
                else:
                    types |= unknown

        weakref.finalize(errors, shutil.rmtree, folder, ignore_errors=True)
        return errors

    return made


def _add_header(folder: Path, header: Path) -> bool:
    """An empty file; False where it would be outside the folder, or is there already."""
    if not Path(os.path.normpath(header)).is_relative_to(folder) or header.exists():
        return False
    header.parent.mkdir(parents=True, exist_ok=True)
    header.touch()
    return True


class _Worker:
    """A program that reads lines of a file's path and its text in base64, and answers each with a list in JSON."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        weakref.finalize(self, _end, self._process)

    def __call__(self, text: str, path: Path) -> list[str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{path}\t{base64.b64encode(text.encode()).decode()}\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise CodespecError(f"{' '.join(self._process.args)} ended with {self._process.wait()}")  # type: ignore[arg-type]
        errors: list[str] = json.loads(line)
        return errors


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def _node(script: str, *arguments: str) -> Callable[[], Judge]:
    def made() -> Judge:
        if shutil.which("node") is None:
            raise CodespecError("node is missing: install Node.js (Debian's package nodejs)")
        modules = Path(os.environ.get(FOLDER, ".venv/judges")).resolve() / "node_modules" / "typescript"
        if "typescript" in script and not modules.is_dir():
            raise CodespecError(f"there is no {modules}: make judges, or name another folder with ${FOLDER}")
        path = Path(__file__).with_name(script)
        return _Worker(["node", "--no-warnings", *arguments, str(path), str(modules)])

    return made


def _java() -> Judge:
    if shutil.which("java") is None:
        raise CodespecError("java is missing: install a JDK (Debian's package default-jdk-headless)")
    return _Worker(["java", str(Path(__file__).with_name("JudgeJava.java"))])


def _toml() -> Judge:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return _loads(tomllib.loads)


def _yaml(module: Any) -> Callable[[str], object]:
    return lambda text: list(module.YAML(typ="safe", pure=True).compose_all(text))


_JAVASCRIPT = _node("judge_javascript.js", "--experimental-vm-modules")
_TYPESCRIPT = _node("judge_typescript.js")
_JUDGES: dict[str, Callable[[], Judge]] = {
    "python": _python,
    "json": lambda: _loads(json.loads),
    "javascript": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "javascriptreact": _TYPESCRIPT,
    "typescriptreact": _TYPESCRIPT,
    "go": _program(["gofmt", "-e"], "Debian's package golang-go", _lines_with("standard input")),
    "rust": _program(["rustfmt", "--edition", "2021"], "rustup component add rustfmt", _lines_with("error")),
    "c": _compiler("gcc", "c"),
    "cpp": _compiler("g++", "c++"),
    "java": _java,
    "shellscript": _program(["bash", "-n"], "Debian's package bash", _lines_with("line")),
    "toml": _toml,
    "yaml": _library("ruamel.yaml", _yaml),
    "sql": _library("sqlglot", lambda module: module.parse),
}

JUDGED = frozenset(_JUDGES)
"""The languages that something judges."""
