"""What a draft is worth to a target, on texts that it has not seen."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from operator import eq
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from torch.nn import functional

from codespec.completion.prompt.prompt import Prompts
from codespec.draft.draft_length import FixedLength
from codespec.engine.local import LocalEngine
from codespec.models.info import inspect
from codespec.protocols import CodespecError, Draft, Limits, Sampling
from codespec.speculative.sampling import LogitSampler
from codespec.train.corpus import CorpusDocument
from codespec.train.gguf_file import load_gguf
from codespec.train.model import Llama
from codespec.train.own_thread import in_own_thread
from codespec.train.teacher import Lesson
from codespec.train.trim import TrimmedVocabulary, trim_of

PLACES = 12
TOKENS = 48
LENGTH = 4
"""A draft is judged by ``PLACES`` continuations of held-out texts, of ``TOKENS`` tokens, and proposes ``LENGTH`` at a
time."""


@dataclass(frozen=True)
class InfillingExample:
    """A position in a held-out text at which a draft is judged.

    Attributes:
        path: of the file.
        text: that stands there, between ``prefix`` and ``suffix``.
        tokens: to generate there.
    """

    path: str
    prefix: str
    text: str
    suffix: str
    tokens: int = TOKENS


@dataclass
class GreedyAcceptance:
    """Greedy decoding with ``LENGTH`` tokens proposed at a time, counted.

    Attributes:
        at_places: tokens proposed and accepted at each place.
        tries, first: rounds, and those whose first token was accepted.
        passes, tokens: of the target.
    """

    at_places: list[tuple[int, int]] = field(default_factory=list)
    tries: int = 0
    first: int = 0
    passes: int = 0
    tokens: int = 0

    @property
    def share(self) -> float:
        """The share of the proposed tokens that were accepted."""
        return sum(accepted for _, accepted in self.at_places) / max(1, sum(proposed for proposed, _ in self.at_places))

    @property
    def first_share(self) -> float:
        return self.first / max(1, self.tries)

    @property
    def tokens_per_pass(self) -> float:
        return self.tokens / max(1, self.passes)


@dataclass(frozen=True)
class DraftQuality:
    """What a draft is worth on held-out texts.

    Attributes:
        agreement: at how many places of the texts its likeliest token is the target's; like ``bits_per_byte`` None for
            one of another make than ``codespec train``'s.
        acceptance: of ``LENGTH`` tokens proposed at a time, how many the target accepts, writing greedily.
        first: of the first of them.
        tokens_per_pass: of the target.
        bits_per_byte: of the texts themselves.
        exact_match: how many rests of lines it writes just as they are.
        ms_per_token: on this machine.
    """

    agreement: float | None
    acceptance: float
    first: float
    tokens_per_pass: float
    bits_per_byte: float | None
    exact_match: float
    ms_per_token: float


def own_weights(path: Path) -> Llama | None:
    """The weights of a model of `codespec train`, None of another make."""
    try:
        return load_gguf(path)
    except CodespecError:
        return None


@torch.no_grad()
def agreement(model: Llama, lesson: Lesson, trim: TrimmedVocabulary | None = None) -> float:
    """The share of a lesson's positions at which the model's likeliest token is the target's.

    Args:
        trim: the tokens that the model has; None: all.
    """
    same = count = 0
    read = lesson if trim is None else trim.lesson(lesson)
    for row in range(len(lesson.tokens)):
        tokens = torch.from_numpy(read.tokens[row : row + 1, :-1].astype(np.int64))
        logits = model(tokens)[0].numpy()
        best = logits.argmax(-1) if trim is None else trim.tokens[logits[:, :-1].argmax(-1)]
        learnt = lesson.learnt[row]
        same += int((best == lesson.ids[row, :, 0])[learnt].sum())
        count += int(learnt.sum())
    return round(same / max(1, count), 4)


@torch.no_grad()
def _bits_per_byte(model: Llama, lesson: Lesson, sizes: Sequence[int]) -> float:
    nats, size = 0.0, 0
    for row in range(len(lesson.tokens)):
        tokens = torch.from_numpy(lesson.tokens[row : row + 1].astype(np.int64))
        losses = functional.cross_entropy(model(tokens[:, :-1])[0].float(), tokens[0, 1:], reduction="none").numpy()
        spelled = np.asarray([sizes[token] for token in lesson.tokens[row, 1:]])
        learnt = lesson.learnt[row] & (spelled > 0)
        nats += float(losses[learnt].sum())
        size += int(spelled[learnt].sum())
    return nats / np.log(2) / max(1, size)


def judge(
    drafts: Sequence[Path], target: Path, lesson: Lesson, places: Sequence[InfillingExample], sizes: Sequence[int]
) -> list[DraftQuality]:
    """What each draft is worth, on texts that it has not seen.

    Args:
        lesson: the target's, on them.
        places: in them.
        sizes: of tokens, in bytes.
    """
    found = []
    for path, (accepted, exact, ms) in zip(drafts, in_own_thread(lambda: _beside(drafts, target, places)), strict=True):
        model = own_weights(path)  # as it was exported, on the CPU
        trim = trim_of(path, len(sizes)) if model is not None else None
        bits = round(_bits_per_byte(model, lesson, sizes), 3) if model is not None and trim is None else None
        found.append(
            DraftQuality(
                agreement=agreement(model, lesson, trim) if model is not None else None,
                acceptance=round(accepted.share, 4),
                first=round(accepted.first_share, 4),
                tokens_per_pass=round(accepted.tokens_per_pass, 3),
                bits_per_byte=bits,
                exact_match=exact,
                ms_per_token=ms,
            )
        )
    return found


def _beside(
    drafts: Sequence[Path], target: Path, places: Sequence[InfillingExample]
) -> list[tuple[GreedyAcceptance, float, float]]:
    """Of each draft what the target accepts, at how many places it is right by itself, its milliseconds for a token."""
    engine = judging_engine(target)
    try:
        said, found = list(said_by_target(engine, places)), []
        for path in drafts:
            accepted = accepted_of(path, engine, said)
            assert engine.drafts.model is not None
            found.append((accepted, *_alone(engine, engine.drafts.model, places)))
        return found
    finally:
        engine.close()


def judging_engine(target: Path) -> LocalEngine:
    """An engine of the target to judge drafts by; close it after use."""
    return LocalEngine(target, context_length=min(1024, inspect(target).context or 1024))


@dataclass(frozen=True)
class Said:
    """What a target writes at a position, greedily.

    Attributes:
        prompt, text: token ids.
        room: how many tokens it might write.
        stopped: whether an end token, which is not part of the text, came before that.
    """

    prompt: Sequence[int]
    text: Sequence[int]
    room: int
    stopped: bool


def said_by_target(engine: LocalEngine, places: Sequence[InfillingExample]) -> Iterator[Said]:
    """What the target writes at some positions, by itself."""
    for place, prompt in _prompts(engine, places):
        chunks = engine.generate(prompt, limits=Limits(place.tokens), speculate=False)
        rounds = [chunk.round for chunk in chunks if chunk.round is not None]
        text = [token for each in rounds for token in each.tokens]
        yield Said(prompt, text, place.tokens, rounds[-1].finish_reason == "stop")


def accepted_of(path: Path, engine: LocalEngine, said: Iterable[Said]) -> GreedyAcceptance:
    """How many of a draft's tokens the target accepts while it writes.

    No pass of it is needed: a greedy target accepts just the tokens that it writes itself.
    """
    engine.drafts.choose(path)
    draft = engine.drafts.model
    assert draft is not None
    found, sampling = GreedyAcceptance(), Sampling(logit_bias=_banned(engine))
    end_tokens = engine.vocabulary.end_tokens
    for each in said:
        proposed = accepted = at = 0
        sampler = LogitSampler(sampling, len(each.prompt))
        while at < len(each.text) + each.stopped:
            left = each.text[at:]
            most = FixedLength(LENGTH).more(each.room - at - 1)  # the last token is the target's own
            tokens = draft.propose([*each.prompt, *each.text[:at]], None, sampler, most).tokens
            right = sum(1 for _ in takewhile(bool, map(eq, tokens, left)))
            right += right == len(left) < len(tokens) and tokens[right] in end_tokens  # the end, too, was foreseen
            found.tries += bool(tokens)
            found.first += right > 0
            found.passes += 1
            proposed, accepted, at = proposed + len(tokens), accepted + right, at + right + 1
        found.at_places.append((proposed, accepted))
        found.tokens += len(each.text)
    return found


def _banned(engine: LocalEngine) -> dict[int, float]:
    """Tokens that no text has."""
    return dict.fromkeys(engine.vocabulary.control_tokens - engine.vocabulary.end_tokens, float("-inf"))


def line_ends(documents: Sequence[CorpusDocument], count: int = PLACES) -> list[InfillingExample]:
    """Positions within lines of held-out texts, with the rest of the line as the text; always the same ones."""
    return list(islice(_line_ends(documents, count), count))


def _line_ends(documents: Sequence[CorpusDocument], rounds: int) -> Iterator[InfillingExample]:
    chooser = random.Random("places")
    order = chooser.sample(list(documents), len(documents))
    for _ in range(rounds):
        for document in order:
            for _ in range(8):
                at = chooser.randrange(len(document.text))
                end = document.text.find("\n", at)
                if end - at >= 4 and document.text[at:end].strip():
                    yield InfillingExample(
                        document.path, document.text[:at], document.text[at:end], document.text[end:]
                    )
                    break


def _prompts(engine: LocalEngine, places: Sequence[InfillingExample]) -> Iterator[tuple[InfillingExample, list[int]]]:
    prompts = Prompts(engine.vocabulary, inspect(engine.model.path).fim)
    room = engine.context_length - TOKENS - LENGTH - 2
    for place in places:
        tokens = prompts.prompt(place.prefix, place.suffix, place.path, room)
        yield place, tokens or sorted(engine.vocabulary.end_tokens)[:1]


def _alone(engine: LocalEngine, draft: Draft, places: Sequence[InfillingExample]) -> tuple[float, float]:
    """At how many places the draft writes what stands there, by itself, and milliseconds for a token."""
    vocabulary = engine.vocabulary
    banned = _banned(engine)
    right = count = tokens = 0
    seconds = 0.0
    for place, prompt in _prompts(engine, places):
        limit = min(len(vocabulary.tokenize(place.text)) + 2, TOKENS)
        asked: list[float] = []  # at what times it was asked for a token, and for one more than it may write

        def more(_: float, limit: int = limit, asked: list[float] = asked) -> bool:
            asked.append(perf_counter())
            return len(asked) <= limit

        sampler = LogitSampler(Sampling(logit_bias=banned), len(prompt))
        written = draft.propose(prompt, None, sampler, more).tokens
        data = b"".join(map(vocabulary.token_bytes, written))
        text = data.decode("utf-8", "replace")
        right += f"{text}\n".startswith(f"{place.text}\n")
        count += 1
        if len(asked) > 2:  # the first token is that of the whole prompt
            seconds += asked[-1] - asked[1]
            tokens += len(asked) - 2
    return round(right / max(1, count), 4), round(1e3 * seconds / max(1, tokens), 3)
