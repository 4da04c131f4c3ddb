"""The options of the command line. Imports nothing heavy, so that ``--help`` stays fast."""

from __future__ import annotations

import argparse
from pathlib import Path

LONGEST_PROPOSAL = 32


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
    _add_model_process(commands)
    _add_grammar(commands)
    _add_models(commands)
    _add_learnt(commands)
    _add_profile(commands)
    _add_bench(commands)
    _add_train(commands)
    doctor = commands.add_parser("doctor", help="say what runs here and what is wrong with it")
    doctor.set_defaults(command="doctor")
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
    group.add_argument(
        "--verify", choices=["gumbel", "rejection"], default="gumbel",
        help="rejection accepts more above temperature 0, but the text depends on the draft (default: gumbel)",
    )  # fmt: skip
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


def _sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        sizes = (-1,)
    if sizes[0] < 0:
        raise argparse.ArgumentTypeError("give context sizes in tokens, such as 0,512,2048")
    return sizes


def _add_complete(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("complete", help="complete a file at a position")
    parser.add_argument("position", metavar="FILE:LINE[:COL]", help="both count from 1; no COL is the end of the line")
    parser.add_argument("--language", metavar="ID", help="LSP language identifier (default: by the file's name)")
    parser.add_argument("--grammar", metavar="NAME|PATH|auto|none", default=None, help="constrain (default: none)")
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
    parser.add_argument("prompt", nargs="?", default="", metavar="PROMPT | -", help="text to go on from; - reads it")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--grammar", metavar="NAME|FILE", help="a shipped grammar, .gbnf, .lark or .json (schema)")
    kinds.add_argument("--json-schema", metavar="FILE", help="a JSON Schema")
    kinds.add_argument("--lark", metavar="FILE", help="a grammar in Lark's notation")
    kinds.add_argument("--regex", metavar="RE", help="a regular expression")
    _add_lenient(parser)
    _add_extensions(parser)
    parser.add_argument("--language", metavar="ID", default="python", help="whose draft to use (default: python)")
    parser.add_argument("--show", action="store_true", help="show where each token came from")
    _add_sampling(parser)
    parser.set_defaults(command="generate")


def _add_serve(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("serve", help="run the language server")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--stdio", action="store_true", help="over standard input and output (default)")
    ways.add_argument("--tcp", metavar="[HOST:]PORT", type=_address, help="over TCP (default host: 127.0.0.1)")
    ways.add_argument("--ws", metavar="[HOST:]PORT", type=_address, help="over a web socket (likewise)")
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="what clients of --tcp and --ws must know (default: CODESPEC_TOKEN, or a new one, which is printed)",
    )
    parser.add_argument(
        "--in-process", action="store_true", help="load the models in this process, not in one that all windows share"
    )
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
    check.add_argument("file", metavar="FILE", help="a shipped name, .gbnf, .lark or .json")
    check.add_argument("--strict", action="store_true", help="refuse what llama.cpp refuses")
    check.add_argument("--lexemes", action="store_true", help="list what is read as one unit, and what had to be split")
    _add_lenient(check)
    _add_extensions(check)
    check.set_defaults(command="grammar check")
    accepts = actions.add_parser("accepts", help="say whether files match a grammar, and where not")
    accepts.add_argument("grammar", metavar="GRAMMAR")
    accepts.add_argument("files", nargs="+", metavar="FILE")
    accepts.add_argument("--json", action="store_true", help="a list of {file, accepted, line, column}")
    _add_lenient(accepts)
    _add_extensions(accepts)
    accepts.set_defaults(command="grammar accepts")
    convert = actions.add_parser("convert", help="write a grammar in another notation")
    convert.add_argument("file", metavar="FILE", help=".gbnf, .lark or .json")
    convert.add_argument("--to", choices=("gbnf", "lark"), required=True, help="the notation to write")
    _add_lenient(convert)
    convert.set_defaults(command="grammar convert")


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
    parser = commands.add_parser("models", help="the models at hand")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    listed = actions.add_parser("list", help="name them, and what they are used for")
    listed.add_argument("--json", action="store_true", help="one list, with all that `inspect` says")
    listed.set_defaults(command="models list")
    inspect = actions.add_parser("inspect", help="say what a model file is, without loading its weights")
    inspect.add_argument("model", metavar="NAME|PATH")
    inspect.add_argument("--json", action="store_true", help="one object")
    inspect.set_defaults(command="models inspect")
    pull = actions.add_parser("pull", help="fetch a model from the hub; one that broke off goes on")
    pull.add_argument(
        "model", metavar="NAME|OWNER/REPOSITORY[:KIND]",
        help="a name that `suggest` knows, or any repository with GGUF files, such as me/mine-GGUF:q4_k_m",
    )  # fmt: skip
    pull.set_defaults(command="models pull")
    remove = actions.add_parser("remove", help="delete a model that was fetched")
    remove.add_argument("model", metavar="NAME")
    remove.set_defaults(command="models remove")
    use = actions.add_parser("use", help="choose a target or a draft, in your settings; editors follow at once")
    use.add_argument("model", metavar="NAME|PATH|auto|none", help="auto and none: of drafts")
    use.add_argument("--for", dest="language", metavar="LANGUAGE", help="a draft for this language only")
    use.add_argument(
        "--as", dest="role", choices=("target", "draft"),
        help="(default: a draft if it has at most half the target's parameters)",
    )  # fmt: skip
    use.set_defaults(command="models use")
    suggest = actions.add_parser("suggest", help="name models that this machine can run, and how fast")
    suggest.add_argument("--json", action="store_true", help="one object")
    suggest.set_defaults(command="models suggest")


def _add_learnt(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("learnt", help="what drafts have learnt in workspaces")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    forget = actions.add_parser("clear", help="forget what was learnt in a workspace")
    forget.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="FOLDER", help="(default: this one)")
    forget.set_defaults(command="learnt clear")


def _add_profile(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("profile", help="measure what passes over several tokens cost, and remember it")
    parser.add_argument("--target", metavar="NAME|PATH", help="target model (default: settings, embedded)")
    parser.add_argument("--draft", metavar="NAME|PATH|auto|none", help="draft model (default: auto)")
    parser.add_argument("--language", metavar="ID", default="python", help="whose draft (default: python)")
    parser.add_argument(
        "--contexts", type=_sizes, metavar="N,N…",
        help="tokens before the pass (default: 0,512,2048, as far as the model's context goes)",
    )  # fmt: skip
    parser.add_argument("--repeats", type=_positive, metavar="N", help="(default: 3 to 20, by the model's speed)")
    parser.add_argument("--threads", type=_positive, metavar="N", help="(default: settings, by the model's size)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write profile.json, .svg and, with matplotlib, .png")
    parser.add_argument("--json", action="store_true", help="print what profile.json holds")
    parser.set_defaults(command="profile")


def _add_bench(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("bench", help="measure")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _add_decode(actions)
    grammar = actions.add_parser("grammar", help="what masks and other operations on grammars cost")
    grammar.add_argument(
        "grammars", nargs="*", metavar="GRAMMAR[=TEXT]", help="a shipped name or a file, and a text to walk along"
    )
    grammar.add_argument("--vocab", type=Path, nargs="+", default=[], metavar="GGUF", help="(default: the target's)")
    grammar.add_argument("--peers", action="store_true", help="other engines, on .gbnf files")
    grammar.add_argument("--decode", action="store_true", help="what JSON costs a decoding model, per token")
    grammar.add_argument("--target", type=Path, metavar="GGUF", help="with --decode (default: embedded)")
    grammar.add_argument("--tokens", type=_positive, default=200, metavar="N", help="with --decode (default: 200)")
    grammar.add_argument("--out", type=Path, metavar="DIR", help="write grammar.json and grammar.svg there")
    grammar.set_defaults(command="bench grammar")
    gate = actions.add_parser("gate", help="do completions leave files that parse, with the suffix gate and without")
    gate.add_argument("--language", metavar="ID", required=True, help="LSP language identifier")
    gate.add_argument("files", nargs="+", type=Path, metavar="PATH", help="files and folders to cut pieces out of")
    gate.add_argument("--cuts", type=_positive, default=1000, metavar="N")
    gate.add_argument("--seed", type=int, default=1, metavar="N")
    gate.add_argument("--max-tokens", type=_positive, default=48, metavar="N")
    gate.add_argument("--no-grammar", action="store_true", help="gate by tree-sitter alone")
    gate.add_argument("--out", type=Path, metavar="DIR", help="write gate-LANGUAGE.json and .md there")
    gate.set_defaults(command="bench gate")
    learning = actions.add_parser("learning", help="what n-grams gain from having seen the files of a workspace")
    learning.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files and folders (default: codespec's)")
    learning.add_argument("--passes", type=_positive, default=2, metavar="N", help="over the files (default: 2)")
    learning.add_argument("--positions", type=_positive, default=2, metavar="N", help="in each file (default: 2)")
    learning.add_argument("--out", type=Path, metavar="DIR", help="write learning.json there")
    learning.set_defaults(command="bench learning")
    _add_latency(actions)
    _add_quality(actions)
    _add_inflate(actions)
    sources = actions.add_parser("sources", help="how much of real files a shipped grammar takes")
    sources.add_argument("grammar", metavar="GRAMMAR", help="NAME or NAME:START")
    sources.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files, or folders to search")
    sources.add_argument("--limit", type=_positive, default=None, metavar="N", help="a fixed random sample of N files")
    sources.add_argument("--out", type=Path, metavar="DIR", help="write sources-GRAMMAR.json there")
    sources.add_argument("--no-judge", action="store_true", help="count files that the language's own parser refuses")
    sources.set_defaults(command="bench sources")


def _add_latency(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser("latency", help="how long somebody who types waits, in a session with the server")
    parser.add_argument(
        "repository", nargs="?", type=Path, default=Path(), help="whose history is typed again (default: this folder's)"
    )
    parser.add_argument("--target", metavar="NAME|PATH", default=None, help="target model (default: embedded)")
    parser.add_argument("--draft", metavar="NAME|PATH|auto|none", default=None, help="draft model (default: auto)")
    parser.add_argument(
        "--arms",
        metavar="NAME,NAME…",
        default="full,neither",
        help="full, no prefill, no prefetch, neither (default: full,neither)",
    )
    parser.add_argument("--count", type=_positive, default=8, metavar="N", help="insertions to type (default: 8)")
    parser.add_argument(
        "--debounce", type=_positive, default=75, metavar="MS", help="from a key to the request (default: 75)"
    )
    parser.add_argument("--threads", type=_positive, default=None, metavar="N", help="of the target")
    parser.add_argument("--context", type=_positive, default=None, metavar="N", help="of the target, in tokens")
    parser.add_argument(
        "--order", choices=["spm", "psm"], default="", help="of prompts: suffix or prefix first (default: the target's)"
    )
    parser.add_argument(
        "--llama-server", type=Path, metavar="PATH", help="type the same into llama.vim with this llama-server"
    )
    parser.add_argument(
        "--llama-server-arguments", default="", metavar="TEXT", help="further arguments of it, such as '-fa off'"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of insertions and pauses (default: 1)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write latency.json and latency.svg there")
    parser.set_defaults(command="bench latency")


def _add_quality(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser("quality", help="whether completions come, repeat what follows, and leave files sound")
    parser.add_argument(
        "paths", nargs="*", type=Path, default=[Path()], metavar="PATH", help="repositories, folders, files"
    )
    parser.add_argument("--requests", type=_positive, default=2000, metavar="N", help="(default: 2000)")
    parser.add_argument("--target", metavar="NAME|PATH", default=None, help="target model (default: embedded)")
    parser.add_argument("--draft", metavar="NAME|PATH|auto|none", default=None, help="draft model (default: auto)")
    parser.add_argument("--gate", choices=["window", "whole", "off"], default=None, help="(default: window)")
    parser.add_argument("--grammar", metavar="NAME|PATH|auto|none", default=None, help="(default: none)")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--show", type=_positive, default=0, metavar="N", help="print N examples of each failure")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write quality.json there")
    parser.set_defaults(command="bench quality")


def _add_decode(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser("decode", help="speed of each source of drafts against the target alone")
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="Python files or folders to make prompts of (default: codespec)",
    )
    parser.add_argument("--target", metavar="GGUF", help="a file or a name (default: embedded)")
    parser.add_argument("--draft", default="auto", metavar="NAME|PATH|auto|none", help="draft model (default: auto)")
    parser.add_argument(
        "--sets", default="code,json,code-replayed", metavar="A,B",
        help="all, or of: code json python repetitive code-replayed repetitive-replayed (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--arms",
        default="all",
        metavar="A,B",
        help="all, or of: target combined forced ngram model oracle (default: all)",
    )
    parser.add_argument(
        "--fixed",
        type=_lengths,
        default=(),
        metavar="K,K|K-K",
        help="also the draft model, always K tokens: 1,2,4 or 1-16",
    )
    parser.add_argument("--temperature", type=_temperatures, default=(0.0,), metavar="T,T", help="(default: 0)")
    parser.add_argument("--prompts", type=_positive, default=6, metavar="N", help="of each set (default: 6)")
    parser.add_argument("--repeats", type=_positive, default=5, metavar="N", help="of each prompt (default: 5)")
    parser.add_argument("--tokens", type=_at_least_two, default=64, metavar="N", help="of each text (default: 64)")
    parser.add_argument("--threads", type=_positive, default=0, metavar="N", help="(default: by the model's size)")
    parser.add_argument(
        "--costs",
        type=Path,
        metavar="FILE",
        help="take the time of the target's passes from a cost curve, not the clock",
    )
    parser.add_argument("--peers", type=Path, metavar="DIR", help="also llama.cpp's own programs in this folder")
    parser.add_argument(
        "--peer-settings",
        choices=["all", "few"],
        default="all",
        help="how many of their settings to try (default: all)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write decode.json, .svg, .png and .html there")
    parser.set_defaults(command="bench decode")


def _at_least_two(text: str) -> int:
    value = int(text)
    if value < 2:
        raise argparse.ArgumentTypeError("must be at least 2: the first token comes from the prompt's own pass")
    return value


def _lengths(text: str) -> tuple[int, ...]:
    """``1,2,4`` or ``1-16``."""
    first, dash, last = text.partition("-")
    values = range(int(first), int(last) + 1) if dash else [int(part) for part in text.split(",")]
    if not values or not all(1 <= value <= LONGEST_PROPOSAL for value in values):
        raise argparse.ArgumentTypeError(f"give lengths from 1 to {LONGEST_PROPOSAL}, such as 1,2,4,8 or 1-16")
    return tuple(dict.fromkeys(values))


def _temperatures(text: str) -> tuple[float, ...]:
    return tuple(dict.fromkeys(_not_negative(part) for part in text.split(",")))


def _add_inflate(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "inflate", help="write a model that costs what a large one costs, to time with (needs codespec[train])"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the .gguf to write; 1.6 GB")
    parser.add_argument("--target", type=Path, metavar="GGUF", help="whose outputs to keep (default: embedded)")
    parser.add_argument("--random", type=Path, metavar="GGUF", help="random weights instead, with this vocabulary")
    parser.add_argument("--layers", type=_positive, metavar="N", help="(default: 36; with --random 28)")
    parser.add_argument("--ffn", type=_positive, metavar="N", help="feed-forward width (default: 53760; random 8960)")
    parser.add_argument(
        "--quantization", choices=["q8_0", "q4_0"],
        help="quantize anew, which changes the outputs (default: as the target is; random q8_0)",
    )  # fmt: skip
    parser.set_defaults(command="bench inflate")


def _add_train(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("train", help="train a target, or a draft for one (needs codespec[train])")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    target = actions.add_parser("target", help="train a target and its vocabulary")
    target.add_argument("--out", type=Path, required=True, metavar="DIR", help="run folder; continued if it exists")
    target.set_defaults(command="train", model="target")
    draft = actions.add_parser("draft", help="distil a draft for a language on a target")
    draft.add_argument("--language", required=True, metavar="ID")
    draft.add_argument("--target", metavar="NAME|PATH", help="(default: the one in --out, else settings, embedded)")
    draft.add_argument(
        "--out", type=Path, metavar="DIR", help="run folder; continued if it exists (default: of its own)"
    )
    draft.add_argument("--name", metavar="NAME", help="of the model (default: draft-LANGUAGE)")
    draft.add_argument(
        "--from", dest="start", default="", metavar="NAME|PATH|none",
        help="draft to go on from (default: the best one at hand that can be trained on)",
    )  # fmt: skip
    draft.set_defaults(command="train", model="draft")
    for action, minutes in ((target, 75.0), (draft, 20.0)):
        action.add_argument("--corpus", type=Path, nargs="*", default=[], metavar="DIR", help="source folders")
        action.add_argument("--minutes", type=float, default=minutes, metavar="M", help=f"(default: {minutes:g})")
        action.add_argument("--max-steps", type=_positive, default=None, metavar="N")
        action.add_argument("--size", choices=["small", "tiny"], default="small", help="tiny is for trying things out")
        action.add_argument("--quantization", default="q8_0", choices=["q8_0", "q4_0", "f16", "f32"])
    heads = actions.add_parser(
        "heads", help="try heads on the target's hidden state (Medusa, Hydra) against the draft of the same --out"
    )
    heads.add_argument("--out", type=Path, required=True, metavar="DIR", help="run folder with a trained target")
    heads.add_argument("--heads", type=_positive, default=3, metavar="N", help="how far ahead (default: 3)")
    heads.add_argument("--language", default="python", metavar="ID", help="(default: python)")
    heads.add_argument("--minutes", type=float, default=10.0, metavar="M")
    heads.add_argument("--max-steps", type=_positive, default=None, metavar="N")
    heads.add_argument("--positions", type=_positive, default=60, metavar="N", help="held-out places to complete")
    heads.set_defaults(command="train", model="heads")
