"""The public names: what they are, and that a file is taken as text or as any path."""

import inspect
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import codespec
from codespec import config
from codespec.grammar.check import accepts, check
from codespec.languages import by_id
from codespec.models import info, registry
from codespec.models.registry import EMBEDDED, EMBEDDED_TARGET

EXAMPLE = Path(__file__).parent.parent / "examples" / "project.schema.json"
FUNCTIONS = (accepts, check, config.files, config.load, info.inspect, *(
    getattr(registry, name) for name in ("find_adapter", "find_draft", "find_model", "find_target", "file_or_model")
))  # fmt: skip


class OtherPath(os.PathLike[str]):
    """What is a path and neither text nor ``Path``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return str(self._path)


FORMS = pytest.mark.parametrize("form", [str, Path, OtherPath])
Form = Callable[[Path], Any]


def public_functions() -> Iterator[Callable[..., Any]]:
    """All functions and methods that a user may call."""
    for name in codespec.__all__:
        value = getattr(codespec, name)
        assert value is not None
        members = inspect.getmembers(value) if inspect.isclass(value) else [(name, value)]
        for member, function in members:
            if callable(function) and (member == "__init__" or not member.startswith("_")):
                yield function
    yield from FUNCTIONS


def test_a_path_may_be_text_or_any_path() -> None:
    wrong = [
        f"{function.__qualname__}({parameter})"
        for function in public_functions()
        if inspect.isfunction(function) or inspect.ismethod(function)
        for parameter in inspect.signature(function).parameters.values()
        if re.search(r"(?<!Str)Path\b", str(parameter.annotation).replace("os.PathLike", ""))
    ]
    assert not wrong


@FORMS
def test_grammars(form: Form, tmp_path: Path) -> None:
    written = tmp_path / "pair.gbnf"
    written.write_text('root ::= "a" "b"')
    text = tmp_path / "text"
    text.write_text("ab")
    assert accepts(codespec.Grammar.load(form(written)), form(text)).accepted
    assert check(form(written)) == []
    (tmp_path / "more.lark").write_text('word: "c"')
    grammar = codespec.Grammar.from_lark("%import .more.word\nstart: word", folder=form(tmp_path))
    text.write_text("c")
    assert accepts(grammar, form(text)).accepted


@FORMS
def test_models(form: Form, tmp_path: Path) -> None:
    target = tmp_path / "copy.gguf"
    shutil.copy(EMBEDDED_TARGET, target)
    assert registry.find_target(form(target)) == registry.find_model(form(target)) == target
    assert registry.file_or_model(form(target)) == target
    draft = EMBEDDED / "draft-go.gguf"
    assert registry.find_draft(form(draft), by_id("go")) == draft
    assert info.inspect(form(target)).path == target
    with codespec.Model(form(target), vocabulary_only=True) as model:
        assert model.path == target
    with closing(codespec.LocalEngine(form(target), learnt_folder=form(tmp_path / "learnt"))) as engine:
        engine.drafts.choose(form(draft))
        assert engine.drafts.chosen == engine.drafts.find(form(draft), by_id("go")) == draft
        learnt = engine.drafts.learnt
        assert learnt.of(form(tmp_path), "go") is learnt.of(tmp_path, "go")


@FORMS
def test_settings(form: Form, tmp_path: Path) -> None:
    (tmp_path / "codespec.toml").write_text("max_tokens = 7\n")
    assert config.load(form(tmp_path))[0].max_tokens == 7
    applied, _ = codespec.Config().apply({"draft": "./some.gguf"}, folder=form(tmp_path))
    assert Path(applied.draft) == tmp_path / "some.gguf"
