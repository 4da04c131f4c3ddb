"""The options of the benchmarks. Imports nothing heavy."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.capacity.options import add_capacity, add_plan, developers
from benchmarks.completion_options import add_infill, add_typing
from benchmarks.training.options import add_edit_cases, add_train_edit
from codespec.cli.option_values import LONGEST_PROPOSAL, not_negative, positive, whole


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``python -m benchmarks``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What codespec is worth, measured.")
    parser.add_argument("--debug", action="store_true", help="show tracebacks and every log message")
    actions = parser.add_subparsers(required=True, metavar="BENCHMARK")
    _add_decode(actions)
    _add_profile(actions)
    grammar = actions.add_parser("grammar", help="what masks and other operations on grammars cost")
    grammar.add_argument(
        "grammars", nargs="*", metavar="GRAMMAR[=TEXT]", help="a shipped name or a file, and a text to walk along"
    )
    grammar.add_argument("--vocab", type=Path, nargs="+", default=[], metavar="GGUF", help="(default: the target's)")
    grammar.add_argument("--peers", action="store_true", help="other engines, on .gbnf files")
    grammar.add_argument("--decode", action="store_true", help="what JSON costs a decoding model, per token")
    grammar.add_argument("--target", type=Path, metavar="GGUF", help="with --decode (default: embedded)")
    grammar.add_argument("--tokens", type=positive, default=200, metavar="N", help="with --decode (default: 200)")
    grammar.add_argument("--out", type=Path, metavar="DIR", help="write grammar.json and grammar.svg there")
    grammar.set_defaults(command="grammar")
    _add_busy(actions)
    _add_gate(actions)
    _add_edit(actions)
    _add_renames(actions)
    _add_edit_speed(actions)
    learning = actions.add_parser("learning", help="what n-grams gain from having seen the files of a workspace")
    learning.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files and folders (default: codespec's)")
    learning.add_argument("--passes", type=positive, default=2, metavar="N", help="over the files (default: 2)")
    learning.add_argument("--positions", type=positive, default=2, metavar="N", help="in each file (default: 2)")
    learning.add_argument("--out", type=Path, metavar="DIR", help="write learning.json there")
    learning.set_defaults(command="learning")
    _add_round_trips(actions)
    _add_latency(actions)
    add_plan(actions)
    add_capacity(actions)
    _add_quality(actions)
    add_infill(actions)
    add_typing(actions)
    _add_http(actions)
    _add_inflate(actions)
    sources = actions.add_parser("sources", help="how much of real files a shipped grammar takes")
    sources.add_argument("grammar", metavar="GRAMMAR", help="NAME or NAME:START")
    sources.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files, or folders to search")
    sources.add_argument("--limit", type=positive, default=None, metavar="N", help="a fixed random sample of N files")
    sources.add_argument("--out", type=Path, metavar="DIR", help="write sources-GRAMMAR.json there")
    sources.add_argument("--no-judge", action="store_true", help="count files that the language's own parser refuses")
    sources.set_defaults(command="sources")
    fetch = actions.add_parser("fetch", help="fetch the packages that a corpus was made of (PyPI, npm, Debian)")
    fetch.add_argument("--manifest", type=Path, required=True, metavar="FILE", help="manifest.json.gz of a run folder")
    fetch.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to unpack them in")
    fetch.add_argument(
        "--previous",
        type=int,
        nargs="?",
        const=1,
        default=0,
        metavar="N",
        help="of each the version before, or the N-th that the manifest names, to see what was edited",
    )
    fetch.set_defaults(command="fetch")
    _add_compare(actions)
    add_train_edit(actions)
    add_edit_cases(actions)
    return parser


def _add_profile(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser("profile", help="what passes over several tokens cost, remembered for drafting")
    parser.add_argument("--target", metavar="NAME|PATH", help="target model (default: settings, embedded)")
    parser.add_argument("--draft", metavar="NAME|PATH|auto|none", help="draft model (default: auto)")
    parser.add_argument("--language", metavar="ID", default="python", help="whose draft (default: python)")
    parser.add_argument(
        "--contexts", type=_sizes, metavar="N,N…",
        help="tokens before the pass (default: 0,512,2048, as far as the model's context goes)",
    )  # fmt: skip
    parser.add_argument("--repeats", type=positive, metavar="N", help="(default: 3 to 20, by the model's speed)")
    parser.add_argument("--threads", type=positive, metavar="N", help="(default: settings, as many as are fastest)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write profile.json and, with matplotlib, .png")
    parser.add_argument("--json", action="store_true", help="print what profile.json holds")
    parser.set_defaults(command="profile")


def _sizes(text: str) -> tuple[int, ...]:
    """Whole numbers from 0 on with commas between, in order."""
    try:
        sizes = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        sizes = (-1,)
    if sizes[0] < 0:
        raise argparse.ArgumentTypeError("give context sizes in tokens, such as 0,512,2048")
    return sizes


def _add_round_trips(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "round-trips", help="requests that drafts save with a scoring engine, at several distances"
    )
    parser.add_argument("url", metavar="URL", help="of the engine, such as http://127.0.0.1:8000")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files and folders (default: codespec's)")
    parser.add_argument("--kind", default="vllm", help="vllm or sglang (default: vllm)")
    parser.add_argument(
        "--vocabulary", type=Path, metavar="FILE", help="GGUF of its model (default: the embedded target)"
    )
    parser.add_argument("--ways", default="0,40,150", metavar="MS", help="there and back, added (default: 0,40,150)")
    parser.add_argument("--sets", default="code,repetitive,json", metavar="SETS", help="as of decode")
    parser.add_argument("--count", type=positive, default=8, metavar="N", help="prompts of each set (default: 8)")
    parser.add_argument("--tokens", type=positive, default=64, metavar="N", help="of each text (default: 64)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write round-trips.json there")
    parser.set_defaults(command="round-trips")


def _add_busy(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser("busy", help="what a token takes while other programs compute, by the threads")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files and folders to continue texts of")
    parser.add_argument("--target", metavar="NAME|PATH", default="", help="target model (default: embedded)")
    parser.add_argument("--samples", type=positive, default=8, metavar="N", help="texts for each load (default: 8)")
    parser.add_argument("--command", dest="shell", default="", metavar="SHELL", help="a further load: a shell command")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write busy.json there")
    parser.set_defaults(command="busy")


def _add_gate(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser("gate", help="do completions leave files well formed, at every kind of position")
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files and folders to complete in")
    parser.add_argument(
        "--languages", default="python,json", metavar="ID,ID…",
        help="javascript, typescript, go, rust, c and others need programs that judge them: make judges "
        "(default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--positions", type=positive, default=100, metavar="N", help="of each kind (default: 100)")
    parser.add_argument("--target", metavar="NAME|PATH", default=None, help="target model (default: embedded)")
    parser.add_argument("--draft", metavar="NAME|PATH|auto|none", default=None, help="draft model (default: auto)")
    parser.add_argument("--gate", choices=["window", "whole", "off"], default=None, help="(default: window)")
    parser.add_argument("--grammar", metavar="NAME|PATH|auto|none", default=None, help="(default: auto)")
    parser.add_argument("--max-tokens", type=positive, default=None, metavar="N", help="(default: 128)")
    parser.add_argument("--threads", type=positive, default=None, metavar="N", help="(default: as many as are fastest)")
    parser.add_argument("--seed", type=whole, default=1, metavar="N")
    parser.add_argument(
        "--new-user", action="store_true", help="all settings of a new user: the time limit and the context, too"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write gate.json, with all that was wrong, there")
    parser.set_defaults(command="gate")


def _add_edit(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser("edit", help="are next edits right, and do they no harm: replays edits that were made")
    parser.add_argument("--model", type=Path, metavar="PATH", help="GGUF file (default: the embedded one)")
    parser.add_argument("--cases", type=Path, action="append", default=[], metavar="FILE", help="cases, one a line")
    parser.add_argument(
        "--git", type=Path, action="append", default=[], metavar="FOLDER", help="a repository's commits"
    )
    parser.add_argument("--count", type=whole, default=0, metavar="N", help="of a kind and language (default: all)")
    parser.add_argument("--budget", type=positive, default=2_000, metavar="MS", help="for an answer (default: 2000)")
    parser.add_argument("--threads", type=positive, default=None, metavar="N", help="(default: as many as are fastest)")
    parser.add_argument("--seed", type=whole, default=1, metavar="N")
    parser.add_argument("--model-only", action="store_true", help="ask the model for renames, too")
    parser.add_argument("--show", type=whole, default=0, metavar="N", help="print offers that are not right")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write edit.json and every outcome there")
    parser.set_defaults(command="edit")


def _add_renames(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser("renames", help="do renames that are begun in real files go on where they should")
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="folders of packages, or files")
    parser.add_argument(
        "--languages", default="python,javascript,typescript,go", metavar="LIST", help="(default: all four)"
    )
    parser.add_argument("--count", type=whole, default=500, metavar="N", help="of a language (default: 500)")
    parser.add_argument("--seed", type=whole, default=1, metavar="N")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write every rename there, a line of JSON each")
    parser.set_defaults(command="renames")


def _add_edit_speed(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "edit-speed", help="how fast next edits are written at the cost of 1.4B parameters (needs torch and gguf)"
    )
    parser.add_argument("--cases", type=Path, action="append", default=[], metavar="FILE", help="as of edit")
    parser.add_argument(
        "--git", type=Path, action="append", default=[], metavar="FOLDER", help="a repository's commits"
    )
    parser.add_argument("--count", type=positive, default=60, metavar="N", help="edits in all (default: 60)")
    parser.add_argument("--seed", type=whole, default=1, metavar="N")
    parser.add_argument("--threads", type=whole, default=0, metavar="N", help="(default: as many as are fastest)")
    parser.add_argument("--model", type=Path, metavar="FILE", help="keep the model's file, 1.4 GB, and find it again")
    parser.add_argument("--costs", type=Path, metavar="FILE", help="model the time by this cost curve")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="llama.cpp's programs, to compare its n-gram modes")
    parser.add_argument(
        "--peer-settings", default="", metavar="NAME;NAME…", help="that begin so (default: all of llama-server's)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write edit-speed.json, with every text, there")
    parser.set_defaults(command="edit-speed")


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
    parser.add_argument("--count", type=positive, default=8, metavar="N", help="insertions to type (default: 8)")
    parser.add_argument(
        "--debounce", type=positive, default=75, metavar="MS", help="from a key to the request (default: 75)"
    )
    parser.add_argument("--threads", type=positive, default=None, metavar="N", help="of the target")
    parser.add_argument("--context", type=positive, default=None, metavar="N", help="of the target, in tokens")
    parser.add_argument(
        "--order", choices=["spm", "psm"], default="", help="of prompts: suffix or prefix first (default: the target's)"
    )
    parser.add_argument(
        "--llama-server", type=Path, metavar="PATH", help="type the same into llama.vim with this llama-server"
    )
    parser.add_argument(
        "--llama-server-arguments", default="", metavar="TEXT", help="further arguments of it, such as '-fa off'"
    )
    parser.add_argument("--seed", type=whole, default=1, metavar="N", help="of insertions and pauses (default: 1)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write latency.json and latency.svg there")
    parser.set_defaults(command="latency")


def _add_quality(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser("quality", help="whether completions come, repeat what follows, and leave files sound")
    parser.add_argument(
        "paths", nargs="*", type=Path, default=[Path()], metavar="PATH", help="repositories, folders, files"
    )
    parser.add_argument("--requests", type=positive, default=2000, metavar="N", help="(default: 2000)")
    parser.add_argument("--target", metavar="NAME|PATH", default=None, help="target model (default: embedded)")
    parser.add_argument("--draft", metavar="NAME|PATH|auto|none", default=None, help="draft model (default: auto)")
    parser.add_argument("--gate", choices=["window", "whole", "off"], default=None, help="(default: window)")
    parser.add_argument("--grammar", metavar="NAME|PATH|auto|none", default=None, help="(default: auto)")
    parser.add_argument("--seed", type=whole, default=1, metavar="N")
    parser.add_argument("--show", type=positive, default=0, metavar="N", help="print N examples of each failure")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write quality.json there")
    parser.set_defaults(command="quality")


def _add_decode(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser("decode", help="speed of each source of drafts against the target alone")
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="files to make prompts of, or folders of Python files (default: codespec)",
    )
    parser.add_argument("--target", metavar="NAME|PATH", default=None, help="target model (default: embedded)")
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
    parser.add_argument("--prompts", type=positive, default=6, metavar="N", help="of each set (default: 6)")
    parser.add_argument("--repeats", type=positive, default=5, metavar="N", help="of each prompt (default: 5)")
    parser.add_argument("--tokens", type=_at_least_two, default=64, metavar="N", help="of each text (default: 64)")
    parser.add_argument("--threads", type=positive, default=0, metavar="N", help="(default: as many as are fastest)")
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
    parser.set_defaults(command="decode")


def _at_least_two(text: str) -> int:
    value = whole(text)
    if value < 2:
        raise argparse.ArgumentTypeError("must be at least 2: the first token comes from the prompt's own pass")
    return value


def _lengths(text: str) -> tuple[int, ...]:
    """``1,2,4`` or ``1-16``."""
    first, dash, last = text.partition("-")
    values = range(whole(first), whole(last) + 1) if dash else [whole(part) for part in text.split(",")]
    if not values or not all(1 <= value <= LONGEST_PROPOSAL for value in values):
        raise argparse.ArgumentTypeError(f"give lengths from 1 to {LONGEST_PROPOSAL}, such as 1,2,4,8 or 1-16")
    return tuple(dict.fromkeys(values))


def _temperatures(text: str) -> tuple[float, ...]:
    return tuple(dict.fromkeys(not_negative(part) for part in text.split(",")))


def _add_http(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser("http", help="the HTTP server beside llama-server: first token and tokens per second")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="Python files for prompts (default: ours)")
    parser.add_argument(
        "--llama-server", type=Path, required=True, metavar="FILE", help="as `make llama-server` builds"
    )
    parser.add_argument("--target", metavar="NAME|PATH", default=None, help="target model (default: embedded)")
    parser.add_argument("--draft", type=Path, metavar="GGUF", help="another llama-server drafts with it")
    parser.add_argument("--count", type=positive, default=24, metavar="N", help="requests of each kind (default: 24)")
    parser.add_argument("--tokens", type=positive, default=64, metavar="N", help="of an answer at most (default: 64)")
    parser.add_argument("--repeats", type=positive, default=3, metavar="N", help="of all requests (default: 3)")
    parser.add_argument("--threads", type=positive, default=2, metavar="N", help="of llama-server (default: 2)")
    parser.add_argument(
        "--clients", type=developers, default=(1, 4, 16), metavar="N,N…", help="at a time (default: 1,4,16)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write http.json there")
    parser.set_defaults(command="http")


def _add_inflate(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "inflate", help="write a model that costs what a large one costs, to time with (needs torch and gguf)"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the .gguf to write; 1.6 GB")
    parser.add_argument("--target", type=Path, metavar="GGUF", help="whose outputs to keep (default: embedded)")
    parser.add_argument("--random", type=Path, metavar="GGUF", help="random weights instead, with this vocabulary")
    parser.add_argument("--layers", type=positive, metavar="N", help="(default: 36; with --random 28)")
    parser.add_argument("--ffn", type=positive, metavar="N", help="feed-forward width (default: 53760; random 8960)")
    parser.add_argument(
        "--quantization", choices=["q8_0", "q4_0"],
        help="quantize anew, which changes the outputs (default: as the target is; random q8_0)",
    )  # fmt: skip
    parser.set_defaults(command="inflate")


def _add_compare(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    compare = actions.add_parser("compare", help="what every draft of a run folder is worth in every language")
    compare.add_argument("--out", type=Path, required=True, metavar="DIR", help="run folder with a target and drafts")
    compare.add_argument("--target", metavar="NAME|PATH", help="instead of the one in the run folder")
    compare.add_argument(
        "--places", type=positive, default=240, metavar="N", help="held-out places to complete (default: 240)"
    )
    compare.add_argument(
        "--tokens", type=positive, default=16, metavar="N",
        help="at each; behind more a small target repeats itself, which any draft foresees (default: 16)",
    )  # fmt: skip
    compare.add_argument(
        "--also", nargs="*", default=[], metavar="ID", help="languages without a draft, which the general one is for"
    )
    compare.add_argument(
        "--beside", type=Path, nargs="*", default=[], metavar="FILE", help="other targets, for their bits per byte"
    )
    compare.set_defaults(command="compare")
