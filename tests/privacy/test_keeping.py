"""What may be kept on the disk, and which modules write there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import codespec
from codespec.grammar import Grammar
from codespec.grammar.cache import VARIABLE
from tests.privacy_forms.values import values

PACKAGE = Path(codespec.__file__).parent
WRITES = {
    "write_whole", "write_text", "write_bytes", "mkstemp", "NamedTemporaryFile", "TemporaryFile", "savez", "save_file",
    "dump", "fdopen", "FileHandler", "RotatingFileHandler",
    "executemany",
}  # fmt: skip
MODES = {"w", "wb", "a", "ab", "x", "xb", "w+b", "r+b", "wt", "at", "a+b"}
TEXT_OF_THE_USER = {
    "engine/prompt_store.py": "KV caches, of workspaces that ``Completer._enter`` was allowed to keep",
    "draft/storage/token_log.py": "n-grams, of documents that ``WorkspaceLearner`` may keep",
    "grammar/cache.py": "lowered grammars that hold nothing that looks like a secret",
}
"""Modules that write what a user has written, and what is asked before."""
OTHERS = (
    "train/", "models/", "capacity/", "cli/", "llama/", "paths.py", "daemon/", "lsp/model_offer.py", "crash.py",
    "draft/storage/profiles.py", "grammar/sandbox", "lsp/statistics.py",
    "lsp/connection/transport.py",
)  # fmt: skip
"""Models, measurements, counts, verdicts on machines, keys of the model process, what trains on command, and the pipes
to editors."""


def _writes(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        texts = {each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)}
        if name in WRITES or (name == "open" and texts & MODES):
            found.add(name)
        if name == "open" and any(
            "O_WRONLY" in ast.unparse(each) or "O_APPEND" in ast.unparse(each) for each in node.args
        ):
            found.add(name)
    return found


def test_few_modules_write_what_a_user_has_written() -> None:
    writing = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if _writes(path)}
    unknown = {each for each in writing if each not in TEXT_OF_THE_USER and not each.startswith(OTHERS)}
    assert unknown == set()
    assert set(TEXT_OF_THE_USER) <= writing
    assert "engine/prompt_store.py" in writing


@pytest.mark.parametrize(
    "source",
    [
        f'root ::= "password = \\"{values(3)["mixed"]}\\""',
        f'root ::= x | "{values(3)["github"]}"\nx ::= "a" [a-z]*',
        f'root ::= "Authorization: Bearer {values(3)["key40"]}"',
    ],
)
def test_a_grammar_with_a_secret_is_not_kept(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    Grammar.from_gbnf(source)
    assert list(tmp_path.iterdir()) == []


def test_another_grammar_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    Grammar.from_gbnf('root ::= "password" | "token" [0-9]+')
    assert len(list(tmp_path.iterdir())) == 1
