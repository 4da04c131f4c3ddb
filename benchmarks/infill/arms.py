"""What fills gaps in: codespec as a new user has it, and its target plainly from left to right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from time import perf_counter

from benchmarks.infill.task import SINGLE, Task
from codespec.completion.completer import Completer
from codespec.completion.ending.fitted_state import FittedState, FreeState
from codespec.completion.request import Request
from codespec.engine.engine import Engine
from codespec.protocols import Limits, Sampling

PLAIN_TOKENS = 128
LEFT_OUT = 64
"""Tokens of the context that the prompt of the plain arm leaves free beside those that it writes."""


@dataclass(frozen=True)
class Answer:
    """What was put into a gap.

    Attributes:
        ms: from the question to the whole answer.
        reason: why the text ended.
    """

    text: str
    ms: float
    reason: str = ""


Arm = Callable[[Task], Answer]


def codespec(completer: Completer) -> Arm:
    """The completer, asked as an editor asks it: a document that it has not seen, alone."""
    return _completing(completer, read=False)


def read_before(completer: Completer) -> Arm:
    """The same, the target having read the document before, as it has while somebody types in it."""
    return _completing(completer, read=True)


def _completing(completer: Completer, read: bool) -> Arm:
    numbers = count(1)

    def answer(task: Task) -> Answer:
        path = f"/infill/{next(numbers)}/{task.path.split('/')[-1]}"
        request = Request(task.prompt + task.suffix, len(task.prompt), task.language, path)
        if read:
            completer.prefill(request)
        began = perf_counter()
        found = completer.complete(request)
        ms = (perf_counter() - began) * 1e3
        return Answer(found[0].text, ms, found[0].finish_reason) if found else Answer("", ms, "none")

    return answer


def plain(engine: Engine) -> Arm:
    """The target alone, greedy, from left to right, which sees nothing of what follows the cursor.

    The prompt is cut before the white space at its end, which is generated again, so that no token of the text has to
    begin at the cursor. What comes back ends where ``until_suffix`` says.
    """

    def answer(task: Task) -> Answer:
        vocabulary = engine.vocabulary
        kept = task.prompt.rstrip()
        lead = task.prompt[len(kept) :]
        length = engine.context_length - PLAIN_TOKENS - LEFT_OUT
        beginning = [] if vocabulary.beginning is None else [vocabulary.beginning]
        prompt = beginning + vocabulary.tokenize(kept)[-length:]
        limits = Limits(PLAIN_TOKENS + len(vocabulary.tokenize(lead)), None)
        state = FittedState(FreeState(), None, vocabulary, lead)
        text = ""
        began = perf_counter()
        for chunk in engine.generate(prompt, state, Sampling(), limits):
            text += chunk.text
            if is_enough(task, text[len(lead) :]):
                break
        return Answer(until_suffix(task, text[len(lead) :]), (perf_counter() - began) * 1e3)

    return answer


def is_enough(task: Task, text: str) -> bool:
    """Whether what a model that goes on for ever has said holds what ``until_suffix`` keeps of it."""
    return "\n" in text if task.kind == SINGLE else until_suffix(task, text) != text


def until_suffix(task: Task, text: str) -> str:
    """Of a text without an end of its own what fills the gap: the first line where one is missing, else what comes
    before the rest of the cursor's line; or before the next line that stands behind the gap, and before a line that
    is less indented than the first."""
    if task.kind == SINGLE:
        return text.partition("\n")[0]
    rest, _, following = task.suffix.partition("\n")
    if rest.strip():
        return text.partition(rest)[0]
    wanted = next((line.strip() for line in following.split("\n") if line.strip()), "")
    lines = (task.prompt.rpartition("\n")[2] + text).split("\n")
    least = _indentation(next(filter(str.strip, lines), ""))
    for row, line in enumerate(lines[:-1]):  # the last one may not be whole yet
        if line.strip() and (line.strip() == wanted or _indentation(line) < least):
            return "\n".join(text.split("\n")[:row]).rstrip()
    return text


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
