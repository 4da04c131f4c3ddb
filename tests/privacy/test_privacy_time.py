"""Secrets over time: what is pasted, typed and linked after a document was found to hold none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from codespec.completion.completer import Completer
from codespec.completion.learning import WorkspaceLearner
from codespec.completion.request import Request
from codespec.config import Config
from codespec.engine.local import LocalEngine
from codespec.engine.prompt_cache import PromptCache, PromptCacheSettings
from codespec.lsp.workspace.documents import Document
from codespec.lsp.workspace.surroundings import Surroundings
from codespec.models.registry import EMBEDDED_TARGET
from codespec.privacy.public_files import PublicFiles

LONG = 40_000
PASTED = "password = 'Hq7-rT2_wPz9'\n"
CODE = "def area(width, height):\n    return width * height\n\n\n"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LocalEngine]:
    settings = PromptCacheSettings(saved=1 << 26, folder=tmp_path / "kv")
    engine = LocalEngine(EMBEDDED_TARGET, exact=True, learnt_folder=tmp_path / "learnt", prompt_cache=settings)
    yield engine
    engine.close()


@pytest.mark.parametrize("lines", [1, LONG // len(CODE)])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_secret_counts_as_soon_as_it_is_pasted(engine: LocalEngine, lines: int, at: int) -> None:
    learner, text = WorkspaceLearner(engine.vocabulary, engine.drafts, engine.prompt_cache), CODE * lines
    cut = len(text) * at // 2
    assert learner.may_keep("/w/a.py", "/w", text)
    assert not learner.may_keep("/w/a.py", "/w", text[:cut] + "\n" + PASTED + text[cut:])


def test_a_secret_that_is_typed_key_by_key_is_recognised() -> None:
    files, text = PublicFiles(), CODE * (LONG // len(CODE))
    kept = [files.may_keep("/w/a.py", "/w", text + PASTED[:end]) for end in range(len(PASTED))]
    assert kept[0]
    assert not kept[-1]


def test_a_line_that_tells_what_stands_far_from_it() -> None:
    files = PublicFiles()
    data = "data:\n" + "".join(f"  entry{number}: {'Zm9vYmFy' * 4}{number:04}\n" for number in range(600))
    assert files.may_keep("/w/a.yaml", "/w", data + "kind: ConfigMap\n")
    assert not files.may_keep("/w/a.yaml", "/w", data + "# a comment\n" * 300 + "kind: Secret\n")


def test_a_manifest_may_say_last_what_it_is() -> None:
    beginning = "apiVersion: v1\ndata:\n  entry: c2VjcmV0LTQ3MTEtYmxh\n"
    for end in ("", "k", "kind:", "kind: ", "kind: Sec", "kind: Secret\n", "metadata:\n  name: x\n"):
        assert not PublicFiles().may_keep("/w/a.yaml", "/w", beginning + end), end
    other = "apiVersion: v1\nkind: ConfigMap\ndata:\n  entry: c2VjcmV0LTQ3MTEtYmxh\n"
    assert PublicFiles().may_keep("/w/a.yaml", "/w", other)
    assert not PublicFiles().may_keep("/w/a.yaml", "/w", f"{other}---\n{beginning}")


def test_what_was_kept_before_a_secret_was_recognised_is_forgotten(engine: LocalEngine, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    path, part = str(work / "a.py"), CODE * 8 + PASTED[:-8]  # the quotation is not closed yet
    completer = Completer(engine, replace(Config(), max_tokens=4))
    completer.prefill(Request(part, len(part), "python", path, workspace=str(work)))
    completer.learn(part, path, "python", str(work))
    logs = list((tmp_path / "learnt").rglob("*.sqlite"))
    assert logs
    completer.learn(CODE * 8 + PASTED, path, "python", str(work))
    assert isinstance(engine.prompt_cache, PromptCache)
    engine.prompt_cache.save()
    assert not any(log.exists() for log in logs)
    assert not list((tmp_path / "kv").glob("*.kv"))


def test_what_an_earlier_session_kept_is_forgotten(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    path, other = str(work / "a.py"), str(work / "b.py")

    def learn(text: str, path: str) -> list[Path]:
        engine = LocalEngine(EMBEDDED_TARGET, exact=True, learnt_folder=tmp_path / "learnt")
        with contextlib.closing(engine):
            Completer(engine, replace(Config(), max_tokens=4)).learn(text, path, "python", str(work))
        return list((tmp_path / "learnt").rglob("*.sqlite"))

    assert learn(CODE * 8 + PASTED[:-8], path)
    assert learn(CODE + PASTED, other), "nothing of that file was ever kept"
    assert learn(CODE * 8 + PASTED, path) == []


def test_a_link_is_judged_by_what_it_points_to_now(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(CODE)
    (tmp_path / ".env").write_text("A=1\n")
    link = tmp_path / "link.py"
    try:
        link.symlink_to(tmp_path / "plain.py")
    except OSError:
        pytest.skip("not everybody may, on Windows")
    surroundings = Surroundings()
    document = Document(link.as_uri(), CODE, 1, "python")
    surroundings.opened(document, str(tmp_path))
    assert surroundings.private(document, str(tmp_path)) == ""
    link.unlink()
    link.symlink_to(tmp_path / ".env")
    assert "secrets" in surroundings.private(document, str(tmp_path))
