"""The options of ``plan`` and ``capacity``. Imports nothing heavy."""

from __future__ import annotations

import argparse
from pathlib import Path

from codespec.cli.option_values import count, not_negative, number, positive, share, whole

MOST_DEVELOPERS = 100_000


def above_zero(text: str) -> float:
    """A number above 0."""
    value = number(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("must be above 0")
    return value


def developers(text: str) -> tuple[int, ...]:
    """Numbers of developers with commas between, in order, each once."""
    try:
        found = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        found = (0,)
    if found[0] < 1 or found[-1] > MOST_DEVELOPERS:
        raise argparse.ArgumentTypeError(f"give numbers from 1 to {MOST_DEVELOPERS:,}, such as 10,1000")
    return found


def add_plan(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """``python -m benchmarks plan``."""
    parser = actions.add_parser("plan", help="simulate how many replicas of an engine a team needs")
    parser.add_argument(
        "--developers", type=developers, required=True, metavar="N[,N…]", help="how many, 1 to 100,000 each"
    )
    parser.add_argument(
        "--curve", type=Path, required=True, metavar="FILE", help="what passes cost: profile.json of `profile`"
    )
    parser.add_argument(
        "--within", type=above_zero, metavar="MS", help="find the replicas for which 95 %% have their answer in so long"
    )
    parser.add_argument(
        "--engine", default="", metavar="KEY=VALUE,…",
        help="slots (16), batch (2048 tokens), prefill (tokens/s), cache (64 prompts), draft (0), accepted (0), "
        "draft_ms (0), sequence_ms (0), overhead_ms (1), late_cancel (0), replicas (1), gpus (1 each)",
    )  # fmt: skip
    group = parser.add_argument_group("developers and their completions")
    group.add_argument(
        "--active", type=share, default=1.0, metavar="SHARE", help="of them that type at one time (default: 1)"
    )
    group.add_argument("--prompt", type=positive, default=1500, metavar="N", help="tokens (default: 1500)")
    group.add_argument(
        "--reread", type=positive, default=2, metavar="N",
        help="tokens of it that a key makes anew; with the prefix first, all of the suffix (default: 2)",
    )  # fmt: skip
    group.add_argument("--answer", type=positive, default=20, metavar="N", help="tokens, on average (default: 20)")
    group.add_argument(
        "--memory", type=share, default=0.5, metavar="SHARE",
        help="of the keys that go on as the completion that is shown, which memory answers (default: 0.5)",
    )  # fmt: skip
    group.add_argument("--debounce", type=not_negative, default=75, metavar="MS", help="key to request (default: 75)")
    group.add_argument(
        "--no-prefill", dest="prefill", action="store_false", help="the engine reads nothing before the request"
    )
    parser.add_argument("--seed", type=count, default=1, metavar="N", help="same seed, same result (default: 1)")
    parser.add_argument(
        "--keys", type=positive, default=6000, metavar="N", help="simulated for each load of a replica (default: 6000)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write plan.json and plan.svg there")
    parser.add_argument("--json", action="store_true", help="print what plan.json holds")
    parser.set_defaults(command="plan")


def add_capacity(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """``python -m benchmarks capacity``."""
    parser = actions.add_parser("capacity", help="what `plan` predicts against a real llama-server")
    parser.add_argument("--llama-server", type=Path, required=True, metavar="PATH", help="its binary")
    parser.add_argument("--target", metavar="NAME|PATH", default=None, help="target model (default: embedded)")
    parser.add_argument(
        "--clients", type=developers, default=(1, 2, 4, 8), metavar="N,N…", help="developers (default: 1,2,4,8)"
    )
    parser.add_argument("--slots", type=positive, default=4, metavar="N", help="of the server (default: 4)")
    parser.add_argument("--threads", type=positive, default=1, metavar="N", help="of the server (default: 1)")
    parser.add_argument("--seconds", type=positive, default=30, metavar="S", help="of each run (default: 30)")
    parser.add_argument("--repeats", type=positive, default=3, metavar="N", help="with other keys (default: 3)")
    parser.add_argument("--prompt", type=positive, default=150, metavar="N", help="tokens (default: 150)")
    parser.add_argument("--answer", type=positive, default=16, metavar="N", help="tokens, on average (default: 16)")
    parser.add_argument("--debounce", type=not_negative, default=75, metavar="MS", help="(default: 75)")
    parser.add_argument("--spin", type=positive, default=None, metavar="N", help="GOMP_SPINCOUNT of the server")
    parser.add_argument("--curve", type=Path, metavar="FILE", help="predict from this cost curve, not the server's own")
    parser.add_argument("--seed", type=whole, default=1, metavar="N", help="of keys and answers (default: 1)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write capacity.json there")
    parser.set_defaults(command="capacity")
