"""Prompts to measure decoding with, made from files that no model was trained on: by default codespec's own."""

from __future__ import annotations

import ast
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from codespec.completion.prompt.prompt import fim_prompt, tail
from codespec.engine.local import LocalEngine
from codespec.grammar import Grammar
from codespec.languages import by_path
from codespec.models.fim import fim_format
from codespec.protocols import CodespecError, GrammarState

SETS = ("code", "json", "python", "repetitive", "code replayed", "repetitive replayed")
OF_ANY_LANGUAGE = frozenset({"code", "code replayed"})
"""The sets that need no Python files."""

SPARE = 34  # rows of the context beyond prompt and text, for proposals that run past the end
CHARACTERS = 4  # of a token of code, about
_TRIES = 400


@dataclass(frozen=True)
class Prompt:
    """Something to go on from.

    Attributes:
        tokens: what the target reads.
        grammar: of the text, or None; ``before`` is what of the text it has seen.
        known: what the target is to write, where a text is replayed.
        text: what stands before the cursor, for people.
    """

    name: str
    tokens: tuple[int, ...]
    language: str = "python"
    grammar: str | None = None
    before: str = ""
    known: tuple[int, ...] | None = None
    text: str = ""

    def state(self, engine: LocalEngine) -> GrammarState | None:
        """A grammar state at the place of the prompt, a new one each time."""
        if self.grammar is None:
            return None
        state = engine.grammar_state(Grammar.load(self.grammar))
        tokens = engine.vocabulary.tokenize(self.before)
        if state.accept(tokens) != len(tokens):
            raise CodespecError(f"{self.name}: the grammar {self.grammar!r} refuses what stands before the cursor")
        return state


def prompts(
    engine: LocalEngine, name: str, files: Sequence[Path], count: int, tokens: int, seed: int, as_text: bool = False
) -> list[Prompt]:
    """``count`` prompts of a set, the same ones for the same arguments.

    * ``code``: the cursor at a line's end of a file, with what follows (FIM).
    * ``json``: behind a JSON list of some of a file's functions, to write another document, under the grammar ``json``.
    * ``python``: the beginning of a file, under the grammar ``python``.
    * ``repetitive``: three functions of a file, then the same three under other names, the cursor in the first third.
    * ``… replayed``: the target writes what really stands there (for ``code`` lines are cut out).

    Raises:
        CodespecError: the files do not yield that many.
    """
    maker = _MAKERS[name]
    chooser = random.Random(f"{name} {seed}")
    texts = [(path.name, path.read_text("utf-8")) for path in files]
    made = maker(_Context(engine, tokens, chooser), texts)
    found = list(islice((each for each in made if not as_text or _is_as_text(engine, each)), count))
    if len(found) < count:
        raise CodespecError(f"the files give only {len(found)} of {count} prompts of the set {name!r}; name more files")
    return found


def _is_as_text(engine: LocalEngine, prompt: Prompt) -> bool:
    """Whether the tokenizer makes the prompt's tokens of its text, markers included."""
    texts = engine.vocabulary.texts
    text = b"".join(texts[token] for token in prompt.tokens if token != engine.vocabulary.beginning)
    beginning = engine.vocabulary.beginning
    read = engine.vocabulary.tokenize(text.decode("utf-8", "replace"), special=True)
    return [*([] if beginning is None else [beginning]), *read] == list(prompt.tokens)


class _Context:
    """What the makers need."""

    def __init__(self, engine: LocalEngine, tokens: int, chooser: random.Random) -> None:
        self.engine, self.wanted, self.chooser = engine, tokens, chooser
        self.layout = fim_format(engine.model)

    def between(self, prefix: str, suffix: str, name: str) -> list[int]:
        """A prompt for what stands between two texts, or after the first where the model cannot do better."""
        vocabulary = self.engine.vocabulary
        room = self.engine.context_length - self.wanted - SPARE
        if self.layout is not None:
            return fim_prompt(vocabulary, self.layout, prefix, suffix, name, room)
        start = [vocabulary.beginning] if vocabulary.beginning is not None else []
        return [*start, *tail(vocabulary, prefix, room - len(start))]

    def row(self, lines: Sequence[Any], first: int, last: int) -> int:
        return self.chooser.randrange(first, max(first + 1, last))

    def known(self, lines: Sequence[str], row: int) -> tuple[tuple[int, ...], int]:
        """The tokens of the lines from ``row`` on, as many as are wanted, and the line after them."""
        for end in range(row + 1, len(lines) + 1):
            tokens = self.engine.vocabulary.tokenize("\n".join(lines[row:end]) + "\n")
            if len(tokens) >= self.wanted:
                return tuple(tokens[: self.wanted]), end
        return (), len(lines)


Texts = Sequence[tuple[str, str]]


def _cursors(context: _Context, texts: Texts, first: int = 10) -> Iterator[tuple[str, list[str], int]]:
    """File name, lines and a random row, over and over."""
    usable = [(name, lines) for name, text in texts if len(lines := text.split("\n")) > first + 10]
    for index in range(_TRIES if usable else 0):
        name, lines = usable[index * 7 % len(usable)]
        yield name, lines, context.row(lines, first, len(lines) - 5)


def _code(context: _Context, texts: Texts) -> Iterator[Prompt]:
    for name, lines, row in _cursors(context, texts):
        before = "\n".join(lines[:row]) + "\n"
        tokens = context.between(before, "\n" + "\n".join(lines[row:]), name)
        yield Prompt(f"{name}:{row + 1}", tuple(tokens), by_path(name).id, text=before)


def _code_replayed(context: _Context, texts: Texts) -> Iterator[Prompt]:
    for name, lines, row in _cursors(context, texts):
        known, end = context.known(lines, row)
        if known:
            before = "\n".join(lines[:row]) + "\n"
            tokens = context.between(before, "\n".join(lines[end:]), name)
            yield Prompt(f"{name}:{row + 1}", tuple(tokens), by_path(name).id, known=known, text=before)


def _python(context: _Context, texts: Texts) -> Iterator[Prompt]:
    for name, lines, _ in _cursors(context, texts):
        before = "\n".join(lines[: context.row(lines, 8, 40)]) + "\n"
        tokens = context.engine.vocabulary.tokenize(before)
        if len(tokens) < context.engine.context_length - context.wanted - SPARE - 16:
            tokens = context.between(before, "", name)
            yield from _accepted(context, Prompt(name, tuple(tokens), "python", "python", before, text=before))


def _json(context: _Context, texts: Texts) -> Iterator[Prompt]:
    documents = [document for _, text in texts if len(document := _functions(text)) >= 3]
    for index in range(_TRIES if documents else 0):
        functions = documents[index * 7 % len(documents)]
        start = context.row(functions, 0, len(functions) - 2)
        before = json.dumps(functions[start : start + 5], indent=2) + "\n\n"
        tokens = context.between(before, "", "x.json")
        yield Prompt(f"functions {index + 1}", tuple(tokens), "json", "json", text=before)


def _accepted(context: _Context, prompt: Prompt) -> Iterator[Prompt]:
    """The prompt, unless its grammar refuses it."""
    try:
        prompt.state(context.engine)
    except CodespecError:
        return
    yield prompt


def _functions(text: str) -> list[dict[str, Any]]:
    """What a tool might say about a file's functions."""
    return [
        {
            "name": node.name,
            "line": node.lineno,
            "arguments": [argument.arg for argument in node.args.args],
            "public": not node.name.startswith("_"),
            "decorators": len(node.decorator_list),
        }
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
    ]


def _doubled(context: _Context, texts: Texts) -> Iterator[tuple[str, list[str], int]]:
    """Three functions and what a person makes of them by copying: the same under other names; the row to go on at."""
    vocabulary = context.engine.vocabulary
    room = context.engine.context_length - context.wanted - SPARE
    blocks = [block for _, text in texts for block in _blocks(text)]
    blocks = [block for block in blocks if len(block[1]) <= room // 6 * CHARACTERS]
    for _ in range(_TRIES if len(blocks) >= 3 else 0):
        chosen = context.chooser.sample(blocks, 3)
        first = "\n\n\n".join(block for _, block in chosen)
        if len(vocabulary.tokenize(first)) > room // 2:
            continue
        second = first
        for name, _ in chosen:
            second = re.sub(rf"\b{name}\b", f"{name}_all", second)
        lines = second.split("\n")
        yield first + "\n\n\n", lines, context.row(lines, 1, len(lines) // 3)


def _blocks(text: str) -> list[tuple[str, str]]:
    """Name and text of the functions of 6 to 22 lines."""
    lines = text.split("\n")
    return [
        (node.name, "\n".join(line[node.col_offset :] for line in lines[node.lineno - 1 : node.end_lineno]))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.end_lineno and 6 <= node.end_lineno - node.lineno <= 22
    ]


def _repetitive(context: _Context, texts: Texts) -> Iterator[Prompt]:
    for index, (first, lines, row) in enumerate(_doubled(context, texts)):
        before = first + "\n".join(lines[:row]) + "\n"
        yield Prompt(f"copied {index + 1}", tuple(context.between(before, "", "copied.py")), text=before)


def _repetitive_replayed(context: _Context, texts: Texts) -> Iterator[Prompt]:
    for index, (first, lines, row) in enumerate(_doubled(context, texts)):
        known, _ = context.known(lines, row)
        if known:
            before = first + "\n".join(lines[:row]) + "\n"
            tokens = context.between(before, "", "copied.py")
            yield Prompt(f"copied {index + 1}", tuple(tokens), known=known, text=before)


_MAKERS: dict[str, Callable[[_Context, Texts], Iterator[Prompt]]] = {
    "code": _code,
    "json": _json,
    "python": _python,
    "repetitive": _repetitive,
    "code replayed": _code_replayed,
    "repetitive replayed": _repetitive_replayed,
}
