"""Several texts for one prompt, where an engine writes them one after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing

from codespec.protocols import Chunk, GrammarState, Sampling, Statistics


def one_by_one(
    generate: Callable[[GrammarState | None, Sampling], Iterator[Chunk]],
    statistics: Callable[[], Statistics],
    grammars: Sequence[GrammarState | None],
    samplings: Sequence[Sampling],
    stopped: Collection[int],
) -> Iterator[tuple[int, Chunk]]:
    """The chunks of every text, each with the index of its text.

    Args:
        generate: writes one of them.
        statistics: of the text that was written last; at the end those of all texts are added to the last one's.
        grammars, samplings: one for each text.
        stopped: indices of texts that are to end; the caller may add to it meanwhile.
    """
    spent = Statistics()
    for index, (grammar, sampling) in enumerate(zip(grammars, samplings, strict=True)):
        with closing(generate(grammar, sampling)) as chunks:  # type: ignore[type-var]  # the engines' are generators
            for chunk in chunks:
                yield index, chunk
                if index in stopped:
                    break
        if index + 1 < len(samplings):
            spent.add(statistics())
    statistics().add(spent)
