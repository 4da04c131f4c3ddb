"""Shows a completion on a terminal, with the source of each token in colour."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from codespec.terminal import printable, printable_lines, write_own

if TYPE_CHECKING:
    from codespec.protocols import FinishReason, Round, Vocabulary

STYLES = {
    "accepted": "\033[32m",  # green: drafted, and the target agreed
    "target": "\033[0m",  # plain: the target's own
    "forced": "\033[36m",  # cyan: the grammar left no choice
    "rejected": "\033[31;9m",  # red, struck out: drafted, and the target disagreed
    "mended": "\033[33m",  # yellow: no model's, such as brackets closed at the limit of tokens
    "dim": "\033[2m",
}
RESET = "\033[0m"
CLEAR_LINE = "\r\033[K"
# Without colour the same is said by brackets.
MARKS = {"rejected": ("⟦", "⟧")}


def wants_colour(stream: TextIO) -> bool:
    """Whether to print colours: on a terminal, unless NO_COLOR says no or FORCE_COLOR yes (no-color.org)."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def paint(text: str, style: str, colour: bool) -> str:
    """``text`` in one of ``STYLES``, or between its marks; control characters in it are neutralized."""
    if not text:
        return ""
    text = printable_lines(text)
    if not colour:
        before, after = MARKS.get(style, ("", ""))
        return before + text + after
    # The terminal's own colours end at each line, so that a pager shows them too.
    return "\n".join(STYLES[style] + line + RESET if line else "" for line in text.split("\n"))


def completion(steps: Sequence[Round], vocabulary: Vocabulary, backed_up: int, text: str, colour: bool) -> str:
    """A completion with the source of each token; ``text`` is the final text, ``backed_up`` the length of the lead that
    the generated text has before it."""
    generated = text_of([token for step in steps for token in step.tokens], vocabulary)
    both = zip(generated[backed_up:], text, strict=False)
    kept = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], both))
    return rounds(steps, vocabulary, backed_up + kept, colour) + paint(text[kept:], "mended", colour)


def rounds(steps: Sequence[Round], vocabulary: Vocabulary, length: int, colour: bool) -> str:
    """The generated text with the source of each token, up to ``length`` characters of it; rejected tokens between."""
    out: list[str] = []
    room = length
    for step in steps:
        pieces = [
            (token, "forced" if source == "forced" else "accepted")
            for token, source in zip(step.tokens[: step.accepted], step.sources, strict=False)
        ]
        pieces += [(token, "target") for token in step.tokens[step.accepted :]]
        for index, (token, style) in enumerate(pieces):
            if room <= 0:
                return "".join(out)
            rejected = step.proposed[step.accepted :]
            if index == step.accepted and rejected and style == "target":
                out.append(paint(text_of(rejected, vocabulary).replace("\n", "⏎"), "rejected", colour))
            text = text_of([token], vocabulary)[:room]
            room -= len(text)
            out.append(paint(text, style, colour))
    return "".join(out)


def text_of(tokens: Sequence[int], vocabulary: Vocabulary) -> str:
    """The text of ``tokens``; a character that is cut apart shows as the replacement character."""
    return b"".join(vocabulary.token_bytes(token) for token in tokens).decode("utf-8", "replace")


def legend(colour: bool) -> str:
    """The meanings of the colours, in one line."""
    parts = [
        paint("drafted and accepted", "accepted", colour),
        paint("target's own", "target", colour),
        paint("forced by the grammar", "forced", colour),
        paint("drafted and rejected", "rejected", colour),
        paint("closed or indented afterwards", "mended", colour),
    ]
    return " · ".join(parts)


ENDS = {
    "stop": "complete",
    "length": "at the limit of tokens",
    "time": "at the limit of time",
    "cancelled": "stopped",
    "grammar": "the grammar allows nothing more",
}
CUTS = {"cut": "cut back to what fits here", "dropped": "nothing of it fits here"}
"""By what the gate did: tells more than that the text had no end of its own."""


def summary(report: dict[str, Any], reason: FinishReason, steps: Sequence[Round], pass_ms: float) -> list[str]:
    """The counts and times of a completion, and why most target calls had nothing to verify, if so.

    Args:
        report: the fields of ``--json``.
        pass_ms: milliseconds of a target call over a single token.
    """
    lines = [
        f"{report['tokens']} tokens in {report['target_calls']} target calls, "
        f"{report['accepted']} of {report['drafted']} drafted tokens accepted, "
        f"{report['timings_ms']['total']:.0f} ms; finished: {CUTS.get(report['gate']) or ENDS[reason]}; "
        f"grammar: {report['grammar']}"
    ]
    alone = sum(1 for step in steps if not step.proposed)
    if 2 * alone > len(steps):
        why = "none was expected to save time" if report["draft"] != "none" else "there is no draft model"
        lines.append(f"no draft in {alone} of {len(steps)} target calls, which take {pass_ms:.1f} ms each: {why}")
    return lines


def error(message: str) -> None:
    """One line on standard error."""
    print(f"codespec: {message}", file=sys.stderr)


def progress() -> Callable[[str, int], None] | None:
    """Shows a message and percent in one line on standard error; None where that is no terminal."""
    if not sys.stderr.isatty():
        return None

    def report(message: str, percent: int) -> None:
        end = CLEAR_LINE if percent >= 100 else ""
        write_own(f"\r{printable(message)} {percent}%{end}", sys.stderr)

    return report
