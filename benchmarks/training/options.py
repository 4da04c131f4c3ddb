"""The options of what trains and judges models of next edits. Imports nothing heavy."""

from __future__ import annotations

import argparse
from pathlib import Path

from codespec.cli.option_values import count, positive
from codespec.cli.options_train import add_budget


def add_train_edit(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``train-edit``."""
    edit = actions.add_parser("train-edit", help="train a target to predict next edits (needs torch)")
    edit.add_argument("--out", type=Path, required=True, metavar="DIR", help="run folder; continued if it exists")
    edit.add_argument(
        "--previous", type=Path, nargs="*", action="append", default=[], metavar="DIR",
        help="source folders of the versions before of the same packages: what was edited between them; once more for "
        "those before these",
    )  # fmt: skip
    edit.add_argument(
        "--from", dest="start", default="", metavar="NAME|PATH", help="model of `codespec train` (default: embedded)"
    )
    edit.add_argument(
        "--examples",
        type=count,
        default=60_000,
        metavar="N",
        help="edits made on files; 0: a corpus alone (default: 60000)",
    )
    add_budget(edit, 75.0, 0.4)
    edit.add_argument(
        "--processes",
        type=positive,
        default=1,
        metavar="N",
        help="of one thread each, that train together (default: 1)",
    )
    edit.add_argument("--quantization", default="q8_0", choices=["q8_0", "q4_0", "f16", "f32"])
    edit.set_defaults(command="train-edit")


def add_edit_cases(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``edit-cases``."""
    cases = actions.add_parser("edit-cases", help="write cases of held-out packages, for `edit`")
    cases.add_argument("run", type=Path, metavar="RUN", help="run folder of `train-edit`")
    cases.add_argument("--out", type=Path, required=True, metavar="FILE")
    cases.set_defaults(command="edit-cases")
