"""The command line. Everything heavy is imported by the command that needs it: ``--help`` stays fast."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codespec import show
from codespec.cli_bench import (
    run_bench_decode,
    run_bench_gate,
    run_bench_grammar,
    run_bench_inflate,
    run_bench_latency,
    run_bench_learning,
    run_bench_quality,
    run_bench_sources,
)
from codespec.cli_grammar import (
    grammar_in,
    read_grammar,
    run_grammar_accepts,
    run_grammar_check,
    run_grammar_convert,
    warned,
)
from codespec.cli_learnt import run_learnt_clear, run_learnt_list
from codespec.cli_models import (
    run_models_inspect,
    run_models_list,
    run_models_pull,
    run_models_remove,
    run_models_suggest,
    run_models_use,
)
from codespec.errors import CodespecError
from codespec.exit_codes import ANSWER_IS_NO, BAD_INPUT, DONE, INTERNAL
from codespec.files import MAX_TEXT, STANDARD_INPUT, read_input
from codespec.options import build_parser
from codespec.terminal import guarded, write_own

if TYPE_CHECKING:
    from codespec.completion.completer import Completer
    from codespec.config import Config
    from codespec.grammar import Grammar
    from codespec.protocols import Sampling


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code: 0 done, 1 the answer is no, 2 bad usage or input, 3 internal failure."""
    with guarded():
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    parser = build_parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "command"):
        parser.print_help()
        return BAD_INPUT
    logging.basicConfig(level=logging.DEBUG if options.debug else logging.WARNING, format="%(name)s: %(message)s")
    try:
        return COMMANDS[options.command](options)
    except CodespecError as error:
        if options.debug:
            raise
        show.error(str(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader went away, as `| head` does; nothing more can be said to it.
        sys.stderr.close()
        return DONE
    except Exception as error:
        if options.debug:
            raise
        show.error(f"internal failure: {type(error).__name__}: {error}; run again with --debug and report what it says")
        return INTERNAL


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
    """What a person means on a command line: a file of the current folder, if there is one of that name."""
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
        verify=options.verify,
    )


def run_complete(options: argparse.Namespace) -> int:
    """``codespec complete``."""
    from codespec.completion.load import load_completer
    from codespec.completion.request import Request
    from codespec.languages import by_path

    path, text, offset = read_position(options.position or f"{STANDARD_INPUT}:{options.in_standard_input}")
    config = load_config(options)
    language = options.language or by_path(str(path)).id
    completer = load_completer(config, show.progress(), exact=options.exact, sampling=sampling_of(options, config))
    try:
        place = _workspace_of(path)
        completions = completer.complete(Request(text, offset, language, str(path), options.n, workspace=place))
        for completion in completions:
            if options.json:
                print(json.dumps(completion.as_json()), flush=True)
            elif options.show:
                _show_completion(completer, completion, text[:offset], text[offset:])
            else:
                print(completion.text)
    finally:
        completer.close()
    return DONE


def _workspace_of(path: Path) -> str:
    """The nearest folder above a file that looks like a workspace; empty for none."""
    from codespec.config import FILE_NAME

    folders = path.resolve().parents
    return next((str(each) for each in folders if (each / FILE_NAME).exists() or (each / ".git").exists()), "")


def read_position(position: str) -> tuple[Path, str, int]:
    """The file, its text and the offset of ``FILE:LINE[:COL]``.

    Raises:
        CodespecError: no such file or place, or no text.
    """
    name = position
    numbers: list[int] = []
    while len(numbers) < 2 and ":" in name and name.rpartition(":")[2].isdigit():
        name, _, number = name.rpartition(":")
        numbers.insert(0, int(number))
    if not numbers:
        raise CodespecError(f"{position}: no line given; write FILE:LINE or FILE:LINE:COL")
    path, text = read_input(name, MAX_TEXT)
    lines = text.split("\n")
    row = numbers[0]
    if not 1 <= row <= len(lines):
        raise CodespecError(f"{path}:{row}: the last line is {len(lines)}")
    line = lines[row - 1].removesuffix("\r")
    column = numbers[1] if len(numbers) > 1 else len(line) + 1
    if not 1 <= column <= len(line) + 1:
        raise CodespecError(f"{path}:{row}:{column}: line {row} has {len(line)} characters")
    return Path(path), text, sum(len(each) + 1 for each in lines[: row - 1]) + column - 1


def _show_completion(completer: Completer, completion: object, prefix: str, suffix: str) -> None:
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


def run_generate(options: argparse.Namespace) -> int:
    """``codespec generate``."""
    from codespec.completion.load import load_completer
    from codespec.protocols import Limits

    prompt = read_input(STANDARD_INPUT, MAX_TEXT)[1] if options.prompt == STANDARD_INPUT else options.prompt
    grammar = _grammar_of(options)
    options.grammar = None  # the settings' key is about documents
    config = load_config(options)
    completer = load_completer(config, show.progress(), exact=options.exact, sampling=sampling_of(options, config))
    limits = Limits(config.max_tokens, config.time_budget_ms or None)
    texts = completer.generate(
        prompt, grammar, options.n, limits, config.draft, options.language, _file_name(options, grammar)
    )
    count = 0
    try:
        for completion in texts:
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


def _file_name(options: argparse.Namespace, grammar: Grammar | None) -> str:
    """A name for what is generated, where the grammar says what kind of file it is."""
    from codespec.languages import LANGUAGES

    name = "json" if options.json_schema else grammar.name if grammar else ""
    suffix = next((language.suffixes[0] for language in LANGUAGES.values() if name and language.grammar == name), "")
    return f"output{suffix}" if suffix else ""


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


def run_serve(options: argparse.Namespace) -> int:
    """``codespec serve``."""
    from codespec.lsp import serve

    return serve(
        stdio=not (options.tcp or options.ws),
        tcp=options.tcp,
        ws=options.ws,
        token_file=options.token_file,
        in_process=options.in_process,
    )


def run_model_process(options: argparse.Namespace) -> int:
    """``codespec model-process``, which language servers start."""
    if options.stop:
        from codespec.daemon.client import stop_model_process

        return DONE if stop_model_process() else ANSWER_IS_NO
    from codespec.daemon.process import run

    return run(options.name)


def run_profile(options: argparse.Namespace) -> int:
    """``codespec profile``."""
    from dataclasses import replace

    from codespec.bench.profile import run

    config = load_config(options)
    if options.threads is not None:
        config = replace(config, target=replace(config.target, threads=options.threads))
    return run(
        config,
        options.language,
        options.contexts,
        options.repeats,
        options.out,
        options.json,
        show.progress(),
        show.error,
    )


def run_train(options: argparse.Namespace) -> int:
    """``codespec train``."""
    try:
        from codespec.train import compare, distil, fetch, heads_report, pipeline
    except ImportError as error:
        raise CodespecError(
            f"training needs the extra: pip install 'codespec[train]' ({error.name} is missing)"
        ) from None
    try:
        of_their_own = {"heads": heads_report.run, "compare": compare.run, "fetch": fetch.run}
        if options.model in of_their_own:
            return of_their_own[options.model](options)
        of_run_folder = options.out is not None and (options.out / "target" / "checkpoint.pt").exists()
        if options.model == "draft" and (options.target or options.from_logs or not of_run_folder):
            from codespec.config import load

            if options.passes > 1:
                raise CodespecError("--passes is for a run folder; with a target in a GGUF file --minutes decide")
            options.target = options.target or load()[0].target.path
            return distil.run(options)
        if options.model == "draft" and options.trim:
            raise CodespecError("--trim is for a target in a GGUF file: name it with --target")
        return pipeline.run(options)
    except ValueError as error:
        raise CodespecError(str(error)) from error


def run_doctor(options: argparse.Namespace) -> int:
    """``codespec doctor``."""
    from codespec.doctor import report

    return DONE if report() else ANSWER_IS_NO


COMMANDS = {
    "doctor": run_doctor,
    "complete": run_complete,
    "generate": run_generate,
    "serve": run_serve,
    "model-process": run_model_process,
    "grammar check": run_grammar_check,
    "grammar accepts": run_grammar_accepts,
    "grammar convert": run_grammar_convert,
    "models list": run_models_list,
    "models inspect": run_models_inspect,
    "models pull": run_models_pull,
    "models remove": run_models_remove,
    "models use": run_models_use,
    "models suggest": run_models_suggest,
    "learnt clear": run_learnt_clear,
    "learnt list": run_learnt_list,
    "profile": run_profile,
    "bench decode": run_bench_decode,
    "bench latency": run_bench_latency,
    "bench learning": run_bench_learning,
    "bench quality": run_bench_quality,
    "bench grammar": run_bench_grammar,
    "bench gate": run_bench_gate,
    "bench inflate": run_bench_inflate,
    "bench sources": run_bench_sources,
    "train": run_train,
}
