"""Several texts for one prompt, decoded side by side: every pass reads the weights once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from time import perf_counter

import numpy as np

from codespec.protocols import Aborted, ContextFull, FinishReason, Logits, Round, Target
from codespec.speculative.run import NOTHING, Run, since
from codespec.speculative.verify import verify_coupled


def decode_together(
    runs: Sequence[Run],
    prefill: Callable[[Run], Logits],
    fork: Callable[[], Target],
    end_tokens: frozenset[int],
    stopped: Collection[int],
    check_turn: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, Round]]:
    """A ``Round`` of one token for each text and pass, with the text's index; each text's last has a ``finish_reason``.

    The prompt is decoded once, and the target holds it afterwards; the texts are forks of it. No drafts: on a CPU
    the second and third row of a pass cost about as much as a token that is guessed right.

    Args:
        runs: one for each text, of the same prompt and statistics.
        prefill: brings the target to the prompt; the logits after it, float32 [1, V].
        fork: a sequence that holds the prompt. All are made before any goes on.
        stopped: indices of texts of which no more is wanted; asked before every pass.
        check_turn: raises where the target is no longer ours; called before every pass.
    """
    check_turn()
    reason = runs[0].interrupted()
    try:
        logits = prefill(runs[0]) if reason is None else None
    except Aborted:
        logits, reason = None, "cancelled"
    if logits is None:
        yield from _end(enumerate(runs), reason or "cancelled")
        return
    first = logits.copy()  # valid for as long as the caller takes
    live: dict[int, tuple[Run, Target]] = {}
    try:
        for index, run in enumerate(runs):
            over = run.over_from_the_start()
            step = run.ended(over) if over is not None else _settle(run, first, end_tokens)
            if step.finish_reason is None:
                live[index] = run, fork()
            yield index, step
        while live:
            for index in live.keys() & set(stopped):
                live.pop(index)[1].close()
            if not live:
                return
            check_turn()
            reason, logits = _decode(live)
            if reason is not None:
                yield from _end(((index, run) for index, (run, _) in live.items()), reason)
                return
            rows = logits.copy()
            for row, (index, (run, _)) in enumerate(list(live.items())):
                step = _settle(run, rows[row : row + 1], end_tokens)
                if step.finish_reason is not None:
                    live.pop(index)[1].close()
                yield index, step
    finally:
        for _, own in live.values():
            own.close()


def _decode(live: dict[int, tuple[Run, Target]]) -> tuple[FinishReason | None, Logits]:
    """The logits after the last token of each text, float32 [texts, V], or why there are none."""
    runs = [run for run, _ in live.values()]
    forks = [fork for _, fork in live.values()]
    reason, none = runs[0].interrupted(), np.empty((0, 0), np.float32)
    if reason is not None:
        return reason, none
    began = perf_counter()
    try:
        logits = forks[0].decode_each(forks, [run.tokens[-1:] for run in runs])
    except Aborted:
        return "cancelled", none
    except ContextFull:
        return "length", none
    statistics = runs[0].statistics
    statistics.target_calls += 1
    statistics.target_ms += since(began)
    statistics.verify_ms += since(began)
    return None, logits


def _settle(run: Run, logits: Logits, end_tokens: frozenset[int]) -> Round:
    verdict = verify_coupled(logits, NOTHING, run.tokens, run.grammar, run.sampler, end_tokens, run.room)
    run.statistics.tokens += len(verdict.tokens)
    run.statistics.total_ms = since(run.began)
    return Round(verdict.tokens, finish_reason=verdict.finish_reason or run.interrupted())


def _end(runs: Iterable[tuple[int, Run]], reason: FinishReason) -> Iterator[tuple[int, Round]]:
    for index, run in runs:
        yield index, run.ended(reason)
