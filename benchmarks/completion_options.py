"""The options of the benchmarks that complete what a person would write."""

from __future__ import annotations

import argparse
from pathlib import Path

from codespec.cli.option_values import count, whole


def add_infill(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser("infill", help="what was cut out of files, filled in again: exact, parsing, passing")
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="PATH",
        help="sets (.jsonl, .jsonl.gz, as HumanEval-Infilling has them; also HumanEval's own file), and files and "
        "folders to make one of",
    )
    parser.add_argument("--fetch", type=Path, metavar="DIR", help="unpack the packages of our own sets there, no more")
    parser.add_argument("--make", type=Path, metavar="FILE", help="write the set there, and measure nothing")
    parser.add_argument(
        "--doctests", action="store_true", help="of files, Python functions alone whose examples are the tests"
    )
    parser.add_argument("--languages", default="", metavar="ID,ID…", help="(default: all of a set; five of files)")
    parser.add_argument(
        "--kinds", default="", metavar="KIND,…", help="single-line, multi-line, random-span (default: all)"
    )
    parser.add_argument(
        "--count", type=count, default=0, metavar="N", help="of each kind in each language (default: all; 100 of files)"
    )
    parser.add_argument(
        "--cursor",
        choices=["start", "indentation", "both"],
        default="start",
        help="at the start of a line that is missing, behind its indentation, or both of the same lines",
    )
    parser.add_argument(
        "--arms", default="codespec", metavar="NAME,…", help="codespec, read before, plain (default: codespec)"
    )
    parser.add_argument("--llama-server", default="", metavar="PATH|URL", help="also llama-server, with this target")
    parser.add_argument("--budget", type=count, default=None, metavar="MS", help="0 is no limit (default: 2000)")
    _add_conditions(parser)
    parser.add_argument("--show", type=count, default=0, metavar="N", help="print N answers of each arm")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write infill.json, with every text, there")
    parser.set_defaults(command="infill")


def add_typing(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "typing", help="files typed in a real editor: what is shown at pauses, and what it is worth"
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files and folders, as of infill --fetch")
    parser.add_argument("--editor", choices=["neovim", "vscode"], default="neovim")
    parser.add_argument("--languages", default="python,javascript", metavar="ID,ID…", help="(default: %(default)s)")
    parser.add_argument("--pauses", type=count, default=200, metavar="N", help="in each language (default: 200)")
    _add_conditions(parser)
    parser.add_argument("--show", type=count, default=0, metavar="N", help="print N pauses of each language")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write typing.json, with every pause, there")
    parser.set_defaults(command="typing")


def _add_conditions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", metavar="NAME|PATH", default=None, help="target model (default: embedded)")
    parser.add_argument(
        "--busy", type=count, default=0, metavar="N", help="processes that compute meanwhile (default: 0)"
    )
    parser.add_argument("--settings", action="append", default=[], metavar="KEY=VALUE", help="as in codespec.toml")
    parser.add_argument("--seed", type=whole, default=1, metavar="N")
