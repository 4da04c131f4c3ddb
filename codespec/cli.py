"""The command line. Everything heavy is imported by the command that needs it: ``--help`` stays fast."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codespec import show
from codespec.errors import CodespecError

if TYPE_CHECKING:
    from codespec.completion.completer import Completer
    from codespec.config import Config
    from codespec.grammar import Grammar
    from codespec.protocols import Sampling

DONE, ANSWER_IS_NO, BAD_INPUT, INTERNAL = 0, 1, 2, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code: 0 done, 1 the answer is no, 2 bad usage or input, 3 internal failure."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return BAD_INPUT
    logging.basicConfig(level=logging.DEBUG if options.debug else logging.WARNING, format="%(name)s: %(message)s")
    try:
        return int(options.run(options))
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


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="codespec", description="Inline completions from a local code model, drafted per language."
    )
    parser.add_argument("--debug", action="store_true", help="log everything and show tracebacks")
    parser.add_argument("--version", action="version", version=f"codespec {version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_complete(commands)
    _add_generate(commands)
    _add_serve(commands)
    _add_grammar(commands)
    _add_models(commands)
    _add_bench(commands)
    _add_train(commands)
    doctor = commands.add_parser("doctor", help="say what runs here and what is wrong with it")
    doctor.set_defaults(run=run_doctor)
    return parser


def version() -> str:
    """The installed version."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("codespec")
    except PackageNotFoundError:
        return "0 (not installed)"


def _add_sampling(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("sampling")
    group.add_argument("--target", default=None, metavar="NAME|PATH", help="target model (default: settings, embedded)")
    group.add_argument("--draft", default=None, metavar="NAME|PATH|auto|none", help="draft model (default: auto)")
    group.add_argument("--max-tokens", type=_positive, default=None, metavar="N", help="tokens at most (default: 128)")
    group.add_argument("--temperature", type=_not_negative, default=None, metavar="T", help="0 is greedy (default: 0)")
    group.add_argument("--top-k", type=int, default=40, metavar="K", help="0 is off (default: 40)")
    group.add_argument("--top-p", type=_share, default=0.95, metavar="P", help="1 is off (default: 0.95)")
    group.add_argument("--min-p", type=_share, default=0.05, metavar="P", help="0 is off (default: 0.05)")
    group.add_argument("--seed", type=int, default=None, metavar="N", help="same seed, same text (default: 0)")
    group.add_argument("--n", type=_positive, default=1, metavar="N", help="how many different texts (default: 1)")
    group.add_argument(
        "--draft-length", type=int, default=None, metavar="K", help="tokens drafted at a time (default: 4)"
    )
    group.add_argument("--verify", choices=["gumbel"], default="gumbel", help="how drafts are verified")
    group.add_argument("--exact", action="store_true", help="the same text with any draft or none, more slowly")
    group.add_argument("--time-budget", type=_positive, default=None, metavar="MS", help="stop after so long")
    group.add_argument("--json", action="store_true", help="one JSON object per text")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _not_negative(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError("must be 0 or more")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError("must be between 0 and 1")
    return value


def _add_complete(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("complete", help="complete a file at a position")
    parser.add_argument("position", metavar="FILE:LINE[:COL]", help="both count from 1; no COL is the end of the line")
    parser.add_argument("--language", metavar="ID", help="LSP language identifier (default: by the file's name)")
    parser.add_argument("--grammar", metavar="NAME|PATH|auto|none", default=None, help="constrain (default: none)")
    parser.add_argument("--show", action="store_true", help="show where each token came from")
    _add_sampling(parser)
    parser.set_defaults(run=run_complete)


def _add_generate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("generate", help="generate text that matches a grammar")
    parser.add_argument("prompt", nargs="?", default="", metavar="PROMPT | -", help="text to go on from; - reads it")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--grammar", metavar="NAME|FILE", help="a shipped grammar, .gbnf, .lark or .json (schema)")
    kinds.add_argument("--json-schema", metavar="FILE", help="a JSON Schema")
    kinds.add_argument("--lark", metavar="FILE", help="a grammar in Lark's notation")
    kinds.add_argument("--regex", metavar="RE", help="a regular expression")
    parser.add_argument("--language", metavar="ID", default="python", help="whose draft to use (default: python)")
    parser.add_argument("--show", action="store_true", help="show where each token came from")
    _add_sampling(parser)
    parser.set_defaults(run=run_generate)


def _add_serve(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("serve", help="run the language server")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--stdio", action="store_true", help="over standard input and output (default)")
    ways.add_argument("--tcp", metavar="HOST:PORT", type=_address, help="over TCP")
    ways.add_argument("--ws", metavar="HOST:PORT", type=_address, help="over a web socket")
    parser.set_defaults(run=run_serve)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError("give HOST:PORT, such as 127.0.0.1:8765")
    return host, int(port)


def _add_grammar(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("grammar", help="check grammars, and files against them")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    check = actions.add_parser("check", help="say what is wrong with a grammar")
    check.add_argument("file", metavar="FILE", help="a shipped name, .gbnf, .lark or .json")
    check.set_defaults(run=run_grammar_check)
    accepts = actions.add_parser("accepts", help="say whether files match a grammar, and where not")
    accepts.add_argument("grammar", metavar="GRAMMAR")
    accepts.add_argument("files", nargs="+", metavar="FILE")
    accepts.add_argument("--json", action="store_true", help="a list of {file, accepted, line, column}")
    accepts.set_defaults(run=run_grammar_accepts)


def _add_models(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("models", help="the models at hand")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    actions.add_parser("list", help="name them").set_defaults(run=run_models_list)


def _add_bench(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("bench", help="measure")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    decode = actions.add_parser("decode", help="speed and acceptance with the draft against the target alone")
    decode.add_argument("files", nargs="*", type=Path, metavar="FILE", help="text to complete (default: examples)")
    decode.add_argument("--out", type=Path, metavar="DIR", help="write decode.json there")
    decode.add_argument("--positions", type=_positive, default=50, metavar="N")
    decode.add_argument("--draft-length", type=_positive, default=4, metavar="K")
    decode.set_defaults(run=run_bench_decode)


def _add_train(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("train", help="train a target, or a draft for one (needs codespec[train])")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    for name, text in (("target", "train a target"), ("draft", "distil a draft on the target of the same --out")):
        action = actions.add_parser(name, help=text)
        action.add_argument("--out", type=Path, required=True, metavar="DIR", help="run folder; continued if it exists")
        action.add_argument("--corpus", type=Path, nargs="*", default=[], metavar="DIR", help="source folders")
        action.add_argument("--minutes", type=float, default=75.0 if name == "target" else 20.0, metavar="M")
        action.add_argument("--max-steps", type=_positive, default=None, metavar="N")
        action.add_argument("--size", choices=["small", "tiny"], default="small", help="tiny is for trying things out")
        action.add_argument("--quantization", default="q8_0", choices=["q8_0", "q4_0", "f16", "f32"])
        if name == "draft":
            action.add_argument("--language", required=True, metavar="ID")
        action.set_defaults(run=run_train, model=name)


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
    for key in ("max_tokens", "temperature", "seed", "draft_length"):
        if getattr(options, key) is not None:
            chosen[key] = getattr(options, key)
    config = replace(config, **chosen)
    # A person at a terminal waits for the whole text; the settings' budget is an editor's.
    return replace(config, time_budget_ms=options.time_budget or 0)


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
    )


def run_complete(options: argparse.Namespace) -> int:
    """``codespec complete``."""
    from codespec.completion.completer import Request, load_completer
    from codespec.languages import by_path

    path, text, offset = read_position(options.position)
    config = load_config(options)
    language = options.language or by_path(str(path)).id
    completer = load_completer(config, _progress(), exact=options.exact, sampling=sampling_of(options, config))
    try:
        completions = completer.complete(Request(text, offset, language, str(path), count=options.n))
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


def read_position(position: str) -> tuple[Path, str, int]:
    """The file, its text and the offset of ``FILE:LINE[:COL]``.

    Raises:
        CodespecError: no such file or place.
    """
    name = position
    numbers: list[int] = []
    while len(numbers) < 2 and ":" in name and name.rpartition(":")[2].isdigit():
        name, _, number = name.rpartition(":")
        numbers.insert(0, int(number))
    if not numbers:
        raise CodespecError(f"{position}: no line given; write FILE:LINE or FILE:LINE:COL")
    path = Path(name)
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise CodespecError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise CodespecError(f"{path}: not UTF-8 (byte {error.start}); convert the file") from None
    lines = text.split("\n")
    row = numbers[0]
    if not 1 <= row <= len(lines):
        raise CodespecError(f"{path}:{row}: the file has {len(lines)} lines")
    line = lines[row - 1].removesuffix("\r")
    column = numbers[1] if len(numbers) > 1 else len(line) + 1
    if not 1 <= column <= len(line) + 1:
        raise CodespecError(f"{path}:{row}:{column}: line {row} has {len(line)} characters")
    return path, text, sum(len(each) + 1 for each in lines[: row - 1]) + column - 1


def _show_completion(completer: Completer, completion: object, prefix: str, suffix: str) -> None:
    from codespec.completion.completer import Completion

    assert isinstance(completion, Completion)
    colour = show.wants_colour(sys.stdout)
    before = "\n".join(prefix[: len(prefix) - completion.backed_up].split("\n")[-12:])
    after = "\n".join(suffix.split("\n")[:6])
    length = completion.backed_up + len(completion.text)
    shown = show.rounds(completion.rounds, completer.engine.vocabulary, length, colour)
    report = completion.report
    print(show.paint(before, "dim", colour) + shown + show.paint(after, "dim", colour))
    print()
    print(show.legend(colour))
    print(
        f"{report['tokens']} tokens in {report['target_calls']} target calls, "
        f"{report['accepted']} of {report['drafted']} drafted tokens accepted, "
        f"{report['timings_ms']['total']:.0f} ms; finished: {completion.finish_reason}; grammar: {report['grammar']}"
    )


def run_generate(options: argparse.Namespace) -> int:
    """``codespec generate``."""
    from codespec.completion.completer import load_completer
    from codespec.protocols import Limits

    prompt = sys.stdin.read() if options.prompt == "-" else options.prompt
    grammar = _grammar_of(options)
    options.grammar = None  # the settings' key is about documents
    config = load_config(options)
    completer = load_completer(config, _progress(), exact=options.exact, sampling=sampling_of(options, config))
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
    from codespec.grammar.grammar import MAX_FILE, read_text

    if options.grammar:
        return Grammar.load(options.grammar)
    if options.json_schema:
        return Grammar.from_json_schema(read_text(Path(options.json_schema), MAX_FILE), options.json_schema)
    if options.lark:
        return Grammar.from_lark(read_text(Path(options.lark), MAX_FILE), options.lark)
    if options.regex is not None:
        return Grammar.from_regex(options.regex)
    return None


def _progress() -> Callable[[str, int], None] | None:
    if not sys.stderr.isatty():
        return None

    def report(message: str, percent: int) -> None:
        end = "\r\033[K" if percent >= 100 else ""
        print(f"\r{message} {percent}%", end=end, file=sys.stderr, flush=True)

    return report


def run_serve(options: argparse.Namespace) -> int:
    """``codespec serve``."""
    from codespec.lsp import serve

    return serve(stdio=not (options.tcp or options.ws), tcp=options.tcp, ws=options.ws)


def run_grammar_check(options: argparse.Namespace) -> int:
    """``codespec grammar check``."""
    from codespec.grammar.check import check

    problems = check(options.file)
    for problem in problems:
        print(problem)
    if not problems:
        print(f"{options.file}: no problems found")
    return ANSWER_IS_NO if problems else DONE


def run_grammar_accepts(options: argparse.Namespace) -> int:
    """``codespec grammar accepts``."""
    from codespec.grammar import Grammar
    from codespec.grammar.check import accepts

    grammar = Grammar.load(options.grammar)
    answers = [accepts(grammar, path) for path in options.files]
    if options.json:
        fields = ("file", "accepted", "line", "column")
        print(json.dumps([{name: getattr(answer, name) for name in fields} for answer in answers], default=str))
    else:
        for a in answers:
            print(
                f"{a.file}: accepted"
                if a.accepted
                else f"{a.file}: rejected at {a.line}:{a.column}, expected {a.expected}"
            )
    return DONE if all(answer.accepted for answer in answers) else ANSWER_IS_NO


def run_models_list(options: argparse.Namespace) -> int:
    """``codespec models list``."""
    from codespec.models.registry import EMBEDDED, models_folder

    for folder in (EMBEDDED, models_folder()):
        for path in sorted(folder.glob("*.gguf")):
            print(f"{path.stem:24} {path.stat().st_size / 1e6:10.1f} MB  {path}")
    return DONE


def run_bench_decode(options: argparse.Namespace) -> int:
    """``codespec bench decode``."""
    from codespec.bench.decode import run

    return run(options.files, options.positions, options.draft_length, options.out)


def run_train(options: argparse.Namespace) -> int:
    """``codespec train``."""
    try:
        from codespec.train import pipeline
    except ImportError as error:
        raise CodespecError(
            f"training needs the extra: pip install 'codespec[train]' ({error.name} is missing)"
        ) from None
    try:
        return pipeline.run(options)
    except ValueError as error:
        raise CodespecError(str(error)) from error


def run_doctor(options: argparse.Namespace) -> int:
    """``codespec doctor``."""
    from codespec.doctor import report

    return DONE if report() else ANSWER_IS_NO
