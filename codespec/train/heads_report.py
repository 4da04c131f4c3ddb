"""What extra heads would be worth beside the draft: acceptance by depth, cost, and the speed to expect of both."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from codespec.completion.prompt.prompt import fim_prompt
from codespec.llama.context import Context, LlamaSequence
from codespec.llama.model import Model
from codespec.models.fim import fim_format
from codespec.models.registry import first_difference
from codespec.protocols import CodespecError
from codespec.train import corpus, data, tokenizer
from codespec.train.heads import Heads, HeadsRun
from codespec.train.model import Llama
from codespec.train.pipeline import load_model, spread
from codespec.train.train import Recipe

Right = npt.NDArray[np.bool_]
"""bool [n, depth]: whether the guess of token ``i + 1 + d`` is right, made when ``i`` is the last one known."""

TIMED_PAST = 250  # tokens in the cache when a pass is timed
TURNS, IN_A_ROW = 15, 6
TOKENS = 64


@dataclass
class Tally:
    """Guesses of one source, along the target's own greedy continuations.

    Attributes:
        right: one array for each continuation.
    """

    right: list[Right] = field(default_factory=list)

    def acceptance(self) -> list[float]:
        """For each depth the share of right guesses where those before it were right."""
        shares = []
        for d in range(self.depth):
            judged = np.concatenate([right[: len(right) - 1 - d] for right in self.right])
            reached = judged[judged[:, :d].all(axis=1)]
            shares.append(float(reached[:, d].mean()) if len(reached) else 0.0)
        return shares

    @property
    def depth(self) -> int:
        return self.right[0].shape[1]

    def tokens_per_round(self, length: int) -> float:
        """Tokens that the text grows by at each pass of the target, with proposals of ``length``."""
        tokens = rounds = 0
        for right in self.right:
            position = 0
            while position < len(right):
                agreed = right[position, :length]
                position += 1 + (length if agreed.all() else int(agreed.argmin()))
                rounds += 1
            tokens += len(right)
        return tokens / max(1, rounds)


@dataclass(frozen=True)
class Costs:
    """Milliseconds here: of a target's pass over 1, 2, … tokens, and of one drafted token by source."""

    target: list[float]
    by_source: dict[str, float]

    def speed(self, source: str, tally: Tally, length: int) -> float:
        """Speed with proposals of ``length``, as a ratio to the target alone."""
        round_ms = self.target[length] + length * self.by_source[source]
        return tally.tokens_per_round(length) * self.target[0] / round_ms


def compare(
    target: Llama, heads: dict[str, Heads], target_file: Path, draft_file: Path | None, prompts: Prompts
) -> tuple[dict[str, Tally], Costs]:
    """Guess along greedy continuations of ``prompts`` with every source, and time them all.

    Raises:
        CodespecError: no prompt gave a continuation.
    """
    depth = next(iter(heads.values())).count
    with ExitStack() as stack:
        model = stack.enter_context(Model(target_file))
        context = stack.enter_context(Context(model))
        sequence, draft = context.sequence(), None
        if draft_file:
            draft_model = stack.enter_context(Model(draft_file))
            if first_difference(model.vocabulary, draft_model.vocabulary) is not None:
                raise CodespecError(f"{draft_file}: its vocabulary is not the target's")
            draft = stack.enter_context(Context(draft_model, context_length=context.length)).sequence()
        ends = model.vocabulary.end_tokens
        banned = list(model.vocabulary.control_tokens - ends)
        tallies: dict[str, Tally] = {}
        # llama.cpp rounds the context's length up; what PyTorch computes goes no further than was trained.
        room = min(context.length, target.shape.context) - TOKENS - depth
        for prompt in prompts(model, room):
            text = greedy(sequence, prompt, TOKENS, ends, banned)
            if len(text) <= depth:
                continue
            guesses = {name: head_guesses(target, each, prompt, text, banned) for name, each in heads.items()}
            if draft is not None:
                guesses["draft"] = draft_guesses(draft, prompt, text, depth, banned)
            for name, guessed in guesses.items():
                tallies.setdefault(name, Tally()).right.append(right_ones(guessed, text))
        if not tallies:
            raise CodespecError("the target goes on from none of the held-out files; give a larger corpus")
        passes = [target_pass(sequence, n) for n in range(1, depth + 2)]
        guesses_of = {name: heads_pass(target, each) for name, each in heads.items()}
        if draft is not None:
            guesses_of["draft"] = target_pass(draft, 1)
        times = undisturbed_ms([*passes, *guesses_of.values()])
        by_source = dict(zip(guesses_of, times[len(passes) :], strict=True))
        return tallies, Costs(
            times[: len(passes)], {name: ms / depth if name in heads else ms for name, ms in by_source.items()}
        )


Prompts = Callable[[Model, int], Iterator[list[int]]]
"""(target, budget in tokens) to prompts."""


def fim_prompts(texts: Sequence[tuple[str, str]], count: int, seed: int = 1) -> Prompts:
    """Prompts at random line ends of ``texts`` (name, text), one of each in turn."""

    def make(model: Model, budget: int) -> Iterator[list[int]]:
        layout = fim_format(model)
        if layout is None:
            raise CodespecError(f"{model.path}: this model cannot fill in the middle")
        rng = np.random.default_rng(seed)
        for index in range(count):
            name, text = texts[index % len(texts)]
            lines = text.split("\n")
            row = int(rng.integers(min(5, len(lines) - 1), len(lines)))
            prefix, suffix = "\n".join(lines[:row]) + "\n", "\n" + "\n".join(lines[row:])
            yield fim_prompt(model.vocabulary, layout, prefix, suffix, name, budget)

    return make


def greedy(
    sequence: LlamaSequence, prompt: list[int], count: int, ends: frozenset[int], banned: list[int]
) -> list[int]:
    """The target's own continuation, at most ``count`` tokens, without an end token."""
    sequence.rollback(0)
    text: list[int] = []
    feed = prompt
    while len(text) < count:
        token = int(best(sequence.decode(feed, 1), banned)[0])
        if token in ends:
            break
        text.append(token)
        feed = [token]
    return text


def best(logits: npt.NDArray[np.float32], banned: list[int]) -> npt.NDArray[np.int64]:
    """The most likely tokens of [..., V] that are text; writes over ``logits``."""
    logits[..., banned] = -np.inf
    return logits.argmax(axis=-1)


@torch.no_grad()
def head_guesses(
    target: Llama, heads: Heads, prompt: list[int], text: list[int], banned: list[int]
) -> npt.NDArray[np.int64]:
    """int64 [len(text), depth]: row i guesses what follows ``text[: i + 1]``, from the state that chose ``text[i]``.

    Tokens in between are the target's: a guess only counts where they were guessed.
    """
    ids = torch.tensor([prompt + text + [0] * heads.count])
    begin, count = len(prompt), len(text)
    hidden = target.hidden(ids)[0, begin - 1 : begin - 1 + count] / target.output_scale
    embedded = target.token_embd(ids[0, begin:])
    columns = []
    for depth in range(1, heads.count + 1):
        between = [embedded[d : d + count] for d in range(depth)]
        logits = heads(depth, hidden, between) * target.output_scale @ target.token_embd.weight.T
        columns.append(best(logits.numpy(), banned))
    return np.stack(columns, axis=1)


def draft_guesses(
    draft: LlamaSequence, prompt: list[int], text: list[int], depth: int, banned: list[int]
) -> npt.NDArray[np.int64]:
    """As ``head_guesses``, of a draft model."""
    draft.rollback(0)
    draft.decode(prompt, 0)
    following = best(draft.decode(text), banned)  # [i] is what follows text[: i + 1]
    padded = np.concatenate([following, np.full(depth, -1)])
    return np.stack([padded[d : d + len(text)] for d in range(depth)], axis=1)


def right_ones(guesses: npt.NDArray[np.int64], text: list[int]) -> Right:
    """Which guesses came true; those beyond the end of ``text`` did not."""
    padded = np.concatenate([text, np.full(guesses.shape[1], -2)])
    actual = np.stack([padded[1 + d : 1 + d + len(text)] for d in range(guesses.shape[1])], axis=1)
    return np.asarray(guesses == actual)


def undisturbed_ms(runs: Sequence[Callable[[], object]]) -> list[float]:
    """For each what its fastest fifth takes at most: other programs slow down the rest.

    In turns, because a machine's speed drifts; a few times in a row each, because llama.cpp builds its graph anew
    whenever the number of tokens changes, which a loop of constant draft length does not see.
    """
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(TURNS):
        for run, taken in zip(runs, times, strict=True):
            run()
            for _ in range(IN_A_ROW):
                began = perf_counter()
                run()
                taken.append((perf_counter() - began) * 1e3)
    return [statistics.quantiles(taken, n=5)[0] for taken in times]


def target_pass(sequence: LlamaSequence, count: int) -> Callable[[], object]:
    """A pass over ``count`` tokens, to be timed."""
    past = min(TIMED_PAST, sequence.context.length // 2)

    def run() -> None:
        if sequence.n_past < past:
            sequence.decode([10] * (past - sequence.n_past), 0)
        sequence.rollback(past)
        sequence.decode([11] * count)

    return run


def heads_pass(target: Llama, heads: Heads) -> Callable[[], object]:
    """All heads in NumPy, float32, to be timed; without sampling, like the draft's pass."""
    output = target.token_embd.weight.numpy()
    layers = [
        (into.weight.detach().numpy(), out.weight.detach().numpy())
        for into, out in zip(heads.into, heads.out, strict=True)
    ]
    inputs = [np.ones(into.shape[1], np.float32) for into, _ in layers]

    def run() -> None:
        for (into, out), seen in zip(layers, inputs, strict=True):
            inner = into @ seen
            output @ (seen[: out.shape[0]] + out @ (inner / (1 + np.exp(-inner))))

    return run


def summarize(tallies: dict[str, Tally], costs: Costs) -> dict[str, Any]:
    """Figures of every source, and which of them is the fastest."""
    sources: dict[str, dict[str, Any]] = {}
    for name, tally in tallies.items():
        lengths = range(1, tally.depth + 1)
        sources[name] = {
            "acceptance": [round(share, 3) for share in tally.acceptance()],
            "tokens_per_round": [round(tally.tokens_per_round(n), 2) for n in lengths],
            "ms_per_token": round(costs.by_source[name], 3),
            "speed": [round(costs.speed(name, tally, n), 3) for n in lengths],
        }
    fastest = max(sources, key=lambda name: max(sources[name]["speed"]))
    return {
        "tokens": sum(len(right) for right in next(iter(tallies.values())).right),
        "target_ms": [round(ms, 3) for ms in costs.target],
        "sources": sources,
        "verdict": fastest if max(sources[fastest]["speed"]) > 1 else "target alone",
    }


def run(options: argparse.Namespace) -> int:
    """``codespec train heads``: train heads of both kinds, compare them with the draft, write ``heads.json``.

    Raises:
        ValueError: the run folder has no target, or its corpus nothing held out in the language.
    """
    out: Path = options.out
    if not (out / "target" / "checkpoint.pt").exists() or not (out / "target.gguf").exists():
        raise ValueError(f"{out}: no target to add heads to; run `codespec train target --out {out}` first")
    target = load_model(out / "target")
    train, held_out = data.split([d for d in corpus.load(out) if d.language == options.language])
    if not train or not held_out:
        raise ValueError(f"too few {options.language} files in {out / 'corpus.jsonl.gz'} to train and to judge")
    recipe = Recipe(minutes=options.minutes, adam_rate=0.003, decay=0.4)
    vocabulary = tokenizer.load(out / "tokenizer.json")
    trained = HeadsRun(target, vocabulary, options.heads, recipe, out / "heads")
    trained.train(train, options.language, options.max_steps)
    draft = out / f"draft-{options.language}.gguf"
    texts = [(PurePath(d.path).name, d.text) for d in spread(held_out, options.language)]
    prompts = fim_prompts(texts, options.positions)
    tallies, costs = compare(target, trained.kinds(), out / "target.gguf", draft if draft.exists() else None, prompts)
    summary = {"steps": trained.steps, **summarize(tallies, costs)}
    text = json.dumps(summary, indent=1)
    (out / "heads.json").write_text(text + "\n", "utf-8")
    print(text)
    return 0
