"""``codespec complete`` and ``generate``, and the settings as options change them; what is heavy is imported when it
runs."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codespec.cli import show
from codespec.cli.grammar import grammar_in, read_grammar, warned
from codespec.errors import CodespecError
from codespec.exit_codes import DONE
from codespec.files import MAX_TEXT, STANDARD_INPUT, read_input
from codespec.line_ends import without_lone_returns
from codespec.terminal import write_own

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from codespec.completion.completer import Completer
    from codespec.completion.remote_completer import RemoteCompleter
    from codespec.completion.request import Completion
    from codespec.config import Config
    from codespec.engine.engine import Generating
    from codespec.grammar import Grammar
    from codespec.protocols import Sampling

LARGE = 200_000
"""Characters of a file from which on only a part around the position is used, as in editors."""
LARGEST = 1 << 25
"""Bytes of a file to complete in."""


def run_complete(options: argparse.Namespace) -> int:
    """``codespec complete``: print completions of a place in a file, in each of its forms; the exit code."""
    from codespec.completion.load import load_completer
    from codespec.completion.nothing import why_nothing
    from codespec.completion.request import Request
    from codespec.languages import by_path

    path, whole, place = read_position(options.position or f"{STANDARD_INPUT}:{options.in_standard_input}")
    text, offset, begins, ends = excerpt(whole, place)
    row = whole.count("\n", 0, place)
    del whole
    config = load_config(options)
    language = options.language or by_path(str(path)).id
    completer = load_completer(config, show.progress(), exact=options.exact, sampling=sampling_of(options, config))
    try:
        workspace = _workspace_of(path)
        request = Request(text, offset, language, str(path), options.n, workspace=workspace, begins=begins, ends=ends)
        completions = completer.complete(request)
        for completion in completions:
            if options.json:
                print(json.dumps(completion.as_json()), flush=True)
            elif options.show:
                _show_completion(completer, completion, text[:offset], text[offset:])
            else:
                print(completion.text)
        if not any(completion.text for completion in completions):
            show.error(f"no completion: {why_nothing(completions, row).why}")
    finally:
        completer.close()
    return DONE


def run_generate(options: argparse.Namespace) -> int:
    """``codespec generate``: print texts for a prompt, under a grammar if one is given; the exit code."""
    from codespec.completion.load import load_completer
    from codespec.completion.remote_completer import RemoteCompleter
    from codespec.languages import output_name
    from codespec.protocols import Limits

    prompt = read_input(STANDARD_INPUT, MAX_TEXT)[1] if options.prompt == STANDARD_INPUT else options.prompt
    grammar = _grammar_of(options)
    options.grammar = None  # the settings' key is about documents
    config = load_config(options)
    completer = load_completer(config, show.progress(), exact=options.exact, sampling=sampling_of(options, config))
    limits = Limits(config.max_tokens, config.time_budget_ms or None)

    def texts(one: Completer) -> Iterator[Completion]:
        return one.generate(
            _chat(one.engine, prompt, options.system) if options.chat else prompt,
            grammar,
            options.n,
            limits,
            config.draft,
            options.language,
            output_name("json" if options.json_schema else grammar.name if grammar else ""),
        )

    count = 0
    try:
        found: Iterable[Completion] = (
            completer.answer(lambda each: list(texts(each)))
            if isinstance(completer, RemoteCompleter)
            else texts(completer)
        )
        for completion in found:
            count += 1
            if options.json:
                print(json.dumps(completion.as_json()), flush=True)
            elif options.show:
                _show_completion(completer, completion, prompt, "")
            else:
                print(completion.text, flush=True)
    finally:
        completer.close()
    if count < options.n:
        remedy = "raise --temperature" if config.temperature else "set a --temperature above 0"
        show.error(f"only {count} of {options.n} texts: further draws repeat them; {remedy}, if there are any others")
    return DONE


def _chat(engine: Generating, prompt: str, system: str) -> list[int]:
    """The prompt as a user's message, as the model was trained to see it, in tokens of this engine."""
    from codespec.http.apis.chat_template import chat_tokens

    messages = [{"role": "system", "content": system}] if system else []
    return chat_tokens(engine, [*messages, {"role": "user", "content": prompt}])


def load_config(options: argparse.Namespace) -> Config:
    """The settings of the files, with the options of the command line over them."""
    from dataclasses import replace

    from codespec.config import load

    config, messages = load(Path.cwd())
    for message in messages:
        show.error(message)
    if options.target is not None:
        config = replace(config, target=replace(config.target, path=_file_or_name(options.target)))
    chosen: dict[str, Any] = {}
    for key in ("draft", "grammar"):
        if getattr(options, key, None) is not None:
            chosen |= {key: _file_or_name(getattr(options, key)), "language": {}}
    for key in ("max_tokens", "temperature", "seed", "draft_length", "gate"):
        if getattr(options, key, None) is not None:
            chosen[key] = getattr(options, key)
    config = replace(config, **chosen)
    # A person at a terminal waits for the whole text; the settings' budget is an editor's.
    return replace(config, time_budget_ms=getattr(options, "time_budget", None) or 0)


def _file_or_name(value: str) -> str:
    """An argument as a file of the current folder, if there is one of that name; else as it is."""
    return str(Path(value).resolve()) if Path(value).is_file() else value


def sampling_of(options: argparse.Namespace, config: Config) -> Sampling:
    """The sampling options of the command line."""
    from codespec.protocols import Sampling

    return Sampling(
        temperature=config.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        min_p=options.min_p,
        seed=config.seed,
    )


def _workspace_of(path: Path) -> str:
    """The nearest folder above a file that looks like a workspace; empty for none."""
    from codespec.config import FILE_NAME

    folders = path.resolve().parents
    return next((str(each) for each in folders if (each / FILE_NAME).exists() or (each / ".git").exists()), "")


def read_position(position: str) -> tuple[Path, str, int]:
    """The file, its text and the offset of ``FILE:LINE[:COL]``.

    Raises:
        CodespecError: no such file or position, or no text.
    """
    name = position
    numbers: list[int] = []
    while len(numbers) < 2 and ":" in name and name.rpartition(":")[2].isdigit():
        name, _, number = name.rpartition(":")
        numbers.insert(0, int(number))
    if not numbers:
        raise CodespecError(f"{position}: no line given; write FILE:LINE or FILE:LINE:COL")
    if name != STANDARD_INPUT and Path(name).exists() and not Path(name).is_file():
        raise CodespecError(f"{name}: is no file; give a file, or - for standard input")
    path, text = read_input(name, LARGEST)
    text = without_lone_returns(text)
    row = numbers[0]
    count = text.count("\n") + 1
    if not 1 <= row <= count:
        raise CodespecError(f"{path}:{row}: no such line; give one from 1 to {count}")
    start = 0
    for _ in range(row - 1):
        start = text.index("\n", start) + 1
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    length = end - start - text.endswith("\r", start, end)
    column = numbers[1] if len(numbers) > 1 else length + 1
    if not 1 <= column <= length + 1:
        raise CodespecError(f"{path}:{row}:{column}: no such column; give one from 1 to {length + 1}")
    return Path(path), text, start + column - 1


def excerpt(text: str, offset: int) -> tuple[str, int, bool, bool]:
    """The part of a text that is completed, the offset in it, and whether it begins and ends as the text does."""
    if len(text) <= LARGE:
        return text, offset, True, True
    start, end = max(0, offset - LARGE // 2), min(len(text), offset + LARGE // 2)
    start = max(start, text.find("\n", start, offset) + 1) if start else 0  # at the start of a line, if there is one
    return text[start:end], offset - start, start == 0, end == len(text)


def _show_completion(completer: Completer | RemoteCompleter, completion: object, prefix: str, suffix: str) -> None:
    from codespec.completion.request import Completion

    assert isinstance(completion, Completion)
    colour = show.wants_colour(sys.stdout)
    before = "\n".join(prefix[: len(prefix) - completion.backed_up].split("\n")[-12:])
    after = "\n".join(suffix.split("\n")[:6]).rstrip()
    vocabulary = completer.engine.vocabulary
    shown = show.completion(completion.rounds, vocabulary, completion.backed_up, completion.text, colour)
    painted = show.paint(before, "dim", colour) + shown + show.paint(after, "dim", colour)
    write_own(f"{painted}\n\n{show.legend(colour)}\n", sys.stdout)
    pass_ms = completer.status()["pass_ms"]
    for line in show.summary(completion.report, completion.finish_reason, completion.rounds, pass_ms):
        print(line)


def _grammar_of(options: argparse.Namespace) -> Grammar | None:
    from codespec.grammar import Grammar
    from codespec.grammar.library import to_generate

    if options.grammar:
        source = read_grammar(to_generate(options.grammar), "gbnf")
        return warned(Grammar.load(source, lenient=options.lenient, extensions=options.extensions))
    if options.json_schema:
        return warned(Grammar.load(grammar_in("json", options.json_schema), lenient=options.lenient))
    if options.lark:
        return warned(Grammar.load(grammar_in("lark", options.lark)))
    if options.regex is not None:
        return Grammar.from_outside("regex", options.regex, "regex")
    return None
