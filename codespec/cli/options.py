"""The options of the command line. Imports nothing heavy, so that ``--help`` stays fast."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from codespec.cli.option_values import count, not_negative, positive, share, whole
from codespec.cli.options_train import add_train
from codespec.cli.setup import EDITORS
from codespec.languages import USUAL


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="codespec", description="Inline completions from a local code model, drafted per language."
    )
    parser.add_argument("--debug", action="store_true", help="log everything and show tracebacks")
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_setup(commands)
    _add_complete(commands)
    _add_generate(commands)
    _add_serve(commands)
    _add_model_process(commands)
    _add_grammar(commands)
    _add_models(commands)
    _add_learnt(commands)
    add_train(commands)
    doctor = commands.add_parser("doctor", help="show the installation, models and settings, and report problems")
    doctor.set_defaults(command="doctor")
    return parser


class _Version(argparse.Action):
    """Prints the version, which is looked up only then: that takes as long as everything else here together."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help="show program's version number and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"codespec {version()}")
        parser.exit()


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
    group.add_argument("--max-tokens", type=positive, default=None, metavar="N", help="tokens at most (default: 128)")
    group.add_argument(
        "--temperature", type=not_negative, default=None, metavar="T",
        help="randomness; 0 always takes the likeliest token (default: 0)",
    )  # fmt: skip
    group.add_argument(
        "--top-k", type=count, default=40, metavar="K",
        help="sample from the K likeliest tokens only; 0 is off (default: 40)",
    )  # fmt: skip
    group.add_argument(
        "--top-p", type=share, default=0.95, metavar="P",
        help="sample from the likeliest tokens, up to a total probability of P; 1 is off (default: 0.95)",
    )  # fmt: skip
    group.add_argument(
        "--min-p", type=share, default=0.05, metavar="P",
        help="drop tokens less than P times as likely as the likeliest; 0 is off (default: 0.05)",
    )  # fmt: skip
    group.add_argument("--seed", type=whole, default=None, metavar="N", help="same seed, same text (default: 0)")
    group.add_argument("--n", type=positive, default=1, metavar="N", help="how many different texts (default: 1)")
    group.add_argument(
        "--draft-length", type=count, default=None, metavar="K",
        help="tokens drafted at a time at most (default: 0, as many as pay)",
    )  # fmt: skip
    group.add_argument("--exact", action="store_true", help="the same text with any draft or none, more slowly")
    group.add_argument("--time-budget", type=positive, default=None, metavar="MS", help="stop after MS milliseconds")
    group.add_argument("--json", action="store_true", help="one JSON object per text")


def _add_setup(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("setup", help="start here: choose an editor, and download and use a model")
    parser.add_argument("--editor", choices=EDITORS, help="whose next steps to show (default: ask)")
    parser.add_argument("--model", metavar="NAME|embedded", help="model to use, as for `models pull` (default: ask)")
    parser.add_argument("--no-fetch", action="store_true", help="download nothing: use the model only if it is here")
    parser.add_argument("--yes", action="store_true", help="ask nothing: download, and accept the suggestions")
    parser.set_defaults(command="setup")


def _add_complete(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("complete", help="complete a file at a position")
    places = parser.add_mutually_exclusive_group(required=True)
    places.add_argument(
        "position", nargs="?", metavar="FILE:LINE[:COL]", help="both count from 1; no COL is the end of the line"
    )
    # To argparse what begins with - is an option.
    places.add_argument(
        "-:", dest="in_standard_input", metavar="LINE[:COL]", help="the same in standard input: `-:10 --language go`"
    )
    parser.add_argument("--language", metavar="ID", help="LSP identifier (default: by FILE, else plain text)")
    parser.add_argument(
        "--grammar", metavar="NAME|PATH|auto|none", default=None, help="constrain (default: auto, the language's own)"
    )
    gate = parser.add_mutually_exclusive_group()
    gate.add_argument(
        "--gate", choices=["window", "whole", "off"], default=None,
        help="how much of what follows the cursor must fit behind a completion (default: window, about 1 KB)",
    )  # fmt: skip
    gate.add_argument("--no-gate", dest="gate", action="store_const", const="off", help="the same as --gate off")
    parser.add_argument("--show", action="store_true", help="show where each token came from")
    _add_sampling(parser)
    parser.set_defaults(command="complete")


def _add_generate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("generate", help="generate text that matches a grammar")
    parser.add_argument(
        "prompt", nargs="?", default="", metavar="PROMPT | -", help="text to go on from; - is standard input"
    )
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument(
        "--grammar", metavar="NAME|FILE", help="a shipped grammar, .gbnf, .lark or .json (schema), - (GBNF)"
    )
    kinds.add_argument("--json-schema", metavar="FILE", help="a JSON Schema (- is standard input)")
    kinds.add_argument("--lark", metavar="FILE", help="a grammar in Lark's notation (likewise)")
    kinds.add_argument("--regex", metavar="RE", help="a regular expression")
    _add_lenient(parser)
    _add_extensions(parser)
    parser.add_argument(
        "--chat", action="store_true",
        help="PROMPT is a question: write it as the model's own chat template says (needs jinja2)",
    )  # fmt: skip
    parser.add_argument("--system", metavar="TEXT", default="", help="the system's message of --chat (default: none)")
    parser.add_argument("--language", metavar="ID", default=USUAL, help=f"whose draft to use (default: {USUAL})")
    parser.add_argument("--show", action="store_true", help="show where each token came from")
    _add_sampling(parser)
    parser.set_defaults(command="generate")


def _add_serve(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("serve", help="run the language server")
    parser.add_argument("--stdio", action="store_true", help="over standard input and output (default)")
    parser.add_argument(
        "--in-process", action="store_true", help="load the models in this process, not in one that all windows share"
    )
    group = parser.add_argument_group("clients that speak HTTP (OpenAI's API, llama-server's, Mistral's)")
    group.add_argument(
        "--http", metavar="[HOST:]PORT", type=_address,
        help="answer HTTP requests; with --stdio also run the language server (default host: 127.0.0.1)",
    )  # fmt: skip
    group.add_argument(
        "--api-key-file", type=Path, metavar="FILE",
        help="keys, one per line, of which clients must send one; required if HOST is not this machine "
        "(default: CODESPEC_HTTP_KEY)",
    )  # fmt: skip
    group.add_argument(
        "--http-cors", action="append", default=[], metavar="ORIGIN", help="let web pages of ORIGIN ask (default: none)"
    )
    group.add_argument("--target", metavar="NAME|PATH", help="target of --http without --stdio (default: settings)")
    group.add_argument(
        "--exact", action="store_true",
        help="give the same text whatever was asked before, and with any draft, more slowly; not with --stdio",
    )  # fmt: skip
    parser.set_defaults(command="serve")


def _add_model_process(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    # Language servers run it: no help, so that it is not listed.
    parser = commands.add_parser("model-process")
    parser.add_argument("--name", metavar="NAME", help="1 is returned where this version of codespec has another one")
    parser.add_argument("--stop", action="store_true", help="end the one that runs")
    parser.set_defaults(command="model-process")


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError("give HOST:PORT or PORT, such as 127.0.0.1:8765")
    return host or "127.0.0.1", int(port)


def _add_grammar(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("grammar", help="check grammars, and files against them")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    check = actions.add_parser("check", help="say what is wrong with a grammar")
    check.add_argument("file", metavar="FILE", help="a shipped name, .gbnf, .lark or .json; - is standard input")
    check.add_argument("--strict", action="store_true", help="refuse what llama.cpp refuses")
    check.add_argument("--lexemes", action="store_true", help="list what is read as one unit, and what had to be split")
    _add_lenient(check)
    _add_extensions(check)
    check.set_defaults(command="grammar check")
    accepts = actions.add_parser("accepts", help="say whether files match a grammar, and where not")
    accepts.add_argument("grammar", metavar="GRAMMAR", help="as FILE of `check`")
    accepts.add_argument("files", nargs="+", metavar="FILE", help="- is standard input")
    accepts.add_argument("--json", action="store_true", help="a list of {file, accepted, line, column}")
    _add_lenient(accepts)
    _add_extensions(accepts)
    accepts.set_defaults(command="grammar accepts")
    for action in (check, accepts):
        action.add_argument(
            "--from", dest="notation", choices=("gbnf", "lark", "json"), default="gbnf",
            help="notation of a grammar in standard input; json is a JSON Schema (default: gbnf)",
        )  # fmt: skip


def _add_extensions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--extensions",
        action="store_true",
        help="read codespec's extensions in a .gbnf file, as in the shipped grammars",
    )


def _add_lenient(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lenient", action="store_true", help="ignore what cannot be enforced of a JSON Schema, and list it"
    )


def _add_models(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("models", help="list, download, choose and remove models")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    listed = actions.add_parser("list", help="name them, and what they are used for")
    listed.add_argument("--json", action="store_true", help="one list, with all that `inspect` says")
    listed.set_defaults(command="models list")
    inspect = actions.add_parser("inspect", help="say what a model file is, without loading its weights")
    inspect.add_argument("model", metavar="NAME|PATH")
    inspect.add_argument("--json", action="store_true", help="one object")
    inspect.add_argument(
        "--verify", action="store_true", help="compare the file with the checksum that the hub gave when it was fetched"
    )
    inspect.set_defaults(command="models inspect")
    pull = actions.add_parser("pull", help="download a model from the hub, or resume a download")
    pull.add_argument(
        "model", metavar="NAME|OWNER/REPOSITORY[:KIND]",
        help="a name that `suggest` knows, or any repository with GGUF files, such as me/mine-GGUF:q4_k_m",
    )  # fmt: skip
    pull.add_argument(
        "--unverified", action="store_true", help="also download files that the hub gives no checksum or size for"
    )
    pull.set_defaults(command="models pull")
    remove = actions.add_parser("remove", help="delete a model that was fetched")
    remove.add_argument("model", metavar="NAME")
    remove.set_defaults(command="models remove")
    use = actions.add_parser("use", help="choose a target, a draft or a model of next edits; editors follow at once")
    use.add_argument("model", metavar="NAME|PATH|auto|none", help="`auto` and `none` are for drafts only")
    use.add_argument("--for", dest="language", metavar="LANGUAGE", help="a draft for this language only")
    use.add_argument(
        "--as", dest="role", choices=("target", "draft", "edit"),
        help="role of the model; edit: next edits (default: by name; draft if at most half the target's parameters)",
    )  # fmt: skip
    use.set_defaults(command="models use")
    suggest = actions.add_parser("suggest", help="name models that this machine can run, and how fast")
    suggest.add_argument("--json", action="store_true", help="one object")
    suggest.set_defaults(command="models suggest")


def _add_learnt(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("learnt", help="what drafts have learnt in workspaces")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    forget = actions.add_parser("clear", help="forget what was learnt in a workspace")
    forget.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="(default: this one)")
    forget.set_defaults(command="learnt clear")
