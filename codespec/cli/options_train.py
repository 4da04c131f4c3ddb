"""The options of ``codespec train``. Imports nothing heavy."""

from __future__ import annotations

import argparse
from pathlib import Path

from codespec.cli.option_values import count, not_negative, number, positive, share


def add_train(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``codespec train`` with its actions to a parser of commands."""
    parser = commands.add_parser("train", help="train a target, or a draft for one (needs torch)")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _add_learning(actions)
    _add_fim(actions)


def _add_learning(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``train target`` and ``train draft``."""
    target = actions.add_parser("target", help="train a target and its vocabulary")
    target.add_argument("--out", type=Path, required=True, metavar="DIR", help="run folder; continued if it exists")
    target.add_argument(
        "--from", dest="start", default="", metavar="NAME|PATH", help="target of `codespec train` to go on from"
    )
    target.set_defaults(command="train", model="target")
    draft = actions.add_parser("draft", help="distil a draft for a language on a target")
    draft.add_argument("--language", required=True, metavar="ID")
    draft.add_argument("--target", metavar="NAME|PATH", help="(default: the one in --out, else settings, embedded)")
    draft.add_argument(
        "--vocabulary", type=Path, metavar="FILE",
        help="train without a target, for models with the tokens of this GGUF file or tokenizer.json",
    )  # fmt: skip
    draft.add_argument(
        "--out", type=Path, metavar="DIR", help="run folder; continued if it exists (default: of its own)"
    )
    draft.add_argument("--name", metavar="NAME", help="of the model (default: draft-LANGUAGE)")
    draft.add_argument(
        "--from", dest="start", default="", metavar="NAME|PATH|none",
        help="draft to go on from (default: the best one at hand that can be trained on)",
    )  # fmt: skip
    draft.add_argument(
        "--trim", type=count, metavar="N",
        help="the N most frequent of the target's tokens only; 0: all (default: 16384 of more than 32,768)",
    )  # fmt: skip
    draft.add_argument(
        "--passes", type=positive, default=1, metavar="N",
        help="how often to learn from each answer of the target; 2 or 3 save much time, and need a run folder with "
        "its own target (default: 1)",
    )  # fmt: skip
    draft.set_defaults(command="train", model="draft")
    for action, minutes in ((target, 75.0), (draft, 20.0)):
        add_budget(action, minutes, 0.3)
        action.add_argument(
            "--rows", type=positive, metavar="N",
            help="rows of text per step; more give fewer steps but more tokens a second (default: 4; 2 for a draft)",
        )  # fmt: skip
        action.add_argument("--size", choices=["small", "tiny"], default="small", help="tiny is for trying things out")
        action.add_argument("--quantization", default="q8_0", choices=["q8_0", "q4_0", "f16", "f32"])


def _add_fim(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``train fim``."""
    fim = actions.add_parser("fim", help="train an adapter (LoRA) that teaches a target to fill in the middle")
    fim.add_argument("--target", metavar="NAME|PATH", help="of the llama architecture (default: settings)")
    fim.add_argument("--out", type=Path, required=True, metavar="DIR", help="run folder; continued if it exists")
    add_budget(fim, 75.0, 0.4)
    fim.add_argument("--rank", type=positive, default=16, metavar="N", help="of the adapter (default: 16)")
    fim.add_argument(
        "--layers", type=positive, default=15, metavar="N", help="how many of the last layers it changes (default: 15)"
    )
    fim.set_defaults(command="train", model="fim")


def add_budget(action: argparse.ArgumentParser, minutes: float, decay: float) -> None:
    """What is learnt from, how long, and at what rates."""
    action.add_argument("--corpus", type=Path, nargs="*", default=[], metavar="DIR", help="source folders")
    action.add_argument("--minutes", type=number, default=minutes, metavar="M", help=f"(default: {minutes:g})")
    action.add_argument("--max-steps", type=positive, default=None, metavar="N")
    action.add_argument(
        "--rate", type=not_negative, default=1.0, metavar="FACTOR",
        help="multiply the learning rates; use less than 1 to continue from a well-trained model (default: 1)",
    )  # fmt: skip
    action.add_argument(
        "--decay", type=share, default=decay, metavar="SHARE",
        help=f"last part of the budget, in which the learning rates fall to 0 (default: {decay:g})",
    )  # fmt: skip
